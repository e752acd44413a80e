"""What nodes are; types and expressions."""

from __future__ import annotations

from dataclasses import fields

from p4gen.p4.node import node


@node
class Node:
    at: int


def same(one: object, two: object) -> bool:
    """Whether two pieces of syntax are the same but for their places."""
    if isinstance(one, tuple) and isinstance(two, tuple):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, StructOf) and isinstance(two, StructOf):
        return same(*(tuple(sorted(s.items, key=lambda i: i.name or "")) for s in (one, two)))
    if isinstance(one, Node) and type(one) is type(two):
        names = (f.name for f in fields(one) if f.name != "at")
        return all(same(getattr(one, n), getattr(two, n)) for n in names)
    return type(one) is type(two) and one == two


# --- types ---------------------------------------------------------------------------------------


@node
class TypeRef(Node):
    """The base of what can be written where a type is expected."""


@node
class NamedType(TypeRef):
    name: str
    rooted: bool = False
    """Written with a leading dot: looked up in the global scope."""


@node
class SpecializedType(TypeRef):
    base: NamedType
    args: tuple[TypeRef, ...]


@node
class BaseType(TypeRef):
    """bool, error, int, match_kind, string or void."""

    name: str


@node
class SizedType(TypeRef):
    """bit, int or varbit with a width; ``bit`` alone has none and means ``bit<1>``."""

    name: str
    width: Expr | None


@node
class TupleType(TypeRef):
    args: tuple[TypeRef, ...]


@node
class ListType(TypeRef):
    element: TypeRef


@node
class StackType(TypeRef):
    element: TypeRef
    size: Expr


@node
class DontCareType(TypeRef):
    """``_`` as a type argument."""


# --- expressions ---------------------------------------------------------------------------------


@node
class Expr(Node):
    pass


@node
class Name(Expr):
    name: str
    rooted: bool = False


@node
class TypeName(Expr):
    """A type where an expression is expected: ``E.member``, ``Ctor(…)``, ``C.apply(…)``."""

    type: TypeRef


@node
class IntLit(Expr):
    value: int
    width: int | None
    signed: bool
    base: int


@node
class BoolLit(Expr):
    value: bool


@node
class StrLit(Expr):
    value: str


@node
class Member(Expr):
    base: Expr
    name: str


@node
class IndexOf(Expr):
    base: Expr
    index: Expr


@node
class SliceOf(Expr):
    base: Expr
    hi: Expr
    lo: Expr


@node
class PlusSlice(Expr):
    """``base[low +: width]``, the ``width`` bits from ``low`` on."""

    base: Expr
    low: Expr
    width: Expr


@node
class UnaryOp(Expr):
    op: str
    operand: Expr


@node
class BinaryOp(Expr):
    op: str
    left: Expr
    right: Expr


@node
class Conditional(Expr):
    condition: Expr
    then: Expr
    otherwise: Expr


@node
class CastTo(Expr):
    type: TypeRef
    operand: Expr


@node
class Argument(Node):
    name: str | None
    value: Expr


@node
class CallOf(Expr):
    callee: Expr
    type_args: tuple[TypeRef, ...]
    args: tuple[Argument, ...]


@node
class ListOf(Expr):
    items: tuple[Expr, ...]


@node
class StructOf(Expr):
    """``{name = value, …}``; ``dots`` where it ends in ``...``."""

    items: tuple[Argument, ...]
    dots: bool


@node
class InvalidOf(Expr):
    """``{#}``, an invalid header or header union."""


@node
class Dots(Expr):
    """``...``: the default value, or the rest of one."""


@node
class DontCare(Expr):
    """``_`` or ``default`` in keysets, ``_`` as an argument."""


@node
class MaskOf(Expr):
    value: Expr
    mask: Expr


@node
class RangeOf(Expr):
    low: Expr
    high: Expr


def begin(e: Expr) -> int:
    """Where an expression starts; its own ``at`` may be that of an operator or member in it."""
    while True:
        match e:
            case Member(base=inner) | IndexOf(base=inner) | SliceOf(base=inner) | PlusSlice(base=inner):
                e = inner
            case CallOf(callee=inner) | BinaryOp(left=inner) | Conditional(condition=inner):
                e = inner
            case _:
                return e.at
