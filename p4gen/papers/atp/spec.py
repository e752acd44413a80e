"""AtpSpec: the fields of ATP's programs."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, field_validator, model_validator
from typing_extensions import override

from p4gen.vocabulary.formats import DType
from p4gen.vocabulary.message import ROOTS
from p4gen.vocabulary.program import DEFAULT_ARCH, SpecConflictError, whole
from p4gen.vocabulary.reductions import Op
from p4gen.vocabulary.serving import ServingSpec

MOST_WORKERS: Final = 32
"""Bits of the set of workers in the header."""
WINDOW: Final = 256
"""The most packets that a worker has on the way: the hash has 8 bits of the sequence number."""
_SLOTS: Final = 32
"""As many as that in a group of the manager, unless it asks for more slots, or its share of aggregators is smaller."""


class AtpSpec(ServingSpec):
    """A program of ATP: a switch adds gradients of int32, a packet at a time, on their way to parameter servers."""

    op: ClassVar = Op.SUM
    dtype: ClassVar = DType.INT32
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

    @field_validator("lanes", mode="before")
    @classmethod
    def _whole_number(cls, value: Any) -> Any:
        return whole(value)

    @model_validator(mode="after")
    def _fits(self) -> AtpSpec:
        if self.arch != DEFAULT_ARCH:
            raise SpecConflictError("arch", f"ATP's programs are for {DEFAULT_ARCH}")
        if self.pipelines > 1:
            raise SpecConflictError("pipelines", "all ports share the aggregators of one pipeline: must be 1")
        if self.beside is not None:
            raise SpecConflictError("beside", "ATP's programs have no second family")
        return self

    @property
    def hosts(self) -> int:
        """The most hosts of a job: its workers, and the server."""
        return self.fan_in + 1

    @property
    @override
    def payload_bytes(self) -> int:
        return self.unit_bytes * self.lanes

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
    def roots(self) -> int:
        return ROOTS

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
