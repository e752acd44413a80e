"""Conditions outside of actions: a gateway takes few bits, and compares fields by size only with constants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from p4gen.chips.tna.lint.chips import Chip, controls
from p4gen.chips.tna.resources.access import Leaf, join, masked
from p4gen.errors import Diagnostic
from p4gen.p4 import ir
from p4gen.p4.simplify import simplified
from p4gen.p4.types import Bits, Bool, strip
from p4gen.p4.walk import used_by, walk

_BY_SIZE = frozenset({"<", "<=", ">", ">="})
_MOST_ROWS = 64
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
                    condition = simplified(s.condition)
                    yield from _by_size(condition, chip)
                    yield from _masked(condition)
                    yield from _wide(condition, chip)


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


def _masked(condition: ir.Expr) -> Iterator[Diagnostic]:
    """Masks that are not constants, which no gateway can apply."""
    for e in walk(condition):
        if isinstance(e, ir.Binary) and e.op == "&" and not isinstance(e.left.type, Bool):
            if any(isinstance(side, ir.Literal) for side in (e.left, e.right)):
                continue
            yield Diagnostic(e.pos, "a gateway masks only with constants; an action can combine fields before")


@dataclass
class _Row:
    """The comparisons of one row of a gateway: all of them must hold."""

    equal: dict[object, int] = field(default_factory=dict)
    """Bytes of fields that are compared with each other."""
    constant: dict[Leaf, int] = field(default_factory=dict)
    """Bits of fields that are compared with constants."""


def _wide(condition: ir.Expr, chip: Chip) -> Iterator[Diagnostic]:
    """A row takes few bytes, and few more bits by a hash; p4c splits conditions at ``||`` only."""
    for row in _rows(condition) or ():
        pairs, bits = sum(row.equal.values()), sum(mask.bit_count() for mask in row.constant.values())
        if pairs > chip.condition_bytes or bits > 8 * (chip.condition_bytes - pairs) + chip.condition_bits:
            message = (
                f"a condition takes {8 * pairs + bits} bits; a gateway takes {chip.condition_bytes} bytes"
                f" and {chip.condition_bits} bits"
            )
            yield Diagnostic(condition.pos, message)
            return


def _rows(e: ir.Expr) -> list[_Row] | None:
    """The alternatives of a condition, each with what it surely compares; None where there are too many.

    What must be unequal is left out: p4c may decide it in a row before.
    """
    match e:
        case ir.Binary(op="||", left=left, right=right):
            one, other = _rows(left), _rows(right)
            return None if one is None or other is None else one + other
        case ir.Binary(op="&&", left=left, right=right):
            one, other = _rows(left), _rows(right)
            if one is None or other is None or len(one) * len(other) > _MOST_ROWS:
                return None
            return [_both(a, b) for a in one for b in other]
        case ir.Binary(op="==", left=left, right=right):
            sides = [masked(side, {}) for side in (left, right)]
            constants = [isinstance(side, ir.Literal) for side in (left, right)]
            if any(constants):
                return [_Row({}, sides[constants.index(False)] if False in constants else {})]
            if all(len(side) == 1 for side in sides):
                wide = max(mask.bit_count() for side in sides for mask in side.values())
                return [_Row({frozenset(key for side in sides for key in side.items()): (wide + 7) // 8})]
    return [_Row()]


def _both(one: _Row, other: _Row) -> _Row:
    constant = dict(one.constant)
    join(constant, other.constant)
    return _Row({**one.equal, **other.equal}, constant)
