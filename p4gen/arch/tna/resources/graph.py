"""A gress as what the compiler places: tables, and what stands between them, with the conditions that guard them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from p4gen.arch.tna.resources.access import (
    Accesses,
    Bits,
    Scope,
    argument,
    body,
    bound,
    effects,
    join,
    meet,
    read,
)
from p4gen.p4 import ir
from p4gen.p4.simplify import simplified
from p4gen.p4.walk import walk


@dataclass(eq=False)
class Condition:
    """A condition that is decided in front of tables."""

    module: str
    reads: Bits


@dataclass(eq=False)
class Node:
    """What is placed as one: a table, or statements beside tables, which become a table without a key."""

    name: str
    module: str
    gress: str
    path: tuple[tuple[object, int], ...]
    """The branches in which it stands: what decides, and which branch."""
    conditions: tuple[Condition, ...]
    after: tuple[Node, ...]
    """Tables whose hit, miss or action decides whether it runs."""
    table: ir.Table | None = None
    keys: Bits = field(default_factory=dict)
    accesses: Accesses = field(default_factory=Accesses)
    """Of its actions."""
    instances: dict[ir.ExternInstance, Bits | None] = field(default_factory=dict)
    """The externs that it calls, and what the index is made of; None for direct ones."""
    calls: list[tuple[ir.ExternInstance, int]] = field(default_factory=list)
    """Calls of ``get`` with a result in bits."""
    actions: int = 1
    """Those that do something."""

    @cached_property
    def matches(self) -> Bits:
        """All that decides what it does."""
        found = dict(self.keys)
        for condition in self.conditions:
            join(found, condition.reads)
        return found


def exclusive(one: Node, other: Node) -> bool:
    """Whether no packet meets both."""
    taken = dict(one.path)
    return any(taken.get(choice, branch) != branch for choice, branch in other.path)


def distance(first: Node, then: Node) -> int | None:
    """How many stages ``then`` must come behind ``first``, which is before it in the program; None for any order."""
    if exclusive(first, then):
        return None
    writes = first.accesses.writes
    if meet(then.matches, writes) or meet(then.accesses.reads, writes) or meet(then.accesses.writes, writes):
        return 1
    later = then.accesses.writes
    if first in then.after or meet(first.matches, later) or meet(first.accesses.reads, later):
        return 0
    return None


@dataclass
class Gress:
    """The nodes of a gress in the program's order, and which control declares which local variable."""

    name: str
    nodes: list[Node] = field(default_factory=list)
    declared: dict[ir.Variable, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Here:
    """Where the builder is."""

    module: str
    scope: Scope
    path: tuple[tuple[object, int], ...] = ()
    conditions: tuple[Condition, ...] = ()
    after: tuple[Node, ...] = ()


def gress_of(name: str, control: ir.Control, scope: Scope) -> Gress:
    """The gress whose control this is; ``scope`` says what its parameters stand for."""
    builder = _Builder(Gress(name))
    builder.control(control, _Here(control.name, scope))
    return builder.gress


class _Builder:
    def __init__(self, gress: Gress) -> None:
        self.gress = gress

    def control(self, control: ir.Control, here: _Here) -> None:
        self.statements(control.locals, here)
        self.statement(control.body, here)

    def statements(self, found: Iterable[ir.Stmt], here: _Here) -> None:
        """Assignments side by side become one node, with at most one call of an extern, as long as none reads what
        another one writes."""
        joined: Node | None = None
        for statement in found:
            if isinstance(statement, ir.Declare):
                self.gress.declared[statement.variable] = here.module
            calls = _joinable(statement)
            if calls is not None:
                new = effects(statement, here.scope)
                if not new.writes and not calls:
                    continue
                done = joined.accesses.writes if joined is not None else {}
                used = joined.instances if joined is not None else {}
                if joined is None or meet(new.reads, done) or meet(new.writes, done) or (calls and used):
                    joined = self.add(_line(statement), here)
                joined.accesses.add(new)
                self.externs(joined, (statement,), here.scope)
                continue
            joined = None
            self.statement(statement, here)

    def statement(self, statement: ir.Stmt | None, here: _Here) -> None:
        match statement:
            case ir.Block(body=found):
                self.statements(found, here)
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                self.choice(simplified(condition), [then, otherwise], statement, here)
            case ir.Switch(subject=subject, cases=cases):
                self.choice(subject, [case.body for case in cases], statement, here)
            case ir.ApplyBlock(block=ir.Control() as block, args=args):
                inner = dict(here.scope)
                inner.update((p.variable, argument(a, here.scope)) for p, a in zip(block.params, args, strict=False))
                self.control(block, _Here(block.name, inner, here.path, here.conditions, here.after))
            case ir.For(init=init, body=inside, update=update):
                self.statements((*init, inside, *update), here)
            case ir.ForIn(body=inside):
                self.statement(inside, here)
            case ir.Assign() | ir.Declare() | ir.Evaluate() | ir.SetValidity() | ir.ShiftStack():
                for table in _applied(statement):
                    self.table(table, here)
                if not (isinstance(statement, ir.Evaluate) and isinstance(statement.expr, ir.ApplyTable)):
                    self.code(statement, here)

    def code(self, statement: ir.Stmt, here: _Here) -> None:
        """A statement with a call, or one that stands alone."""
        accesses = effects(statement, here.scope)
        node = self.add(_line(statement), here)
        node.accesses.add(accesses)
        self.externs(node, (statement,), here.scope)
        if not accesses.writes and not node.instances:
            self.gress.nodes.remove(node)

    def choice(self, subject: ir.Expr, branches: list[ir.Stmt | None], statement: ir.Stmt, here: _Here) -> None:
        """``if`` and ``switch``."""
        if isinstance(subject, ir.Literal) and isinstance(subject.value, bool):
            self.statement(branches[0] if subject.value else branches[1], here)
            return
        tables = [self.table(t, here) for t in _applied(subject)]
        for call in (n for n in walk(subject) if isinstance(n, ir.ExternCall)):
            self.code(ir.Evaluate(call.pos, call), here)
        reads = read(subject, here.scope).reads
        conditions = (*here.conditions, Condition(here.module, reads)) if reads else here.conditions
        for i, branch in enumerate(branches):
            path = (*here.path, (statement, i))
            self.statement(branch, _Here(here.module, here.scope, path, conditions, (*here.after, *tables)))

    def table(self, table: ir.Table, here: _Here) -> Node:
        node = self.add(table.name, here)
        node.table = table
        for key in table.keys:
            join(node.keys, read(key.expr, here.scope).reads)
        node.actions = 0
        for ref in table.actions:
            scope = bound(ref.action, ref.bound, here.scope)
            node.accesses.add(body(ref.action.body, scope))
            self.externs(node, (ref.action.body,), scope)
            node.actions += bool(ref.action.body.body)
        node.instances.update(dict.fromkeys(table.direct))
        return node

    def add(self, name: str, here: _Here) -> Node:
        node = Node(name, here.module, self.gress.name, here.path, here.conditions, here.after)
        self.gress.nodes.append(node)
        return node

    def externs(self, node: Node, statements: tuple[ir.Stmt, ...], scope: Scope) -> None:
        """The instances that statements use, with what addresses them."""
        for call in _extern_calls(statements):
            instance = call.instance
            if instance is None:
                continue
            index: Bits = {}
            for arg in call.args[:1]:
                index = read(arg.expr, scope).reads
            node.instances.setdefault(instance, index)
            if call.method == "get":
                wide = getattr(call.type, "width", 0)
                node.calls.append((instance, wide))


def _extern_calls(statements: Iterable[object]) -> Iterator[ir.ExternCall]:
    """The calls in statements and in the functions and actions that they call."""
    for found in walk(tuple(statements)):
        if isinstance(found, ir.ExternCall):
            yield found
        elif isinstance(found, ir.Call):
            yield from _extern_calls((found.callee.body,))


def _joinable(statement: ir.Stmt) -> int | None:
    """The calls of instances in a statement that may stand beside others in one node; None for other statements."""
    if not isinstance(statement, ir.Assign | ir.Declare | ir.SetValidity | ir.Evaluate):
        return None
    found = [n for n in walk(statement) if isinstance(n, ir.ExternCall | ir.Call | ir.ApplyTable)]
    if any(not isinstance(n, ir.ExternCall) or n.instance is None for n in found) or len(found) > 1:
        return None
    return len(found)


def _applied(node: object) -> list[ir.Table]:
    return [n.table for n in walk(node) if isinstance(n, ir.ApplyTable)]


def _line(statement: ir.Stmt) -> str:
    return f"line {statement.pos.line}"
