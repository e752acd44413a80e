"""From a parsed program to ``ir.Program``: declarations in order, up to ``main`` and what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p4gen.p4 import ir
from p4gen.p4.check.scope import (
    BlockTypeOf,
    Context,
    ExternType,
    FunctionEntity,
    InstanceEntity,
    PackageInstance,
    ParamSig,
    Poison,
    TypeEntity,
    Unit,
)
from p4gen.p4.lower import functions, instances, statements, type_refs
from p4gen.p4.parse import ast
from p4gen.p4.parse.source import Reported
from p4gen.p4.types import Bits, Bool, Enum, Int, SerEnum, String, Type

# --- the program ---------------------------------------------------------------------------------


def elaborate(unit: Unit, program: ast.Program, source: str) -> ir.Program:
    """Check the whole program and lower what ``main`` is made of."""
    cx = Context(unit, unit.globals, "global")
    for decl in program.decls:
        try:
            handler = _DECLARE.get(type(decl))
            if handler is not None:
                handler(cx, decl)
        except Reported:
            cx.poison(decl.name, decl.at)
    main = unit.globals.names.get("main")
    blocks: dict[str, ir.Parser | ir.Control] = {}
    package, type_args = "", tuple[Type, ...]()
    if isinstance(main, InstanceEntity) and isinstance(main.value, PackageInstance):
        package, type_args = main.value.type.name, main.value.type.args
        _collect(main.value, "", blocks)
    elif main is not None and not isinstance(main, Poison | InstanceEntity | FunctionEntity):
        unit.reporter.error(main.at, "'main' must be an instance of a package")
    elif main is None and not unit.reporter.failed:
        unit.reporter.warn(program.at, "the program has no 'main' instance")
    if not unit.reporter.failed:
        _check_names(cx)
    lists = [list(found) for found in (unit.tables, unit.actions, unit.externs, unit.value_sets)]
    _check_unused(cx, program)
    unit.tables, unit.actions, unit.externs, unit.value_sets = lists  # type: ignore[assignment]
    return ir.Program(
        source, package, type_args, blocks, tuple(unit.errors), tuple(unit.tables), tuple(unit.actions),
        tuple(unit.externs), tuple(unit.value_sets), tuple(unit.headers),
        next((d.annotations for d in program.decls if isinstance(d, ast.Instance) and d.name == "main"), ()),
    )  # fmt: skip


def _check_names(cx: Context) -> None:
    """Different objects of one kind need different control-plane names (spec 18.3.3)."""
    for kind, items in (("table", cx.unit.tables), ("action", cx.unit.actions), ("extern", cx.unit.externs)):
        seen: dict[tuple[str, str], ir.Table | ir.Function | ir.ExternInstance] = {}
        for item in items:
            sort = item.extern if isinstance(item, ir.ExternInstance) else kind
            first = seen.setdefault((sort, item.name), item)
            # One declaration may make an action of one name in several places, but no state.
            again = first is not item and (kind != "action" or first.pos != item.pos)
            if again and item.name != "NoAction":
                at = next((o for o, p in cx.unit.reporter.source.known() if p == item.pos), 0)
                cx.unit.reporter.error(
                    at, f"'{item.name}' is already the control-plane name of another {kind}, at {first.pos}"
                )


def _collect(package: PackageInstance, prefix: str, blocks: dict[str, ir.Parser | ir.Control]) -> None:
    for name, value in package.blocks.items():
        if not isinstance(value, InstanceEntity):
            continue
        if isinstance(value.value, PackageInstance):
            _collect(value.value, f"{prefix}{name}.", blocks)
        elif isinstance(value.value, ir.Parser | ir.Control):
            blocks[prefix + name] = value.value


def _check_unused(cx: Context, program: ast.Program) -> None:
    """Check the bodies that no instance or call reached, with stand-ins for what they are given."""
    for decl in program.decls:
        entity = cx.scope.names.get(decl.name)
        try:
            if isinstance(decl, ast.ControlDecl | ast.ParserDecl) and isinstance(entity, TypeEntity):
                if id(decl) not in cx.unit.elaborated:
                    own = tuple(type_refs.type_var(entity, n) for n in decl.head.type_params)
                    type_ = type_refs.instantiate(entity, own)
                    assert isinstance(type_, BlockTypeOf)
                    params = type_refs.params(type_refs.bound_context(entity, own), decl.ctor)
                    if any(isinstance(p.type, Bits | Int) for p in params):
                        # Widths and indices may depend on them: no stand-in is sure to make sense.
                        continue
                    params += instances.extern_params(type_)
                    bound = [(p, value) for p in params if (value := _stand_in(cx, p)) is not None]
                    instances.elaborated(cx, type_, decl.name, bound, decl.at)
            elif isinstance(decl, ast.FunctionDecl) and isinstance(entity, FunctionEntity):
                if decl.body is None:
                    continue
                sig = type_refs.signature(entity.context, decl)
                functions.function(cx, entity, decl, sig.type_vars, decl.at)
        except Reported:
            continue


def _stand_in(cx: Context, p: ParamSig) -> InstanceEntity | ir.Expr | None:
    pos = cx.pos(p.at)
    match p.type:
        case Bits() | Int():
            return ir.Literal(p.type, pos, 1)
        case Bool():
            return ir.Literal(p.type, pos, True)
        case Enum(members=members):
            return ir.Literal(p.type, pos, members[0])
        case SerEnum(members=pairs):
            return ir.Literal(p.type, pos, pairs[0][1])
        case String():
            return ir.Literal(p.type, pos, "")
        case ExternType(name=name, args=args):
            return InstanceEntity(p.at, p.type, ir.ExternInstance(p.name, name, args, (), (), pos))
        case BlockTypeOf(kind="control"):
            body = ir.Block(pos, ())
            return InstanceEntity(p.at, p.type, ir.Control(p.name, (), (), (), body, pos))
        case BlockTypeOf():
            return InstanceEntity(p.at, p.type, ir.Parser(p.name, (), (), {}, pos))
    return None


# --- top-level declarations ----------------------------------------------------------------------


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
            type_refs.signature(cx, method, made)
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


_DECLARE: dict[type[ast.Decl], Callable[[Context, Any], None]] = {
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
