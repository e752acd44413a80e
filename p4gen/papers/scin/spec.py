"""ScinSpec: the fields of SCIN's programs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, field_validator, model_validator
from typing_extensions import override

from p4gen.papers.scin.codes import SCALED, Scaled
from p4gen.vocabulary import DType
from p4gen.vocabulary.program import DEFAULT_ARCH, Icrc, SpecConflictError, whole
from p4gen.vocabulary.serving import MemorySpec

_WORD: Final = 4
"""RoCEv2's data are whole words of so many bytes."""


class Variant(StrEnum):
    """Designs that fall short of what a network needs that loses packets."""

    EARLY_RELEASE = "early-release"
    """The paper's: a wave's entries are free when its result is read out, before its WRITEs are acknowledged (section
    3.4.1, step 6). Sound without losses only: what others have taken the place of cannot be written again."""


class ScinSpec(MemorySpec):
    """A program of SCIN: a switch reads operands from ranks' memory, and writes results to it."""

    ROCE_OVER_IPV6: ClassVar[bool] = True

    family: Annotated[Literal["scin"], Field(description="the family of programs: a paper's system")] = "scin"
    mode: Annotated[Literal["scin"], Field(description="scin starts collectives in the switch")] = "scin"
    op: Annotated[Literal["sum", "min", "max"], Field(description="the reduction")] = "sum"
    dtype: Annotated[
        Literal["int32", "uint32", "float32", "float16", "bfloat16", "mxint8", "int8_float16"],
        Field(
            description="what the elements are; float16 and bfloat16 are added as float32, and rounded once; mxint8 "
            "and int8_float16: bytes, with a scale for each block, a power of two or the paper's float16"
        ),
    ] = "int32"
    block: Annotated[
        Literal[32, 64] | None,
        Field(description="elements that have a scale in common (of mxint8 32 by default, of int8_float16 64)"),
    ] = None
    exact: Annotated[
        Literal["int32"] | None,
        Field(
            description="of elements with scales: the type of calls without, which each call chooses (QuantEnable, "
            "section 3.4.2); none by default"
        ),
    ] = None
    overflow: Annotated[
        Literal["saturate", "wrap"], Field(description="what a sum becomes that the type cannot hold")
    ] = "saturate"
    lanes: Annotated[
        Literal[8, 16, 32, 64, 128, 256, 512, 1024],
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
        Field(ge=1, le=4095, description="ticks without any progress after which a call ends with a status"),
    ] = 64

    variant: Annotated[
        Variant | None, Field(description="a design that falls short, for comparison only; none by default")
    ] = None

    @field_validator("lanes", "waves", "wave", "block", mode="before")
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
        if self.floating and self.overflow == "wrap":
            raise SpecConflictError("overflow", f"sums of {self.dtype} do not wrap around: they become infinite")
        if self.scaled:
            self._scales_fit()
        elif self.exact is not None:
            raise SpecConflictError("exact", f"{self.dtype} has no scales: all calls are exact")
        elif self.block is not None:
            raise SpecConflictError("block", f"{self.dtype} has no scales")
        if self.variant is not None and self.ordered:
            raise SpecConflictError("variant", f"{self.variant} is a design with strict completion")
        if self.variant is not None and self.scaled:
            raise SpecConflictError("variant", f"{self.variant} is a design for numbers without scales")
        return self

    def _scales_fit(self) -> None:
        if self.op != "sum":
            raise SpecConflictError("op", "blocks with scales are added only")
        if self.overflow != "saturate":
            raise SpecConflictError("overflow", "blocks with scales saturate only")
        if self.lanes < self.scale_block:
            raise SpecConflictError("lanes", f"a packet has whole blocks, of {self.scale_block} elements")
        if self.scale_bytes < _WORD:
            least = _WORD // self.scaling.scale_bytes
            raise SpecConflictError("wave", f"a wave has {self.scales} blocks; it needs {least}, a word of scales")
        if self.scale_bytes >= self.payload:
            raise SpecConflictError("wave", f"a wave of {self.wave} packets has scales for more than a packet")

    @property
    def scaled(self) -> bool:
        """Whether elements have scales: quantisation in the network (section 3.4.4)."""
        return self.dtype in SCALED

    @property
    def exact_form(self) -> ScinSpec:
        """Calls without scales, of a program that has some, as the program of these alone would have them: a packet
        has as many bytes."""
        changed: dict[str, Any] = {"dtype": self.exact, "lanes": self.words, "block": None, "exact": None, "name": None}
        return self.model_copy(update=changed)

    @property
    def words(self) -> int:
        """Elements of a packet of an exact call, 32 bits each."""
        return self.lanes // _WORD

    @property
    def float16_scales(self) -> bool:
        """Whether scales are float16 numbers, as the paper's; others are powers of two."""
        return self.scaled and self.scaling.scale_bytes == 2

    @property
    def scaling(self) -> Scaled:
        """How elements are scaled; of a program whose elements are."""
        return SCALED[self.dtype]

    @property
    def scale_block(self) -> int:
        """Elements that have a scale in common; 0 if they have none."""
        return (self.block or self.scaling.block) if self.scaled else 0

    @property
    def blocks(self) -> int:
        """Blocks of a packet; 0 if elements have no scales."""
        return self.lanes // self.scale_block if self.scaled else 0

    @property
    def scales(self) -> int:
        """Scales of a wave, one for each block; 0 if elements have none."""
        return self.wave * self.blocks

    @property
    def scale_bytes(self) -> int:
        """Bytes of a wave's scales."""
        return self.scales * self.scaling.scale_bytes if self.scaled else 0

    @property
    @override
    def queue_pairs(self) -> int:
        return 4 if self.scaled else 3

    @property
    @override
    def single_switch(self) -> bool:
        return True

    @property
    @override
    def wants_ticks(self) -> bool:
        return True

    @property
    def depends_on_order(self) -> bool:
        """Whether a result depends on the order in which data comes: a sum of floating-point numbers does."""
        return self.floating and self.op == "sum"

    @property
    def floating(self) -> bool:
        """Whether elements are floating-point numbers."""
        return not self.scaled and not DType(self.dtype).number_format.integer

    @property
    def element_bytes(self) -> int:
        """Bytes of an element on the wire."""
        return 1 if self.scaled else DType(self.dtype).number_format.bytes

    @property
    def payload(self) -> int:
        """Bytes of data in a packet, without scales."""
        return self.element_bytes * self.lanes

    @property
    def written_mtu(self) -> int:
        """The path MTU of connections that results are written to: with scales, the last packet of a wave is longer."""
        return 2 * self.payload if self.scaled else self.payload

    @property
    @override
    def unit_bytes(self) -> int:
        """Bytes that calls count in: those of an element; if it has a scale, those of a block as 16-bit numbers."""
        return 2 * self.scale_block if self.scaled else self.element_bytes

    @property
    def packet_units(self) -> int:
        """Units of a packet, as ``unit_bytes`` counts them: elements, or blocks."""
        return self.blocks if self.scaled else self.lanes

    @property
    def slots(self) -> int:
        """N: slots of a context, which is what k waves need."""
        return self.waves * self.wave

    @property
    def ordered(self) -> bool:
        """Whether the last WRITE of a rank's result is its flag."""
        return self.completion == "ordered"

    @property
    def releases_early(self) -> bool:
        """Whether slots are free when their results leave."""
        return self.variant is Variant.EARLY_RELEASE

    @property
    def program(self) -> str:
        """The program's name: ``name``, or one derived from the fields that distinguish it."""
        if self.name:
            return self.name
        numbers = f"{self.dtype}b{self.scale_block}" if self.scaled else self.dtype
        parts = ["scin", self.op, numbers, f"x{self.lanes}", f"k{self.waves}", f"p{self.wave}", f"e{self.edges}"]
        if self.exact:
            parts.append(f"or_{self.exact}")
        if self.op == "sum" and self.overflow == "wrap":
            parts.append("wrap")
        if self.ordered:
            parts.append("ordered")
        if self.variant is not None:
            parts.append(self.variant.replace("-", "_"))
        if self.icrc is not Icrc.RECOMPUTE:
            parts.append("noicrc" if self.icrc is Icrc.IGNORE else "seticrc")
        return "_".join((*parts, *self.company))
