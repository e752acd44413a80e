"""From written types to types: names, widths, instantiation of generics (P4_16 specification 7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast as type_cast

from p4gen.p4 import fold, ir
from p4gen.p4.check.scope import (
    BlockTypeOf,
    BoundType,
    ConstantEntity,
    Context,
    DontCareType,
    ExternType,
    HeaderOf,
    PackageType,
    ParamSig,
    Poison,
    Scope,
    SequenceType,
    Signature,
    StructOf,
    TypeEntity,
    TypeVar,
    UnionOf,
)
from p4gen.p4.lower import evaluate
from p4gen.p4.parse import ast
from p4gen.p4.parse.source import Reported
from p4gen.p4.types import (
    BOOL,
    INT,
    Annotation,
    Bits,
    Bool,
    Enum,
    Error,
    FieldDef,
    Fields,
    Header,
    HeaderUnion,
    Int,
    MatchKind,
    NewType,
    SerEnum,
    Stack,
    String,
    Struct,
    Tuple,
    Type,
    Varbits,
    Void,
    bits,
    strip,
    translation,
)

_BASE: dict[str, Type] = {
    "bool": BOOL, "error": Error(), "int": INT, "match_kind": MatchKind(), "string": String(), "void": Void(),
}  # fmt: skip
MAX_VARBIT = 1 << 20
MAX_STACK = 1 << 16


def is_alias(cx: Context, ref: ast.TypeRef) -> bool:
    """Whether ``ref`` names its type through a typedef."""
    if not isinstance(ref, ast.NamedType):
        return False
    entity = (cx.unit.globals if ref.rooted else cx.scope).find(ref.name, ref.at)
    return isinstance(entity, TypeEntity) and isinstance(entity.decl, ast.Typedef)


def resolve(cx: Context, ref: ast.TypeRef) -> Type:
    """The type that ``ref`` means here."""
    match ref:
        case ast.BaseType(name=name):
            if name == "error" and not cx.unit.errors:
                cx.unit.reporter.fail(ref.at, "no 'error' is declared; include core.p4")
            return _BASE[name]
        case ast.SizedType():
            return _sized(cx, ref)
        case ast.NamedType():
            return _named(cx, ref, ())
        case ast.SpecializedType(base=base, args=args):
            return _named(cx, base, tuple(resolve(cx, a) for a in args))
        case ast.TupleType(args=args):
            elements = tuple(resolve(cx, a) for a in args)
            for arg, element in zip(args, elements, strict=True):
                if isinstance(element, BlockTypeOf | PackageType | ExternType | String | Void):
                    cx.unit.reporter.fail(arg.at, f"a tuple cannot hold values of type {element}")
            return Tuple(elements)
        case ast.ListType(element=element):
            return SequenceType(resolve(cx, element))
        case ast.StackType(element=element, size=size):
            inner = resolve(cx, element)
            if not isinstance(inner, Header | HeaderUnion | TypeVar):
                cx.unit.reporter.fail(ref.at, f"a stack holds headers or header unions, not {inner}")
            count = evaluate.constant_int(cx, size, "the size of a stack")
            if not 0 < count <= MAX_STACK:
                cx.unit.reporter.fail(size.at, f"the size of a stack must be from 1 to {MAX_STACK}, not {count}")
            return Stack(inner, count)
    return DontCareType()


def _sized(cx: Context, ref: ast.SizedType) -> Type:
    if ref.width is None:
        return bits(1)
    width = ref.width.value if type(ref.width) is ast.IntLit else evaluate.constant_int(cx, ref.width, "a width")
    least = 1 if ref.name == "int" else 0
    most = MAX_VARBIT if ref.name == "varbit" else fold.MAX_BITS
    if not least <= width <= most:
        cx.unit.reporter.fail(ref.width.at, f"the width of {ref.name}<> must be from {least} to {most}, not {width}")
    return Varbits(width) if ref.name == "varbit" else bits(width, ref.name == "int")


def find(cx: Context, name: str, at: int, rooted: bool) -> TypeEntity | BoundType:
    """The type declaration that ``name`` means."""
    entity = (cx.unit.globals if rooted else cx.scope).find(name, at)
    if entity is None:
        cx.unit.reporter.fail(at, f"type '{name}' is not declared")
    if isinstance(entity, Poison):
        raise Reported
    if not isinstance(entity, TypeEntity | BoundType):
        cx.unit.reporter.fail(at, f"'{name}' is not a type", (entity.at, f"'{name}' was declared here"))
    return entity


def _named(cx: Context, ref: ast.NamedType, args: tuple[Type, ...]) -> Type:
    entity = find(cx, ref.name, ref.at, ref.rooted)
    if isinstance(entity, BoundType):
        if args:
            cx.unit.reporter.fail(ref.at, f"type parameter '{ref.name}' takes no type arguments")
        return entity.type
    wanted = type_params(entity.decl)
    if len(args) != len(wanted):
        if not args and not isinstance(entity.decl, ast.Composite):
            # The arguments are inferred from the constructor's.
            return instantiate(entity, tuple(type_var(entity, n) for n in wanted))
        cx.unit.reporter.fail(
            ref.at,
            f"type '{ref.name}' takes {len(wanted)} type arguments, not {len(args)}",
            (entity.at, f"'{ref.name}' was declared here"),
        )
    return instantiate(entity, args)


def type_params(decl: ast.Decl) -> tuple[str, ...]:
    """The names of a declaration's type parameters."""
    match decl:
        case (
            ast.Composite(type_params=found)
            | ast.ExternDecl(type_params=found)
            | ast.PackageDecl(type_params=found)
            | ast.BlockType(type_params=found)
            | ast.FunctionDecl(type_params=found)
        ):
            return found
        case ast.ControlDecl(head=head) | ast.ParserDecl(head=head):
            return head.type_params
    return ()


