"""Instances of parsers, controls, externs and packages, each with a body of its own (P4_16 specification 18)."""

from __future__ import annotations

from dataclasses import replace

from p4gen.p4 import ir
from p4gen.p4.check import convert
from p4gen.p4.check.scope import (
    BlockTypeOf,
    BoundType,
    Builder,
    ConstantEntity,
    Context,
    Entity,
    ExternType,
    InstanceEntity,
    PackageInstance,
    PackageType,
    ParamSig,
    PendingBlock,
    Scope,
    Signature,
)
from p4gen.p4.lower import arguments, bodies, evaluate, functions, inference, parsers, type_refs
from p4gen.p4.lower.extern_instances import extern_instance
from p4gen.p4.parse import ast
from p4gen.p4.parse.source import Reported
from p4gen.p4.types import Annotation, Type, Void

_PIPES = frozenset({"Pipeline", "MultiParserPipeline"})
_PARSERS = frozenset({"IngressParsers", "EgressParsers"})
"""Packages of TNA. Names of several pipelines precede the control-plane names of what they hold. A parser among several
is named for their instance and for the package's parameter."""

# --- instances -----------------------------------------------------------------------------------


def declare_instance(cx: Context, decl: ast.Instance) -> None:
    """``Type(args) name;`` (spec 11.3)."""
    type_ = type_refs.resolve(cx, decl.type)
    if decl.body is not None and not isinstance(type_, ExternType):
        cx.unit.reporter.fail(decl.at, f"only an instance of an extern can implement methods, not one of {type_}")
    if isinstance(type_, BlockTypeOf):
        if cx.place == "global":
            cx.unit.reporter.fail(decl.at, f"a {type_.kind} cannot be instantiated at the top level")
        if cx.place != type_.kind and type_.entity.decl is not None:
            cx.unit.reporter.fail(decl.at, f"a {type_.kind} cannot be instantiated in a {cx.place}")
    if decl.name == "main" and cx.place == "global" and not isinstance(type_, PackageType):
        cx.unit.reporter.fail(decl.at, f"'main' must be an instance of a package, not of {type_}")
    if isinstance(type_, ExternType):
        name = cx.full_name(decl.name, decl.annotations)
        aliased = type_refs.is_alias(cx, decl.type)
        made = extern_instance(
            cx, type_, name, decl.args, decl.annotations, decl.at, cx.owner, aliased, decl.body
        )  # fmt: skip
    else:
        made = construct(cx, type_, decl.name, decl.args, decl.annotations, decl.at)
    made.at = decl.at
    cx.declare(decl.name, made)


def construct(
    cx: Context,
    type_: Type,
    name: str,
    args: tuple[ast.Argument, ...],
    annotations: tuple[Annotation, ...],
    at: int,
    wanted: Type | None = None,
) -> InstanceEntity:
    """An instance of whatever kind ``type_`` is, named ``name`` here."""
    if isinstance(type_, ExternType):
        return extern_instance(cx, type_, cx.full_name(name, annotations), args, annotations, at, cx.owner)
    if isinstance(type_, PackageType):
        return package_instance(cx, type_, name, args, at)
    if isinstance(type_, BlockTypeOf) and isinstance(type_.entity.decl, ast.ControlDecl | ast.ParserDecl):
        return instance(cx, type_, name, args, at, annotations, wanted)
    cx.unit.reporter.fail(at, f"type {type_} cannot be instantiated")


