"""From a parsed program to ``ir.Program``: all declarations in order, then ``main`` and its parts."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from p4gen.p4 import ir
from p4gen.p4.check.scope import (
    BlockTypeOf,
    Context,
    ExternType,
    FunctionEntity,
    Handlers,
    InstanceEntity,
    PackageInstance,
    PackageType,
    ParamSig,
    Poison,
    TypeEntity,
    Unit,
)
from p4gen.p4.live import Live
from p4gen.p4.lower import declarations, expressions, functions, instances, statements, type_refs
from p4gen.p4.parse import ast
from p4gen.p4.parse.source import Reported, Reporter
from p4gen.p4.types import Bits, Bool, Enum, Int, SerEnum, String, Type

HANDLERS = Handlers(expressions.EXPRESSIONS, statements.STATEMENTS, declarations.LOCALS)


def elaborate(reporter: Reporter, program: ast.Program, source: str) -> tuple[ir.Program, dict[str, int]]:
    """Check the whole program and lower ``main`` and its parts. Returns the program and the offsets of global
    declarations."""
    unit = Unit(reporter, HANDLERS)
    cx = Context(unit, unit.globals, "global")
    unit.pipes = next((len(d.args) for d in program.decls if isinstance(d, ast.Instance) and d.name == "main"), 1)
    for decl in program.decls:
        try:
            handler = declarations.DECLARATIONS.get(type(decl))
            if handler is not None:
                handler(cx, decl)
        except Reported:
            cx.poison(decl.name, decl.at)
    main = unit.globals.names.get("main")
    blocks: dict[str, ir.Parser | ir.Control] = {}
    package, arch, type_args = "", "", tuple[Type, ...]()
    pipes: dict[str, str] = {}
    if isinstance(main, InstanceEntity) and isinstance(main.value, PackageInstance):
        package, type_args = main.value.type.name, main.value.type.args
        arch = _declared(main.value.type)
        _collect(main.value, "", blocks)
        values = {n: v.value for n, v in main.value.blocks.items() if isinstance(v, InstanceEntity)}
        pipes = {n: v.name for n, v in values.items() if isinstance(v, PackageInstance)}
    elif main is not None and not isinstance(main, Poison | InstanceEntity | FunctionEntity):
        unit.reporter.error(main.at, "'main' must be an instance of a package")
    elif main is None and not unit.reporter.failed and not unit.has_target:
        unit.reporter.warn(program.at, "the program has no 'main' instance")
    if not unit.reporter.failed:
        _check_names(cx, blocks.values())
    lists = [list(found) for found in (unit.tables, unit.actions, unit.externs, unit.value_sets)]
    _check_unused(cx, program)
    unit.tables, unit.actions, unit.externs, unit.value_sets = lists  # type: ignore[assignment]
    lowered = ir.Program(
        source, package, type_args, blocks, tuple(unit.errors), tuple(unit.tables), tuple(unit.actions),
        tuple(unit.externs), tuple(unit.value_sets), tuple(unit.headers),
        next((d.annotations for d in program.decls if isinstance(d, ast.Instance) and d.name == "main"), ()),
        arch, pipes,
        tuple(str(o) for d in program.decls for a in d.annotations if a.name == "command_line" for o in a.args),
    )  # fmt: skip
    return lowered, {name: entity.at for name, entity in unit.globals.names.items()}


def _declared(package: PackageType) -> str:
    """The architecture that a package's ``@pkginfo`` names."""
    pairs = (p for a in package.entity.decl.annotations if a.name == "pkginfo" for p in a.pairs)
    return next((str(value).lower() for key, value in pairs if key == "arch"), "")


def _applied(blocks: Iterable[ir.Parser | ir.Control]) -> set[ir.Table]:
    """The tables that live code applies."""
    found: set[ir.Table] = set()
    for block in blocks:
        found |= Live.of(block).tables.keys()
    return found


def _check_names(cx: Context, blocks: Collection[ir.Parser | ir.Control]) -> None:
    """Different objects of one kind need different control-plane names (spec 18.3.3)."""
    for kind, items in (("table", tuple(cx.unit.tables)), ("action", cx.unit.actions), ("extern", cx.unit.externs)):
        seen: dict[tuple[str, str], ir.Table | ir.Function | ir.ExternInstance] = {}
        for item in items:
            sort = item.extern if isinstance(item, ir.ExternInstance) else kind
            first = seen.setdefault((sort, item.name), item)
            # One declaration may make an action of one name in several places, but no state.
            again = first is not item and (kind != "action" or first.pos != item.pos)
            if again and isinstance(first, ir.Table) and isinstance(item, ir.Table):
                applied = _applied(blocks)
                if item not in applied or first not in applied:
                    # As with p4c, a table that is never applied takes no name.
                    dead = first if item in applied else item
                    cx.unit.tables.remove(dead)
                    seen[sort, item.name] = item if dead is first else first
                    continue
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
    """Check the bodies that no instance or call reached, with substitute values for their parameters."""
    for decl in program.decls:
        entity = cx.scope.names.get(decl.name)
        try:
            if isinstance(decl, ast.ControlDecl | ast.ParserDecl):
                if not isinstance(entity, TypeEntity) or entity.decl is not decl:
                    continue  # another declaration has its name, which is an error
                if id(decl) not in cx.unit.elaborated:
                    own = tuple(type_refs.type_var(entity, n) for n in decl.head.type_params)
                    type_ = type_refs.instantiate(entity, own)
                    assert isinstance(type_, BlockTypeOf)
                    params = type_refs.params(type_refs.bound_context(entity, own), decl.ctor)
                    if any(isinstance(p.type, Bits | Int) for p in params):
                        # Widths and indices may depend on them, so no substitute value is certain to be valid.
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
