"""How switches add the outputs of a token's experts, lane by lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from p4gen.vocabulary import DType, Op

LANE_BITS: Final = 32


@dataclass(frozen=True)
class Lane:
    """P4 text of a lane, and the functions of ``templates/shared`` that it calls."""

    note: str
    """What is in it, and how it is added."""
    sum: str
    """The sum of the lanes ``held`` and ``element``."""
    functions: tuple[str, ...] = ()

    @classmethod
    def of(cls, dtype: DType) -> Lane:
        """The lane of a program that adds elements of a type. Integers saturate; halves are added as binary32 numbers,
        and each sum is rounded."""
        reduction, form = Op.SUM.reduction, dtype.number_format
        if form.integer:
            assert reduction.saturating is not None
            return cls(f"an {dtype}; sums saturate", reduction.saturating(dtype))
        adding = DType(form.wide or dtype)
        if form.wide is None:
            return cls(f"a {dtype}", reduction.combined(dtype), (dtype.function("add"),))
        add, unpack, pack = adding.function("add"), dtype.function("unpack"), dtype.function("pack")
        halves = (f"{pack}({add}({unpack}(held[{at}]), {unpack}(element[{at}])))" for at in ("31:16", "15:0"))
        return cls(f"two {dtype}s, each sum of which is rounded", " ++ ".join(halves), (add, unpack, pack))

    def added(self, held: str, element: str) -> str:
        """The sum of two expressions; ``add_lane`` computes it if it takes more than an operator."""
        if self.functions:
            return f"add_lane({held}, {element})"
        return self.sum.replace("held", held).replace("element", element)

    @property
    def templates(self) -> tuple[str, ...]:
        """The files that define these functions."""
        if not self.functions:
            return ()
        halves = ("shared/halves.p4.j2",) if len(self.functions) > 1 else ()
        return ("shared/floats.p4.j2", *halves)
