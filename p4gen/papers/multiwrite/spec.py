"""MultiwriteSpec: the fields of MultiWrite's programs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, field_validator, model_validator
from typing_extensions import override

from p4gen.vocabulary.program import DEFAULT_ARCH, Icrc, SpecConflictError, whole
from p4gen.vocabulary.serving import MemorySpec

IMMEDIATE_RECEIVERS: Final = 32
"""Destinations whose bitmap fits the immediate data of a WRITE."""
MOST_SUBSET_EDGES: Final = 10
"""Edges of a switch that still has a multicast group for each set of them: 1,023 groups."""
PAYLOAD_STEP: Final = 64
_ICRC_PARTS: Final = {Icrc.SET: "seticrc", Icrc.IGNORE: "noicrc", Icrc.PATCH: "patchicrc"}


class Repair(StrEnum):
    """Who sends again what is lost."""

    SOURCE = "source"
    """The source; an acknowledgement says that all destinations have a packet."""
    HOP = "hop"
    """Each switch, to its next hops; an acknowledgement says that the next hop has a packet."""


class Replicate(StrEnum):
    """How a switch makes the copies of a write."""

    PRUNE = "prune"
    """One for each of its edges; those that the bitmap does not name are dropped in egress."""
    SUBSET = "subset"
    """One for each edge that the bitmap names: there is a multicast group for each set of edges."""


class Place(StrEnum):
    """Where a write's data goes at a destination."""

    SYMMETRIC = "symmetric"
    """To the same offset in the window of every destination."""
    APPEND = "append"
    """To the next slot of a ring in the destination's window; the PSN of the copy tells which one it is."""


