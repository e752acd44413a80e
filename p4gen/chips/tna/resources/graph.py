"""A gress as the compiler places it: tables, and statements between them, with the conditions that guard them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from p4gen.chips.tna.resources.access import (
    Accesses,
    Bits,
    Leaf,
    Scope,
    argument,
    body,
    bound,
    constant_bits,
    effects,
    join,
    meet,
    place_of,
    read,
    width,
)
from p4gen.p4 import ir
from p4gen.p4.simplify import simplified
from p4gen.p4.walk import walk


@dataclass(eq=False)
class Condition:
    """A condition that is decided before tables."""

    module: str
    reads: Bits


@dataclass(frozen=True, eq=False)
class TableRan:
    """The condition that a table has run one of some actions; None for any action."""

    node: Node
    actions: frozenset[ir.Function] | None

    @property
    def writes(self) -> Bits:
        """The bits that the table has written by then."""
        if self.actions is None:
            return self.node.accesses.writes
        found: Bits = {}
        for action in self.actions:
            join(found, self.node.actions[action].writes if action in self.node.actions else {})
        return found


@dataclass(eq=False)
class Node:
    """A unit of placement: a table, or statements beside tables, which become a table without a key."""

    name: str
    module: str
    gress: str
    path: tuple[tuple[object, int], ...]
    """The branches that contain it: the subject that decides, and the branch's number."""
    conditions: tuple[Condition, ...]
    after: tuple[TableRan, ...]
    """Tables whose hit, miss or action decides whether it runs."""
    table: ir.Table | None = None
    keys: Bits = field(default_factory=dict)
    accesses: Accesses = field(default_factory=Accesses)
    """The accesses of the node's actions."""
    instances: dict[ir.ExternInstance, Bits | None] = field(default_factory=dict)
    """The externs that it calls, and the bits of which the index is made; None for direct ones."""
    calls: list[tuple[ir.ExternInstance, int]] = field(default_factory=list)
    """Calls of ``get`` with a result in bits."""
    actions: dict[ir.Function, Accesses] = field(default_factory=dict)
    """The bits that a table's actions read and write."""
    data: int = 0
    """Bits of the longest action data, with the constants that no instruction holds."""

    @property
    def instructions(self) -> list[Bits]:
        """The bits that each of its words of instructions writes; statements have one word."""
        return [a.writes for a in self.actions.values()] if self.table is not None else [self.accesses.writes]

    @cached_property
    def matches(self) -> Bits:
        """All bits that decide its effect."""
        found = dict(self.keys)
        for condition in self.conditions:
            join(found, condition.reads)
        return found


def exclusive(one: Node, other: Node) -> bool:
    """Whether no packet reaches both."""
    taken = dict(one.path)
    return any(taken.get(choice, branch) != branch for choice, branch in other.path)


def distance(first: Node, then: Node) -> int | None:
    """How many stages ``then`` must come behind ``first``, which is before it in the program; None for any order.

    Conditions in which both stand have been decided before ``first``.
    """
    if exclusive(first, then):
        return None
    decides = next((outcome for outcome in then.after if outcome.node is first), None)
    writes = first.accesses.writes if decides is None else decides.writes
    if meet(then.keys, writes) or any(meet(c.reads, writes) for c in then.conditions if c not in first.conditions):
        return 1
    if meet(then.accesses.reads, writes) or meet(then.accesses.writes, writes):
        return 1
    later = then.accesses.writes
    if decides is not None or meet(first.matches, later) or meet(first.accesses.reads, later):
        return 0
    return None


def behind(first: Node, then: Node, sizes: Mapping[object, int]) -> bool:
    """Whether ``then``, which is later in the program, stands behind a block of conditions in which ``first`` is one
    of several nodes. ``sizes`` are the numbers of nodes below each condition."""
    common = 0
    while common < min(len(first.path), len(then.path)) and first.path[common] == then.path[common]:
        common += 1
    if len(first.path) == common:
        return False
    block = first.path[common][0]
    beside = len(then.path) > common and then.path[common][0] is block
    return not beside and sizes[block] > 1


