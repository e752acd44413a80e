"""Warnings for reads of variables that may be uninitialised (P4_16 specification 8.25).

The scalar parts of local variables and ``out`` parameters are tracked; headers are initially invalid, which is a value.
One path with a read before a write is enough for a warning, as with p4c.
"""

from __future__ import annotations

from collections.abc import Iterable

from p4gen.errors import Pos
from p4gen.p4 import ir
from p4gen.p4.lint.values import Path, place_of
from p4gen.p4.types import Bits, Bool, Enum, Error, SerEnum, Struct, Tuple, Type, Varbits, strip

Missing = dict[ir.Variable, frozenset[Path]]
"""For each variable, the parts of it that may have no value."""


def reads(program: ir.Program) -> list[tuple[Pos, str]]:
    """The positions of reads that may be uninitialised, with the names of what they read."""
    checker = _Checker()
    for block in program.blocks.values():
        checker.block(block)
    return sorted(checker.found)


def _parts(type_: Type) -> Iterable[Path]:
    bare = strip(type_)
    if isinstance(bare, Struct):
        return [(f.name, *rest) for f in bare.fields for rest in _parts(f.type)]
    return [()] if isinstance(bare, Bits | Bool | Enum | Error | SerEnum | Tuple | Varbits) else []


def _join(states: Iterable[Missing | None]) -> Missing | None:
    reaching = [s for s in states if s is not None]
    if not reaching:
        return None
    found = dict(reaching[0])
    for other in reaching[1:]:
        for variable, parts in other.items():
            found[variable] = found.get(variable, frozenset()) | parts
    return found


