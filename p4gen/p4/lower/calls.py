"""Calls: of functions, actions, methods, tables and blocks (P4_16 specification 8.17 to 8.20)."""

from __future__ import annotations

from typing import cast as type_cast

from p4gen.p4 import ir
from p4gen.p4.check import order
from p4gen.p4.check.scope import (
    ActionEntity,
    BlockTypeOf,
    Context,
    ExternType,
    FunctionEntity,
    InstanceEntity,
    PackageInstance,
    TableEntity,
    VariableEntity,
)
from p4gen.p4.lower import arguments, builtins, evaluate, externs, functions, inference, instances, type_refs
from p4gen.p4.parse import ast
from p4gen.p4.types import BOOL, Type, Void

Lowered = ir.Expr | ir.Stmt


def call(cx: Context, e: ast.CallOf) -> ir.Expr:
    """Lower a call where a value is expected; reports an error for a call that has none."""
    found = _call(cx, e)
    if isinstance(found, ir.Stmt):
        cx.unit.reporter.fail(e.at, "this call returns no value")
    return found


def call_statement(cx: Context, e: ast.CallOf) -> ir.Stmt:
    """Lower a call that is a statement; its value, if it has one, is dropped."""
    found = _call(cx, e)
    return found if isinstance(found, ir.Stmt) else ir.Evaluate(cx.pos(e.at), found)


def table_result(cx: Context, e: ast.CallOf, name: str, at: int, in_switch: bool = False) -> ir.Expr | None:
    """``t.apply().hit``, ``miss`` and ``action_run``; None if ``e`` does not apply a table. ``action_run`` is allowed
    only in ``switch``."""
    callee = e.callee
    if not isinstance(callee, ast.Member) or callee.name != "apply" or not isinstance(callee.base, ast.Name):
        return None
    entity = cx.scope.find(callee.base.name, callee.base.at)
    if not isinstance(entity, TableEntity):
        return None
    if name not in ("hit", "miss", "action_run"):
        cx.unit.reporter.fail(at, f"the result of applying a table has no member '{name}'")
    if name == "action_run" and not in_switch:
        cx.unit.reporter.fail(at, "'action_run' can be used only as the expression of a 'switch'")
    _check_apply(cx, e)
    type_: Type = entity.result if name == "action_run" else BOOL
    return ir.ApplyTable(type_, cx.pos(e.callee.at), entity.table, type_cast(ir.ApplyResult, name))


def _check_apply(cx: Context, e: ast.CallOf) -> None:
    if e.args:
        cx.unit.reporter.fail(e.args[0].at, "a table's apply takes no arguments")
    if cx.place != "apply":
        cx.unit.reporter.fail(e.at, f"a table cannot be applied in {_PLACES[cx.place]}")


_PLACES = {
    "global": "a declaration", "parser": "a parser", "state": "a parser", "control": "a declaration",
    "apply": "a control", "action": "an action", "function": "a function", "table": "a table's declaration",
}  # fmt: skip


def _call(cx: Context, e: ast.CallOf) -> Lowered:
    callee = e.callee
    if isinstance(callee, ast.Name):
        entity = evaluate.find(cx, callee.name, callee.at, callee.rooted)
        if isinstance(entity, FunctionEntity):
            return _function(cx, e, entity)
        if isinstance(entity, ActionEntity):
            return _action(cx, e, entity)
        note = (entity.at, f"'{callee.name}' was declared here")
        cx.unit.reporter.fail(callee.at, f"'{callee.name}' cannot be called", note)
    if isinstance(callee, ast.Member):
        return _method(cx, e, callee)
    if isinstance(callee, ast.TypeName):
        cx.unit.reporter.fail(e.at, "instances are made by declarations, not in expressions")
    cx.unit.reporter.fail(e.at, "this cannot be called")


def _method(cx: Context, e: ast.CallOf, callee: ast.Member) -> Lowered:
    base = callee.base
    if isinstance(base, ast.TypeName):
        return _on_type(cx, e, callee, base)
    if isinstance(base, ast.Name):
        entity = evaluate.find(cx, base.name, base.at, base.rooted)
        if isinstance(entity, TableEntity):
            if callee.name != "apply":
                cx.unit.reporter.fail(callee.at, f"a table has no method '{callee.name}'")
            _check_apply(cx, e)
            return ir.ApplyTable(Void(), cx.pos(callee.at), entity.table, None)
        if isinstance(entity, InstanceEntity):
            return _on_instance(cx, e, callee, entity)
        if isinstance(entity, VariableEntity) and isinstance(entity.variable.type, ExternType):
            return builtins.packet(cx, e, callee, entity.variable.type)
    return builtins.method(cx, e, callee, evaluate.lower(cx, base))


