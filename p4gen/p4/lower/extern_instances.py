"""Instances of externs: constructor arguments, and the bodies of abstract methods (P4_16 specification 11.3.1)."""

from __future__ import annotations

from dataclasses import replace

from p4gen.p4 import ir
from p4gen.p4.check.scope import Context, DontCareType, ExternType, InstanceEntity, Scope, Signature
from p4gen.p4.lower import arguments, bodies, externs, functions, type_refs
from p4gen.p4.parse import ast
from p4gen.p4.parse.source import Reported
from p4gen.p4.types import Annotation, Type, Void


def extern_instance(
    cx: Context,
    type_: Type,
    name: str,
    args: tuple[ast.Argument, ...],
    annotations: tuple[Annotation, ...],
    at: int,
    owner: str,
    aliased: bool = False,
    body: tuple[ast.Decl, ...] | None = None,
) -> InstanceEntity:
    """An instance of an extern; its type arguments are inferred where they are not given."""
    if not isinstance(type_, ExternType):
        cx.unit.reporter.fail(at, f"{type_} is not an extern")
    decl = type_.entity.decl
    assert isinstance(decl, ast.ExternDecl)
    constructors = [m for m in decl.methods if m.returns is None]
    if not constructors:
        cx.unit.reporter.fail(at, f"extern {decl.name} has no constructor", (decl.at, "it is declared here"))
    chosen = arguments.choose(cx, at, decl.name, constructors, args)
    externs.warn_deprecated(cx, at, decl.name, decl.annotations)
    for annotation in chosen.annotations:
        if annotation.name == "deprecated":
            reason = f": {annotation.args[0]}" if annotation.args else ""
            cx.unit.reporter.warn(at, f"this constructor of '{decl.name}' is deprecated{reason}")
    inside, args = _with_instances(cx, name, args, owner)
    own = tuple(type_refs.type_var(type_.entity, n) for n in type_refs.type_params(decl))
    sig = type_refs.signature(type_.entity.context, chosen, type_)
    if type_.args == own and own:
        open_sig = replace(sig, type_vars=own)
        bindings, made = arguments.lower(inside, at, open_sig, (), args, constants=True)
        resolved = type_refs.instantiate(type_.entity, tuple(bindings[v] for v in own))
        assert isinstance(resolved, ExternType)
        type_ = resolved
    else:
        _, made = arguments.lower(inside, at, sig, (), args, constants=True)
    for method in decl.methods:
        type_refs.signature(type_.entity.context, method, type_)
    given = {p.name: _value(a.expr) for a, p in zip(made, sig.params, strict=True) if a.expr is not None}
    single = tuple(v for v in given.values() if isinstance(v, int | bool | str))
    methods: dict[str, ir.Function] = {}
    pos = cx.pos(at)
    found = ir.ExternInstance(name, decl.name, type_.args, single, annotations, pos, owner, aliased, given, methods)
    entity = InstanceEntity(at, type_, found)
    if body is not None or any(m.abstract for m in decl.methods):
        methods.update(_implementations(cx, decl, entity, body, at))
    cx.unit.externs.append(found)
    return entity


def _value(e: ir.Expr) -> ir.ConstructorValue:
    match e:
        case ir.Literal(value=value):
            return value
        case ir.InstanceRef(instance=instance):
            return instance
        case ir.Aggregate(elements=elements):
            return tuple(map(_value, elements))
    raise AssertionError(e)


def _with_instances(
    cx: Context, name: str, args: tuple[ast.Argument, ...], owner: str
) -> tuple[Context, tuple[ast.Argument, ...]]:
    """Make the instances that arguments construct on the spot, and replace each by a name that stands for it."""
    inside = cx.inner()
    found: list[ast.Argument] = []
    for i, arg in enumerate(args):
        e = arg.value
        if isinstance(e, ast.CallOf) and isinstance(e.callee, ast.TypeName):
            type_ = type_refs.resolve(cx, e.callee.type)
            if isinstance(type_, ExternType):
                made = extern_instance(cx, type_, f"{name}.{arg.name or i}", e.args, (), e.at, owner)
                # No name that a program declares has a space.
                inside.scope.names[f"argument {i}"] = made
                arg = replace(arg, value=ast.Name(e.at, f"argument {i}"))  # noqa: PLW2901 - the same argument
        found.append(arg)
    return inside, tuple(found)


# --- abstract methods ----------------------------------------------------------------------------


