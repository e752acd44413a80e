"""Variables, and expressions that call nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Lit

from p4gen.errors import Pos
from p4gen.p4.types import Annotation, Type

Direction = Lit["in", "out", "inout", "none"]


@dataclass(frozen=True, eq=False)
class Variable:
    """A parameter or local variable; compared by identity. Locals live as long as the block
    instance's invocation (parser and control locals) or the call (function and action locals)."""

    name: str
    type: Type
    pos: Pos


@dataclass(frozen=True, eq=False)
class Param:
    variable: Variable
    direction: Direction
    annotations: tuple[Annotation, ...] = ()


# --- expressions ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Expr:
    type: Type
    pos: Pos


@dataclass(frozen=True, eq=False)
class Literal(Expr):
    """A constant: int for bit/int/serialisable enum (already wrapped to its width; negative for
    signed), bool, or str for error constants, enum members and strings."""

    value: int | bool | str


@dataclass(frozen=True, eq=False)
class Var(Expr):
    variable: Variable


@dataclass(frozen=True, eq=False)
class FieldOf(Expr):
    """``base.name`` of a struct, header or header union."""

    base: Expr
    name: str


@dataclass(frozen=True, eq=False)
class StackMember(Expr):
    """``next`` and ``last`` (parsers only) or ``lastIndex`` of a header stack."""

    base: Expr
    name: Lit["next", "last", "lastIndex"]


@dataclass(frozen=True, eq=False)
class Index(Expr):
    """``base[index]`` of a header stack (or a tuple, with a literal index)."""

    base: Expr
    index: Expr


@dataclass(frozen=True, eq=False)
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


@dataclass(frozen=True, eq=False)
class Unary(Expr):
    op: UnaryOp
    operand: Expr


@dataclass(frozen=True, eq=False)
class Binary(Expr):
    """Operands have one type (shifts and ``++`` excepted); ``&&`` and ``||`` short-circuit.
    ``==`` and ``!=`` also compare structs, headers, stacks and tuples (spec 8.16, 8.17)."""

    op: BinaryOp
    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False)
class Cast(Expr):
    operand: Expr


@dataclass(frozen=True, eq=False)
class Mux(Expr):
    """``condition ? then : otherwise``."""

    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, eq=False)
class Aggregate(Expr):
    """A struct, header (valid), stack or tuple value, its elements in declaration order."""

    elements: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class InvalidHeader(Expr):
    """``{#}`` of a header or header union type."""


@dataclass(frozen=True, eq=False)
class IsValid(Expr):
    header: Expr


@dataclass(frozen=True, eq=False)
class Lookahead(Expr):
    """``packet.lookahead<T>()``; ``type`` is T."""


@dataclass(frozen=True, eq=False)
class PacketLength(Expr):
    """``packet.length()``, in bytes."""


@dataclass(frozen=True, eq=False)
class Arg:
    """An argument; an lvalue for ``out`` and ``inout``. ``expr`` is None for an omitted optional
    parameter and for ``_``."""

    direction: Direction
    expr: Expr | None