class _Checker:
    def __init__(self) -> None:
        self.found: set[tuple[Pos, str]] = set()
        self.done: set[Pos] = set()

    # --- blocks ---

    def block(self, block: ir.Control | ir.Parser) -> None:
        """Check a block, once for all instances of its declaration."""
        if block.pos in self.done:
            return
        self.done.add(block.pos)
        state: Missing = self.params(block.params)
        after = self.sequence(block.locals, state)
        if after is None:
            return
        if isinstance(block, ir.Control):
            self.statement(block.body, after)
            return
        entry: dict[str, Missing] = {"start": after}
        todo = ["start"]
        while todo:
            name = todo.pop()
            node = block.states.get(name)
            end = self.sequence(node.body, dict(entry[name])) if node is not None else None
            if node is None or end is None:
                continue
            for subject in node.transition.subjects:
                self.read(subject, end)
            for case in node.transition.cases:
                before = entry.get(case.state)
                joined = _join([before, end])
                assert joined is not None
                if before is None or joined != before:
                    entry[case.state] = joined
                    todo.append(case.state)

    def params(self, params: tuple[ir.Param, ...]) -> Missing:
        return {p.variable: frozenset(_parts(p.variable.type)) for p in params if p.direction == "out"}

    def function(self, function: ir.Function) -> None:
        if function.pos not in self.done:
            self.done.add(function.pos)
            self.statement(function.body, self.params(function.params))

    # --- expressions ---

    def read(self, e: ir.Expr, state: Missing) -> Missing:
        """Check what ``e`` reads; the state after the calls in it."""
        place = place_of(e)
        if place is not None:
            variable, path = place
            missing = state.get(variable, frozenset())
            if any(m[: len(path)] == path or path[: len(m)] == m for m in missing):
                name = ".".join((variable.name, *path))
                self.found.add((e.pos, f"'{name}' may be read before it has a value"))
            return state
        match e:
            case ir.FunctionCall(callee=callee, args=args):
                state = self.arguments(args, state)
                if callee.is_action or callee.reorders:
                    state = self.statement(callee.body, {**state, **self.params(callee.params)}) or {}
                else:
                    self.function(callee)
                return self.outputs(args, state)
            case ir.ExternCall(args=args):
                return self.outputs(args, self.arguments(args, state))
            case ir.ApplyTable(table=table):
                return self.table(table, state)
            case ir.Binary(op="&&" | "||", left=left, right=right):
                state = self.read(left, state)
                return _join([state, self.read(right, dict(state))]) or {}
        for part in _operands(e):
            state = self.read(part, state)
        return state

    def arguments(self, args: tuple[ir.Arg, ...], state: Missing) -> Missing:
        for arg in args:
            if arg.expr is not None and arg.direction != "out":
                state = self.read(arg.expr, state)
        return state

    def outputs(self, args: tuple[ir.Arg, ...], state: Missing) -> Missing:
        for arg in args:
            if arg.expr is not None and arg.direction in ("out", "inout"):
                state = self.written(arg.expr, state)
        return state

    def table(self, table: ir.Table, state: Missing) -> Missing:
        for key in table.keys:
            state = self.read(key.expr, state)
        ends: list[Missing | None] = []
        for ref in table.actions:
            before = self.arguments(ref.bound, dict(state))
            after = self.statement(ref.action.body, {**before, **self.params(ref.action.params)})
            ends.append(self.outputs(ref.bound, after) if after is not None else None)
        return _join(ends) or {}

    def written(self, target: ir.Expr, state: Missing) -> Missing:
        """``state`` once ``target`` has a value; writing some bits counts as writing all."""
        while isinstance(target, ir.Slice | ir.Index | ir.StackMember):
            if isinstance(target, ir.Index):
                state = self.read(target.index, state)
            target = target.base
        place = place_of(target)
        if place is None or place[0] not in state:
            return state
        variable, path = place
        left = frozenset(m for m in state[variable] if m[: len(path)] != path)
        return {**state, variable: left}

    # --- statements ---

    def sequence(self, body: tuple[ir.Stmt, ...], state: Missing) -> Missing | None:
        current: Missing | None = state
        for s in body:
            if current is None:
                return None
            current = self.statement(s, current)
        return current

    def statement(self, s: ir.Stmt, state: Missing) -> Missing | None:
        match s:
            case ir.Block(body=body):
                return self.sequence(body, state)
            case ir.Declare(variable=variable, init=None):
                return {**state, variable: frozenset(_parts(variable.type))}
            case ir.Declare(init=ir.Expr() as init):
                return self.read(init, state)
            case ir.Assign(target=target, value=value):
                return self.written(target, self.read(value, state))
            case ir.Evaluate(expr=expr):
                return self.read(expr, state)
            case ir.ApplyBlock(block=block, args=args):
                self.block(block)
                return self.outputs(args, self.arguments(args, state))
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                state = self.read(condition, state)
                other = self.statement(otherwise, state) if otherwise is not None else state
                return _join([self.statement(then, state), other])
            case ir.Switch(subject=subject, cases=cases):
                state = self.read(subject, state)
                ends = [self.statement(c.body, state) for c in cases]
                return _join(ends if any(not c.labels for c in cases) else [*ends, state])
            case ir.For(init=init, condition=condition, update=update, body=body):
                state = self.read(condition, self.sequence(init, state) or {})
                end = self.statement(body, state)
                return _join([state, self.sequence(update, end) if end is not None else None])
            case ir.ForIn(values=values, body=body):
                for e in values if isinstance(values, tuple) else (values,):
                    state = self.read(e, state)
                return _join([state, self.statement(body, state)])
            case ir.Return(value=value):
                if value is not None:
                    self.read(value, state)
                return None
            case ir.Exit() | ir.Break() | ir.Continue():
                return None
            case ir.Extract(varbit_bits=ir.Expr() as bits):
                return self.read(bits, state)
            case ir.Advance(bits=bits):
                return self.read(bits, state)
            case ir.Verify(condition=condition):
                return self.read(condition, state)
        return state


def _operands(e: ir.Expr) -> tuple[ir.Expr, ...]:
    match e:
        case ir.Unary(operand=x) | ir.Cast(operand=x) | ir.Slice(base=x) | ir.FieldOf(base=x):
            return (x,)
        case ir.Binary(left=left, right=right):
            return (left, right)
        case ir.Mux(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case ir.Index(base=base, index=index):
            return (base, index)
        case ir.Aggregate(elements=elements):
            return elements
    return ()