# --- functions and actions -----------------------------------------------------------------------


def _function(cx: Context, e: ast.CallOf, entity: FunctionEntity) -> Lowered:
    overloads = [d for d in entity.overloads if d.at <= e.at]
    decl = arguments.choose(cx, e.at, overloads[0].name, overloads, e.args)
    sig = type_refs.signature(entity.context, decl)
    pos = cx.pos(e.callee.at)
    if decl.body is None:
        builtin = builtins.core_function(cx, e, decl, sig)
        if builtin is not None:
            return builtin
        externs.warn_deprecated(cx, e.at, decl.name, decl.annotations)
    given = tuple(type_refs.resolve(cx, a) for a in e.type_args)
    bindings, args = arguments.lower(cx, e.at, sig, given, e.args, constants=decl.body is None)
    returns = inference.substitute(sig.returns, bindings)
    types = tuple(bindings[v] for v in sig.type_vars)
    in_turn = arguments.order(sig, e.args)
    if decl.body is None:
        return order.evaluated(
            decl.name, pos, returns, args, in_turn,
            lambda passed: ir.ExternCall(returns, pos, None, decl.name, types, passed, decl.annotations),
            decl.annotations,
        )  # fmt: skip
    callee = functions.function(cx, entity, decl, types, e.at)
    return order.evaluated(
        decl.name,
        pos,
        returns,
        args,
        in_turn,
        lambda passed: ir.FunctionCall(returns, pos, callee, passed),
        decl.annotations,
    )


def _action(cx: Context, e: ast.CallOf, entity: ActionEntity) -> Lowered:
    if cx.place not in ("apply", "action"):
        cx.unit.reporter.fail(e.at, f"an action cannot be called in {_PLACES[cx.place]}")
    if e.type_args:
        cx.unit.reporter.fail(e.at, "an action takes no type arguments")
    sig, pos = entity.signature, cx.pos(e.callee.at)
    _, args = arguments.lower(cx, e.at, sig, (), e.args, constants=False)
    return order.evaluated(
        sig.name, pos, sig.returns, args, arguments.order(sig, e.args),
        lambda passed: ir.FunctionCall(sig.returns, pos, entity.function, passed),
    )  # fmt: skip


# --- instances -----------------------------------------------------------------------------------


def _on_instance(cx: Context, e: ast.CallOf, callee: ast.Member, entity: InstanceEntity) -> Lowered:
    value = entity.value
    if isinstance(value, ir.ExternInstance):
        return externs.extern_method(cx, e, callee, value, entity.type)
    if isinstance(value, PackageInstance) or callee.name != "apply":
        cx.unit.reporter.fail(callee.at, f"{entity.type} has no method '{callee.name}'")
    return apply_block(cx, e, entity)


def apply_block(cx: Context, e: ast.CallOf, entity: InstanceEntity) -> Lowered:
    """``instance.apply(…)`` of a parser or control."""
    entity, given = instances.applied(cx, entity, e.args, e.at)
    block = entity.value
    assert isinstance(block, ir.Parser | ir.Control)
    wanted = "state" if isinstance(block, ir.Parser) else "apply"
    if cx.place != wanted:
        kind = "parser" if isinstance(block, ir.Parser) else "control"
        cx.unit.reporter.fail(e.at, f"a {kind} cannot be applied in {_PLACES[cx.place]}")
    sig = functions.block_signature(entity)
    _, args = arguments.lower(cx, e.at, sig, (), given, constants=False)
    pos = cx.pos(e.at)
    return order.evaluated(
        sig.name, pos, Void(), args, arguments.order(sig, given), lambda passed: ir.ApplyBlock(pos, block, passed)
    )


def _on_type(cx: Context, e: ast.CallOf, callee: ast.Member, base: ast.TypeName) -> Lowered:
    type_ = type_refs.resolve(cx, base.type)
    size = builtins.size_of(cx, callee, type_, cx.pos(callee.at))
    if size is not None:
        return size
    named = base.type.base if isinstance(base.type, ast.SpecializedType) else base.type
    declared = isinstance(type_, BlockTypeOf) and isinstance(type_.entity.decl, ast.ControlDecl | ast.ParserDecl)
    if callee.name == "apply" and isinstance(named, ast.NamedType) and isinstance(type_, BlockTypeOf) and declared:
        return apply_block(cx, e, instances.direct_instance(cx, type_, named.name, e.args, base.at))
    cx.unit.reporter.fail(callee.at, f"{type_} has no method '{callee.name}'")
