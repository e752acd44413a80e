"""Declarations: those of a program, and those in its parsers and controls (P4_16 specification 7.2, 10 to 14)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p4gen.p4.check.scope import Context, Entity, ExternType, FunctionEntity, TypeEntity
from p4gen.p4.lower import functions, instances, parsers, statements, tables, type_refs
from p4gen.p4.parse import ast, ast_table

# --- of a program --------------------------------------------------------------------------------


def _type(cx: Context, decl: ast.Decl) -> None:
    entity = TypeEntity(decl.at, decl, cx)
    previous = cx.scope.names.get(decl.name)
    if isinstance(decl, ast.ExternDecl) and not decl.methods and isinstance(previous, TypeEntity):
        return
    if isinstance(previous, TypeEntity) and isinstance(previous.decl, ast.ExternDecl) and not previous.decl.methods:
        del cx.scope.names[decl.name]
    cx.declare(decl.name, entity)
    params = type_refs.type_params(decl)
    type_refs.check_type_params(cx, params, decl.at)
    if isinstance(decl, ast.ControlDecl | ast.ParserDecl):
        taken = dict.fromkeys(params, decl.at)
        for p in (*decl.head.params, *decl.ctor):
            if p.name in taken:
                cx.unit.reporter.error(p.at, f"a second parameter '{p.name}'", (taken[p.name], "the first is here"))
            taken[p.name] = p.at
    made = type_refs.instantiate(entity, tuple(type_refs.type_var(entity, n) for n in params))
    if isinstance(decl, ast.Composite) and decl.kind == "header":
        cx.unit.headers.append(made)
    if isinstance(decl, ast.ExternDecl) and isinstance(made, ExternType):
        seen: dict[tuple[str, ...], int] = {}
        for method in decl.methods:
            key = (method.name, *(p.name for p in method.params))
            if key in seen:
                note = (seen[key], "it was declared here")
                cx.unit.reporter.error(method.at, f"'{method.name}' is already declared with these parameters", note)
            seen[key] = method.at
            if method.returns is not None and method.name == decl.name:
                cx.unit.reporter.error(method.at, f"the constructor of '{decl.name}' cannot have a result")
            for param in type_refs.signature(cx, method, made).params:
                if isinstance(param.type, ExternType) and param.type.entity is entity:
                    message = f"a parameter of a method of '{decl.name}' cannot be a '{decl.name}'"
                    cx.unit.reporter.error(param.at, message)
    elif isinstance(decl, ast.PackageDecl):
        type_refs.params(
            type_refs.bound_context(entity, tuple(type_refs.type_var(entity, n) for n in params)), decl.params
        )


def _typedef(cx: Context, decl: ast.Typedef) -> None:
    if not isinstance(decl.type, ast.TypeRef):
        _type(cx, decl.type)
    _type(cx, decl)


def _function(cx: Context, decl: ast.FunctionDecl) -> None:
    existing = cx.scope.names.get(decl.name)
    if isinstance(existing, FunctionEntity):
        for other in existing.overloads:
            if [p.name for p in other.params] == [p.name for p in decl.params]:
                cx.unit.reporter.fail(
                    decl.at, f"'{decl.name}' is already declared with these parameters", (other.at, "here")
                )
        existing.overloads.append(decl)
        entity = existing
    else:
        entity = FunctionEntity(decl.at, [decl], cx)
        cx.declare(decl.name, entity)
    sig = type_refs.signature(cx, decl)
    if decl.body is not None and not sig.type_vars:
        functions.function(cx, entity, decl, (), decl.at)


def _errors(cx: Context, decl: ast.ErrorDecl) -> None:
    for at, name in decl.members:
        if name in cx.unit.errors:
            note = (cx.unit.errors[name], "it was declared here")
            cx.unit.reporter.error(at, f"error.{name} is already declared", note)
        cx.unit.errors.setdefault(name, at)


def _match_kinds(cx: Context, decl: ast.MatchKindDecl) -> None:
    for at, name in decl.members:
        if name in cx.unit.match_kinds:
            note = (cx.unit.match_kinds[name], "it was declared here")
            cx.unit.reporter.error(at, f"match kind '{name}' is already declared", note)
        cx.unit.match_kinds.setdefault(name, at)


def _action(cx: Context, decl: ast.ActionDecl) -> None:
    cx.declare(decl.name, functions.action(cx, decl))


# --- in a parser or control ----------------------------------------------------------------------


def _variable(cx: Context, decl: ast.Variable) -> None:
    assert cx.builder is not None
    cx.builder.locals.append(statements.variable(cx, decl))


def _table(cx: Context, decl: ast_table.TableDecl) -> None:
    assert cx.builder is not None
    inside = cx.inner()
    # In its own declaration, a table's name is that of no value yet.
    inside.scope.names[decl.name] = Entity(decl.at)
    entity = tables.lower(inside, decl)
    cx.builder.tables.append(entity.table)
    cx.declare(decl.name, entity)


def _value_set(cx: Context, decl: ast.ValueSetDecl) -> None:
    cx.declare(decl.name, parsers.value_set(cx, decl))


DECLARATIONS: dict[type[ast.Decl], Callable[[Context, Any], None]] = {
    ast.Constant: statements.constant,
    ast.Composite: _type,
    ast.EnumDecl: _type,
    ast.Typedef: _typedef,
    ast.ExternDecl: _type,
    ast.PackageDecl: _type,
    ast.BlockType: _type,
    ast.ControlDecl: _type,
    ast.ParserDecl: _type,
    ast.FunctionDecl: _function,
    ast.ActionDecl: _action,
    ast.Instance: instances.declare_instance,
    ast.ErrorDecl: _errors,
    ast.MatchKindDecl: _match_kinds,
}
"""By class of node, at the top level of a program."""

LOCALS: dict[type[ast.Decl], Callable[[Context, Any], None]] = {
    ast.Constant: statements.constant,
    ast.Variable: _variable,
    ast.Instance: instances.declare_instance,
    ast.ActionDecl: _action,
    ast_table.TableDecl: _table,
    ast.ValueSetDecl: _value_set,
}
"""By class of node, in a parser or control."""
