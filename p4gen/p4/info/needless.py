"""Reads whose results are not used. p4c's front end removes them.

An example is a read of a register into a local variable that is overwritten or never read.
"""

from __future__ import annotations

from collections.abc import Iterable

from p4gen.p4 import ir
from p4gen.p4.simplify import harmless, has_effects
from p4gen.p4.walk import walk

_Wanted = frozenset[ir.Variable]
"""The variables whose values are used later."""


def needed(bodies: Iterable[ir.Stmt]) -> set[ir.ExternCall]:
    """The calls of externs in ``bodies`` that have effects or whose results are used.

    A variable counts as a whole; those declared outside of the body are taken to be used.
    """
    found: set[ir.ExternCall] = set()
    for body in bodies:
        local = frozenset(n.variable for n in walk(body) if isinstance(n, ir.Declare))
        finder = _Finder(local)
        finder.statement(body, frozenset())
        found |= finder.needed
    return found


class _Finder:
    """Goes through a body from its end to its start."""

    def __init__(self, local: _Wanted) -> None:
        self.local = local
        self.needed: set[ir.ExternCall] = set()

    def reads(self, *read: object) -> _Wanted:
        """The local variables that these expressions read; calls in them are needed."""
        found: set[ir.Variable] = set()
        for node in walk(read):
            if isinstance(node, ir.Var) and node.variable in self.local:
                found.add(node.variable)
            elif isinstance(node, ir.ExternCall):
                self.needed.add(node)
        return frozenset(found)

    def statement(self, s: ir.Stmt, after: _Wanted) -> tuple[_Wanted, bool]:
        """The variables that are used later, seen from before ``s``; and whether ``s`` itself is needed."""
        match s:
            case ir.Block(body=body):
                return self.sequence(body, after)
            case ir.Declare(variable=variable, init=init):
                if init is None or (variable not in after and not has_effects(init)):
                    return after - {variable}, False
                return after - {variable} | self.reads(init), True
            case ir.Assign(target=target, value=value):
                return self.assign(target, value, after)
            case ir.Evaluate(expr=ir.ExternCall() as call):
                return self.call(call, after)
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                one, need_one = self.statement(then, after)
                two, need_two = self.statement(otherwise, after) if otherwise is not None else (after, False)
                if not (need_one or need_two or has_effects(condition)):
                    return after, False
                return one | two | self.reads(condition), True
            case ir.Switch(subject=subject, cases=cases):
                ends = [self.statement(c.body, after)[0] for c in cases]
                return after.union(*ends, self.reads(subject)), True
            case ir.For(init=init, condition=condition, update=update, body=body):
                return self.loop((body, *update), after, init, condition)
            case ir.ForIn(values=values, body=body):
                return self.loop((body,), after, (), values)
            case ir.Return(value=value):
                return self.reads(value), True
            case ir.Exit():
                return frozenset(), True
            case ir.Break() | ir.Continue():
                return self.local, True
        return after | self.reads(s), True

    def sequence(self, body: tuple[ir.Stmt, ...], after: _Wanted) -> tuple[_Wanted, bool]:
        need = False
        for s in reversed(body):
            after, here = self.statement(s, after)
            need |= here
        return after, need

    def loop(
        self, body: tuple[ir.Stmt, ...], after: _Wanted, init: tuple[ir.Stmt, ...], read: object
    ) -> tuple[_Wanted, bool]:
        wanted = after | self.reads(read)
        while (more := wanted | self.sequence(body, wanted)[0]) != wanted:
            wanted = more
        return self.sequence(init, wanted)[0], True

    def assign(self, target: ir.Expr, value: ir.Expr, after: _Wanted) -> tuple[_Wanted, bool]:
        root = target
        while isinstance(root, ir.FieldOf | ir.Slice | ir.Index | ir.StackMember):
            root = root.base
        if isinstance(root, ir.Var) and root.variable in self.local:
            if root.variable not in after and not has_effects(value):
                return after, False
            if root is target:
                return after - {root.variable} | self.reads(value), True
        return after | self.reads(target, value), True

    def call(self, call: ir.ExternCall, after: _Wanted) -> tuple[_Wanted, bool]:
        results = [a.expr for a in call.args if a.direction in ("out", "inout")]
        whole = {r.variable for r in results if isinstance(r, ir.Var) and r.variable in self.local}
        if harmless(call.annotations) and len(whole) == len(results) and not whole & after:
            return after, False
        read = [a.expr for a in call.args if not (a.direction == "out" and isinstance(a.expr, ir.Var))]
        self.needed.add(call)
        return after - whole | self.reads(tuple(read)), True
