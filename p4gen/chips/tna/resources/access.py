"""The fields that code reads and writes.

A field is a *leaf*: its holder, and a path in it. The holder is a local variable or, for values that the blocks of a
gress pass on to each other (headers, metadata, intrinsic metadata), the gress and the type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from p4gen.p4 import ir
from p4gen.p4.types import Fields, Header, HeaderUnion, Stack, Type, strip, width_of

Root = ir.Variable | tuple[str, str]
Leaf = tuple[Root, str]
Bits = dict[Leaf, int]
"""Leaves, and a mask of their bits."""

VALID = "$valid"
_CONTAINER = 32
_ONES = (1 << _CONTAINER) - 1
_LOADED = 21
_MOST = 7


@dataclass(frozen=True)
class Place:
    """An lvalue: its holder, the path, and its type."""

    root: Root
    path: str
    type: Type


Scope = Mapping[ir.Variable, Place | Bits]
"""The meaning of parameters: an lvalue, or the bits from which a value is computed (none for action data)."""


@dataclass
class Accesses:
    """The bits that some code reads and writes."""

    reads: Bits = field(default_factory=dict)
    writes: Bits = field(default_factory=dict)

    def add(self, other: Accesses) -> None:
        """Add the bits that ``other`` reads and writes."""
        join(self.reads, other.reads)
        join(self.writes, other.writes)


def join(into: Bits, bits: Mapping[Leaf, int]) -> None:
    """Add ``bits`` to ``into``, leaf by leaf."""
    for leaf, mask in bits.items():
        into[leaf] = into.get(leaf, 0) | mask


def meet(one: Bits, other: Bits) -> bool:
    """Whether they have a bit in common."""
    if len(one) > len(other):
        one, other = other, one
    return any(mask & other.get(leaf, 0) for leaf, mask in one.items())


def bit_count(bits: Bits) -> int:
    """The number of bits of all leaves."""
    return sum(mask.bit_count() for mask in bits.values())


def leaves(place: Place) -> Iterator[tuple[str, Type]]:
    """The paths and types of the fields in a place; a header has a validity besides."""
    type_ = strip(place.type)
    match type_:
        case Stack(element=element, size=size):
            for i in range(size):
                yield from leaves(Place(place.root, f"{place.path}[{i}]", element))
        case Fields(fields=fields):
            if isinstance(type_, Header | HeaderUnion):
                yield f"{place.path}.{VALID}", type_
            for f in fields:
                yield from leaves(Place(place.root, f"{place.path}.{f.name}", f.type))
        case _:
            yield place.path, type_


def width(type_: Type) -> int:
    """Bits of a value that stands in containers; 1 where a type says nothing, 0 for what has no place there."""
    try:
        return width_of(type_)
    except TypeError:
        return 0


def bits_of(place: Place) -> Bits:
    """The bits of all fields in a place."""
    found: Bits = {}
    for path, type_ in leaves(place):
        wide = 1 if path.endswith(VALID) else width(type_)
        if wide:
            found[place.root, path] = (1 << wide) - 1
    return found


def place_of(expr: ir.Expr, scope: Scope) -> Place | None:
    """The place of an lvalue; None if there is none, or it is not known here. A slice has the place of the whole
    field."""
    match expr:
        case ir.Var(variable=variable):
            known = scope.get(variable)
            if known is None:
                return Place(variable, "", variable.type)
            return known if isinstance(known, Place) else None
        case ir.FieldOf(base=base, name=name):
            below = place_of(base, scope)
            return Place(below.root, f"{below.path}.{name}", expr.type) if below else None
        case ir.Index(base=base, index=ir.Literal(value=value)):
            below = place_of(base, scope)
            return Place(below.root, f"{below.path}[{value}]", expr.type) if below else None
        case ir.Index(base=base) | ir.StackMember(base=base):
            return place_of(base, scope)
        case ir.Slice(base=base):
            return place_of(base, scope)
    return None


def masked(expr: ir.Expr, scope: Scope) -> Bits:
    """The bits of an lvalue; of a slice only its own."""
    place = place_of(expr, scope)
    if place is None:
        return {}
    found = bits_of(place)
    if isinstance(expr, ir.Slice) and isinstance(expr.base, ir.Var | ir.FieldOf | ir.Index) and len(found) == 1:
        some = ((1 << (expr.hi - expr.lo + 1)) - 1) << expr.lo
        return {leaf: mask & some for leaf, mask in found.items()}
    return found


def read(expr: ir.Expr | None, scope: Scope) -> Accesses:
    """The bits that are read to compute an expression, and the bits that calls in it write."""
    found = Accesses()
    _read(expr, scope, found)
    return found


def _read(expr: ir.Expr | None, scope: Scope, found: Accesses) -> None:
    match expr:
        case None | ir.Literal() | ir.InvalidHeader() | ir.InstanceRef() | ir.ApplyTable():
            return
        case ir.Var(variable=variable) if isinstance(scope.get(variable), dict):
            join(found.reads, scope[variable])  # type: ignore[arg-type]  # the guard says which it is
        case ir.Slice(base=base) if place_of(base, scope) is None:
            _read(base, scope, found)
        case ir.Var() | ir.FieldOf() | ir.Index() | ir.StackMember() | ir.Slice():
            join(found.reads, masked(expr, scope))
        case ir.IsValid(header=header):
            place = place_of(header, scope)
            if place is not None:
                found.reads[place.root, f"{place.path}.{VALID}"] = 1
        case ir.Unary(operand=one) | ir.Cast(operand=one):
            _read(one, scope, found)
        case ir.Binary(left=left, right=right):
            _read(left, scope, found)
            _read(right, scope, found)
        case ir.Mux(condition=condition, then=then, otherwise=otherwise):
            for one in (condition, then, otherwise):
                _read(one, scope, found)
        case ir.Aggregate(elements=elements):
            for one in elements:
                _read(one, scope, found)
        case ir.FunctionCall(callee=callee, args=args):
            found.add(call(callee, args, scope))
        case ir.ExternCall(instance=instance, args=args):
            for arg in args:
                if arg.direction in ("out", "inout") and arg.expr is not None:
                    join(found.writes, masked(arg.expr, scope))
                if arg.direction != "out":
                    _read(arg.expr, scope, found)
            for method in instance.methods.values() if instance is not None else ():
                own = dict.fromkeys((p.variable for p in method.params), _nothing())
                # In its own body a call of the instance is one of its helpers, such as ``predicate``.
                if not own.keys() <= scope.keys():
                    found.add(body(method.body, {**scope, **own}))


def _nothing() -> Place | Bits:
    return {}


def bound(function: ir.Function, args: Iterable[ir.Arg], scope: Scope) -> Scope:
    """The scope of a function's body: its directed parameters stand for the arguments, action data for no field."""
    inner: dict[ir.Variable, Place | Bits] = dict(scope)
    inner.update((p.variable, {}) for p in function.data)
    for param, arg in zip((*function.params, *function.data), args, strict=False):
        inner[param.variable] = argument(arg, scope)
    return inner


