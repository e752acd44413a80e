"""ProgramSpec: what the user asks p4gen to generate.

Symbols follow EPIC Table 2: a window is W messages of M packets, and N slots buffer them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, assert_never

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from p4gen.spec.reductions import NUMBERS, DType, Numbers, Op

LANE_BYTES = 4
"""A lane is one 32-bit element of a packet."""

MAX_SLOTS = 65536
MAX_TOTAL_SLOTS = 1 << 20


class Mode(StrEnum):
    """EPIC's polymorphic realisations (section 4)."""

    II = "II"
    """Connection translated (4.3)."""
    III = "III"
    """Connection augmented (4.4)."""

    @property
    def augmented(self) -> bool:
        """Whether each switch ends its connections and answers by itself; if not, it translates them."""
        match self:
            case Mode.II:
                return False
            case Mode.III:
                return True
            case other:
                assert_never(other)


class Arch(StrEnum):
    """P4 architectures that programs are generated for."""

    V1MODEL = "v1model"


class Overflow(StrEnum):
    """What a reduction does that leaves the range of its dtype."""

    SATURATE = "saturate"
    WRAP = "wrap"


class Icrc(StrEnum):
    """RoCEv2's invariant CRC: checked on arrival and recomputed, or neither looked at nor mended."""

    RECOMPUTE = "recompute"
    IGNORE = "ignore"

    @property
    def checked(self) -> bool:
        """Whether programs check and mend it."""
        match self:
            case Icrc.RECOMPUTE:
                return True
            case Icrc.IGNORE:
                return False
            case other:
                assert_never(other)


class Reliability(StrEnum):
    """How an edge's packets are taken when some are lost (EPIC section C)."""

    GBN = "gbn"
    """Go-Back-N: in order only."""
    SR = "sr"
    """Selective repeat: out of order too."""
    SACK = "sack"
    """Mode III: selective repeat whose NAKs name every missing packet at once; no commodity NIC sends or knows them."""

    @property
    def in_order(self) -> bool:
        """Whether an edge's packets are taken in order only."""
        match self:
            case Reliability.GBN:
                return True
            case Reliability.SR | Reliability.SACK:
                return False
            case other:
                assert_never(other)

    @property
    def selective_naks(self) -> bool:
        """Whether NAKs name several packets."""
        match self:
            case Reliability.SACK:
                return True
            case Reliability.GBN | Reliability.SR:
                return False
            case other:
                assert_never(other)


class Congestion(StrEnum):
    """What a rank is told that runs ahead of a pipe's range (EPIC 4.4, congestion control for rate synchronization)."""

    CNP = "cnp"
    """A congestion notification, and that its packet is to be sent again later (RNR NAK)."""
    NONE = "none"
    """Only that its packet is missing."""


class Variant(StrEnum):
    """Wrong designs, to see that tests notice them (EPIC 5.1 and H.4). All are of Mode III but the last."""

    PSN_RECYCLING = "psn-recycling"
    """Mode II's RecycleBuffer in Mode III: a newer PSN takes its slot whoever still needs it (the pitfall of 5.1)."""
    ROOT_COPIES = "root-copies"
    """The root copies results straight across, without minding what is still being broadcast (H.4)."""
    NO_NAK = "no-nak"
    """Gaps are not reported; only timers repair them (H.4)."""
    NAK_STORM = "nak-storm"
    """Every packet out of order is answered with a NAK (H.4)."""
    STALE_ARRIVED = "stale-arrived"
    """The arrived bits of a slot outlive its PSN (Algorithm 1 does not say who clears them)."""