def package_instance(
    cx: Context, type_: PackageType, name: str, args: tuple[ast.Argument, ...], at: int
) -> InstanceEntity:
    """An instance of a package: its blocks, checked against the package's parameters."""
    entity = type_.entity
    decl = entity.decl
    assert isinstance(decl, ast.PackageDecl)
    own = tuple(type_refs.type_var(entity, n) for n in decl.type_params)
    scope = Scope(entity.context.scope)
    for variable in own:
        scope.names[variable.name] = BoundType(0, variable)
    sig = Signature(
        decl.name,
        own,
        type_refs.params(entity.context.with_scope(scope), decl.params),
        Void(),
        entity.context,
        decl.at,
    )
    given = arguments.match(cx, at, sig, args)
    bindings: inference.Bindings = {}
    fixed = dict(zip(own, type_.args, strict=True)) if type_.args != own else {}
    blocks: dict[str, InstanceEntity | ir.Expr | None] = {}
    for p, source in zip(sig.params, given, strict=True):
        if source is None:
            blocks[p.name] = None
            continue
        inside = cx
        if type_.name in _PARSERS:
            inside = replace(cx, prefix=f"{name}.{p.name}")
        elif type_.name in _PIPES and cx.unit.pipes > 1:
            inside = replace(cx, prefix=name)
        wanted = replace(p, type=inference.substitute(p.type, fixed))
        blocks[p.name] = constructor_arg(inside, wanted, source, bindings)
    bindings.update(fixed)
    resolved = type_refs.instantiate(entity, tuple(bindings.get(v, v) for v in own)) if own else type_
    assert isinstance(resolved, PackageType)
    for p in sig.params:
        unknown = [v.name for v in own if v not in bindings and inference.mentions(p.type, v)]
        if blocks[p.name] is None and p.default is not None and unknown:
            message = f"cannot infer type parameter '{unknown[0]}' of '{decl.name}'; give it explicitly"
            cx.unit.reporter.fail(at, message, (p.at, f"parameter '{p.name}' needs it"))
    return InstanceEntity(at, resolved, PackageInstance(name, resolved, blocks))


def constructor_arg(cx: Context, p: ParamSig, e: ast.Expr, bindings: inference.Bindings) -> InstanceEntity | ir.Expr:
    """A constructor's argument: an instance, or a compile-time value (spec 18.2)."""
    found = _instance_arg(cx, p, e, inference.substitute(p.type, bindings))
    if found is None:
        value = evaluate.lower(cx, e)
        inference.unify(p.type, value.type, bindings)
        value = convert.coerce(cx, value, inference.substitute(p.type, bindings), e.at, f"argument '{p.name}'")
        if not evaluate.is_constant(value):
            cx.unit.reporter.fail(e.at, f"argument '{p.name}' must be a compile-time constant")
        return value
    if isinstance(p.type, BlockTypeOf) and isinstance(found.type, BlockTypeOf):
        problem = inference.unify_blocks(p.type, found.type, bindings)
        if problem is not None:
            cx.unit.reporter.fail(e.at, problem, (p.at, f"for parameter '{p.name}'"))
    else:
        inference.unify(p.type, found.type, bindings)
        wanted = inference.substitute(p.type, bindings)
        if wanted != found.type and not inference.fits(wanted, found.type):
            cx.unit.reporter.fail(e.at, f"argument '{p.name}' is a {found.type}, but a {wanted} is needed")
    return found


def _instance_arg(cx: Context, p: ParamSig, e: ast.Expr, wanted: Type) -> InstanceEntity | None:
    if isinstance(e, ast.Name):
        entity = evaluate.find(cx, e.name, e.at, e.rooted)
        return entity if isinstance(entity, InstanceEntity) else None
    if isinstance(e, ast.CallOf) and isinstance(e.callee, ast.TypeName):
        type_ = type_refs.resolve(cx, e.callee.type)
        name = str(e.callee.type.name) if isinstance(e.callee.type, ast.NamedType) else str(type_)
        if isinstance(type_, PackageType):
            name = p.name
        return construct(cx, type_, name, e.args, (), e.at, wanted)
    return None


# --- parsers and controls ------------------------------------------------------------------------