def _implementations(
    cx: Context, decl: ast.ExternDecl, entity: InstanceEntity, body: tuple[ast.Decl, ...] | None, at: int
) -> dict[str, ir.Function]:
    abstract = {m.name: m for m in decl.methods if m.abstract}
    note = (decl.at, f"extern {decl.name} is declared here")
    if body is not None and not abstract:
        cx.unit.reporter.fail(at, f"extern {decl.name} has no abstract methods", note)
    inside = cx.with_scope(Scope(cx.scope))
    inside.declare("this", InstanceEntity(0, entity.type, entity.value))
    found: dict[str, ir.Function] = {}
    failed: set[str] = set()
    for item in body or ():
        try:
            if isinstance(item, ast.Instance):
                _local_instance(inside, item)
            elif item.name not in abstract or not isinstance(item, ast.FunctionDecl):
                cx.unit.reporter.fail(item.at, f"extern {decl.name} has no abstract method '{item.name}'", note)
            elif item.name in found or item.name in failed:
                cx.unit.reporter.fail(item.at, f"a second implementation of '{item.name}'")
            else:
                found[item.name] = _implementation(inside, abstract[item.name], entity, item)
        except Reported:
            failed.add(item.name)
    for method in abstract.values():
        optional = any(a.name == "optional" for a in method.annotations)
        if not optional and method.name not in found and not failed:
            where = (method.at, f"'{method.name}' is declared here")
            cx.unit.reporter.fail(
                at, f"an instance of {decl.name} needs an implementation of '{method.name}': … name = {{ … }};", where
            )
    return found


def _local_instance(cx: Context, decl: ast.Instance) -> None:
    type_ = type_refs.resolve(cx, decl.type)
    name = cx.full_name(decl.name, decl.annotations)
    made = extern_instance(cx, type_, name, decl.args, decl.annotations, decl.at, cx.owner, body=decl.body)
    cx.declare(decl.name, made)


def _implementation(
    cx: Context, method: ast.FunctionDecl, entity: InstanceEntity, decl: ast.FunctionDecl
) -> ir.Function:
    """The body that an instance gives to an abstract method."""
    type_, instance = entity.type, entity.value
    assert isinstance(type_, ExternType)
    assert isinstance(instance, ir.ExternInstance)
    if decl.type_params:
        cx.unit.reporter.fail(decl.at, "the implementation of an abstract method cannot be generic")
    wanted = type_refs.signature(type_.entity.context, method, type_)
    sig = type_refs.signature(cx, decl)
    _check_signature(cx, wanted, sig, decl)
    inner = replace(cx.inner(), place="function", returns=sig.returns, in_loop=False)
    params = functions.declare_params(inner, sig.params, f"'{decl.name}'")
    assert decl.body is not None
    before = cx.unit.reporter.count
    body = bodies.block(inner, decl.body)
    clean = cx.unit.reporter.count == before
    if clean and not isinstance(sig.returns, Void) and not bodies.always_leaves(body):
        cx.unit.reporter.error(decl.at, f"'{decl.name}' does not return a value on every path")
    name = f"{instance.name}.{decl.name}"
    return ir.Function(
        name, params, (), sig.returns, body, False, decl.annotations, cx.pos(decl.at), cx.owner
    )  # fmt: skip


def _check_signature(cx: Context, wanted: Signature, sig: Signature, decl: ast.FunctionDecl) -> None:
    """Parameters correspond by position; optional ones at the end may be left out."""
    note = (wanted.at, f"'{wanted.name}' is declared here")
    if len(sig.params) > len(wanted.params) or not all(p.optional for p in wanted.params[len(sig.params) :]):
        least = max((i for i, p in enumerate(wanted.params, 1) if not p.optional), default=0)
        most = len(wanted.params)
        takes = str(most) if least == most else f"{least} to {most}"
        cx.unit.reporter.fail(decl.at, f"'{decl.name}' has {takes} parameters, not {len(sig.params)}", note)
    for p, w in zip(sig.params, wanted.params, strict=False):
        if p.direction != w.direction:
            cx.unit.reporter.fail(p.at, f"parameter '{p.name}' must be '{w.direction}', not '{p.direction}'", note)
        if p.type != w.type and not isinstance(w.type, DontCareType):
            cx.unit.reporter.fail(p.at, f"parameter '{p.name}' has type {p.type}, but {w.type} is needed", note)
    if sig.returns != wanted.returns and not isinstance(wanted.returns, DontCareType):
        cx.unit.reporter.fail(decl.at, f"'{decl.name}' returns {sig.returns}, but {wanted.returns} is needed", note)
