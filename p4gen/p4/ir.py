"""The typed IR: what the front end hands to every back end (interpreter, LLVM, lint, P4Info).

It is fully elaborated. Names are resolved to the objects they mean, generics are instantiated,
implicit casts are explicit, compile-time values are literals, and every parser, control and
extern *instance* has a body or an object of its own: constructor parameters are gone. A back end
therefore needs no symbol table, only a frame that maps ``Variable`` to a value.

All nodes are immutable and carry the source position of the construct they stand for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Lit
from typing import TypeVar

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


@dataclass(frozen=True, eq=False)
class Call(Expr):
    """A call of a function, or of an action from apply code or from another action."""

    callee: Function
    args: tuple[Arg, ...]


@dataclass(frozen=True, eq=False)
class ExternCall(Expr):
    """A call of an extern's method, or of an extern function where ``instance`` is None."""

    instance: ExternInstance | None
    method: str
    type_args: tuple[Type, ...]
    args: tuple[Arg, ...]
    annotations: tuple[Annotation, ...] = ()


ApplyResult = Lit["hit", "miss", "action_run"]


@dataclass(frozen=True, eq=False)
class ApplyTable(Expr):
    """``table.apply()`` and what is asked of it: bool for ``hit``/``miss``; for ``action_run`` an
    enum whose member is the action's name within the table; None where the result is unused."""

    table: Table
    result: ApplyResult | None


# --- statements ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Stmt:
    pos: Pos


@dataclass(frozen=True, eq=False)
class Block(Stmt):
    body: tuple[Stmt, ...]


@dataclass(frozen=True, eq=False)
class Declare(Stmt):
    """A local comes into being; without ``init`` it is all zero, headers invalid."""

    variable: Variable
    init: Expr | None


@dataclass(frozen=True, eq=False)
class Assign(Stmt):
    target: Expr
    value: Expr


@dataclass(frozen=True, eq=False)
class Evaluate(Stmt):
    """An expression for its effects: a call or ``ApplyTable``."""

    expr: Expr


@dataclass(frozen=True, eq=False)
class ApplyBlock(Stmt):
    """A sub-control's or sub-parser's ``apply``."""

    block: Control | Parser
    args: tuple[Arg, ...]


@dataclass(frozen=True, eq=False)
class If(Stmt):
    condition: Expr
    then: Stmt
    otherwise: Stmt | None


@dataclass(frozen=True, eq=False)
class SwitchCase:
    """``labels`` are alternatives (fall-through resolved); an empty tuple is ``default``."""

    labels: tuple[Expr, ...]
    body: Stmt


@dataclass(frozen=True, eq=False)
class Switch(Stmt):
    """On a value, or on ``ApplyTable(…, "action_run")`` (labels: Literal action names)."""

    subject: Expr
    cases: tuple[SwitchCase, ...]


@dataclass(frozen=True, eq=False)
class For(Stmt):
    init: tuple[Stmt, ...]
    condition: Expr
    update: tuple[Stmt, ...]
    body: Stmt


@dataclass(frozen=True, eq=False)
class ForIn(Stmt):
    """``for (variable in …)``: over an inclusive range (low, high) or the elements of a stack or
    list."""

    variable: Variable
    values: tuple[Expr, Expr] | Expr
    body: Stmt


@dataclass(frozen=True, eq=False)
class Break(Stmt):
    pass


@dataclass(frozen=True, eq=False)
class Continue(Stmt):
    pass


@dataclass(frozen=True, eq=False)
class Return(Stmt):
    value: Expr | None


@dataclass(frozen=True, eq=False)
class Exit(Stmt):
    pass


@dataclass(frozen=True, eq=False)
class SetValidity(Stmt):
    header: Expr
    valid: bool


@dataclass(frozen=True, eq=False)
class ShiftStack(Stmt):
    """``push_front(count)`` or, with ``push`` false, ``pop_front(count)``."""

    stack: Expr
    count: int
    push: bool


@dataclass(frozen=True, eq=False)
class Extract(Stmt):
    """``packet.extract(header[, varbit_bits])``; ``header`` None: the one-argument form on ``_``,
    which skips ``skip_type``'s width."""

    header: Expr | None
    varbit_bits: Expr | None
    skip_type: Type | None = None


@dataclass(frozen=True, eq=False)
class Advance(Stmt):
    bits: Expr


@dataclass(frozen=True, eq=False)
class Verify(Stmt):
    condition: Expr
    error: Expr


@dataclass(frozen=True, eq=False)
class Emit(Stmt):
    """``packet.emit(value)``: a header, stack, union, or a struct of them."""

    value: Expr


# --- callables, externs, tables ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Function:
    """A function or an action. ``data`` are an action's directionless parameters (set by the
    control plane, or by the caller as ``in`` when called directly); ``params`` the others."""

    name: str
    """Full, dotted control-plane name of an action; plain name of a function."""
    params: tuple[Param, ...]
    data: tuple[Param, ...]
    returns: Type
    body: Block
    is_action: bool
    annotations: tuple[Annotation, ...]
    pos: Pos
    owner: str = ""
    """Name of the block instance that declares an action; empty at the top level."""


ConstValue = int | bool | str


