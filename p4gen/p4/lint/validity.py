"""Uses of fields of headers that the program itself may have made invalid.

A header that the pipeline receives counts as valid, whatever the parser has extracted: a program knows by other means
what it got. But a header that ``setInvalid`` has taken away on one path, or that is a local variable without a value,
must not be read or written field by field. Only ``setValid``, an assignment, or a condition with ``isValid`` makes it
usable again. One path on which it is invalid is enough for a message.

p4c warns of the same in the program as a whole, with all controls inlined. But p4c does not look into the actions of
tables, and it goes on behind ``return`` and ``exit``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from p4gen.errors import Pos
from p4gen.p4 import ir
from p4gen.p4.lint.values import Path, place_of
from p4gen.p4.types import Fields, Header, Stack, Type, strip

Place = tuple[ir.Variable, Path]
State = dict[Place, bool | None]
"""Whether a header is valid, None: on some paths; a header that is missing is as the pipeline was given it."""


def reads(block: ir.Control) -> list[tuple[Pos, str]]:
    """The positions in ``block`` where a field of a header is used that may be invalid, each with a message."""
    checker = _Checker()
    checker.block(block, {})
    return sorted(checker.found)


def _has_headers(type_: Type) -> bool:
    bare = strip(type_)
    if isinstance(bare, Stack):
        return _has_headers(bare.element)
    return isinstance(bare, Header) or (isinstance(bare, Fields) and any(_has_headers(f.type) for f in bare.fields))


def _headers(type_: Type) -> Iterable[Path]:
    """The paths of a type's headers, those in stacks excepted."""
    bare = strip(type_)
    if isinstance(bare, Header):
        yield ()
    elif isinstance(bare, Fields):
        yield from ((f.name, *rest) for f in bare.fields for rest in _headers(f.type))


def _join(states: Iterable[State | None]) -> State | None:
    reaching = [s for s in states if s is not None]
    if not reaching:
        return None
    places = {place for s in reaching for place in s}
    return {p: f.pop() if len(f := {s.get(p, True) for s in reaching}) == 1 else None for p in places}