def argument(arg: ir.Arg, scope: Scope) -> Place | Bits:
    """The meaning of a parameter in a call."""
    if arg.expr is None:
        return {}
    place = None if isinstance(arg.expr, ir.Slice) and arg.direction == "in" else place_of(arg.expr, scope)
    return place if place is not None else read(arg.expr, scope).reads


def call(function: ir.Function, args: Iterable[ir.Arg], scope: Scope) -> Accesses:
    """The bits that a call of an action or a function reads and writes."""
    return body(function.body, bound(function, args, scope))


def body(statement: ir.Stmt | None, scope: Scope) -> Accesses:
    """The bits that a statement reads and writes, without tables and blocks that it applies.

    A bit that the statement has written before it reads the bit does not count as read: p4c puts the value in their
    place.
    """
    found = Accesses()
    for one in simple(statement):
        new = effects(one, scope)
        for leaf, mask in new.reads.items():
            rest = mask & ~found.writes.get(leaf, 0)
            if rest:
                found.reads[leaf] = found.reads.get(leaf, 0) | rest
        join(found.writes, new.writes)
    return found


def simple(statement: ir.Stmt | None) -> Iterator[ir.Stmt]:
    """The statements below one that contain no others, and conditions as statements."""
    match statement:
        case None:
            return
        case ir.Block(body=found):
            for one in found:
                yield from simple(one)
        case ir.If(pos=pos, condition=condition, then=then, otherwise=otherwise):
            yield ir.Evaluate(pos, condition)
            yield from simple(then)
            yield from simple(otherwise)
        case ir.Switch(pos=pos, subject=subject, cases=cases):
            yield ir.Evaluate(pos, subject)
            for case in cases:
                yield from simple(case.body)
        case ir.For(init=init, update=update, body=inside):
            for one in (*init, inside, *update):
                yield from simple(one)
        case ir.ForIn(body=inside):
            yield from simple(inside)
        case _:
            yield statement


def effects(statement: ir.Stmt, scope: Scope) -> Accesses:
    """The bits that one of ``simple``'s statements reads and writes."""
    match statement:
        case ir.Assign(target=target, value=value):
            found = read(value, scope)
            join(found.writes, masked(target, scope))
            return found
        case ir.Declare(variable=variable, init=init) if init is not None:
            found = read(init, scope)
            join(found.writes, bits_of(Place(variable, "", variable.type)))
            return found
        case ir.Evaluate(expr=expr) | ir.Return(value=ir.Expr() as expr) | ir.Advance(bits=expr):
            return read(expr, scope)
        case ir.SetValidity(header=header):
            place = place_of(header, scope)
            return Accesses({}, {(place.root, f"{place.path}.{VALID}"): 1} if place else {})
        case ir.ShiftStack(stack=stack):
            bits = masked(stack, scope)
            return Accesses(dict(bits), dict(bits))
        case ir.Extract(header=ir.Expr() as header):
            return Accesses({}, masked(header, scope))
        case ir.Emit(value=value):
            return read(value, scope)
        case ir.Verify(condition=condition):
            return read(condition, scope)
    return Accesses()


def constant_bits(statement: ir.Stmt | None) -> int:
    """Bits of the constants in assignments that must be action data, because no instruction holds them.

    A container is set to a constant of 21 bits; an operation has one of -8 to 7 (p4c, check_constant_to_actiondata).
    """
    found = 0
    for one in simple(statement):
        if isinstance(one, ir.Evaluate) and isinstance(one.expr, ir.FunctionCall):
            found += constant_bits(one.expr.callee.body)
            continue
        value = one.value if isinstance(one, ir.Assign) else one.init if isinstance(one, ir.Declare) else None
        if isinstance(value, ir.Literal) and isinstance(value.value, int):
            parts = range(0, width(value.type), _CONTAINER)
            found += _CONTAINER * sum((value.value >> low & _ONES) >> _LOADED != 0 for low in parts)
        elif isinstance(value, ir.Binary):
            for side in (value.left, value.right):
                wide = width(side.type)
                if isinstance(side, ir.Literal) and isinstance(side.value, int) and wide:
                    found += (
                        0 if side.value <= _MOST or side.value >= (1 << wide) - _MOST - 1 else min(wide, _CONTAINER)
                    )
    return found
