"""Live code: the code that remains after p4c's front end, from which it generates P4Info."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import is_

from typing_extensions import override

from p4gen.p4 import ir
from p4gen.p4.simplify import known, simplified
from p4gen.p4.walk import Used, rebuilt, walk


class Live(Used):
    """The code that a block can reach: without branches on a condition known to be false, code after a ``return``, and
    states without a transition to them."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[ir.Stmt] = []

    @classmethod
    def of(cls, block: ir.Control | ir.Parser) -> Live:
        """The live code of the top-level ``block``."""
        live = cls()
        live.block(block)
        return live

    @override
    def code(self, body: ir.Stmt) -> ir.Stmt:
        """``body`` without statements that cannot run."""
        found = _pruned(body) or ir.Block(body.pos, ())
        if any(isinstance(s, ir.Return) for s in walk(found)):
            found, _ = _cut(found)
        self.bodies.append(found)
        return found

    @override
    def states(self, parser: ir.Parser) -> Iterator[ir.ParserState]:
        """The states that transitions lead to."""
        reached = {"start": None}
        todo = ["start"]
        while todo:
            state = parser.states.get(todo.pop())
            if state is None:
                continue
            transition = _transition(state.transition)
            chosen_by = tuple(ir.Evaluate(e.pos, e) for e in transition.subjects)
            body = self.code(ir.Block(state.pos, (*state.body, *chosen_by)))
            yield replace(state, body=(body,), transition=transition)
            new = [c.state for c in transition.cases if c.state not in reached]
            reached.update(dict.fromkeys(new))
            todo += new


def _pruned(s: ir.Stmt) -> ir.Stmt | None:
    """``s`` without branches that are never taken; None where nothing is left."""
    match s:
        case ir.Block(body=body):
            return rebuilt(s, body=_pruned_body(body))
        case ir.If(condition=condition, then=then, otherwise=otherwise):
            condition = simplified(condition)
            if isinstance(condition, ir.Literal):
                taken = then if condition.value else otherwise
                return _pruned(taken) if taken is not None else None
            kept = _pruned(then) or ir.Block(then.pos, ())
            other = _pruned(otherwise) if otherwise is not None else None
            return rebuilt(s, condition=condition, then=kept, otherwise=other)
        case ir.Switch(subject=subject, cases=cases):
            value = known(subject)
            if value is not None:
                chosen = (c.body for c in cases if not c.labels or any(known(x) == value for x in c.labels))
                first = next(chosen, None)
                return _pruned(first) if first is not None else None
            left = tuple(replace(c, body=_pruned(c.body) or ir.Block(c.body.pos, ())) for c in cases)
            return replace(s, cases=left)
        case ir.For(body=body) | ir.ForIn(body=body):
            return rebuilt(s, body=_pruned(body) or ir.Block(body.pos, ()))
        case ir.Assign(value=value):
            return rebuilt(s, value=simplified(value))
        case ir.Declare(init=ir.Expr() as init):
            return rebuilt(s, init=simplified(init))
    return s


def _pruned_body(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    left = tuple(found for found in map(_pruned, body) if found is not None)
    return body if len(left) == len(body) and all(map(is_, left, body)) else left


def _cut(s: ir.Stmt) -> tuple[ir.Stmt, bool]:
    """``s`` without what follows a ``return`` or, beside one, an ``exit``; whether it ends in one."""
    match s:
        case ir.Return() | ir.Exit():
            return s, True
        case ir.Block(body=body):
            kept: list[ir.Stmt] = []
            for item in body:
                item, ends = _cut(item)  # noqa: PLW2901 - the same statement, cut
                kept.append(item)
                if ends:
                    return replace(s, body=tuple(kept)), True
            return replace(s, body=tuple(kept)), False
        case ir.If(then=then, otherwise=otherwise):
            then, ends = _cut(then)
            other_ends = False
            if otherwise is not None:
                otherwise, other_ends = _cut(otherwise)
            return replace(s, then=then, otherwise=otherwise), ends and other_ends
        case ir.Switch(cases=cases):
            return replace(s, cases=tuple(replace(c, body=_cut(c.body)[0]) for c in cases)), False
        case ir.For(body=body) | ir.ForIn(body=body):
            return replace(s, body=_cut(body)[0]), False
    return s, False


# --- parsers -------------------------------------------------------------------------------------


def _transition(t: ir.Transition) -> ir.Transition:
    """``t`` with the cases that values known from the start can meet."""
    values = [known(s) for s in t.subjects]
    if not values or None in values:
        return t
    cases: list[ir.SelectCase] = []
    for case in t.cases:
        met = _meets(case.keysets, values)
        if met is not False:
            cases.append(case)
        if met:
            break
    return replace(t, cases=tuple(cases))


def _meets(keysets: tuple[ir.Keyset, ...], values: list[int | bool | str | None]) -> bool | None:
    """Whether the values are in the keysets; None where only the control plane knows."""
    found = [_contains(k, v) for k, v in zip(keysets, values, strict=False)]
    return next((f for f in found if f is not True), True)


def _contains(keyset: ir.Keyset, value: int | bool | str | None) -> bool | None:
    match keyset:
        case ir.AnySet():
            return True
        case ir.ExactSet(expr=expr):
            wanted = known(expr)
            return None if wanted is None else wanted == value
        case ir.MaskSet(value=ir.Literal(value=int() as one), mask=ir.Literal(value=int() as mask)):
            return isinstance(value, int) and one & mask == value & mask
        case ir.RangeSet(low=ir.Literal(value=int() as low), high=ir.Literal(value=int() as high)):
            return isinstance(value, int) and low <= value <= high
    return None