@dataclass
class _Checker:
    found: set[tuple[Pos, str]] = field(default_factory=set)
    aliases: dict[ir.Variable, Place] = field(default_factory=dict)
    """What parameters stand for, in the calls under way."""
    returned: list[list[State | None]] = field(default_factory=list)

    def place(self, e: ir.Expr) -> Place | None:
        """The place that ``e`` names, through the parameters of all calls under way."""
        named = place_of(e)
        while named is not None and named[0] in self.aliases:
            variable, path = self.aliases[named[0]]
            named = variable, path + named[1]
        return named

    # --- calls ---

    def block(self, block: ir.Control | ir.Parser, state: State) -> State | None:
        after = self.sequence(block.locals, state)
        return self.body(block.body, after) if isinstance(block, ir.Control) and after is not None else after

    def body(self, body: ir.Block, state: State) -> State | None:
        """The state after ``body``, at its end or at any ``return`` in it."""
        self.returned.append([])
        end = self.statement(body, state)
        return _join([*self.returned.pop(), end])

    def bind(self, params: Iterable[ir.Param], args: Iterable[ir.Arg], state: State) -> State:
        """Let parameters stand for their arguments."""
        for param, arg in zip(params, args, strict=False):
            place = self.place(arg.expr) if arg.expr is not None else None
            if place is None or not _has_headers(param.variable.type):
                continue
            self.aliases[param.variable] = place
            if param.direction == "out":
                state = state | {(place[0], place[1] + path): False for path in _headers(param.variable.type)}
        return state

    def unbind(self, params: Iterable[ir.Param]) -> None:
        for param in params:
            self.aliases.pop(param.variable, None)

    def table(self, table: ir.Table, state: State) -> State | None:
        for key in table.keys:
            state = self.read(key.expr, state) or {}
        ends = []
        for ref in table.actions:
            ends.append(self.body(ref.action.body, self.bind(ref.action.params, ref.bound, state)))
            self.unbind(ref.action.params)
        return _join(ends)

    # --- expressions ---

    def read(self, e: ir.Expr, state: State) -> State | None:
        """The state after ``e``; None if nothing is executed after it."""
        current: State | None = state
        match e:
            case ir.FieldOf(base=base) if isinstance(strip(base.type), Header):
                self.access(e, state)
            case ir.IsValid():
                return state
            case ir.Binary(op="&&" | "||" as op, left=left, right=right):
                begun = self.read(left, state)
                if begun is None:
                    return None
                return _join([begun, self.read(right, self.narrowed(left, begun, holds=op == "&&"))])
            case ir.Mux(condition=condition, then=then, otherwise=otherwise):
                begun = self.read(condition, state)
                if begun is None:
                    return None
                return _join(
                    self.read(part, self.narrowed(condition, begun, holds=holds))
                    for part, holds in ((then, True), (otherwise, False))
                )
            case ir.ApplyTable(table=table):
                return self.table(table, state)
            case ir.FunctionCall(callee=callee, args=args):
                current = self.arguments(args, state)
                params = callee.params + callee.data
                after = self.body(callee.body, self.bind(params, args, current))
                self.unbind(params)
                return after
            case ir.ExternCall(args=args):
                return self.arguments(args, state)
        for part in _operands(e):
            current = self.read(part, current) if current is not None else None
        return current

    def access(self, e: ir.FieldOf, state: State) -> None:
        place = self.place(e.base)
        if place is not None and state.get(place, True) is not True:
            name = ".".join((place[0].name, *place[1]))
            what = "is" if state[place] is False else "may be"
            self.found.add((e.pos, f"'{e.name}' of header '{name}', which {what} invalid here"))

    def arguments(self, args: Iterable[ir.Arg], state: State) -> State:
        for arg in args:
            if arg.expr is not None:
                state = self.read(arg.expr, state) or {}
        return state

    def narrowed(self, condition: ir.Expr, state: State, *, holds: bool) -> State:
        """``state`` with what is known in addition where ``condition`` is true or, without ``holds``, false."""
        match condition:
            case ir.IsValid(header=header) if (place := self.place(header)) is not None:
                return {**state, place: holds or state.get(place, True) is True}
            case ir.Unary(op="!", operand=operand):
                return self.narrowed(operand, state, holds=not holds)
            case ir.Binary(op="&&" | "||" as op, left=left, right=right) if holds == (op == "&&"):
                return self.narrowed(right, self.narrowed(left, state, holds=holds), holds=holds)
        return state

    # --- statements ---

    def sequence(self, body: Iterable[ir.Stmt], state: State) -> State | None:
        current: State | None = state
        for s in body:
            current = self.statement(s, current) if current is not None else None
        return current

    def statement(self, s: ir.Stmt, state: State) -> State | None:
        match s:
            case ir.Block(body=body):
                return self.sequence(body, state)
            case ir.Declare(variable=variable, init=None):
                return state | {(variable, path): False for path in _headers(variable.type)}
            case ir.Declare(variable=variable, init=ir.Expr() as init):
                after = self.read(init, state)
                return self.copied((variable, ()), variable.type, init, after) if after is not None else None
            case ir.Assign(target=target, value=value):
                after = self.read(value, state)
                if after is None or (after := self.read(target, after)) is None:
                    return None
                place = self.place(target)
                return self.copied(place, target.type, value, after) if place is not None else after
            case ir.SetValidity(header=header, valid=valid):
                place = self.place(header)
                return {**state, place: valid} if place is not None else state
            case ir.Evaluate(expr=expr):
                return self.read(expr, state)
            case ir.ApplyBlock(block=block, args=args):
                state = self.arguments(args, state)
                if not any(_has_headers(p.variable.type) for p in block.params):
                    return state
                after = self.block(block, self.bind(block.params, args, state))
                self.unbind(block.params)
                return after
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                after = self.read(condition, state)
                if after is None:
                    return None
                other = self.narrowed(condition, after, holds=False)
                end = self.statement(then, self.narrowed(condition, after, holds=True))
                return _join([end, self.statement(otherwise, other) if otherwise is not None else other])
            case ir.Switch(subject=subject, cases=cases):
                after = self.read(subject, state)
                if after is None:
                    return None
                ends = [self.statement(case.body, after) for case in cases]
                return _join(ends if any(not case.labels for case in cases) else [*ends, after])
            case ir.For() | ir.ForIn():
                return _join([state, self.statement(s.body, state)])
            case ir.Return(value=value):
                self.returned[-1].append(self.read(value, state) if value is not None else state)
                return None
            case ir.Exit() | ir.Break() | ir.Continue():
                return None
        return state

    def copied(self, to: Place, type_: Type, value: ir.Expr, state: State) -> State:
        """The state once ``to`` has the headers of ``value``."""
        source = self.place(value)
        new: State = {}
        for path in _headers(type_):
            valid: bool | None = not isinstance(value, ir.InvalidHeader)
            if source is not None:
                valid = state.get((source[0], source[1] + path), True)
            new[to[0], to[1] + path] = valid
        return state | new


def _operands(e: ir.Expr) -> tuple[ir.Expr, ...]:
    match e:
        case ir.Unary(operand=x) | ir.Cast(operand=x) | ir.Slice(base=x) | ir.FieldOf(base=x):
            return (x,)
        case ir.Binary(left=left, right=right):
            return (left, right)
        case ir.Index(base=base, index=index):
            return (base, index)
        case ir.Aggregate(elements=elements):
            return elements
    return ()