def type_var(entity: TypeEntity, name: str) -> TypeVar:
    """The variable of ``entity``'s type parameter ``name``, always the same one."""
    key: tuple[Type, ...] = (_VarKey(name),)
    found = entity.made.get(key)
    if found is None:
        found = entity.made[key] = TypeVar(name)
    return type_cast(TypeVar, found)


@dataclass(frozen=True)
class _VarKey(Type):
    name: str


def instantiate(entity: TypeEntity, args: tuple[Type, ...]) -> Type:
    """The type that a declaration makes with these type arguments; one object for equal ones."""
    made = entity.made.get(args)
    if made is None:
        cx = bound_context(entity, args)
        key = id(entity.decl)
        if key in cx.unit.active:
            cx.unit.reporter.fail(entity.at, f"'{entity.decl.name}' contains itself")
        cx.unit.active.add(key)
        try:
            made = _make(cx, entity, args)
        finally:
            cx.unit.active.discard(key)
        entity.made[args] = made
    return made


def bound_context(entity: TypeEntity, args: tuple[Type, ...]) -> Context:
    """Where ``entity`` was declared, its type parameters bound to ``args``."""
    cx = entity.context
    if not args:
        return cx
    scope = Scope(cx.scope)
    for name, arg in zip(type_params(entity.decl), args, strict=True):
        scope.names[name] = BoundType(0, arg)
    return cx.with_scope(scope)


def _make(cx: Context, entity: TypeEntity, args: tuple[Type, ...]) -> Type:
    decl = entity.decl
    match decl:
        case ast.Composite():
            return _composite(cx, entity, decl, args)
        case ast.EnumDecl():
            return _enum(cx, decl)
        case ast.Typedef():
            return _typedef(cx, decl)
        case ast.ExternDecl(name=name):
            return ExternType(name, entity, args)
        case ast.PackageDecl(name=name):
            return PackageType(name, entity, args)
        case ast.BlockType():
            return BlockTypeOf(decl.kind, decl.name, params(cx, decl.params), entity, args)
        case ast.ControlDecl(head=head) | ast.ParserDecl(head=head):
            return BlockTypeOf(head.kind, head.name, params(cx, head.params), entity, args)
    raise AssertionError(decl)


def _composite(cx: Context, entity: TypeEntity, decl: ast.Composite, args: tuple[Type, ...]) -> Fields:
    fields: list[FieldDef] = []
    seen: dict[str, int] = {}
    for field in decl.fields:
        if field.name in seen:
            note = (seen[field.name], f"'{field.name}' was declared here")
            cx.unit.reporter.error(field.at, f"{decl.kind} '{decl.name}' has a second field '{field.name}'", note)
            continue
        seen[field.name] = field.at
        type_ = resolve(cx, field.type)
        _check_field(cx, decl.kind, field, type_)
        annotations = tuple(_field_lists(cx, field.at, a) for a in field.annotations)
        for a in annotations:
            if a.name == "match" and a.body not in cx.unit.match_kinds:
                cx.unit.reporter.error(field.at, f"@match needs a match kind, not {a.body or 'nothing'}")
        fields.append(FieldDef(field.name, type_, annotations))
    varbits = [f.name for f in fields if isinstance(f.type, Varbits)]
    if decl.kind == "header" and len(varbits) > 1:
        first, second = (next(f.at for f in decl.fields if f.name == name) for name in varbits[:2])
        message = f"header '{decl.name}' has more than one varbit field"
        cx.unit.reporter.error(second, message, (first, "the first is here"))
    made = tuple(fields)
    name = f"{decl.name}<{', '.join(map(str, args))}>" if args else decl.name
    if decl.kind == "struct":
        return StructOf(name, made, decl.annotations, entity, args) if args else Struct(name, made, decl.annotations)
    if decl.kind == "header":
        return HeaderOf(name, made, decl.annotations, entity, args) if args else Header(name, made, decl.annotations)
    return UnionOf(name, made, decl.annotations, entity, args) if args else HeaderUnion(name, made, decl.annotations)


