"""Places to store into (spec 6.7): found once, before the value is evaluated."""

from __future__ import annotations

from dataclasses import dataclass

from p4gen.model.jit.build import Gen, field_index, is_memory, members, part_at, unsupported
from p4gen.model.jit.emit import Address, Value, const
from p4gen.model.jit.expressions import header_valid, is_void_number, set_header_valid
from p4gen.model.jit.layout import scalar_width
from p4gen.p4 import ir
from p4gen.p4 import types as t


@dataclass(frozen=True)
class Place:
    """An lvalue of type ``type`` at ``at``. ``low``: of a slice, its lowest bit within ``whole``'s type.

    ``union`` and ``member``: the header union that a header is part of, and which of its members it is. ``mark``: the
    byte that is 1 until something is stored here.
    """

    type: t.Type
    at: Address
    whole: t.Type
    low: int | None = None
    union: Address | None = None
    union_type: t.Type | None = None
    member: int = 0
    mark: Address | None = None


def _unsliced(e: ir.Expr) -> tuple[ir.Expr, int | None]:
    if not isinstance(e, ir.Slice):
        return e, None
    inner, low = _unsliced(e.base)
    return inner, e.lo + (low or 0)


def locate(g: Gen, e: ir.Expr) -> Place:
    """Find the place that ``e`` names. Raises ``InputError`` for what names none."""
    inner, low = _unsliced(e)
    if not isinstance(inner, (ir.Var, ir.FieldOf, ir.Index, ir.StackMember)):
        raise unsupported(e.pos, f"storing into {type(inner).__name__}")
    if isinstance(inner, ir.FieldOf) and isinstance(t.strip(inner.base.type), t.HeaderUnion):
        union = g.address(inner.base)
        member = field_index(inner.base.type, inner.name)
        at = part_at(g, union, inner.base.type, member)
        return Place(e.type, at, inner.type, low, union, inner.base.type, member)
    return Place(e.type, g.address(inner), inner.type, low, mark=mark_of(g, inner))


def mark_of(g: Gen, e: ir.Expr) -> Address | None:
    """The byte that is 1 until something is assigned to the place that ``e`` names, if there is one."""
    if isinstance(e, ir.Var):
        return g.marks.get(e.variable)
    if not isinstance(e, ir.FieldOf) or not is_memory(e.base.type):
        return None
    marks = g.types.shape(e.base.type).marks
    return None if marks is None else g.address(e.base).plus(marks + field_index(e.base.type, e.name))


def is_dynamic(e: ir.Expr) -> bool:
    """Whether finding the place evaluates something."""
    match e:
        case ir.FieldOf(base=base) | ir.Slice(base=base):
            return is_dynamic(base)
        case ir.Index(base=base, index=index):
            return not isinstance(index, ir.Literal) or is_dynamic(base)
        case ir.StackMember():
            return True
    return False


def load(g: Gen, place: Place) -> Value:
    """The scalar at a place; of a slice, its bits."""
    whole = g.load(place.at, place.whole)
    if place.low is None:
        return whole
    shifted = g.fn.op("lshr", whole, const(place.low, whole.width))
    return g.fn.resize(shifted, scalar_width(place.type))


def store(g: Gen, place: Place, value: Value) -> None:
    """Store a scalar at a place; of a slice, only its bits."""
    fn = g.fn
    if is_void_number(place.type):
        return
    if place.low is not None:
        whole = g.load(place.at, place.whole)
        mask = ((1 << value.width) - 1) << place.low
        kept = fn.op("and", whole, const(~mask, whole.width))
        wide = fn.op("shl", fn.resize(value, whole.width), const(place.low, whole.width))
        value = fn.op("or", kept, wide)
    g.store(value, place.at, place.whole)
    if place.mark is not None:
        fn.store(const(0, 8), place.mark)


def store_from(g: Gen, place: Place, source: Address) -> None:
    """Store the value at ``source``: a copy; a valid header stored into a union becomes its only one (8.20)."""
    if not is_memory(place.type):
        store(g, place, g.load(source, place.type))
        return
    g.copy(place.at, source, place.type)
    if place.union is not None:
        with g.fn.when(header_valid(g, place.at)):
            only_valid(g, place)


def only_valid(g: Gen, place: Place) -> None:
    """Make all headers of a union but the one at ``place`` invalid."""
    assert place.union is not None
    assert place.union_type is not None
    for i, _ in enumerate(members(place.union_type)):
        if i != place.member:
            set_header_valid(g, part_at(g, place.union, place.union_type, i), const(0, 1))
