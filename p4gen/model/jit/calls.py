"""Calls: argument passing, functions, actions, sub-controls and sub-parsers.

Arguments are evaluated left to right, ``out`` and ``inout`` lvalues are located once, everything is copied in, the
body runs, and results are copied out left to right (spec 6.8). ``exit`` and rejections copy out, too (12.5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from p4gen.model.interp.build import children, is_packet
from p4gen.model.jit.build import AddressHandler, ExprHandler, Gen, StmtHandler, is_composite, is_memory
from p4gen.model.jit.emit import FALSE, Address, Value, const
from p4gen.model.jit.parsers import parser_body
from p4gen.model.jit.places import Place, load, locate, store_from
from p4gen.model.jit.statements import body
from p4gen.p4 import ir
from p4gen.p4 import types as t


def _variables(node: object) -> set[ir.Variable]:
    if isinstance(node, ir.Var):
        return {node.variable}
    return set().union(*map(_variables, children(node)))


def _can_share(at: int, params: Sequence[ir.Param], args: Sequence[ir.Arg]) -> bool:
    """Whether argument ``at`` of a sub-block or function can be passed by reference instead of copied: it must be a
    composite, a whole variable or a fixed part of one, and no other argument may refer to it."""
    expr = args[at].expr
    if params[at].direction == "out" or not is_composite(params[at].variable.type):
        return False
    part = expr
    while isinstance(part, ir.FieldOf):
        if isinstance(t.strip(part.base.type), t.HeaderUnion):
            return False
        part = part.base
    if not isinstance(part, ir.Var):
        return False
    return not any(i != at and part.variable in _variables(other) for i, other in enumerate(args))


@dataclass(frozen=True)
class _Passed:
    """An argument of a call: the parameter, its storage, and the place to copy out to."""

    variable: ir.Variable
    at: Address
    value: Value | None = None
    out: Place | None = None


def _prepare(g: Gen, param: ir.Param, arg: ir.Arg, *, shared: bool) -> _Passed:
    variable = param.variable
    of = variable.type
    if arg.expr is None:
        at = g.storage(of)
        g.clear(at, of)
        g.unassign(at, of)
        return _Passed(variable, at)
    if shared and param.direction in ("in", "none", "inout"):
        return _Passed(variable, g.address(arg.expr))
    at = g.storage(of)
    if param.direction in ("in", "none"):
        g.assign(at, arg.expr)
        return _Passed(variable, at)
    place = locate(g, arg.expr)
    if param.direction == "out":
        g.clear(at, of)
        g.unassign(at, of)
    elif is_memory(of):
        g.copy(at, place.at, of)
    else:
        g.store(load(g, place), at, of)
    if place.mark is not None:
        g.marks[variable] = mark = g.fn.local(8)
        g.fn.store(const(1, 8) if param.direction == "out" else g.fn.load(place.mark, 8), mark)
    return _Passed(variable, at, out=place)


def call(g: Gen, params: Sequence[ir.Param], args: Sequence[ir.Arg], run: Callable[[], None], *, closed: bool) -> None:
    """A call of the code that ``run`` generates; ``closed`` if it can reach the caller's variables only through
    parameters."""
    fn = g.fn
    # Every expansion has its own storage, so arguments can be stored in their parameters directly.
    passed = [
        _prepare(g, param, arg, shared=closed and _can_share(i, params, args))
        for i, (param, arg) in enumerate(zip(params, args, strict=True))
        if not is_packet(param.variable.type)
    ]
    outs = [p for p in passed if p.out is not None]
    hidden = {p.variable: g.env.get(p.variable) for p in passed}
    for p in passed:
        g.env[p.variable] = p.at
    after = fn.label()
    if not outs:
        with g.jumping(returns=after, breaks=None, continues=None):
            run()
        fn.begin(after)
    else:
        outer, exits, rejects = g.jumps, fn.label(), fn.label()
        with g.jumping(returns=after, breaks=None, continues=None, exit=exits, reject=rejects):
            run()
        fn.begin(after)
        _copy_out(g, outs)
        done = fn.label()
        fn.br(done)
        for label, target in ((exits, outer.exit), (rejects, outer.reject)):
            if fn.is_target(label):
                fn.begin(label)
                _copy_out(g, outs)
                g.jump(target)
        fn.begin(done)
    for variable, before in hidden.items():
        if before is not None:
            g.env[variable] = before


def _copy_out(g: Gen, outs: Sequence[_Passed]) -> None:
    for p in outs:
        assert p.out is not None
        store_from(g, p.out, p.at)
        if p.out.mark is not None and p.variable in g.marks:
            g.fn.store(g.fn.load(g.marks[p.variable], 8), p.out.mark)


# --- functions and actions ---


def _run_call(g: Gen, e: ir.FunctionCall) -> Address | None:
    callee = e.callee
    result = None
    if not isinstance(t.strip(callee.returns), t.Void):
        result = g.storage(callee.returns)
        g.clear(result, callee.returns)

    def run() -> None:
        with g.jumping(result=result):
            g.stmt(callee.body)

    call(g, (*callee.params, *callee.data), e.args, run, closed=not callee.is_action)
    return result


def _call_value(g: Gen, e: ir.FunctionCall) -> Value:
    result = _run_call(g, e)
    return FALSE if result is None else g.load(result, e.callee.returns)


def _call_address(g: Gen, e: ir.FunctionCall) -> Address:
    result = _run_call(g, e)
    assert result is not None
    return result


# --- sub-blocks ---


def control_body(g: Gen, control: ir.Control) -> None:
    """A control's locals and body."""
    body(g, control.locals)
    g.stmt(control.body)


def _apply_block(g: Gen, s: ir.ApplyBlock) -> None:
    block = s.block

    def run() -> None:
        if isinstance(block, ir.Control):
            control_body(g, block)
        else:
            parser_body(g, block)

    call(g, block.params, s.args, run, closed=True)


VALUES: Mapping[type[ir.Expr], ExprHandler] = {ir.FunctionCall: _call_value}
ADDRESSES: Mapping[type[ir.Expr], AddressHandler] = {ir.FunctionCall: _call_address}
STATEMENTS: Mapping[type[ir.Stmt], StmtHandler] = {ir.ApplyBlock: _apply_block}