def instance(
    cx: Context,
    type_: BlockTypeOf,
    name: str,
    args: tuple[ast.Argument, ...],
    at: int,
    annotations: tuple[Annotation, ...] = (),
    wanted: Type | None = None,
) -> InstanceEntity:
    """A parser or control instance: constructor arguments bound, body lowered.

    Type arguments of a generic one that are not given are inferred from the constructor's arguments
    and from ``wanted``, the type of block that is needed.
    """
    entity = type_.entity
    decl = entity.decl
    assert isinstance(decl, ast.ControlDecl | ast.ParserDecl)
    generic = type_refs.bound_context(entity, type_.args)
    params = type_refs.params(generic, decl.ctor)
    bindings: inference.Bindings = {}
    if isinstance(wanted, BlockTypeOf) and type_.args:
        inference.unify_blocks(type_, wanted, bindings)
    sig = Signature(decl.name, (), params, Void(), entity.context, decl.at)
    given = arguments.match(cx, at, sig, args)
    bound: list[tuple[ParamSig, InstanceEntity | ir.Expr]] = []
    for p, source in zip(params, given, strict=True):
        if source is None and p.default is None:
            cx.unit.reporter.fail(at, f"no argument for parameter '{p.name}' of '{decl.name}'")
        where, e = (cx, source) if source is not None else (entity.context, p.default)
        assert e is not None
        bound.append((p, constructor_arg(where, p, e, bindings)))
    resolved = inference.substitute(type_, bindings)
    assert isinstance(resolved, BlockTypeOf)
    _check_inferred(cx, resolved, at)
    # A block made where no block is around it is named for its declaration, as p4c does.
    full = cx.full_name(name, annotations)
    if cx.builder is None:
        several = isinstance(decl, ast.ParserDecl) and "." in cx.prefix
        full = cx.prefix if several else cx.full_name(decl.name, ())
    if extern_params(resolved):
        pending = PendingBlock(resolved, full, bound, [len(items) for items in cx.unit.lists])
        cx.unit.pending.append(pending)
        return InstanceEntity(at, resolved, pending)
    return elaborated(cx, resolved, full, bound, at)


def direct_instance(
    cx: Context, type_: BlockTypeOf, name: str, args: tuple[ast.Argument, ...], at: int
) -> InstanceEntity:
    """The nameless instance of ``Type.apply(args)`` (spec 14.5.1, 12.12)."""
    own = tuple(type_refs.type_var(type_.entity, n) for n in type_refs.type_params(type_.entity.decl))
    if own and type_.args == own:
        sig = Signature(type_.name, own, type_.params, Void(), type_.entity.context, type_.entity.at)
        bindings, _ = arguments.lower(cx, at, sig, (), args, constants=False)
        inferred = inference.substitute(type_, bindings)
        assert isinstance(inferred, BlockTypeOf)
        type_ = inferred
    return instance(cx, type_, name, (), at)


def extern_params(type_: BlockTypeOf) -> tuple[ParamSig, ...]:
    """Run-time parameters that are externs, packets excepted."""
    packets = ("packet_in", "packet_out")
    return tuple(p for p in type_.params if isinstance(p.type, ExternType) and p.type.name not in packets)


def applied(
    cx: Context, entity: InstanceEntity, args: tuple[ast.Argument, ...], at: int
) -> tuple[InstanceEntity, tuple[ast.Argument, ...]]:
    """The block that is applied with ``args``, and the arguments that remain for run time.

    Externs do not remain: they become part of the block, as constructor arguments do.
    """
    pending = entity.value
    if not isinstance(pending, PendingBlock):
        return entity, args
    given = arguments.match(cx, at, functions.block_signature(entity), args)
    externs = extern_params(pending.type)
    chosen: list[tuple[ParamSig, InstanceEntity | ir.Expr]] = []
    left: list[ast.Argument] = []
    for p, e in zip(pending.type.params, given, strict=True):
        if e is not None and p in externs:
            chosen.append((p, constructor_arg(cx, p, e, {})))
        elif e is not None:
            left.append(ast.Argument(e.at, p.name, e))
    left.sort(key=lambda argument: argument.at)
    values: list[object] = [v.value for _, v in chosen if isinstance(v, InstanceEntity)]
    if pending.made is None:
        before = [len(items) for items in cx.unit.lists]
        pending.made = elaborated(cx, pending.type, pending.name, [*pending.bound, *chosen], at)
        pending.externs = values
        _move(cx, pending, before)
    elif pending.externs != values:
        cx.unit.reporter.fail(at, f"'{pending.name}' is applied with different externs here; make a second instance")
    return pending.made, tuple(left)


