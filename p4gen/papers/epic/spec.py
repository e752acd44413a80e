"""EpicSpec: the fields of EPIC's programs in addition to those of every collective."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal, assert_never

from pydantic import Field, field_validator, model_validator
from typing_extensions import override

from p4gen.arch import Feature, architectures
from p4gen.vocabulary.collective import CollectiveSpec, Overflow, Reliability
from p4gen.vocabulary.message import ROOTS
from p4gen.vocabulary.program import DEFAULT_ARCH, Icrc, SpecConflictError, whole
from p4gen.vocabulary.reductions import Op

NARROW_FAN_IN: Final = 8
"""The most edges of a group of Mode III on a Tofino, and by default of programs that have a buffer for each edge."""
ANSWERED_FAN_IN: Final = 4
"""By default where each edge has a register for its answers: p4c finds no containers for 6."""
MOST_STORES: Final = 2048
"""The most registers of buffers for each edge, one for each lane of it."""
SLOT_NUMBERS: Final = ("epoch", "PSN", "bitmap")
"""What Mode I compares and changes of a slot in one access (``words.slot``)."""
ALU_NUMBERS: Final = 2
"""The most numbers that a stateful ALU of a Tofino has in a word; there are four such units in a stage."""
NARROW_LANES: Final = 8
"""Default lanes of Mode III on a Tofino, the most that fit into the stages by p4gen's own estimate."""
OWN_SLOTS: Final = 4
"""Slots of a pipe that a group has for itself where it shares others, for the calls that acquire and release: while
one of these is under way, all ranks have completed all but the one before, and each has at most two packets."""
SERIAL_COMPARISONS: Final = 3
"""What an action on a slot compares to tell an older PSN from a newer one."""


class Mode(StrEnum):
    """EPIC's polymorphic realisations (section 4)."""

    I = "I"  # noqa: E741 - as the paper writes it
    """Connection terminated (4.2)."""
    II = "II"
    """Connection translated (4.3)."""
    III = "III"
    """Connection augmented (4.4)."""

    @property
    def augmented(self) -> bool:
        """Whether each switch terminates its connections and answers packets; otherwise it translates connections."""
        match self:
            case Mode.II:
                return False
            case Mode.I | Mode.III:
                return True
            case other:
                assert_never(other)

    @property
    def stores(self) -> bool:
        """Whether each switch stores whole messages, and sends results as messages of its own (4.2)."""
        match self:
            case Mode.I:
                return True
            case Mode.II | Mode.III:
                return False
            case other:
                assert_never(other)


class Fold(StrEnum):
    """When a switch reduces contributions."""

    ORDERED = "ordered"
    """When it sends the result, in the order of ranks: the same bits whatever the order of arrival."""
    ARRIVAL = "arrival"
    """As they arrive, which takes one buffer in place of one for each edge."""


class Verb(StrEnum):
    """How results come to ranks (EPIC 4.2, footnote 5)."""

    SEND = "send"
    WRITE = "write"
    """As RDMA WRITEs into memory that ranks have offered, the last packet of each with immediate data."""


class Congestion(StrEnum):
    """The answer to a rank that runs ahead of a pipe's range (EPIC 4.4, rate synchronization)."""

    CNP = "cnp"
    """A congestion notification, and an RNR NAK, which asks for retransmission later."""
    NONE = "none"
    """Only a NAK."""


class Served(StrEnum):
    """The collectives that a program of static groups serves."""

    REDUCTIONS = "reductions"
    """AllReduce, Barrier, Reduce and ReduceScatter."""
    ALL = "all"
    """Broadcast and AllGather, too: each edge has a register for what it has acknowledged."""


