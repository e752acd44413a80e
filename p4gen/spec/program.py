"""ProgramSpec: what the user asks p4gen to generate.

Symbols follow EPIC Table 2: a window is W messages of M packets, and N slots buffer them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

LANE_BYTES = 4
"""A lane is one 32-bit element of a packet."""

MAX_SLOTS = 65536
MAX_TOTAL_SLOTS = 1 << 20


class Mode(StrEnum):
    """EPIC's polymorphic realisations (section 4)."""

    II = "II"


class Arch(StrEnum):
    """P4 architectures that programs are generated for."""

    V1MODEL = "v1model"


class DType(StrEnum):
    """Types of an element."""

    INT32 = "int32"
    UINT32 = "uint32"


class Op(StrEnum):
    """Reductions."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"


class Overflow(StrEnum):
    """What a sum does that leaves the range of its dtype."""

    SATURATE = "saturate"
    WRAP = "wrap"


class Icrc(StrEnum):
    """RoCEv2's invariant CRC: checked on arrival and recomputed, or neither looked at nor mended."""

    RECOMPUTE = "recompute"
    IGNORE = "ignore"


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
        Mode, Field(description="EPIC mode; this version generates II, connection translated (EPIC 4.3)")
    ] = Mode.II
    arch: Annotated[Arch, Field(description="P4 architecture; BMv2's v1model")] = Arch.V1MODEL
    pipelines: Annotated[
        Literal[1], Field(description="ingress pipelines with memories of their own; this version generates for one")
    ] = 1
    lanes: Annotated[
        Literal[8, 16, 32, 64, 128, 256],
        Field(description="32-bit elements in a packet, whose payload is 4 x lanes bytes; a power of two"),
    ] = 64
    dtype: Annotated[DType, Field(description="type of an element; what a switch can add in one step")] = DType.INT32
    op: Annotated[Op, Field(description="how contributions are reduced, element by element")] = Op.SUM
    overflow: Annotated[Overflow | None, Field(description="for op sum: saturate (the default) or wrap around")] = None
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

    @field_validator("pipelines", "lanes", "slots", mode="before")
    @classmethod
    def _whole(cls, value: Any) -> Any:
        # Literal compares by equality, and True == 1 == 1.0: only an integer is meant.
        if isinstance(value, bool | float):
            raise ValueError("must be an integer")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> ProgramSpec:
        if self.overflow is not None and self.op is not Op.SUM:
            raise SpecConflictError("overflow", f"goes with op sum only; {self.op} cannot overflow")
        needed = 2 * self.window * self.message
        if needed > MAX_SLOTS:
            raise SpecConflictError("window", f"2 x window x message is {needed}; at most {MAX_SLOTS} slots can be had")
        if self.slots is not None and self.slots < needed:
            raise SpecConflictError(
                "slots",
                f"must be at least 2 x window x message = {needed}, or a rank a window ahead overwrites",
            )
        if self.groups * self.slots_per_group > MAX_TOTAL_SLOTS:
            raise SpecConflictError(
                "groups",
                f"groups x slots is {self.groups * self.slots_per_group}; it may be {MAX_TOTAL_SLOTS} at most",
            )
        return self

    @property
    def slots_per_group(self) -> int:
        """N, with its default worked out."""
        return self.slots or 1 << (2 * self.window * self.message - 1).bit_length()

    @property
    def saturating(self) -> bool:
        """Whether a sum stops at the ends of its range."""
        return self.op is Op.SUM and self.overflow is not Overflow.WRAP

    @property
    def payload_bytes(self) -> int:
        """What a data packet carries."""
        return LANE_BYTES * self.lanes

    @property
    def program(self) -> str:
        """The program's name: ``name``, or one that tells what distinguishes it."""
        if self.name:
            return self.name
        op = "wrapsum" if self.overflow is Overflow.WRAP else str(self.op)
        tail = "" if self.icrc is Icrc.RECOMPUTE else "_noicrc"
        return f"mode{self.mode.value.lower()}_{op}_{self.dtype}_x{self.lanes}{tail}"

    def resolved(self) -> dict[str, Any]:
        """All fields with their defaults worked out, as the manifest records them."""
        return self.model_dump(mode="json") | {
            "name": self.program,
            "slots": self.slots_per_group,
            "overflow": ("saturate" if self.saturating else "wrap") if self.op is Op.SUM else None,
        }


class SpecConflictError(ValueError):
    """Fields that are right each but not together; blamed on one of them."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
