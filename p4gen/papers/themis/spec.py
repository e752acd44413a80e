"""ThemisSpec: the fields of Themis's programs, and of the programs that it is compared with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, model_validator

from p4gen.arch import Feature, architecture, architectures
from p4gen.vocabulary.program import DEFAULT_ARCH, Icrc, ProgramSpec, SpecConflictError


class Mode(StrEnum):
    """What a switch does for the connections that pass through it (section 3.1)."""

    SOURCE = "themis-s"
    """Themis-S: sprays the requests of its hosts."""
    DESTINATION = "themis-d"
    """Themis-D: records the PSNs sent to its hosts, and filters their NACKs."""
    BOTH = "themis"
    """Both, as every leaf switch needs it."""


class Spread(StrEnum):
    """How requests are spread over next hops of equal cost."""

    ECMP = "ecmp"
    """By a hash of addresses and ports: a connection has one path."""
    RANDOM = "random"
    """Each packet at random."""
    FLOWLET = "flowlet"
    """A connection at random whenever it has paused."""
    ADAPTIVE = "adaptive"
    """Each packet to the shortest queue."""
    PSN = "psn"
    """By PSN, without a filter of NACKs."""
    THEMIS = "themis"
    """By PSN, with a filter of NACKs."""


class Blocked(StrEnum):
    """What becomes of a NACK that does not pass."""

    DROP = "drop"
    ACK = "ack"
    """It leaves as the ACK that it implies: of all packets before its ePSN."""


class Cm(StrEnum):
    """What becomes of the messages with which hosts set up connections (RDMA CM), beside being routed."""

    IGNORE = "ignore"
    COPY = "copy"
    """They are copied to the CPU port, so that a manager registers the connections."""


class Evidence(StrEnum):
    """What a NACK is judged by."""

    QUEUE = "queue"
    """The newest PSNs that were sent to the NIC, in their order (section 3.3)."""
    CLASSES = "classes"
    """What is known of each class, the PSNs of one path: the newest one, and the newest gap."""


_OF_QUEUE: Final = ("queue", "queue_banks", "psn_bits")
_OF_NACKS: Final = ("evidence", *_OF_QUEUE, "blocked")
MAX_CLASSES: Final = 64
"""Paths of a connection of which evidence by class is kept: for more of them, a queue takes less memory."""


class Variant(StrEnum):
    """Designs that fall short, which tests must detect."""

    LATE_COMPENSATION = "late-compensation"
    """The listing of sections 3.3 and 3.4: a blocked NACK is armed although its packet may have passed meanwhile, and
    only the first larger PSN is considered."""
    DESTRUCTIVE_QUEUE = "destructive-queue"
    """Section 3.3's dequeuing: a NACK removes PSNs from the queue, up to the first larger one, and later NACKs do not
    see them."""


class ThemisSpec(ProgramSpec):
    """A program of Themis, or of another way to spread packets."""

    OWN_DEFAULTS: ClassVar[frozenset[str]] = frozenset({"icrc"})
    """Only answers are checked and made, and these consist of headers."""
    ROCE_OVER_IPV6: ClassVar[bool] = True

    @classmethod
    def fields_for(cls, given: Mapping[str, str]) -> Collection[str]:
        """Themis-S judges no NACKs."""
        found = super().fields_for(given)
        return [name for name in found if given.get("mode") != Mode.SOURCE or name not in _OF_NACKS]

    family: Annotated[Literal["themis"], Field(description="the family of programs: a paper's system")] = "themis"
    mode: Annotated[
        Mode,
        Field(description="themis-s sprays hosts' requests, themis-d filters their NACKs, themis does both"),
    ] = Mode.BOTH
    spread: Annotated[
        Spread,
        Field(description="how requests are spread over next hops: themis, or, for comparison, another way"),
    ] = Spread.THEMIS
    paths: Annotated[
        int, Field(ge=2, le=256, description="most paths that a connection is sprayed over (section 3.2: N)")
    ] = 16
    path_sets: Annotated[
        int, Field(ge=1, le=256, description="sets of paths that connections may be sprayed over at the same time")
    ] = 16
    connections: Annotated[
        int, Field(ge=1, le=65536, description="connections whose NACKs a switch filters at the same time")
    ] = 1600
    evidence: Annotated[
        Evidence,
        Field(description="what a NACK is judged by: queue, of the newest PSNs, or classes, a summary for each path"),
    ] = Evidence.QUEUE
    queue: Annotated[
        Literal[4, 8, 16, 32, 64, 128, 256, 512, 1024],
        Field(description="PSNs remembered for each connection (section 3.3: the PSN queue); a power of two"),
    ] = 128
    queue_banks: Annotated[
        Literal[2, 4, 8, 16, 32, 64, 128],
        Field(description="PSNs compared in one pass of a NACK, which takes at most queue / queue_banks + 1 passes"),
    ] = 16
    psn_bits: Annotated[
        int, Field(ge=8, le=24, description="bits kept of each PSN in the queue; more than the window needs")
    ] = 16
    flowlet_gap: Annotated[
        int | None,
        Field(ge=1, le=1_000_000, description="spread flowlet: microseconds that end a flowlet; by default 50"),
    ] = None
    blocked: Annotated[
        Blocked, Field(description="what becomes of a NACK that does not pass: drop, or an ACK of all before its PSN")
    ] = Blocked.DROP
    tiers: Annotated[
        Literal[2, 3],
        Field(description="2: the leaf chooses the path; 3: it changes UDP source ports, so that ECMP chooses it"),
    ] = 2
    cm: Annotated[
        Cm, Field(description="RDMA CM messages of hosts: ignore, or copy to the CPU port, for a manager to read")
    ] = Cm.IGNORE
    variant: Annotated[
        Variant | None, Field(description="a design that falls short, for tests only; none by default")
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _evidence_of_arch(cls, values: Any) -> Any:
        """Where registers have few actions, NACKs are judged by classes, unless the spec is about a queue."""
        name = values.get("arch", DEFAULT_ARCH) if isinstance(values, dict) else None
        if not isinstance(name, str) or name not in architectures():
            return values
        filters = values.get("mode") != Mode.SOURCE and values.get("spread", Spread.THEMIS) == Spread.THEMIS
        if Feature.WIDE_STATE in architecture(name).features or not filters:
            return values
        if values.get("evidence") != Evidence.QUEUE and not values.keys() & set(_OF_QUEUE):
            return {"evidence": Evidence.CLASSES, **values}
        if values.get("evidence", Evidence.QUEUE) != Evidence.QUEUE:
            return values
        banks = min(8, values["queue"]) if isinstance(values.get("queue"), int) else 8
        return {"queue_banks": banks, "psn_bits": 24, **values}

    @model_validator(mode="after")
    def _fields_fit(self) -> ThemisSpec:
        if not self.by_psn and self.mode is Mode.DESTINATION:
            raise SpecConflictError("spread", f"{self.spread} is about the source; {self.mode} has none")
        if self.spread is not Spread.THEMIS and self.mode is Mode.DESTINATION:
            raise SpecConflictError("spread", f"{self.mode} filters the NACKs of packets sprayed by themis only")
        if self.by_class:
            self._classes_fit()
        if self.queue_banks > self.queue:
            raise SpecConflictError("queue_banks", f"a queue of {self.queue} does not have {self.queue_banks} banks")
        if 1 << (self.psn_bits - 1) <= self.queue:
            raise SpecConflictError("psn_bits", f"2^(psn_bits - 1) must be more than the queue, {self.queue}")
        if 4 * self.paths > 1 << self.psn_bits:
            raise SpecConflictError("paths", f"at most 2^(psn_bits - 2) = {1 << self.psn_bits - 2}")
        if self.pipelines > 1 and (self.filters or self.spread in (Spread.FLOWLET, Spread.ADAPTIVE)):
            raise SpecConflictError(
                "pipelines", "a connection's packets arrive in several pipelines, and v1model's egress keeps no state"
            )
        if self.flowlet_gap is not None and self.spread is not Spread.FLOWLET:
            raise SpecConflictError("flowlet_gap", "goes with spread flowlet")
        if self.variant is not None and not self.filters:
            raise SpecConflictError("variant", f"{self.variant} is a design of Themis-D, which this program lacks")
        if self.cm is Cm.COPY and not self.by_psn:
            raise SpecConflictError("cm", f"{self.spread} keeps no connections")
        if self.tiers > 2 and not self.by_psn:
            raise SpecConflictError("tiers", f"{self.spread} spreads packets in each tier by itself")
        return self

    def _classes_fit(self) -> None:
        if not self.filters:
            raise SpecConflictError("evidence", "NACKs are judged by Themis-D, which this program lacks")
        if self.paths > MAX_CLASSES:
            raise SpecConflictError(
                "paths", f"evidence classes has words for each path of a connection: at most {MAX_CLASSES}, or a queue"
            )
        for name in _OF_QUEUE:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise SpecConflictError(name, "goes with evidence queue; evidence classes keeps no queue of PSNs")
        if self.variant is not None:
            raise SpecConflictError("variant", f"{self.variant} is a design of the queue: it goes with evidence queue")

    @property
    def by_psn(self) -> bool:
        """Whether a packet's PSN determines its path."""
        return self.spread in (Spread.PSN, Spread.THEMIS)

    @property
    def sprays(self) -> bool:
        """Whether it is Themis-S: the requests of registered connections are sprayed by PSN."""
        return self.by_psn and self.mode is not Mode.DESTINATION

    @property
    def filters(self) -> bool:
        """Whether it is Themis-D: NACKs are filtered."""
        return self.spread is Spread.THEMIS and self.mode is not Mode.SOURCE

    @property
    def by_class(self) -> bool:
        """Whether NACKs are judged by classes of PSNs."""
        return self.evidence is Evidence.CLASSES

    @property
    def narrow(self) -> bool:
        """Whether its architecture's registers have few actions (``narrow.py``)."""
        return Feature.WIDE_STATE not in self.architecture.features

    @property
    def classes(self) -> int:
        """Words of a register for the paths of a connection, where its index has bits for them."""
        return 1 << self.path_bits

    @property
    def walks(self) -> bool:
        """Whether a NACK walks through a queue, in several passes."""
        return self.filters and not self.by_class

    @property
    def wants_queue_lengths(self) -> bool:
        """True for adaptive routing."""
        return self.spread is Spread.ADAPTIVE

    @property
    def slices_hash(self) -> bool:
        """With three tiers, each takes its own bits."""
        return self.tiers > 2

    @property
    def queue_rows(self) -> int:
        """Words that each bank of a queue has."""
        return self.queue // self.queue_banks

    @property
    def most_passes(self) -> int:
        """The most times that a NACK goes through the switch."""
        if not self.walks:
            return 1
        return self.queue_rows + (2 if self.narrow else 1)

    @property
    def path_bits(self) -> int:
        """Bits that the number of a path takes."""
        return (self.paths - 1).bit_length()

    @property
    def program(self) -> str:
        """The program's name: ``name``, or one derived from the fields that distinguish it."""
        if self.name:
            return self.name
        parts = [self.mode.replace("-", "_")]
        if self.arch != DEFAULT_ARCH:
            parts.append(self.arch)
        if self.spread is not Spread.THEMIS:
            parts.append(str(self.spread))
        parts.append(f"n{self.paths}")
        if self.by_class:
            parts.append(f"q{self.connections}classes")
        elif self.filters:
            parts.append(f"q{self.connections}x{self.queue}k{self.queue_banks}w{self.psn_bits}")
        if self.path_sets != type(self).model_fields["path_sets"].default:
            parts.append(f"s{self.path_sets}")
        if self.pipelines > 1:
            parts.append(f"p{self.pipelines}")
        if self.tiers > 2:
            parts.append(f"t{self.tiers}")
        if self.blocked is Blocked.ACK:
            parts.append("ack")
        if self.cm is Cm.COPY:
            parts.append("cm")
        if self.icrc is Icrc.IGNORE:
            parts.append("noicrc")
        elif self.icrc is Icrc.SET:
            parts.append("seticrc")
        if self.variant is not None:
            parts.append(self.variant.replace("-", "_"))
        parts += self.company
        return "_".join(parts)

    def resolved(self) -> dict[str, Any]:
        """All fields with their defaults resolved, as the manifest records them."""
        gap = (self.flowlet_gap or 50) if self.spread is Spread.FLOWLET else None
        return super().resolved() | {"mode": str(self.mode), "flowlet_gap": gap}
