"""Calls, statements, and all that has a body: functions, actions, tables, parsers and controls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal as Lit

from p4gen.errors import Pos
from p4gen.p4.ir.expressions import Arg, Expr, Param, Variable
from p4gen.p4.ir.matches import Keyset, KeyValue
from p4gen.p4.node import node
from p4gen.p4.types import Annotation, Type


@node
class FunctionCall(Expr):
    """A call of a function, or of an action from apply code or from another action."""

    callee: Function
    args: tuple[Arg, ...]


@node
class ExternCall(Expr):
    """A call of an extern's method, or of an extern function where ``instance`` is None."""

    instance: ExternInstance | None
    method: str
    type_args: tuple[Type, ...]
    args: tuple[Arg, ...]
    annotations: tuple[Annotation, ...] = ()


ApplyResult = Lit["hit", "miss", "action_run"]


@node
class ApplyTable(Expr):
    """``table.apply()`` and what is asked of it: bool for ``hit``/``miss``; for ``action_run`` an
    enum whose member is the action's name within the table; None where the result is unused."""

    table: Table
    result: ApplyResult | None


# --- statements ----------------------------------------------------------------------------------


@node
class Stmt:
    pos: Pos


@node
class Block(Stmt):
    body: tuple[Stmt, ...]
    annotations: tuple[Annotation, ...] = ()


@node
class Declare(Stmt):
    """A local comes into being; without ``init`` it is all zero, headers invalid."""

    variable: Variable
    init: Expr | None


@node
class Assign(Stmt):
    target: Expr
    value: Expr


@node
class Evaluate(Stmt):
    """An expression for its effects: a call or ``ApplyTable``."""

    expr: Expr


@node
class ApplyBlock(Stmt):
    """A sub-control's or sub-parser's ``apply``."""

    block: Control | Parser
    args: tuple[Arg, ...]


@node
class If(Stmt):
    condition: Expr
    then: Stmt
    otherwise: Stmt | None


@node
class SwitchCase:
    """``labels`` are alternatives (fall-through resolved); an empty tuple is ``default``."""

    labels: tuple[Expr, ...]
    body: Stmt


@node
class Switch(Stmt):
    """On a value, or on ``ApplyTable(…, "action_run")`` (labels: Literal action names)."""

    subject: Expr
    cases: tuple[SwitchCase, ...]


@node
class For(Stmt):
    init: tuple[Stmt, ...]
    condition: Expr
    update: tuple[Stmt, ...]
    body: Stmt


@node
class ForIn(Stmt):
    """``for (variable in …)``: over an inclusive range (low, high) or the elements of a stack or
    list."""

    variable: Variable
    values: tuple[Expr, Expr] | Expr
    body: Stmt


@node
class Break(Stmt):
    pass


@node
class Continue(Stmt):
    pass


@node
class Return(Stmt):
    value: Expr | None


@node
class Exit(Stmt):
    pass


@node
class SetValidity(Stmt):
    header: Expr
    valid: bool


@node
class ShiftStack(Stmt):
    """``push_front(count)`` or, with ``push`` false, ``pop_front(count)``."""

    stack: Expr
    count: int
    push: bool


@node
class Extract(Stmt):
    """``packet.extract(header[, varbit_bits])``; ``header`` None: the one-argument form on ``_``,
    which skips ``skip_type``'s width."""

    header: Expr | None
    varbit_bits: Expr | None
    skip_type: Type | None = None


@node
class Advance(Stmt):
    bits: Expr


@node
class Verify(Stmt):
    condition: Expr
    error: Expr


@node
class Emit(Stmt):
    """``packet.emit(value)``: a header, stack, union, or a struct of them."""

    value: Expr


# --- callables, externs, tables ------------------------------------------------------------------


@node
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
    reorders: bool = False
    """Whether the compiler has made this function, to evaluate arguments in the order of a call and pass them on in the
    order of the declaration."""


ConstValue = int | bool | str