@dataclass(frozen=True, eq=False)
class ExternInstance:
    """An instance of an extern type, e.g. ``register<bit<32>>(64)``."""

    name: str
    """Full, dotted control-plane name."""
    extern: str
    type_args: tuple[Type, ...]
    args: tuple[ConstValue, ...]
    """Constructor arguments, evaluated (enum members by name)."""
    annotations: tuple[Annotation, ...]
    pos: Pos
    owner: str = ""
    """Name of the block instance, or of the table, that declares it; empty at the top level."""
    aliased: bool = False
    """Its type was named by a typedef: P4Info has it only where something uses it, as with p4c."""


@dataclass(frozen=True, eq=False)
class Key:
    expr: Expr
    match_kind: str
    name: str
    annotations: tuple[Annotation, ...]
    pos: Pos


@dataclass(frozen=True, eq=False)
class ActionRef:
    """An action as a table lists it; ``bound`` are arguments for its directed parameters."""

    name: str
    """Name within the table's action list, as ``action_run`` and labels use it."""
    action: Function
    bound: tuple[Arg, ...]
    default_only: bool = False
    table_only: bool = False
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, eq=False)
class ActionCall:
    """An action with values for its ``data`` parameters, in order."""

    ref: ActionRef
    args: tuple[int | bool | str, ...]


@dataclass(frozen=True)
class Exactly:
    value: int | bool | str


@dataclass(frozen=True)
class Masked:
    value: int
    mask: int


@dataclass(frozen=True)
class Between:
    low: int
    high: int


@dataclass(frozen=True)
class Anything:
    """``_`` or ``default``."""


KeyValue = Exactly | Masked | Between | Anything


@dataclass(frozen=True, eq=False)
class TableEntry:
    """An entry written in the program; ``priority`` as the control plane sees it, larger wins
    (None where the table needs none)."""

    keys: tuple[KeyValue, ...]
    action: ActionCall
    const: bool
    priority: int | None
    pos: Pos


@dataclass(frozen=True, eq=False)
class Table:
    name: str
    """Full, dotted control-plane name."""
    keys: tuple[Key, ...]
    actions: tuple[ActionRef, ...]
    default_action: ActionCall
    const_default: bool
    size: int | None
    entries: tuple[TableEntry, ...]
    const_entries: bool
    direct: tuple[ExternInstance, ...]
    """Direct counters and meters attached to the table."""
    implementation: ExternInstance | None
    support_timeout: bool
    annotations: tuple[Annotation, ...]
    pos: Pos


# --- blocks --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ValueSet:
    name: str
    type: Type
    size: int
    pos: Pos
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, eq=False)
class ExactSet:
    expr: Expr


@dataclass(frozen=True, eq=False)
class MaskSet:
    value: Expr
    mask: Expr


@dataclass(frozen=True, eq=False)
class RangeSet:
    low: Expr
    high: Expr


@dataclass(frozen=True, eq=False)
class AnySet:
    pass


Keyset = ExactSet | MaskSet | RangeSet | AnySet | ValueSet


@dataclass(frozen=True, eq=False)
class SelectCase:
    """One keyset per selected expression."""

    keysets: tuple[Keyset, ...]
    state: str
    pos: Pos


@dataclass(frozen=True, eq=False)
class Transition:
    """Without ``subjects`` an unconditional one to ``cases[0]``; no matching case raises
    ``NoMatch`` and rejects. ``accept`` and ``reject`` are state names."""

    subjects: tuple[Expr, ...]
    cases: tuple[SelectCase, ...]
    pos: Pos


@dataclass(frozen=True, eq=False)
class State:
    name: str
    body: tuple[Stmt, ...]
    transition: Transition
    pos: Pos


@dataclass(frozen=True, eq=False)
class Parser:
    name: str
    params: tuple[Param, ...]
    locals: tuple[Stmt, ...]
    """``Declare`` statements, executed on entry."""
    states: dict[str, State]
    pos: Pos


@dataclass(frozen=True, eq=False)
class Control:
    """A control instance (``name`` is its full, dotted instance name)."""

    name: str
    params: tuple[Param, ...]
    locals: tuple[Stmt, ...]
    """``Declare`` statements, executed on each ``apply``."""
    tables: tuple[Table, ...]
    body: Block
    pos: Pos


@dataclass(frozen=True, eq=False)
class Program:
    """A whole, compiled program.

    ``blocks`` maps the package's parameter names (v1model: p, vr, ig, eg, ck, dep) to instances.
    Lists are in the order of declaration, depth first, as p4c numbers them.
    """

    source: str
    package: str
    type_args: tuple[Type, ...]
    blocks: dict[str, Parser | Control]
    errors: tuple[str, ...]
    tables: tuple[Table, ...]
    actions: tuple[Function, ...]
    externs: tuple[ExternInstance, ...]
    value_sets: tuple[ValueSet, ...]
    headers: tuple[Type, ...]
    annotations: tuple[Annotation, ...] = ()

    def table(self, name: str) -> Table:
        """The table of that full or unique suffix name; KeyError otherwise."""
        return _by_suffix(self.tables, name, "table")

    def extern(self, name: str) -> ExternInstance:
        """The extern instance of that full or unique suffix name; KeyError otherwise."""
        return _by_suffix(self.externs, name, "extern instance")


_Named = TypeVar("_Named", Table, ExternInstance)


def _by_suffix(items: tuple[_Named, ...], name: str, kind: str) -> _Named:
    found = [i for i in items if i.name == name] or [i for i in items if i.name.endswith("." + name)]
    if len(found) != 1:
        raise KeyError(f"{'no' if not found else 'more than one'} {kind} named {name}")
    return found[0]