class Variant(StrEnum):
    """Wrong designs, which tests must detect (EPIC 5.1 and H.4). All but the last are of Mode III."""

    PSN_RECYCLING = "psn-recycling"
    """Mode II's RecycleBuffer in Mode III: a newer PSN takes its slot even if still needed (the pitfall of 5.1)."""
    ROOT_COPIES = "root-copies"
    """The root copies results directly, even over a broadcast in progress (H.4)."""
    NO_NAK = "no-nak"
    """Gaps are not reported; only timers recover from them (H.4)."""
    NAK_STORM = "nak-storm"
    """Every packet out of order is answered with a NAK (H.4)."""
    STALE_ARRIVED = "stale-arrived"
    """The arrived bits of a slot outlive its PSN (Algorithm 1 does not say who clears them)."""


class EpicSpec(CollectiveSpec):
    """A program of EPIC's Mode I, II or III."""

    ARCH_FIELDS: ClassVar[frozenset[str]] = frozenset({"payload_pipes", "recirculation", "serves"})
    ROCE_OVER_IPV6: ClassVar[bool] = True

    @classmethod
    def fields_for(cls, given: Mapping[str, str]) -> Collection[str]:
        """Mode II does not answer packets."""
        found = super().fields_for(given)
        augmented = given.get("mode", Mode.II) != Mode.II
        return [name for name in found if augmented or name != "congestion"]

    family: Annotated[
        Literal["epic"],
        Field(description="the family of programs: a paper's system"),
    ] = "epic"
    mode: Annotated[
        Mode,
        Field(
            description="EPIC mode: I, connection terminated (EPIC 4.2), II, connection translated (EPIC 4.3), or III, "
            "connection augmented (EPIC 4.4)"
        ),
    ] = Mode.II
    reliability: Annotated[
        Reliability | None,
        Field(
            description="mode I: gbn; mode II: sr (the default), sack, or gbn, which drops packets out of order; mode "
            "III: gbn (the default), sr, or sack"
        ),
    ] = None
    congestion: Annotated[
        Congestion | None,
        Field(
            description="modes I and III: whether ranks get congestion notifications, of marked packets and, in mode "
            "III, when they are ahead of the pipe's range: cnp (the default) or none"
        ),
    ] = None
    fold: Annotated[
        Fold | None,
        Field(
            description="contributions are stored and reduced in the order of ranks (ordered, mode I's default), or "
            "reduced as they arrive (arrival, that of modes II and III; in mode I for sums that wrap, min, max, of "
            "integers)"
        ),
    ] = None
    locks: Annotated[
        int,
        Field(
            ge=0,
            le=256,
            description="modes II and III: blocks of slots that groups share, each with a lock in the switch: a call "
            "has the blocks of its whole tree, or none; 0: each group has slots of its own",
        ),
    ] = 0
    verb: Annotated[
        Verb,
        Field(
            description="how results come to ranks: send, or write, into memory that ranks offer (EPIC footnote 5); "
            "contributions are always SENDs"
        ),
    ] = Verb.SEND
    variant: Annotated[Variant | None, Field(description="a wrong design, for tests only; none by default")] = None
    serves: Annotated[
        Served,
        Field(
            description="mode II on a Tofino: reductions, or all: Broadcast and AllGather, too, whose answers are "
            "combined by a register for each edge; groups have at most 8"
        ),
    ] = Served.REDUCTIONS
    payload_pipes: Annotated[
        Literal[1, 2, 4],
        Field(
            description="mode II on a Tofino: pipes that share a payload, which recirculates from each to the next; "
            "lanes/payload_pipes elements are reduced in a pass"
        ),
    ] = 1
    recirculation: Annotated[
        str | None,
        Field(
            pattern=r"^\d+(,\d+)*$",
            description="with payload_pipes: ports for recirculation, one of each pipe, in the order in which a "
            "payload visits their pipes; by default those of all pipes",
        ),
    ] = None

    @field_validator("payload_pipes", mode="before")
    @classmethod
    def _whole_pipes(cls, value: Any) -> Any:
        return whole(value)

    @model_validator(mode="before")
    @classmethod
    def _fan_in_of_arch(cls, values: Any) -> Any:
        """Where a pass takes the minimum of a register for each edge, or a buffer is for an edge, a group has fewer
        edges by default; and fewer lanes, where answers and cursors take stages beside them."""
        if not isinstance(values, dict):
            return values
        mode = str(values.get("mode"))
        if mode == Mode.I or str(values.get("fold")) == Fold.ORDERED:
            return {"fan_in": NARROW_FAN_IN, **values}
        if str(values.get("serves")) == Served.ALL:
            return {"fan_in": ANSWERED_FAN_IN, **values}
        if mode != Mode.III:
            return values
        arch = architectures().get(values.get("arch", DEFAULT_ARCH))
        narrow = arch is not None and Feature.WIDE_STATE not in arch.features
        return {"fan_in": NARROW_FAN_IN, "lanes": NARROW_LANES, **values} if narrow else values

    @model_validator(mode="after")
    def _mode_fits(self) -> EpicSpec:
        if Feature.WIDE_STATE not in self.architecture.features:
            if self.roots != ROOTS:
                raise SpecConflictError("roots", f"programs for {self.arch} have {ROOTS}")
            if self.uses_memory:
                raise SpecConflictError(
                    "verb",
                    f"write takes lengths of messages from announcements, of which programs for {self.arch} keep none",
                )
        if not self.mode.augmented:
            if self.congestion is not None:
                raise SpecConflictError(
                    "congestion", "is for modes I and III; in mode II no rank can run ahead of the others"
                )
            if self.variant not in (None, Variant.STALE_ARRIVED):
                raise SpecConflictError("variant", f"{self.variant} is a wrong design of mode III")
        return self

    @model_validator(mode="after")
    def _stores_fit(self) -> EpicSpec:
        if not self.mode.stores and not self.folds:
            return self
        which, wide = f"mode {self.mode}", Feature.WIDE_STATE in self.architecture.features
        if self.mode.stores:
            if not wide:
                lanes, units = self.fan_in * self.lanes, 4 * self.architecture.stages
                stored = f"; and {lanes} stored lanes are read in a pass, by as many stateful ALUs: {units} there are"
                raise SpecConflictError(
                    "mode",
                    f"I changes {len(SLOT_NUMBERS)} numbers of a slot in one access ({', '.join(SLOT_NUMBERS)}); a "
                    f"stateful ALU of {self.arch} has {ALU_NUMBERS}"
                    f"{stored if self.folds and lanes > units else ''}",
                )
            if not self.loss_recovery.in_order:
                raise SpecConflictError(
                    "reliability", f"{self.reliability} is for modes II and III; mode I takes packets in order"
                )
            if not self.folds and (self.saturating or not self.dtype.number_format.integer):
                raise SpecConflictError(
                    "fold",
                    "arrival is for results that do not depend on the order: sums that wrap, min, max, of integers",
                )
        else:
            which += " with fold ordered"
            if not wide:
                raise SpecConflictError(
                    "fold",
                    f"ordered accesses a register for each edge of each lane in a pass; {self.arch} has no room for it",
                )
        if self.op is Op.DYNAMIC:
            raise SpecConflictError(
                "op", f"dynamic is for fold arrival of modes II and III; in {which} the program has its op"
            )
        if self.variant is not None:
            raise SpecConflictError(
                "variant",
                f"{self.variant} is a wrong design of mode {'III' if self.mode.augmented else 'II'} with fold arrival",
            )
        if self.folds and self.fan_in * self.lanes > MOST_STORES:
            raise SpecConflictError(
                "fan_in",
                f"{self.fan_in} edges of {self.lanes} lanes are {self.fan_in * self.lanes} registers; fold ordered has "
                f"at most {MOST_STORES}: {MOST_STORES // self.lanes} edges",
            )
        return self

    @model_validator(mode="after")
    def _broadcasts_fit(self) -> EpicSpec:
        if self.serves is Served.REDUCTIONS:
            return self
        if self.mode is not Mode.II or Feature.WIDE_STATE in self.architecture.features:
            raise SpecConflictError("serves", "is for mode II on a Tofino; other programs serve all collectives")
        if self.fan_in > NARROW_FAN_IN:
            raise SpecConflictError(
                "fan_in",
                f"serves all combines the answers of a register for each edge: {NARROW_FAN_IN} edges at most",
            )
        return self

    @property
    def broadcasts(self) -> bool:
        """Whether the answers to a Broadcast are combined."""
        return self.serves is Served.ALL

    @model_validator(mode="after")
    def _fold_fits(self) -> EpicSpec:
        if self.payload_pipes == 1:
            if self.recirculation is not None:
                raise SpecConflictError("recirculation", "goes with payload-pipes 2 or 4")
            return self
        arch = self.architecture
        if Feature.WIDE_STATE in arch.features:
            raise SpecConflictError(
                "payload_pipes", f"is for Tofino; a program for {self.arch} reduces any payload in one pass"
            )
        if self.mode.augmented:
            raise SpecConflictError("payload_pipes", "is for mode II")
        ports = self.recirculation_ports
        if unknown := sorted(set(ports) - set(arch.recirculation_ports)):
            raise SpecConflictError(
                "recirculation",
                f"there is no port {unknown[0]} for it; there are {', '.join(map(str, arch.recirculation_ports))}",
            )
        if not self.payload_pipes <= len(set(ports)) == len(ports):
            raise SpecConflictError(
                "recirculation",
                f"payload-pipes {self.payload_pipes} needs {self.payload_pipes} ports or more, each once",
            )
        return self

    @model_validator(mode="after")
    def _locks_fit(self) -> EpicSpec:
        if not self.locks:
            return self
        if self.mode.stores:
            raise SpecConflictError("locks", "are for modes II and III; in mode I each pattern has queue pairs")
        if Feature.WIDE_STATE not in self.architecture.features:
            raise SpecConflictError(
                "locks", f"have words of several numbers, of which a stateful ALU of {self.arch} has {ALU_NUMBERS}"
            )
        if self.variant is not None:
            raise SpecConflictError("locks", "are for sound designs")
        if self.uses_memory:
            raise SpecConflictError("locks", "are for verb send: the ring of a group that is refused has no memory")
        if self.op not in (Op.SUM, Op.MIN, Op.MAX, Op.DYNAMIC):
            raise SpecConflictError("locks", f"need an op that tells whether any switch refuses; {self.op} does not")
        if self.locks > self.groups:
            raise SpecConflictError("locks", f"{self.locks} blocks for {self.groups} groups")
        return self

    @property
    @override
    def shared_blocks(self) -> int:
        return self.locks

    @property
    @override
    def own_slots(self) -> int:
        return OWN_SLOTS if self.locks else super().own_slots

    @property
    @override
    def total_slots(self) -> int:
        return super().total_slots + self.locks * self.slots_per_group * self.pipes

    @property
    def bank_locks(self) -> int:
        """Words of state for locks in a pipeline's bank."""
        return self._bank(self.locks)

    @property
    def recirculation_ports(self) -> tuple[int, ...]:
        """The ports of ``recirculation``, with its default resolved."""
        if self.recirculation is None:
            return self.architecture.recirculation_ports
        return tuple(map(int, self.recirculation.split(",")))

    @property
    def pass_lanes(self) -> int:
        """Elements of a payload that a pass reduces."""
        return self.lanes // self.payload_pipes

    @property
    def terminates(self) -> bool:
        """True for Modes I and III."""
        return self.mode.augmented

    @property
    @override
    def own_psns(self) -> bool:
        return self.mode.stores

    @property
    @override
    def uses_memory(self) -> bool:
        return self.verb is Verb.WRITE

    @property
    @override
    def ring(self) -> int:
        return 1 << ((2 * self.window + 1) * self.message - 1).bit_length() if self.uses_memory else 0

    @property
    def buffered_windows(self) -> int:
        """Mode I buffers the window of one hop."""
        return 1 if self.mode.stores else super().buffered_windows

    @property
    def folds(self) -> bool:
        """Whether contributions are reduced in the order of ranks."""
        return self.folding is Fold.ORDERED

    @property
    def folding(self) -> Fold:
        """``fold``, with its default resolved."""
        return self.fold or (Fold.ORDERED if self.mode.stores else Fold.ARRIVAL)

    @property
    def wants_ticks(self) -> bool:
        """True for Modes I and III."""
        return self.mode.augmented

    @property
    def pipes(self) -> int:
        """Modes I and III have a pipe up and a pipe down, Mode II one pipe (EPIC 4.4)."""
        return 2 if self.mode.augmented else 1

    @property
    def needs_order(self) -> bool:
        """Where an action on a register has too few comparisons, a slot cannot tell an older PSN from a newer one."""
        arch = self.architecture
        return Feature.WIDE_STATE not in arch.features and arch.comparisons < SERIAL_COMPARISONS

    @property
    def loss_recovery(self) -> Reliability:
        """The default of Modes I and III is Go-Back-N."""
        return self.reliability or (Reliability.GBN if self.mode.augmented else Reliability.SR)

    @property
    def notifies(self) -> bool:
        """Whether ranks that run ahead get congestion notifications."""
        match self.congestion:
            case None:
                return self.mode.augmented and Feature.WIDE_STATE in self.architecture.features
            case Congestion.CNP:
                return self.mode.augmented
            case Congestion.NONE:
                return False
            case other:
                assert_never(other)

    @property
    def program(self) -> str:
        """The program's name: ``name``, or one derived from the fields that distinguish it."""
        if self.name:
            return self.name
        wrap = "wrap" if self.overflow is Overflow.WRAP else ""
        parts = [f"mode{self.mode.value.lower()}", f"{wrap}{self.op}"]
        if self.op is not Op.DYNAMIC or not self.dtype.number_format.integer:
            parts.append(str(self.dtype))
        parts.append(f"x{self.lanes}")
        if self.folds is not self.mode.stores:
            parts.append(str(self.folding))
        if self.broadcasts:
            parts.append("broadcast")
        if self.payload_pipes > 1:
            parts.append(f"fold{self.payload_pipes}")
        if self.pipelines > 1:
            parts.append(f"p{self.pipelines}")
        if self.roots != ROOTS:
            parts.append(f"roots{self.roots}")
        if self.uses_memory:
            parts.append(str(self.verb))
        if self.reliability is not None:
            parts.append(str(self.reliability))
        if self.congestion is Congestion.NONE:
            parts.append("nocnp")
        if self.icrc is Icrc.IGNORE:
            parts.append("noicrc")
        elif self.icrc is Icrc.SET:
            parts.append("seticrc")
        if self.locks:
            parts.append(f"locks{self.locks}")
        if self.variant is not None:
            parts.append(self.variant.replace("-", "_"))
        if self.arch != DEFAULT_ARCH:
            parts.append(self.arch)
        return "_".join((*parts, *self.company))

    @property
    @override
    def alike(self) -> dict[str, str]:
        locks = {"locks": "on"} if self.locks else {}
        return {"mode": str(self.mode), "verb": str(self.verb)} | super().alike | locks

    @property
    def reproducible(self) -> bool:
        """Whether results do not depend on the order in which contributions arrive, unless they saturate."""
        return self.folds or self.dtype.number_format.integer or not self.op.overflows

    @property
    def _resolved_overflow(self) -> str | None:
        if not self.op.overflows:
            return None
        return "saturate" if self.saturating else "wrap" if self.overflow is Overflow.WRAP else "infinity"

    def resolved(self) -> dict[str, Any]:
        """All fields with their defaults resolved, as the manifest records them."""
        return super().resolved() | {
            "slots": self.slots_per_group,
            "overflow": self._resolved_overflow,
            "reproducible": self.reproducible,
            "fold": str(self.folding),
            "reliability": str(self.loss_recovery),
            "congestion": ("cnp" if self.notifies else "none") if self.mode.augmented else None,
        }
