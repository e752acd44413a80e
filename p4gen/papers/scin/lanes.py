"""What a lane does: how an element becomes what its slot keeps, is combined with it, and is made of it again.

A slot keeps 32 bits for each element. Of float16 and bfloat16 it keeps a float32 number: elements are added in that
format, and the result is rounded once, when it is written. The arithmetic is ``templates/shared``'s.
"""

from __future__ import annotations

from dataclasses import dataclass

from p4gen.papers.scin.spec import ScinSpec
from p4gen.vocabulary import DType, Op


@dataclass(frozen=True)
class Lane:
    """P4 text of a lane, and the functions that it calls."""

    reduced: str
    """What a slot keeps of what it ``held`` and an ``element``; if elements are unpacked, of a ``number``."""
    unpack: str = ""
    """The function that makes such a number of an element; "" if an element is one."""
    pack: str = ""
    functions: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: ScinSpec) -> Lane:
        """The lane of a program; blocks with scales have another one, which calls nothing of this."""
        if spec.scaled:
            return cls("")
        dtype, reduction = DType(spec.dtype), Op(spec.op).reduction
        wide = DType(dtype.number_format.wide or dtype)
        reduced = reduction.combined(wide)
        if reduction.saturating is not None and wide.number_format.integer and spec.overflow == "saturate":
            reduced = reduction.saturating(wide)
        if wide.number_format.integer:
            return cls(reduced)
        combine = wide.function(str(reduction.function))
        if wide is dtype:
            return cls(reduced, functions=(combine,))
        unpack, pack = dtype.function("unpack"), dtype.function("pack")
        return cls(f"{combine}(held, number)", unpack, pack, (combine, unpack, pack))

    @property
    def templates(self) -> tuple[str, ...]:
        """The files that define these functions."""
        floats = ("shared/floats.p4.j2",) if self.functions else ()
        return (*floats, "shared/halves.p4.j2") if self.unpack else floats
