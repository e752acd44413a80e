"""Variables, and expressions that call nothing."""

from __future__ import annotations

from typing import Literal as Lit

from p4gen.errors import Pos
from p4gen.p4.node import node
from p4gen.p4.types import Annotation, Type

Direction = Lit["in", "out", "inout", "none"]


@node
class Variable:
    """A parameter or local variable; compared by identity. Locals live as long as the block
    instance's invocation (parser and control locals) or the call (function and action locals)."""

    name: str
    type: Type
    pos: Pos


@node
class Param:
    variable: Variable
    direction: Direction
    annotations: tuple[Annotation, ...] = ()


# --- expressions ---------------------------------------------------------------------------------


@node
class Expr:
    type: Type
    pos: Pos


@node
class Literal(Expr):
    """A constant: int for bit/int/serialisable enum (already wrapped to its width; negative for
    signed), bool, or str for error constants, enum members and strings."""

    value: int | bool | str


@node
class Var(Expr):
    variable: Variable


@node
class FieldOf(Expr):
    """``base.name`` of a struct, header or header union."""

    base: Expr
    name: str


@node
class StackMember(Expr):
    """``next`` and ``last`` (parsers only) or ``lastIndex`` of a header stack."""

    base: Expr
    name: Lit["next", "last", "lastIndex"]


@node
class Index(Expr):
    """``base[index]`` of a header stack (or a tuple, with a literal index)."""

    base: Expr
    index: Expr


@node
class Slice(Expr):
    """``base[hi:lo]``; an lvalue if ``base`` is."""

    base: Expr
    hi: int
    lo: int


UnaryOp = Lit["!", "~", "-"]
BinaryOp = Lit[
    "+", "-", "*", "/", "%", "|+|", "|-|", "&", "|", "^", "<<", ">>", "++",
    "==", "!=", "<", "<=", ">", ">=", "&&", "||",
]  # fmt: skip


@node
class Unary(Expr):
    op: UnaryOp
    operand: Expr


@node
class Binary(Expr):
    """Operands have one type (shifts and ``++`` excepted); ``&&`` and ``||`` short-circuit.
    ``==`` and ``!=`` also compare structs, headers, stacks and tuples (spec 8.16, 8.17)."""

    op: BinaryOp
    left: Expr
    right: Expr


@node
class Cast(Expr):
    operand: Expr


@node
class Mux(Expr):
    """``condition ? then : otherwise``."""

    condition: Expr
    then: Expr
    otherwise: Expr


@node
class Aggregate(Expr):
    """A struct, header (valid), stack or tuple value, its elements in declaration order."""

    elements: tuple[Expr, ...]


@node
class InvalidHeader(Expr):
    """``{#}`` of a header or header union type."""


@node
class IsValid(Expr):
    header: Expr


@node
class Lookahead(Expr):
    """``packet.lookahead<T>()``; ``type`` is T."""


@node
class PacketLength(Expr):
    """``packet.length()``, in bytes."""


@node
class Arg:
    """An argument; an lvalue for ``out`` and ``inout``. ``expr`` is None for an omitted optional
    parameter and for ``_``."""

    direction: Direction
    expr: Expr | None
