"""Arguments and parameters: matching, inference of type arguments, directions (P4_16 specification
6.8, 8.15, 8.20)."""

from __future__ import annotations

from collections.abc import Sequence

from p4gen.p4 import ir
from p4gen.p4.check import convert
from p4gen.p4.check.scope import (
    Context,
    DefaultType,
    DontCareType,
    ExternType,
    InstanceEntity,
    InvalidType,
    ParamSig,
    RecordType,
    Signature,
)
from p4gen.p4.lower import evaluate, inference
from p4gen.p4.parse import ast
from p4gen.p4.types import Int, String, Tuple, Type, Void

Bindings = inference.Bindings


def accepts(params: Sequence[ast.Parameter], args: Sequence[ast.Argument]) -> bool:
    """Whether these arguments fit these parameters in number and names."""
    if len(args) > len(params):
        return False
    named = {a.name for a in args if a.name is not None}
    if named - {p.name for p in params}:
        return False
    return all(
        (i < len(args) and args[i].name is None)
        or p.name in named
        or p.default is not None
        or any(a.name == "optional" for a in p.annotations)
        for i, p in enumerate(params)
    )  # fmt: skip


def choose(
    cx: Context, at: int, name: str, overloads: Sequence[ast.FunctionDecl], args: Sequence[ast.Argument]
) -> ast.FunctionDecl:
    """The overload that takes these arguments: by their number and names (spec 8.20)."""
    if len(overloads) == 1:
        return overloads[0]
    fitting = [d for d in overloads if accepts(d.params, args)]
    if not fitting:
        notes = [(d.at, f"this '{name}' takes {len(d.params)} arguments") for d in overloads]
        cx.unit.reporter.fail(at, f"no '{name}' takes these arguments", *notes)
    if len(fitting) > 1:
        notes = [(d.at, "this one fits") for d in fitting]
        cx.unit.reporter.fail(at, f"the call of '{name}' is ambiguous", *notes)
    return fitting[0]


def match(cx: Context, at: int, sig: Signature, args: Sequence[ast.Argument]) -> list[ast.Expr | None]:
    """The argument of each parameter; None for one omitted that has a default or is optional."""
    found: list[ast.Expr | None] = [None] * len(sig.params)
    where = {p.name: i for i, p in enumerate(sig.params)}
    if len(args) > len(sig.params):
        note = (sig.at, f"'{sig.name}' is declared here")
        cx.unit.reporter.fail(at, f"'{sig.name}' takes {len(sig.params)} arguments, not {len(args)}", note)
    for i, arg in enumerate(args):
        if arg.name is None:
            if any(a.name is not None for a in args):
                cx.unit.reporter.fail(arg.at, "either all arguments are named or none is")
            found[i] = arg.value
            continue
        index = where.get(arg.name)
        if index is None:
            note = (sig.at, f"'{sig.name}' is declared here")
            cx.unit.reporter.fail(arg.at, f"'{sig.name}' has no parameter '{arg.name}'", note)
        if found[index] is not None:
            cx.unit.reporter.fail(arg.at, f"a second argument for parameter '{arg.name}'")
        found[index] = arg.value
    for given, p in zip(found, sig.params, strict=True):
        if given is None and p.default is None and not p.optional:
            cx.unit.reporter.fail(
                at, f"no argument for parameter '{p.name}' of '{sig.name}'", (p.at, "it is declared here")
            )
    return found


def order(sig: Signature, args: Sequence[ast.Argument]) -> tuple[int, ...]:
    """The positions of the parameters that are given arguments, in the order of the call."""
    where = {p.name: i for i, p in enumerate(sig.params)}
    return tuple(i if a.name is None else where[a.name] for i, a in enumerate(args))


def lower(
    cx: Context, at: int, sig: Signature, type_args: Sequence[Type], args: Sequence[ast.Argument], constants: bool
) -> tuple[Bindings, tuple[ir.Arg, ...]]:
    """Check and lower a call's arguments, inferring what type arguments are not given.

    With ``constants``, arguments of directionless parameters must be compile-time values or extern instances, as
    externs require (spec 6.8).
    """
    given = match(cx, at, sig, args)
    pairs = list(zip(sig.params, given, strict=True))
    exprs = [_operand(cx, e, constants and isinstance(p.type, ExternType)) for p, e in pairs]
    bindings = infer(cx, at, sig, type_args, [(p.type, e) for p, e in zip(sig.params, exprs, strict=True)])
    made: list[ir.Arg] = []
    for p, source, expr in zip(sig.params, given, exprs, strict=True):
        type_ = inference.substitute(p.type, bindings)
        if source is None and p.default is not None:
            default = evaluate.lower(sig.context, p.default)
            made.append(_argument(cx, at, sig, p, type_, p.default, default, constants))
        else:
            made.append(_argument(cx, at, sig, p, type_, source, expr, constants))
    return bindings, tuple(made)