def _field_lists(cx: Context, at: int, annotation: Annotation) -> Annotation:
    """``@field_list`` with constants and enum members in place of numbers, as p4c takes them."""
    if annotation.name != "field_list" or annotation.args:
        return annotation

    def number(text: str) -> int:
        name, _, member = map(str.strip, text.partition("."))
        if name.isdecimal():
            return int(name, 0)
        e = ast.Member(at, ast.TypeName(at, ast.NamedType(at, name)), member) if member else ast.Name(at, name)
        return evaluate.constant_int(cx, e, "a field list")

    return replace(annotation, args=tuple(map(number, annotation.body.split(","))))


def _check_field(cx: Context, kind: str, field: ast.Field, type_: Type) -> None:
    """Report an error if ``type_`` cannot be the type of a field in a ``kind`` (spec 7.2.8)."""
    ok = True
    if isinstance(type_, TypeVar):
        return
    bare: Type = type_
    while isinstance(bare, NewType):
        bare = bare.base
    if kind == "header":
        ok = isinstance(bare, Bits | Varbits | Bool | SerEnum | TypeVar) or (
            isinstance(bare, Struct) and header_safe(bare)
        )
    elif kind == "header_union":
        ok = isinstance(bare, Header)
    else:
        scalars = Bits | Varbits | Bool | Enum | SerEnum | Error | Fields | Stack | Tuple | TypeVar | Int | String
        ok = isinstance(bare, scalars | SequenceType) and not isinstance(bare, Int | String)
    if not ok:
        cx.unit.reporter.error(field.at, f"field '{field.name}' of type {type_} is not allowed in a {kind}")


def has_dont_care(type_: Type) -> bool:
    """Whether ``_`` is, or is part of, ``type_``."""
    match type_:
        case DontCareType():
            return True
        case StructOf(args=parts) | HeaderOf(args=parts) | UnionOf(args=parts) | Tuple(elements=parts):
            return any(map(has_dont_care, parts))
        case Stack(element=element) | SequenceType(element=element):
            return has_dont_care(element)
    return False


def is_generic(type_: Type) -> bool:
    """Whether a type parameter is, or is part of, ``type_``."""
    match type_:
        case TypeVar():
            return True
        case StructOf(args=parts) | HeaderOf(args=parts) | UnionOf(args=parts) | Tuple(elements=parts):
            return any(map(is_generic, parts))
        case BlockTypeOf(args=parts) | ExternType(args=parts) | PackageType(args=parts):
            return any(map(is_generic, parts))
        case Stack(element=element) | SequenceType(element=element):
            return is_generic(element)
    return False


def header_safe(type_: Type) -> bool:
    """Whether a struct may be part of a header: fixed-width all through."""
    match type_:
        case NewType(base=base):
            return header_safe(base)
        case Struct(fields=fields):
            return all(header_safe(f.type) for f in fields)
    return isinstance(type_, Bits | Bool | SerEnum | TypeVar)


def _enum(cx: Context, decl: ast.EnumDecl) -> Type:
    seen: dict[str, int] = {}
    for at, name, _ in decl.members:
        if name in seen:
            note = (seen[name], f"'{name}' was declared here")
            cx.unit.reporter.error(at, f"enum '{decl.name}' has a second member '{name}'", note)
        seen[name] = at
    if decl.base is None:
        return Enum(decl.name, tuple(seen))
    base = resolve(cx, decl.base)
    if not isinstance(base, Bits):
        cx.unit.reporter.fail(decl.base.at, f"the values of an enum are bit<> or int<>, not {base}")
    members: list[tuple[str, int]] = []
    cx = cx.with_scope(Scope(cx.scope))
    for at, name, value in decl.members:
        assert value is not None
        number = evaluate.constant(cx, value, base, f"the value of '{name}'")
        cx.scope.names[name] = ConstantEntity(at + 1, number)
        if not isinstance(number.value, int):
            cx.unit.reporter.fail(at, f"the value of '{name}' must be a number")
        members.append((name, number.value))
    return SerEnum(decl.name, base, tuple(members))


