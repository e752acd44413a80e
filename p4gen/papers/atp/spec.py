"""AtpSpec: the fields of ATP's programs."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, model_validator
from typing_extensions import override

from p4gen.vocabulary.program import DEFAULT_ARCH, SpecConflictError
from p4gen.vocabulary.serving import AddingSpec

MOST_WORKERS: Final = 32
"""Bits of the set of workers in the header."""
WINDOW: Final = 256
"""The most packets that a worker has on the way: the hash has 8 bits of the sequence number."""
_SLOTS: Final = 32
"""As many as that in a group of the manager, unless it asks for more slots, or its share of aggregators is smaller."""


class AtpSpec(AddingSpec):
    """A program of ATP: a switch adds gradients of int32, a packet at a time, on their way to parameter servers."""

    saturating: ClassVar = True

    family: Annotated[Literal["atp"], Field(description="the family of programs: a paper's system")] = "atp"
    mode: Annotated[
        Literal["atp"], Field(description="atp adds workers' gradients on their way to a parameter server")
    ] = "atp"
    lanes: Annotated[Literal[32, 64, 128, 256], Field(description="int32 elements in a packet")] = 64
    fan_in: Annotated[int, Field(ge=1, le=MOST_WORKERS, description="the most workers of a job")] = 8
    groups: Annotated[int, Field(ge=1, le=256, description="jobs that a switch serves at the same time")] = 4
    aggregators: Annotated[
        int, Field(ge=1, le=1 << 16, description="packets' sums that a switch holds at once, for all jobs together")
    ] = 1024
    patience: Annotated[
        int,
        Field(
            ge=1,
            le=255,
            description="packets of others that an aggregator turns away after its own last one, until it is theirs",
        ),
    ] = 64
    server: Annotated[
        Literal["local", "worker"],
        Field(
            description="the last rank's host has the parameter server; the rank hands its gradients to it (local, "
            "7-to-1 of 8 ranks) or sends them as the others do (worker, 8-to-1)"
        ),
    ] = "local"

    @model_validator(mode="after")
    def _fits(self) -> AtpSpec:
        if self.arch != DEFAULT_ARCH:
            raise SpecConflictError("arch", f"ATP's programs are for {DEFAULT_ARCH}")
        return self

    @property
    def hosts(self) -> int:
        """The most hosts of a job: its workers, and the server."""
        return self.fan_in + 1

    @property
    @override
    def total_slots(self) -> int:
        """Jobs share all aggregators: a group's slots only say how many packets its workers have on the way."""
        return max(self.aggregators, self.groups)

    @property
    @override
    def slots_per_group(self) -> int:
        return min(_SLOTS, 1 << ((self.total_slots // self.groups).bit_length() - 1))

    @property
    @override
    def has_server(self) -> bool:
        return True

    @property
    @override
    def alike(self) -> dict[str, str]:
        return {"family": self.family, "lanes": str(self.lanes), "server": self.server}

    @property
    @override
    def entrances(self) -> int:
        return self.groups * self.hosts * self.ports

    @property
    @override
    def needs_intact(self) -> bool:
        return True

    @property
    @override
    def program(self) -> str:
        if self.name:
            return self.name
        return "_".join(("atp", f"x{self.lanes}", f"w{self.fan_in}", f"a{self.aggregators}", *self.company))
