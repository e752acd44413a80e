"""SwitchmlSpec: the fields of SwitchML's programs."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, model_validator
from typing_extensions import override

from p4gen.arch import Feature
from p4gen.vocabulary.program import SpecConflictError
from p4gen.vocabulary.serving import AddingSpec

MOST_WORKERS: Final = 32
"""Bits of the set of workers that a slot knows."""
MOST_SLOTS: Final = 1 << 15
"""Slots that the header can name."""


class SwitchmlSpec(AddingSpec):
    """A program of SwitchML: a switch adds vectors of int32, a packet at a time, for several jobs."""

    saturating: ClassVar = False

    family: Annotated[Literal["switchml"], Field(description="the family of programs: a paper's system")] = "switchml"
    mode: Annotated[
        Literal["switchml"], Field(description="switchml adds workers' vectors in slots with two versions")
    ] = "switchml"
    lanes: Annotated[Literal[16, 32, 64, 128, 256], Field(description="int32 elements in a packet")] = 64
    fan_in: Annotated[int, Field(ge=1, le=MOST_WORKERS, description="the most workers of a job")] = 8
    groups: Annotated[int, Field(ge=1, le=256, description="jobs that a switch serves at the same time")] = 4
    slots: Annotated[
        int, Field(ge=1, le=MOST_SLOTS, description="slots of the pools of all jobs; each has two buffers of a packet")
    ] = 256
    transport: Annotated[
        Literal["udp", "roce"],
        Field(description="udp: vectors are UDP datagrams; roce: RDMA WRITEs of unreliable connections, over RoCEv2"),
    ] = "udp"
    offsets: Annotated[
        Literal["checked", "carried"],
        Field(
            description="checked: a vector that comes after its worker's next one is refused; carried: it is added, "
            "as in the paper, whose links keep packets in order"
        ),
    ] = "checked"

    @model_validator(mode="after")
    def _fits(self) -> SwitchmlSpec:
        most, each, of_what = self.architecture.results
        if self.tofino and self.lanes > most * each:
            needed = f"{self.lanes} lanes need {self.lanes // each} {of_what}; {most} there are"
            raise SpecConflictError("lanes", f"{self.arch}: {needed}: use {1 << ((most * each).bit_length() - 1)}")
        if self.tofino and self.roce:
            raise SpecConflictError("transport", f"RDMA is for v1model; programs for {self.arch} have no ICRC here")
        if self.fan_in > self.ports:
            raise SpecConflictError("fan_in", f"each has a port, and the switch has {self.ports}")
        return self

    @property
    @override
    def total_slots(self) -> int:
        return self.slots

    @property
    @override
    def slots_per_group(self) -> int:
        """An equal share of the slots, which is a power of two."""
        return 1 << (max(1, self.slots // self.groups).bit_length() - 1)

    @property
    @override
    def single_switch(self) -> bool:
        return True

    @property
    @override
    def needs_order(self) -> bool:
        return not self.checks_offsets

    @property
    @override
    def needs_intact(self) -> bool:
        return not (self.roce and self.icrc.checked)

    @property
    @override
    def queue_pairs(self) -> int:
        return self.slots_per_group if self.roce else 1

    @property
    def roce(self) -> bool:
        """Whether vectors are RDMA WRITEs."""
        return self.transport == "roce"

    @property
    def tofino(self) -> bool:
        """Whether the program is for an architecture whose registers have few actions."""
        return Feature.WIDE_STATE not in self.architecture.features

    @property
    def checks_offsets(self) -> bool:
        """Whether the switch compares offsets."""
        return self.offsets == "checked"

    @property
    @override
    def program(self) -> str:
        if self.name:
            return self.name
        carried = () if self.checks_offsets else ("carried",)
        roce = ("roce", *(() if self.icrc.checked else (f"{self.icrc}icrc",))) if self.roce else ()
        chip = (self.arch,) if self.tofino else ()
        size = f"x{self.lanes}", f"w{self.fan_in}", f"s{self.slots}"
        return "_".join(("switchml", *size, *roce, *carried, *self.company, *chip))