def _typedef(cx: Context, decl: ast.Typedef) -> Type:
    if isinstance(decl.type, ast.TypeRef):
        base = resolve(cx, decl.type)
    else:
        base = instantiate(TypeEntity(decl.type.at, decl.type, cx), ())
    if not decl.fresh:
        return base
    if not isinstance(base, Bits | Bool | NewType | SerEnum | Varbits | Error | Enum | TypeVar):
        cx.unit.reporter.fail(decl.at, f"'type' makes new types of bit strings, bool, enums and errors, not of {base}")
    made = NewType(decl.name, base, decl.annotations)
    translated = any(a.name == "p4runtime_translation" for a in decl.annotations)
    if translated and (translation(made) is None or not isinstance(strip(base), Bits)):
        cx.unit.reporter.error(
            decl.at, "@p4runtime_translation needs a string, and string or bit<W>, on a type of bit<>"
        )
    return made


def check_type_params(cx: Context, names: tuple[str, ...], at: int) -> None:
    """Type parameters of one declaration must have different names."""
    for i, name in enumerate(names):
        if name in names[:i]:
            cx.unit.reporter.error(at, f"a second type parameter '{name}'")


# --- signatures ----------------------------------------------------------------------------------


def params(cx: Context, found: tuple[ast.Parameter, ...]) -> tuple[ParamSig, ...]:
    """Parameters as callers see them, checked (spec 6.8)."""
    seen: dict[str, int] = {}
    made: list[ParamSig] = []
    for p in found:
        if p.name in seen:
            cx.unit.reporter.error(p.at, f"a second parameter '{p.name}'", (seen[p.name], "the first is here"))
        seen[p.name] = p.at
        optional = any(a.name == "optional" for a in p.annotations)
        if p.default is not None and p.direction in ("out", "inout"):
            cx.unit.reporter.error(p.at, f"'{p.direction}' parameter '{p.name}' cannot have a default value")
        type_ = resolve(cx, p.type)
        if isinstance(type_, BlockTypeOf) and isinstance(type_.entity.decl, ast.ControlDecl | ast.ParserDecl):
            cx.unit.reporter.error(p.at, f"parameter '{p.name}' needs a type of {type_.kind}s, not {type_}")
        if isinstance(type_, ExternType | BlockTypeOf | PackageType) and p.direction != "none":
            cx.unit.reporter.error(p.at, f"parameter '{p.name}' of type {type_} cannot have a direction")
        instance = isinstance(type_, ExternType | BlockTypeOf | PackageType)
        if p.default is not None and instance:
            _check_constructor(cx, p.default)
        elif p.default is not None and not is_generic(type_):
            default = evaluate.lower_as(cx, p.default, type_, f"the default of '{p.name}'")
            if not evaluate.is_constant(default):
                cx.unit.reporter.error(p.default.at, f"the default of '{p.name}' must be a compile-time constant")
        if isinstance(type_, String | Int) and p.direction != "none":
            cx.unit.reporter.error(p.at, f"parameter '{p.name}' of type {type_} cannot have a direction")
        made.append(
            ParamSig(p.name, type_cast(ir.Direction, p.direction), type_, p.default, optional, p.at, p.annotations)
        )
    return tuple(made)


def _check_constructor(cx: Context, e: ast.Expr) -> None:
    """Look at the arguments of a default that makes an instance: values, not types."""
    if isinstance(e, ast.CallOf) and isinstance(e.callee, ast.TypeName):
        for arg in e.args:
            _check_constructor(cx, arg.value)
    elif not isinstance(e, ast.Name | ast.CallOf):
        evaluate.lower(cx, e)


def signature(cx: Context, decl: ast.FunctionDecl, owner: ExternType | None = None) -> Signature:
    """How a function, extern function, method or constructor is called; ``cx`` is where it was
    declared, ``owner`` the extern type (with its type arguments) whose method it is."""
    key = (decl, owner.args if owner else ())
    found = cx.unit.signatures.get(key)
    if found is not None:
        return found
    scope = Scope(cx.scope)
    if owner is not None:
        for name, arg in zip(type_params(owner.entity.decl), owner.args, strict=True):
            scope.names[name] = BoundType(0, arg)
    variables: list[TypeVar] = []
    check_type_params(cx, decl.type_params, decl.at)
    for name in decl.type_params:
        variables.append(TypeVar(name))
        scope.names[name] = BoundType(0, variables[-1])
    inner = cx.with_scope(scope)
    for p in decl.params:
        if p.name in decl.type_params:
            cx.unit.reporter.error(p.at, f"parameter '{p.name}' has the name of a type parameter")
    returns = resolve(inner, decl.returns) if decl.returns is not None else Void()
    if isinstance(returns, Int | String):
        cx.unit.reporter.error(decl.at, f"'{decl.name}' cannot return a value of type {returns}")
    found = Signature(decl.name, tuple(variables), params(inner, decl.params), returns, inner, decl.at)
    cx.unit.signatures[key] = found
    return found