class MultiwriteSpec(MemorySpec):
    """A program of MultiWrite: a switch copies a WRITE to all destinations in its bitmap."""

    ROCE_OVER_IPV6: ClassVar[bool] = True

    family: Annotated[Literal["multiwrite"], Field(description="the family of programs: a paper's system")] = (
        "multiwrite"
    )
    mode: Annotated[
        Literal["multiwrite"], Field(description="multiwrite copies a WRITE to the destinations in its bitmap")
    ] = "multiwrite"
    receivers: Annotated[
        Literal[32, 64, 128, 256, 512, 1024],
        Field(
            description="most destinations of a write, the bits of its bitmap: 32 are in the immediate data, more in a "
            "header of their own"
        ),
    ] = 32
    repair: Annotated[
        Repair,
        Field(
            description="who sends again what is lost: source, and switches keep no payloads, or hop, and each switch "
            "keeps the packets that its next hops have not acknowledged"
        ),
    ] = Repair.SOURCE
    replicate: Annotated[
        Replicate | None,
        Field(
            description="how copies are made: subset, a multicast group for each set of edges (the default for up to "
            f"{MOST_SUBSET_EDGES} edges), or prune, a copy for each edge, and what is not wanted is dropped in egress"
        ),
    ] = None
    place: Annotated[
        Place,
        Field(
            description="where data goes at a destination: symmetric, the same offset at all, or append, the next slot "
            "of a ring"
        ),
    ] = Place.SYMMETRIC
    payload: Annotated[
        int,
        Field(ge=PAYLOAD_STEP, le=4096, description="bytes of data in a packet, a multiple of 64"),
    ] = 1024
    contexts: Annotated[
        int, Field(ge=1, le=4096, description="sources that a switch serves at the same time, of all groups")
    ] = 64
    edges: Annotated[
        int, Field(ge=2, le=32, description="edges of the switch, each with a port, that writes come and go by")
    ] = 8
    slots: Annotated[
        Literal[2, 4, 8, 16, 32, 64, 128, 256],
        Field(description="packets that a source may send before the first of them is acknowledged; a power of two"),
    ] = 16

    combine: Annotated[
        Literal["int32", "float32", "bfloat16"] | None,
        Field(
            description="switches add up what the experts of a token send back to its source: numbers of this type; by "
            "default they add nothing"
        ),
    ] = None

    icrc: Annotated[
        Icrc,
        Field(
            description="RoCEv2's invariant CRC: check it and recompute it (check is another name for this), only "
            "set it in what is sent, patch that of a write by what changed headers change of it, without a look at the "
            "data, or ignore it (then NICs must too)"
        ),
    ] = Icrc.RECOMPUTE

    @field_validator("receivers", "slots", mode="before")
    @classmethod
    def _whole_number(cls, value: Any) -> Any:
        return whole(value)

    @model_validator(mode="after")
    def _fits(self) -> MultiwriteSpec:
        if self.arch != DEFAULT_ARCH:
            raise SpecConflictError("arch", f"MultiWrite's programs are for {DEFAULT_ARCH}")
        if self.pipelines > 1:
            raise SpecConflictError("pipelines", "a write's copies share the state of one pipeline: must be 1")
        if self.beside is not None:
            raise SpecConflictError("beside", "MultiWrite's programs have no second family")
        if self.icrc.patched and self.holds:
            raise SpecConflictError(
                "icrc", "packets that a switch keeps are sent again with an ICRC of their own: not patch"
            )
        if self.combine and not self.holds:
            raise SpecConflictError("combine", "a switch keeps sums until the next hop has them: repair must be hop")
        if self.combine and self.wide:
            raise SpecConflictError("combine", "the set of a token's ranks is in immediate data: receivers must be 32")
        if self.payload % PAYLOAD_STEP:
            raise SpecConflictError("payload", f"must be a multiple of {PAYLOAD_STEP}")
        if self.edges > self.ports:
            raise SpecConflictError("edges", f"each has a port, and the switch has {self.ports}")
        if self.replicate is Replicate.SUBSET and self.edges > MOST_SUBSET_EDGES:
            raise SpecConflictError(
                "replicate", f"subset takes {2**self.edges - 1} multicast groups for {self.edges} edges: prune"
            )
        return self

    @property
    def wide(self) -> bool:
        """Whether the bitmap is in a header of its own."""
        return self.receivers > IMMEDIATE_RECEIVERS

    @property
    @override
    def roots(self) -> int:
        """Ranks that can write: the bits of a bitmap."""
        return self.receivers

    @property
    def replication(self) -> Replicate:
        """``replicate`` with its default resolved."""
        return self.replicate or (Replicate.SUBSET if self.edges <= MOST_SUBSET_EDGES else Replicate.PRUNE)

    @property
    def words(self) -> int:
        """Words of 512 bits that a packet's data is kept in."""
        return self.payload // PAYLOAD_STEP

    @property
    def sum_bytes(self) -> int:
        """Bytes at the end of a rank's memory that sums go to, N slots of 2^n bytes; 0 if nothing is combined."""
        return self.slots << (self.payload - 1).bit_length() if self.combine else 0

    @property
    def holds(self) -> bool:
        """Whether switches keep packets until their next hops have them."""
        return self.repair is Repair.HOP

    @property
    def wants_ticks(self) -> bool:
        """Whether switches have timers, which ticks drive."""
        return self.holds

    @property
    @override
    def alike(self) -> dict[str, str]:
        fields = "receivers", "repair", "place", "payload", "slots", "combine", "icrc"
        return {name: str(getattr(self, name)) for name in fields}

    @property
    @override
    def unit_bytes(self) -> int:
        return self.payload

    @property
    def prunes(self) -> bool:
        """Whether copies that nobody wants are dropped in egress."""
        return self.replication is Replicate.PRUNE

    @property
    def appends(self) -> bool:
        """Whether destinations have rings of slots."""
        return self.place is Place.APPEND

    @property
    def program(self) -> str:
        """The program's name: ``name``, or one derived from the fields that distinguish it."""
        if self.name:
            return self.name
        parts = ["multiwrite", f"r{self.receivers}", f"x{self.edges}", str(self.replication)]
        if self.holds:
            parts.append("hop")
        if self.appends:
            parts.append("append")
        if self.combine:
            parts.append(f"combine_{self.combine}")
        parts.append(f"p{self.payload}")
        if self.icrc is not Icrc.RECOMPUTE:
            parts.append(_ICRC_PARTS[self.icrc])
        return "_".join((*parts, *self.company))

    def resolved(self) -> dict[str, Any]:
        """All fields with their defaults resolved, as the manifest records them."""
        return super().resolved() | {"replicate": str(self.replication)}