@node
class ExternInstance:
    """An instance of an extern type, e.g. ``register<bit<32>>(64)``.

    ``methods`` holds what the instance itself defines: the bodies of abstract methods, by name, such as ``apply`` of a
    ``RegisterAction``. They take the method's parameters by position, without optional ones that they leave out at
    the end, and may read parameters and locals of the block that declares the instance. In them, ``this`` is an
    ``ExternCall`` of the instance itself.
    """

    name: str
    """Full, dotted control-plane name."""
    extern: str
    type_args: tuple[Type, ...]
    args: tuple[ConstValue, ...]
    """Constructor arguments that are single values, evaluated (enum members by name)."""
    annotations: tuple[Annotation, ...]
    pos: Pos
    owner: str = ""
    """Name of the block instance, or of the table, that declares it; empty at the top level."""
    aliased: bool = False
    """Its type was named by a typedef: P4Info has it only where something uses it, as with p4c."""
    arguments: Mapping[str, ConstructorValue] = field(default_factory=dict)
    """All constructor arguments by the names of their parameters; those left out are missing."""
    methods: Mapping[str, Function] = field(default_factory=dict)


ConstructorValue = ConstValue | ExternInstance | tuple["ConstructorValue", ...]
"""A value, another instance, or the elements of a struct, tuple or list."""


@node
class InstanceRef(Expr):
    """An extern instance as an argument of an extern's method or constructor."""

    instance: ExternInstance


@node
class Key:
    expr: Expr
    match_kind: str
    name: str
    annotations: tuple[Annotation, ...]
    pos: Pos


@node
class ActionRef:
    """An action as a table lists it; ``bound`` are arguments for its directed parameters."""

    name: str
    """Name within the table's action list, as ``action_run`` and labels use it."""
    action: Function
    bound: tuple[Arg, ...]
    default_only: bool = False
    table_only: bool = False
    annotations: tuple[Annotation, ...] = ()
    order: tuple[int, ...] = ()
    """The positions of ``bound`` in the order in which they are written; empty: as the action declares them."""

    @property
    def passed(self) -> tuple[tuple[Param, ...], tuple[Arg, ...]]:
        """Parameters and their arguments in the order of evaluation."""
        order = self.order or range(len(self.bound))
        return tuple(self.action.params[i] for i in order), tuple(self.bound[i] for i in order)


@node
class ActionCall:
    """An action with values for its ``data`` parameters, in order."""

    ref: ActionRef
    args: tuple[int | bool | str, ...]


@node
class TableEntry:
    """An entry written in the program; ``priority`` as the control plane sees it, larger wins
    (None where the table needs none)."""

    keys: tuple[KeyValue, ...]
    action: ActionCall
    const: bool
    priority: int | None
    pos: Pos


@node
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
    """Direct counters, meters, registers and filters attached to the table."""
    implementation: ExternInstance | None
    """What chooses among its actions or holds its entries: a profile, a selector, an algorithmic TCAM."""
    support_timeout: bool
    annotations: tuple[Annotation, ...]
    pos: Pos
    properties: Mapping[str, ConstValue | ExternInstance] = field(default_factory=dict)
    """Properties of the architecture that no other field has, such as TNA's ``idle_timeout`` and ``proxy_hash``."""


# --- blocks --------------------------------------------------------------------------------------


@node
class SelectCase:
    """One keyset per selected expression."""

    keysets: tuple[Keyset, ...]
    state: str
    pos: Pos


@node
class Transition:
    """Without ``subjects`` an unconditional one to ``cases[0]``; no matching case raises
    ``NoMatch`` and rejects. ``accept`` and ``reject`` are state names."""

    subjects: tuple[Expr, ...]
    cases: tuple[SelectCase, ...]
    pos: Pos


@node
class ParserState:
    name: str
    body: tuple[Stmt, ...]
    transition: Transition
    pos: Pos


@node
class Parser:
    name: str
    params: tuple[Param, ...]
    locals: tuple[Stmt, ...]
    """``Declare`` statements, executed on entry."""
    states: dict[str, ParserState]
    pos: Pos


@node
class Control:
    """A control instance (``name`` is its full, dotted instance name)."""

    name: str
    params: tuple[Param, ...]
    locals: tuple[Stmt, ...]
    """``Declare`` statements, executed on each ``apply``."""
    tables: tuple[Table, ...]
    body: Block
    pos: Pos
