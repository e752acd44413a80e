"""Functions, actions, and how blocks are applied (P4_16 specification 10, 14.1)."""

from __future__ import annotations

from dataclasses import replace

from p4gen.p4 import ir
from p4gen.p4.check.scope import (
    ActionEntity,
    BlockTypeOf,
    BoundType,
    Context,
    FunctionEntity,
    InstanceEntity,
    PackageType,
    ParamSig,
    Scope,
    Signature,
    VariableEntity,
)
from p4gen.p4.lower import bodies, type_refs
from p4gen.p4.parse import ast
from p4gen.p4.types import Int, String, Type, Void


def declare_params(cx: Context, params: tuple[ParamSig, ...], what: str) -> tuple[ir.Param, ...]:
    """Make the parameters' variables and declare them; ``in`` and directionless ones cannot be
    written (spec 6.8)."""
    made: list[ir.Param] = []
    for p in params:
        if p.optional and cx.place in ("function", "action"):
            cx.unit.reporter.error(p.at, "functions and actions cannot have optional parameters")
        if isinstance(p.type, BlockTypeOf | PackageType):
            cx.unit.reporter.error(p.at, f"parameter '{p.name}' cannot have type {p.type}")
        variable = ir.Variable(p.name, p.type, cx.pos(p.at))
        made.append(ir.Param(variable, p.direction, p.annotations))
        if p.direction == "in":
            cx.unit.frozen[variable] = f"an 'in' parameter of {what}"
        elif p.direction == "none":
            cx.unit.frozen[variable] = f"a directionless parameter of {what}"
        cx.declare(p.name, VariableEntity(p.at, variable, True))
    return tuple(made)


def function(
    cx: Context, entity: FunctionEntity, decl: ast.FunctionDecl, types: tuple[Type, ...], at: int
) -> ir.Function:
    """``decl`` lowered with these type arguments. Equal type arguments give the same object."""
    found = entity.made.get((decl, types))
    if found is not None:
        return found
    if id(decl) in cx.unit.active:
        cx.unit.reporter.fail(at, f"function '{decl.name}' calls itself", (decl.at, "it is declared here"))
    cx.unit.active.add(id(decl))
    try:
        scope = Scope(entity.context.scope)
        for name, type_ in zip(decl.type_params, types, strict=True):
            scope.names[name] = BoundType(0, type_)
        outer = entity.context.with_scope(scope)
        returns = type_refs.resolve(outer, decl.returns) if decl.returns is not None else Void()
        inner = replace(outer, scope=Scope(scope), place="function", returns=returns, in_loop=False)
        params = declare_params(inner, type_refs.params(inner, decl.params), f"function '{decl.name}'")
        assert decl.body is not None
        before = inner.unit.reporter.count
        body = bodies.block(inner, decl.body)
        clean = inner.unit.reporter.count == before
        if clean and not isinstance(returns, Void) and not bodies.always_leaves(body):
            inner.unit.reporter.error(decl.at, f"function '{decl.name}' does not return a value on every path")
        made = ir.Function(decl.name, params, (), returns, body, False, decl.annotations, cx.pos(decl.at))
    finally:
        cx.unit.active.discard(id(decl))
    entity.made[decl, types] = made
    return made


def action(cx: Context, decl: ast.ActionDecl) -> ActionEntity:
    """Lower an action in the block instance (or globally) that declares it."""
    sigs = type_refs.params(cx, decl.params)
    seen_data = False
    for p in sigs:
        if isinstance(p.type, Int | String):
            cx.unit.reporter.error(p.at, f"an action's parameter cannot have type {p.type}")
        if p.direction == "none":
            seen_data = True
        elif seen_data:
            cx.unit.reporter.error(p.at, f"parameter '{p.name}' has a direction and must come before those without one")
    inner = replace(cx.inner(), place="action", returns=Void(), in_loop=False)
    params = declare_params(inner, sigs, f"action '{decl.name}'")
    body = bodies.block(inner, decl.body)
    name = cx.full_name(decl.name, decl.annotations)
    made = ir.Function(
        name,
        tuple(p for p in params if p.direction != "none"),
        tuple(p for p in params if p.direction == "none"),
        Void(),
        body,
        True,
        decl.annotations,
        cx.pos(decl.at),
        cx.owner,
    )
    cx.unit.actions.append(made)
    return ActionEntity(decl.at, made, Signature(decl.name, (), sigs, Void(), cx, decl.at))


def block_signature(entity: InstanceEntity) -> Signature:
    """The signature with which a parser or control instance is applied."""
    type_ = entity.type
    assert isinstance(type_, BlockTypeOf)
    return Signature(type_.name, (), type_.params, Void(), type_.entity.context, type_.entity.at)
