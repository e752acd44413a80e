"""The order of evaluation: arguments and fields in the order in which they are written, whatever the order of their
declaration (P4_16 specification 6.8, 8.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from p4gen.errors import Pos
from p4gen.p4 import ir
from p4gen.p4.check.scope import ExternType
from p4gen.p4.types import Annotation, Type, Void
from p4gen.p4.walk import walk

Reordered = Callable[[tuple[ir.Arg, ...]], ir.Expr | ir.Stmt]
"""Makes a call, or another expression, of arguments in the order of declaration."""


def evaluated(
    name: str,
    pos: Pos,
    returns: Type,
    args: Sequence[ir.Arg],
    order: Sequence[int],
    make: Reordered,
    annotations: tuple[Annotation, ...] = (),
) -> ir.Expr | ir.Stmt:
    """``make(args)``, with ``args`` evaluated and copied out in ``order``, which holds their positions.

    Where the order makes a difference, the result is a call of a function that is made for it. Its parameters are in
    that order, and it passes them on: the calling convention of functions does the rest.
    """
    if list(order) == sorted(order) or not _matters(args):
        return make(tuple(args))
    params: list[ir.Param] = []
    outer: list[ir.Arg] = []
    inner = list(args)
    for at in order:
        arg = args[at]
        if arg.expr is None or _fixed(arg.expr) or isinstance(arg.expr.type, ExternType):
            continue
        direction: ir.Direction = "in" if arg.direction == "none" else arg.direction
        variable = ir.Variable(f"argument_{at + 1}", arg.expr.type, arg.expr.pos)
        params.append(ir.Param(variable, direction))
        outer.append(ir.Arg(direction, arg.expr))
        inner[at] = ir.Arg(arg.direction, ir.Var(variable.type, variable.pos, variable))
    made = make(tuple(inner))
    if isinstance(made, ir.Stmt):
        body = made
    elif isinstance(returns, Void):
        body = ir.Evaluate(pos, made)
    else:
        body = ir.Return(pos, made)
    block = ir.Block(pos, (body,))
    passing = ir.Function(name, tuple(params), (), returns, block, False, annotations, pos, reorders=True)
    return ir.FunctionCall(returns, pos, passing, tuple(outer))


def _matters(args: Sequence[ir.Arg]) -> bool:
    """Whether the order makes a difference in which these arguments are evaluated or copied out."""
    written = [_root(a.expr) for a in args if a.expr is not None and a.direction in ("out", "inout")]
    return len(set(written)) < len(written) or any(has_calls(a.expr) for a in args)


def _fixed(e: ir.Expr) -> bool:
    return all(isinstance(n, ir.Literal | ir.InvalidHeader | ir.Aggregate) for n in walk(e))


def has_calls(e: ir.Expr | None) -> bool:
    """Whether evaluating ``e`` calls something."""
    return any(isinstance(n, ir.FunctionCall | ir.ExternCall | ir.ApplyTable) for n in walk(e))


def _root(e: ir.Expr) -> object:
    while isinstance(e, ir.FieldOf | ir.Index | ir.Slice | ir.StackMember):
        e = e.base
    return e.variable if isinstance(e, ir.Var) else e