def _operand(cx: Context, e: ast.Expr | None, instance: bool) -> ir.Expr | None:
    if e is None or isinstance(e, ast.DontCare):
        return None
    if instance and isinstance(e, ast.Name):
        entity = cx.scope.find(e.name, e.at)
        if isinstance(entity, InstanceEntity) and isinstance(entity.value, ir.ExternInstance):
            return ir.InstanceRef(entity.type, cx.pos(e.at), entity.value)
    return evaluate.value(cx, e)


def _argument(
    cx: Context,
    at: int,
    sig: Signature,
    p: ParamSig,
    type_: Type,
    source: ast.Expr | None,
    expr: ir.Expr | None,
    constants: bool,
) -> ir.Arg:
    if expr is None:
        if isinstance(source, ast.DontCare) and p.direction != "out":
            cx.unit.reporter.fail(
                source.at, f"'_' is allowed only for an 'out' argument; '{p.name}' is '{p.direction}'"
            )
        return ir.Arg(p.direction, None)
    where = ast.begin(source) if source is not None else at
    if p.direction in ("out", "inout"):
        evaluate.check_lvalue(cx, expr, where)
        if expr.type != type_ and not isinstance(type_, DontCareType):
            cx.unit.reporter.fail(
                where,
                f"argument '{p.name}' of '{sig.name}' has type {expr.type}, but {type_} is needed",
                (p.at, "declared here"),
            )
        return ir.Arg(p.direction, expr)
    if inference.fits(type_, expr.type):
        return ir.Arg(p.direction, expr)
    if isinstance(type_, DontCareType) and isinstance(expr.type, Int):
        cx.unit.reporter.fail(where, f"argument '{p.name}' of '{sig.name}' needs a width: its type is not known ('_')")
    expr = convert.coerce(cx, expr, type_, where, f"argument '{p.name}' of '{sig.name}'")
    if constants and p.direction == "none" and not evaluate.is_constant(expr):
        cx.unit.reporter.fail(where, f"argument '{p.name}' of '{sig.name}' must be a compile-time constant")
    return ir.Arg(p.direction, expr)


def infer(
    cx: Context, at: int, sig: Signature, type_args: Sequence[Type], args: Sequence[tuple[Type, ir.Expr | None]]
) -> Bindings:
    """The type of each type parameter of ``sig``, from the arguments where it is not given."""
    bindings: Bindings = {}
    if not sig.type_vars:
        if type_args:
            cx.unit.reporter.fail(at, f"'{sig.name}' takes no type arguments")
        return bindings
    if type_args and len(type_args) != len(sig.type_vars):
        cx.unit.reporter.fail(at, f"'{sig.name}' takes {len(sig.type_vars)} type arguments, not {len(type_args)}")
    fixed = {v: t for v, t in zip(sig.type_vars, type_args, strict=False) if not isinstance(t, DontCareType)}
    bindings.update(fixed)
    for pattern, expr in args:
        if expr is not None and not inference.unify(pattern, expr.type, bindings):
            cx.unit.reporter.fail(at, f"an argument of '{sig.name}' has type {expr.type}, which does not fit {pattern}")
    bindings.update(fixed)
    for variable in sig.type_vars:
        found = bindings.get(variable)
        if found is None:
            cx.unit.reporter.fail(at, f"cannot infer type parameter '{variable}' of '{sig.name}'; give it explicitly")
        bindings[variable] = (
            found if variable in fixed else settle(cx, found, at, f"type parameter '{variable}' of '{sig.name}'")
        )
    return bindings


def settle(cx: Context, found: Type, at: int, what: str) -> Type:
    """An inferred type that values can have: literals without a width have none."""
    match found:
        case Int() | DefaultType() | InvalidType() | Void() | String():
            cx.unit.reporter.fail(at, f"cannot infer {what} from a value of type {found}")
        case Tuple(elements=elements):
            return Tuple(tuple(settle(cx, e, at, what) for e in elements))
        case RecordType():
            cx.unit.reporter.fail(at, f"cannot infer a struct type for {what} from {found}; name the type")
    return found
