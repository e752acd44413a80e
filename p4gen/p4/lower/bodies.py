"""Bodies: sequences of statements and their scopes. ``statements`` lowers each statement."""

from __future__ import annotations

from p4gen.p4 import ir
from p4gen.p4.check.scope import Context
from p4gen.p4.parse import ast
from p4gen.p4.parse.source import Reported


def block(cx: Context, b: ast.Block) -> ir.Block:
    """Lower a block in a scope of its own. An error skips only the statement that contains it."""
    return ir.Block(cx.pos(b.at), body(cx.inner(), b.body), b.annotations)


def body(cx: Context, items: tuple[ast.Stmt | ast.Decl, ...]) -> tuple[ir.Stmt, ...]:
    """The statements of a block, lowered in the scope of ``cx``."""
    found: list[ir.Stmt] = []
    for item in items:
        try:
            lowered = statement(cx, item)
        except Reported:
            if isinstance(item, ast.Decl):
                cx.poison(item.name, item.at)
            continue
        if lowered is not None:
            found.append(lowered)
    return tuple(found)


def always_leaves(s: ir.Stmt | None) -> bool:
    """Whether every path through ``s`` ends in ``return`` or ``exit``."""
    match s:
        case ir.Return() | ir.Exit():
            return True
        case ir.Block(body=items):
            return any(map(always_leaves, items))
        case ir.If(then=then, otherwise=otherwise):
            return always_leaves(then) and always_leaves(otherwise)
        case ir.Switch(cases=cases):
            return any(not c.labels for c in cases) and all(always_leaves(c.body) for c in cases)
    return False


def statement(cx: Context, s: ast.Stmt | ast.Decl) -> ir.Stmt | None:
    """The lowered statement; None for one that does nothing (a constant, ``;``)."""
    lower = cx.unit.handlers.statements.get(type(s))
    if lower is None:
        cx.unit.reporter.fail(s.at, "this declaration is not allowed among statements")
    return lower(cx, s)
