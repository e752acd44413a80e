"""Places to store into (spec 6.7). Their parts are evaluated once, before the value.

A place is a list and an index into it: the frame for a variable, a value's ``fields`` for the rest. Composite values
never move, so a place located early is still valid when the value is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p4gen.model.interp.build import Build, fresh, unsupported
from p4gen.model.interp.context import Eval, Frame
from p4gen.model.interp.expressions import field_index, stack_position, wrapper
from p4gen.model.values import is_composite
from p4gen.p4 import ir
from p4gen.p4 import types as t

Place = tuple[list[Any], int]


class LValue:
    """A compiled lvalue.

    ``locate`` finds its place; ``load`` and ``store`` use one; ``set`` does both at once. ``dynamic``: finding the
    place evaluates expressions, so it must happen before the value is evaluated.
    """

    def __init__(self, b: Build, e: ir.Expr) -> None:
        self.type = e.type
        inner, self._slice = _unsliced(e)
        self.root = _root(inner)
        self.dynamic = _is_dynamic(inner)
        self.composite = is_composite(e.type)
        self.in_union = isinstance(inner, ir.FieldOf) and isinstance(t.strip(inner.base.type), t.HeaderUnion)
        self.locate = _locator(b, inner)
        self.get: Eval = b.expr(e)
        self._base_type = inner.type
        self.store: Callable[[Place, Any], None] = self._storer()
        self.set: Callable[[Frame, Any], None] = self._setter(b, inner)

    def load(self, place: Place) -> Any:
        """The value there (not copied)."""
        value = place[0][place[1]]
        if self._slice is not None:
            lo, mask = self._slice
            return (value >> lo) & mask
        return value

    def _storer(self) -> Callable[[Place, Any], None]:
        if self.in_union:
            return _store_in_union
        if self.composite:
            return _store_composite
        if self._slice is None:
            return _store_scalar
        lo, mask = self._slice
        base = t.strip(self._base_type)
        bits = base.base if isinstance(base, t.SerEnum) else base
        assert isinstance(bits, t.Bits)
        wrap, hole = wrapper(bits), ~(mask << lo)

        def store_slice(place: Place, value: Any) -> None:
            container, key = place
            container[key] = wrap((container[key] & hole) | ((value & mask) << lo))

        return store_slice

    def _setter(self, b: Build, inner: ir.Expr) -> Callable[[Frame, Any], None]:
        locate, store = self.locate, self.store
        if self._slice is None and not self.composite and not self.in_union:
            match inner:
                case ir.Var(variable=variable):
                    slot = b.slot(variable)

                    def set_variable(f: Frame, value: Any) -> None:
                        f[slot] = value

                    return set_variable
                case ir.FieldOf(base=base, name=name) if not self.dynamic:
                    owner, index = b.expr(base), field_index(base.type, name)

                    def set_field(f: Frame, value: Any) -> None:
                        owner(f).fields[index] = value

                    return set_field
        return lambda f, value: store(locate(f), value)


def _store_scalar(place: Place, value: Any) -> None:
    place[0][place[1]] = value


def _store_composite(place: Place, value: Any) -> None:
    place[0][place[1]].assign(value)


def _store_in_union(place: Place, value: Any) -> None:
    """A header stored into a union: if valid, it becomes the only valid one (spec 8.20)."""
    headers, key = place
    headers[key].assign(value)
    if value.valid:
        only_valid(headers, key)


def only_valid(headers: list[Any], key: int) -> None:
    """Make all headers of a union but one invalid."""
    for i, header in enumerate(headers):
        if i != key:
            header.valid = False


def _unsliced(e: ir.Expr) -> tuple[ir.Expr, tuple[int, int] | None]:
    """``x[7:4][1:0]`` as ``x`` and (shift, mask)."""
    if not isinstance(e, ir.Slice):
        return e, None
    inner, outer = _unsliced(e.base)
    lo, mask = e.lo, (1 << (e.hi - e.lo + 1)) - 1
    return inner, (lo + (outer[0] if outer else 0), mask)


def _root(e: ir.Expr) -> ir.Variable | None:
    while isinstance(e, (ir.FieldOf, ir.StackMember, ir.Index, ir.Slice)):
        e = e.base
    return e.variable if isinstance(e, ir.Var) else None


def _is_dynamic(e: ir.Expr) -> bool:
    match e:
        case ir.FieldOf(base=base):
            return _is_dynamic(base)
        case ir.Index(base=base, index=index):
            return not isinstance(index, ir.Literal) or _is_dynamic(base)
        case ir.StackMember():
            return True
    return False


def _locator(b: Build, e: ir.Expr) -> Callable[[Frame], Place]:
    match e:
        case ir.Var(variable=variable):
            slot = b.slot(variable)
            return lambda f: (f, slot)
        case ir.FieldOf(base=base, name=name):
            owner, index = _owner(b, base), field_index(base.type, name)
            return lambda f: (owner(f).fields, index)
        case ir.StackMember(base=base, name="next" | "last" as which):
            stack, offset = _owner(b, base), 0 if which == "next" else -1

            def at_position(f: Frame) -> Place:
                found = stack(f)
                return found.fields, stack_position(found, offset)

            return at_position
        case ir.Index(base=base, index=index):
            stack, number, make, state, pos = _owner(b, base), b.expr(index), fresh(e.type), b.state, e.pos

            def at_index(f: Frame) -> Place:
                elements, i = stack(f).fields, number(f)
                if 0 <= i < len(elements):
                    return elements, i
                # Spec 8.18: a write outside a stack has no effect.
                state.trap(pos, f"stack index {i} is out of range, the stack has {len(elements)} elements")
                return [make()], 0

            return at_index
    raise unsupported(e.pos, f"storing into {type(e).__name__}")


def _owner(b: Build, e: ir.Expr) -> Eval:
    """The value that an lvalue is part of. Dynamic parts are located first, so an index out of range traps once and
    yields a dummy value to write into."""
    if not _is_dynamic(e):
        return b.expr(e)
    locate = _locator(b, e)

    def get(f: Frame) -> Any:
        container, key = locate(f)
        return container[key]

    return get