class ProgramSpec(BaseModel):
    """A program to generate. Every field has a default, so ``ProgramSpec()`` is a useful program.

    Raises pydantic's ``ValidationError``; ``p4gen.spec.load`` turns it into positioned diagnostics.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", title="p4gen ProgramSpec")

    name: Annotated[
        str | None,
        Field(
            pattern=r"^[a-z][a-z0-9_]{0,62}$",
            description="name of the program and of its folder under build/; made from the other fields by default",
        ),
    ] = None
    mode: Annotated[
        Mode,
        Field(description="EPIC mode: II, connection translated (EPIC 4.3), or III, connection augmented (EPIC 4.4)"),
    ] = Mode.II
    arch: Annotated[Arch, Field(description="P4 architecture; BMv2's v1model")] = Arch.V1MODEL
    pipelines: Annotated[
        Literal[1, 2, 4],
        Field(description="ingress pipelines with memories of their own; they divide the ports evenly"),
    ] = 1
    lanes: Annotated[
        Literal[8, 16, 32, 64, 128, 256],
        Field(description="32-bit elements in a packet, whose payload is 4 x lanes bytes; a power of two"),
    ] = 64
    dtype: Annotated[
        DType, Field(description="type of an element; what a switch can add in one step. Op dynamic serves all of them")
    ] = DType.INT32
    op: Annotated[
        Op, Field(description="how contributions are reduced, element by element; dynamic: as the control message says")
    ] = Op.SUM
    overflow: Annotated[Overflow | None, Field(description="for sums: saturate (the default) or wrap around")] = None
    window: Annotated[int, Field(ge=1, le=1024, description="W: messages a rank may have outstanding")] = 16
    message: Annotated[int, Field(ge=1, le=1024, description="M: packets in a message")] = 4
    slots: Annotated[
        Literal[2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536] | None,
        Field(
            description="N: packets buffered per group; at least 2 x W x M (by default the smallest such), and a power "
            "of two, so that a slot's index is the PSN's low bits and survives its wrap",
        ),
    ] = None
    groups: Annotated[int, Field(ge=1, le=256, description="groups that share the switch at one time")] = 4
    fan_in: Annotated[
        int,
        Field(
            ge=1,
            le=32,
            description="most edges of a group that contribute at this switch; one bit each of a 32-bit bitmap",
        ),
    ] = 32
    ports: Annotated[
        int,
        Field(
            ge=1,
            le=510,
            description="ports of the switch, numbered from 0; v1model keeps 511 for drop and 510 for the CPU",
        ),
    ] = 32
    icrc: Annotated[
        Icrc,
        Field(description="check and recompute RoCEv2's invariant CRC, or ignore it (then NICs must too)"),
    ] = Icrc.RECOMPUTE
    reliability: Annotated[
        Reliability | None,
        Field(
            description="mode II: sr (the default), or gbn, which filters what comes out of order; mode III: gbn (the "
            "default), sr, or sack"
        ),
    ] = None
    congestion: Annotated[
        Congestion | None,
        Field(
            description="mode III: what a rank is told that runs ahead of the pipe's range: cnp (the default) or none"
        ),
    ] = None
    variant: Annotated[Variant | None, Field(description="a wrong design, for tests only; none by default")] = None

    @field_validator("pipelines", "lanes", "slots", mode="before")
    @classmethod
    def _whole(cls, value: Any) -> Any:
        # Literal compares by equality, and True == 1 == 1.0: only an integer is meant.
        if isinstance(value, bool | float):
            raise ValueError("must be an integer")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> ProgramSpec:
        if self.overflow is not None and not self.op.overflows:
            fitting = " or ".join(op for op in Op if op.overflows)
            raise SpecConflictError("overflow", f"goes with op {fitting}; {self.op} cannot overflow")
        if self.numbers is None:
            if "dtype" in self.model_fields_set and self.dtype is not DType.INT32:
                raise SpecConflictError("dtype", "goes with a fixed op; with op dynamic the control message chooses it")
        elif self.dtype not in self.op.reduction.dtypes:
            fitting = " or ".join(self.op.reduction.dtypes)
            raise SpecConflictError("dtype", f"op {self.op} is defined for {fitting}")
        if not self.mode.augmented:
            if self.reliability is Reliability.SACK:
                raise SpecConflictError("reliability", "sack is for mode III; in mode II the switch sends no NAKs")
            if self.congestion is not None:
                raise SpecConflictError("congestion", "is for mode III; in mode II no rank can run ahead of the others")
            if self.variant not in (None, Variant.STALE_ARRIVED):
                raise SpecConflictError("variant", f"{self.variant} is a wrong design of mode III")
        if self.ports % self.pipelines:
            raise SpecConflictError("ports", f"{self.ports} ports do not divide among {self.pipelines} pipelines")
        needed = 2 * self.window * self.message
        if needed > MAX_SLOTS:
            raise SpecConflictError("window", f"2 x window x message is {needed}; at most {MAX_SLOTS} slots can be had")
        if self.slots is not None and self.slots < needed:
            raise SpecConflictError(
                "slots",
                f"must be at least 2 x window x message = {needed}, or a rank a window ahead overwrites",
            )
        if self.total_slots > MAX_TOTAL_SLOTS:
            raise SpecConflictError(
                "groups", f"all groups together have {self.total_slots} slots; there may be {MAX_TOTAL_SLOTS} at most"
            )
        return self

    @property
    def slots_per_group(self) -> int:
        """N, with its default worked out."""
        return self.slots or 1 << (2 * self.window * self.message - 1).bit_length()

    @property
    def total_slots(self) -> int:
        """Slots in one pipeline's memory: N for each pipe of a group, one in mode II and two in mode III (EPIC 4.4)."""
        return self.groups * self.slots_per_group * (2 if self.mode.augmented else 1)

    @property
    def bank_slots(self) -> int:
        """Words of state for slots in a pipeline's bank; a power of two where there are several banks."""
        return self._bank(self.total_slots)

    @property
    def bank_contexts(self) -> int:
        """Words of state for contexts in a pipeline's bank."""
        return self._bank(self.groups)

    @property
    def bank_edges(self) -> int:
        """Words of state for edges in a pipeline's bank; edges are numbered from 1."""
        return self._bank(self.groups * self.fan_in + 1)

    def _bank(self, words: int) -> int:
        return words if self.pipelines == 1 else 1 << max(1, (words - 1).bit_length())

    @property
    def numbers(self) -> Numbers | None:
        """What the program computes; None where each control message chooses."""
        return None if self.op is Op.DYNAMIC else Numbers(self.op, self.dtype)

    @property
    def choices(self) -> tuple[Numbers, ...]:
        """All that the program can compute."""
        return NUMBERS if self.numbers is None else (self.numbers,)

    @property
    def saturating(self) -> bool:
        """Whether results that overflow stop at the ends of their range."""
        match self.overflow:
            case None | Overflow.SATURATE:
                return self.op.overflows
            case Overflow.WRAP:
                return False
            case other:
                assert_never(other)

    @property
    def loss_recovery(self) -> Reliability:
        """``reliability``, with its default worked out."""
        return self.reliability or (Reliability.GBN if self.mode.augmented else Reliability.SR)

    @property
    def notifies(self) -> bool:
        """Whether ranks that run ahead get congestion notifications."""
        match self.congestion:
            case None | Congestion.CNP:
                return self.mode.augmented
            case Congestion.NONE:
                return False
            case other:
                assert_never(other)

    @property
    def payload_bytes(self) -> int:
        """What a data packet carries."""
        return LANE_BYTES * self.lanes

    @property
    def program(self) -> str:
        """The program's name: ``name``, or one that tells what distinguishes it."""
        if self.name:
            return self.name
        wrap = "wrap" if self.overflow is Overflow.WRAP else ""
        parts = [f"mode{self.mode.value.lower()}", f"{wrap}{self.op}"]
        if self.op is not Op.DYNAMIC:
            parts.append(str(self.dtype))
        parts.append(f"x{self.lanes}")
        if self.pipelines > 1:
            parts.append(f"p{self.pipelines}")
        if self.reliability is not None:
            parts.append(str(self.reliability))
        if self.congestion is Congestion.NONE:
            parts.append("nocnp")
        if self.icrc is Icrc.IGNORE:
            parts.append("noicrc")
        if self.variant is not None:
            parts.append(self.variant.replace("-", "_"))
        return "_".join(parts)

    def resolved(self) -> dict[str, Any]:
        """All fields with their defaults worked out, as the manifest records them."""
        return self.model_dump(mode="json") | {
            "name": self.program,
            "slots": self.slots_per_group,
            "overflow": ("saturate" if self.saturating else "wrap") if self.op.overflows else None,
            "reliability": str(self.loss_recovery),
            "congestion": ("cnp" if self.notifies else "none") if self.mode.augmented else None,
        }


class SpecConflictError(ValueError):
    """Fields that are right each but not together; blamed on one of them."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