def _move(cx: Context, pending: PendingBlock, before: list[int]) -> None:
    """Move what was declared since the lists had lengths ``before`` to where ``pending`` was declared."""
    later = cx.unit.pending[cx.unit.pending.index(pending) + 1 :]
    for i, (items, end) in enumerate(zip(cx.unit.lists, before, strict=True)):
        new = items[end:]
        del items[end:]
        items[pending.places[i] : pending.places[i]] = new
        for other in later:
            other.places[i] += len(new)


def _check_inferred(cx: Context, type_: BlockTypeOf, at: int) -> None:
    own = type_refs.type_params(type_.entity.decl)
    for name, arg in zip(own, type_.args, strict=True):
        if arg is type_refs.type_var(type_.entity, name):
            cx.unit.reporter.fail(at, f"cannot infer type parameter '{name}' of '{type_.name}'; give it explicitly")


def elaborated(
    cx: Context, type_: BlockTypeOf, full: str, bound: list[tuple[ParamSig, InstanceEntity | ir.Expr]], at: int
) -> InstanceEntity:
    """The instance of ``type_`` called ``full``, its constructor's parameters bound."""
    entity = type_.entity
    decl = entity.decl
    assert isinstance(decl, ast.ControlDecl | ast.ParserDecl)
    unit = cx.unit
    if id(decl) in unit.active:
        unit.reporter.fail(at, f"{decl.head.kind} '{decl.name}' contains itself", (decl.at, "it is declared here"))
    unit.active.add(id(decl))
    unit.elaborated.add(id(decl))
    try:
        builder = Builder(full)
        generic = type_refs.bound_context(entity, type_.args)
        place = replace(generic, scope=Scope(generic.scope), prefix=full, builder=builder)
        inner = replace(place, place="parser" if isinstance(decl, ast.ParserDecl) else "control")
        for p, value in bound:
            inner.declare(p.name, _rebound(p, value))
        type_ = replace(type_, params=tuple(p for p in type_.params if all(p is not q for q, _ in bound)))
        params = functions.declare_params(inner, type_.params, f"{decl.head.kind} '{decl.name}'")
        local = replace(inner, scope=Scope(inner.scope))
        for item in decl.locals:
            _declare(local, item)
        made: ir.Parser | ir.Control
        if isinstance(decl, ast.ParserDecl):
            states = parsers.states(local, decl)
            made = ir.Parser(full, params, tuple(builder.locals), states, cx.pos(decl.at))
        else:
            body = bodies.block(replace(local, place="apply"), decl.body)
            made = ir.Control(full, params, tuple(builder.locals), tuple(builder.tables), body, cx.pos(decl.at))
    finally:
        unit.active.discard(id(decl))
    return InstanceEntity(at, type_, made)


def _declare(cx: Context, item: ast.Decl) -> None:
    """A declaration in a parser or control; an error leaves only this one out."""
    handler = cx.unit.handlers.locals.get(type(item))
    try:
        if handler is None:
            cx.unit.reporter.fail(item.at, "this declaration is not allowed here")
        handler(cx, item)
    except Reported:
        cx.poison(item.name, item.at)


def _rebound(p: ParamSig, value: InstanceEntity | ir.Expr) -> Entity:
    if isinstance(value, InstanceEntity):
        return InstanceEntity(p.at, value.type, value.value)
    return ConstantEntity(p.at, value)
