"""AtpSpec: the fields of ATP's programs."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator, model_validator
from typing_extensions import override

from p4gen.vocabulary.program import DEFAULT_ARCH, ProgramSpec, SpecConflictError, whole

MOST_WORKERS: Final = 32
"""Bits of the set of workers in the header."""
_BYTES: Final = 4


class AtpSpec(ProgramSpec):
    """A program of ATP: a switch adds gradients of int32, a packet at a time, on their way to parameter servers."""

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
    def payload(self) -> int:
        """Bytes of a packet's elements."""
        return _BYTES * self.lanes

    @property
    @override
    def program(self) -> str:
        if self.name:
            return self.name
        return "_".join(("atp", f"x{self.lanes}", f"w{self.fan_in}", f"a{self.aggregators}", *self.company))
