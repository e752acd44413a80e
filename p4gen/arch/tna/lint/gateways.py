"""Conditions outside of actions: a gateway compares few bits by size, and only with constants."""

from __future__ import annotations

from collections.abc import Iterator

from p4gen.arch.tna.lint.chips import Chip, controls
from p4gen.errors import Diagnostic
from p4gen.p4 import ir
from p4gen.p4.types import Bits, strip
from p4gen.p4.walk import used_by, walk

_BY_SIZE = frozenset({"<", "<=", ">", ">="})
_NEXT = frozenset({"<=", ">"})
"""Comparisons that are ``<`` and ``>=`` of the next constant."""


def check(program: ir.Program, chip: Chip) -> Iterator[Diagnostic]:
    """Conditions that no gateway of the chip can decide."""
    for _, _, control in controls(program):
        for block in used_by(control).blocks:
            if not isinstance(block, ir.Control):
                continue
            for s in walk(block.body):
                if isinstance(s, ir.If):
                    yield from _by_size(s.condition, chip)


def _by_size(condition: ir.Expr, chip: Chip) -> Iterator[Diagnostic]:
    """Each comparison by size: with a constant, and of few bits where it is no test of the highest ones."""
    for e in walk(condition):
        if not isinstance(e, ir.Binary) or e.op not in _BY_SIZE:
            continue
        type_ = strip(e.left.type)
        constant = e.right if isinstance(e.right, ir.Literal) else e.left
        if not isinstance(constant, ir.Literal) or not isinstance(constant.value, int):
            message = f"a gateway compares by size only with constants; {chip.name} subtracts in actions"
            yield Diagnostic(e.pos, message)
        elif isinstance(type_, Bits):
            exchanged = constant is e.left
            # With the constant on the left, ``<=`` and ``>`` are ``>=`` and ``<`` of the same constant.
            value = constant.value + (1 if (e.op in _NEXT) != exchanged else 0)
            low = (value & -value).bit_length() - 1 if value else type_.width
            bits = type_.width - low
            if value >> low != 1 and bits > chip.condition_bits:
                message = f"a gateway compares {chip.condition_bits} bits by size; these are {bits}"
                yield Diagnostic(e.pos, message)
