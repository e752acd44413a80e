"""ScinSpec: the fields of SCIN's programs."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from p4gen.spec.program import DEFAULT_ARCH, Icrc, ProgramSpec, SpecConflictError, whole

LANE_BYTES: Final = 4


class ScinSpec(ProgramSpec):
    """A program of SCIN."""

    family: Annotated[Literal["scin"], Field(description="the family of programs: a paper's system")] = "scin"
    mode: Annotated[Literal["scin"], Field(description="SCIN has only this mode")] = "scin"
    op: Annotated[Literal["sum", "min", "max"], Field(description="the reduction")] = "sum"
    dtype: Annotated[Literal["int32", "uint32"], Field(description="what the elements are")] = "int32"
    overflow: Annotated[
        Literal["saturate", "wrap"], Field(description="what a sum becomes that the type cannot hold")
    ] = "saturate"
    lanes: Annotated[
        Literal[8, 16, 32, 64, 128, 256],
        Field(description="elements of a packet, each a lane of 32 bits; a power of two"),
    ] = 64
    waves: Annotated[
        Literal[1, 2, 4, 8, 16, 32],
        Field(description="k: READs of each rank that may be outstanding; NICs serve 16 at most; a power of two"),
    ] = 16
    wave: Annotated[
        Literal[1, 2, 4, 8, 16, 32, 64],
        Field(description="P: packets of a wave, which one READ asks for; a power of two"),
    ] = 4
    completion: Annotated[
        Literal["strict", "ordered"],
        Field(
            description="when a rank learns that a call has ended: by a flag, when all destinations have acknowledged "
            "all results (strict), or by the last WRITE of its own result (ordered)"
        ),
    ] = "strict"
    contexts: Annotated[int, Field(ge=1, le=256, description="groups that a switch serves at the same time")] = 4
    edges: Annotated[int, Field(ge=2, le=32, description="most ranks of a group, each behind an edge of its own")] = 8
    patience: Annotated[
        int,
        Field(ge=1, le=255, description="ticks without any progress after which a call ends with a status"),
    ] = 7

    @field_validator("lanes", "waves", "wave", mode="before")
    @classmethod
    def _whole_number(cls, value: Any) -> Any:
        return whole(value)

    @model_validator(mode="after")
    def _fits(self) -> ScinSpec:
        if self.arch != DEFAULT_ARCH:
            raise SpecConflictError("arch", f"SCIN's programs are for {DEFAULT_ARCH}")
        if self.pipelines > 1:
            raise SpecConflictError("pipelines", "a call has its state in one pipeline: must be 1")
        if self.beside is not None:
            raise SpecConflictError("beside", "SCIN's programs have no second family")
        if self.edges > self.ports:
            raise SpecConflictError("edges", f"each has a port, and the switch has {self.ports}")
        return self

    @property
    def payload(self) -> int:
        """Bytes of data in a packet."""
        return LANE_BYTES * self.lanes

    @property
    def slots(self) -> int:
        """N: slots of a context, which is what k waves need."""
        return self.waves * self.wave

    @property
    def ordered(self) -> bool:
        """Whether the last WRITE of a rank's result is its flag."""
        return self.completion == "ordered"

    @property
    def program(self) -> str:
        """The program's name: ``name``, or one derived from the fields that distinguish it."""
        if self.name:
            return self.name
        parts = ["scin", self.op, self.dtype, f"x{self.lanes}", f"k{self.waves}", f"p{self.wave}", f"e{self.edges}"]
        if self.op == "sum" and self.overflow == "wrap":
            parts.append("wrap")
        if self.ordered:
            parts.append("ordered")
        if self.icrc is not Icrc.RECOMPUTE:
            parts.append("noicrc" if self.icrc is Icrc.IGNORE else "seticrc")
        return "_".join(parts)