@dataclass
class Gress:
    """The nodes of a gress in the program's order, and which control declares which local variable."""

    name: str
    nodes: list[Node] = field(default_factory=list)
    declared: dict[ir.Variable, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Here:
    """The place of the builder in the program."""

    module: str
    scope: Scope
    path: tuple[tuple[object, int], ...] = ()
    conditions: tuple[Condition, ...] = ()
    after: tuple[TableRan, ...] = ()


def gress_of(name: str, control: ir.Control, scope: Scope) -> Gress:
    """The gress with this control; ``scope`` has the meaning of its parameters."""
    builder = _Builder(Gress(name))
    builder.control(control, _Here(control.name, scope))
    return builder.gress


class _Builder:
    def __init__(self, gress: Gress) -> None:
        self.gress = gress
        self.copies: dict[Leaf, Bits] = {}
        """Fields that hold a copy of another field, or a constant: p4c reads the original in their place."""

    def control(self, control: ir.Control, here: _Here) -> None:
        self.statements(control.locals, here)
        self.statement(control.body, here)

    def statements(self, found: Iterable[ir.Stmt], here: _Here) -> None:
        """Adjacent assignments become one node, with at most one call of an extern, as long as none reads the target of
        another one."""
        joined: Node | None = None
        for statement in found:
            if isinstance(statement, ir.Declare):
                self.gress.declared[statement.variable] = here.module
                if isinstance(statement.init, ir.Literal) and not statement.init.value:
                    continue  # PHV starts with zeros (p4c, RemoveMetadataInits).
            calls = _joinable(statement)
            if calls is not None:
                new = effects(statement, here.scope)
                new.reads = self.resolved(new.reads)
                if not new.writes and not calls:
                    continue
                done = joined.accesses.writes if joined is not None else {}
                used = joined.instances if joined is not None else {}
                if joined is None or meet(new.reads, done) or meet(new.writes, done) or (calls and used):
                    joined = self.add(_line(statement), here)
                joined.accesses.add(new)
                self.assigned(statement, new, here.scope)
                joined.data += constant_bits(statement)
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
        self.assigned(statement, accesses, here.scope)
        node = self.add(_line(statement), here)
        node.accesses.add(accesses)
        node.data = constant_bits(statement)
        self.externs(node, (statement,), here.scope)
        if not accesses.writes and not node.instances:
            self.gress.nodes.remove(node)

    def choice(self, subject: ir.Expr, branches: list[ir.Stmt | None], statement: ir.Stmt, here: _Here) -> None:
        """Add the branches of an ``if`` or a ``switch``."""
        if isinstance(subject, ir.Literal) and isinstance(subject.value, bool):
            self.statement(branches[0] if subject.value else branches[1], here)
            return
        tables = [self.table(t, here) for t in _applied(subject)]
        for call in (n for n in walk(subject) if isinstance(n, ir.ExternCall)):
            self.code(ir.Evaluate(call.pos, call), here)
        reads = self.resolved(read(subject, here.scope).reads)
        conditions = (*here.conditions, Condition(here.module, reads)) if reads else here.conditions
        before, ends = self.copies, []
        for i, branch in enumerate(branches):
            self.copies = dict(before)
            path = (*here.path, (statement, i))
            decided = (TableRan(node, _ran(node, subject, statement, i)) for node in tables)
            self.statement(branch, _Here(here.module, here.scope, path, conditions, (*here.after, *decided)))
            ends.append(self.copies)
        self.copies = {leaf: of for leaf, of in before.items() if all(end.get(leaf) is of for end in ends)}

    def table(self, table: ir.Table, here: _Here) -> Node:
        node = self.add(table.name, here)
        node.table = table
        for key in table.keys:
            join(node.keys, self.resolved(read(key.expr, here.scope).reads))
        for ref in table.actions:
            scope = bound(ref.action, ref.bound, here.scope)
            done = body(ref.action.body, scope)
            node.accesses.add(done)
            node.actions[ref.action] = done
            wide = sum(width(p.variable.type) for p in ref.action.data)
            node.data = max(node.data, wide + constant_bits(ref.action.body))
            self.externs(node, (ref.action.body,), scope)
        self.forget(node.accesses.writes)
        node.instances.update(dict.fromkeys(table.direct))
        if table.implementation is not None:
            profile = table.implementation.arguments.get("action_profile")
            node.instances[table.implementation] = None
            if isinstance(profile, ir.ExternInstance):
                node.instances[profile] = None
        return node

    def resolved(self, bits: Bits) -> Bits:
        """The bits that are read in the place of copies."""
        found: Bits = {}
        for leaf, mask in bits.items():
            join(found, self.copies.get(leaf, {leaf: mask}))
        return found

    def assigned(self, statement: ir.Stmt, done: Accesses, scope: Scope) -> None:
        """Note the copies that a statement makes."""
        self.forget(done.writes)
        if not isinstance(statement, ir.Assign) or not isinstance(statement.value, ir.Var | ir.FieldOf | ir.Literal):
            return
        place = None if isinstance(statement.target, ir.Slice) else place_of(statement.target, scope)
        if place is not None and done.writes.keys() == {(place.root, place.path)}:
            self.copies[place.root, place.path] = done.reads

    def forget(self, writes: Bits) -> None:
        """Forget copies of the written bits, and copies there."""
        for leaf, of in list(self.copies.items()):
            if leaf in writes or not of.keys().isdisjoint(writes):
                del self.copies[leaf]

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
                if index or call.args == ():
                    node.calls.append((instance, wide))
                else:
                    # p4c computes a hash of constants itself.
                    node.data += wide


def _extern_calls(statements: Iterable[object]) -> Iterator[ir.ExternCall]:
    """The calls in statements and in the functions and actions that they call."""
    for found in walk(tuple(statements)):
        if isinstance(found, ir.ExternCall):
            yield found
        elif isinstance(found, ir.FunctionCall):
            yield from _extern_calls((found.callee.body,))


def _joinable(statement: ir.Stmt) -> int | None:
    """The calls of instances in a statement that may stand beside others in one node; None for other statements."""
    if not isinstance(statement, ir.Assign | ir.Declare | ir.SetValidity | ir.Evaluate):
        return None
    found = [n for n in walk(statement) if isinstance(n, ir.ExternCall | ir.FunctionCall | ir.ApplyTable)]
    if any(not isinstance(n, ir.ExternCall) or n.instance is None for n in found) or len(found) > 1:
        return None
    return len(found)


def _ran(node: Node, subject: ir.Expr, statement: ir.Stmt, branch: int) -> frozenset[ir.Function] | None:
    """The actions of a table with which a branch is taken; None for any."""
    table = node.table
    assert table is not None
    if isinstance(statement, ir.Switch) and isinstance(subject, ir.ApplyTable):
        by_name = {ref.action.name.rpartition(".")[2]: ref.action for ref in table.actions}
        labels = [[str(getattr(x, "value", "")) for x in case.labels] for case in statement.cases]
        named = {by_name[name.rpartition(".")[2]] for name in labels[branch] if name.rpartition(".")[2] in by_name}
        if labels[branch]:
            return frozenset(named)
        others = {name.rpartition(".")[2] for found in labels for name in found}
        return frozenset(action for name, action in by_name.items() if name not in others)
    negated = isinstance(subject, ir.Unary) and subject.op == "!"
    asked = subject.operand if isinstance(subject, ir.Unary) else subject
    if not isinstance(asked, ir.ApplyTable) or asked.result not in ("hit", "miss"):
        return None
    missed = (asked.result == "miss") != negated
    if missed == (branch == 0):
        return frozenset({table.default_action.ref.action}) if table.const_default else None
    return frozenset(ref.action for ref in table.actions if not ref.default_only)


def _applied(node: object) -> list[ir.Table]:
    return [n.table for n in walk(node) if isinstance(n, ir.ApplyTable)]


def _line(statement: ir.Stmt) -> str:
    return f"line {statement.pos.line}"
