"""Evaluation of expressions in a context: type and value, whether they are constant, whether they can be written.

``expressions`` lowers each kind of expression; this is the interface for the other modules.
"""

from __future__ import annotations

from p4gen.p4 import ir
from p4gen.p4.check import convert
from p4gen.p4.check.scope import Context, Entity, Poison
from p4gen.p4.parse import ast
from p4gen.p4.parse.source import Reported
from p4gen.p4.types import Bits, Bool, Int, Type, Void


def lower(cx: Context, e: ast.Expr) -> ir.Expr:
    """The typed expression that ``e`` means here; reports an error and raises where it means none."""
    return cx.unit.handlers.expressions[type(e)](cx, e)


def lower_as(cx: Context, e: ast.Expr, to: Type, what: str = "", *notes: tuple[int, str]) -> ir.Expr:
    """``e`` converted implicitly to ``to``."""
    return convert.coerce(cx, lower(cx, e), to, ast.begin(e), what, *notes)


def assigned(cx: Context, e: ast.Expr, to: Type, what: str = "") -> ir.Expr:
    """``e`` converted for a constant, a variable or a result of type ``to``."""
    return convert.assigned(cx, value(cx, e), to, ast.begin(e), what)


def value(cx: Context, e: ast.Expr) -> ir.Expr:
    """``e``, which must have a value (a call of a void function has none)."""
    found = lower(cx, e)
    if isinstance(found.type, Void):
        cx.unit.reporter.fail(e.at, "this call returns no value")
    return found


def constant(cx: Context, e: ast.Expr, to: Type | None, what: str, *notes: tuple[int, str]) -> ir.Literal:
    """``e`` as a compile-time value."""
    found = lower(cx, e) if to is None else lower_as(cx, e, to, what, *notes)
    if not isinstance(found, ir.Literal):
        cx.unit.reporter.fail(ast.begin(e), f"{what} must be a compile-time constant", *notes)
    return found


def constant_int(cx: Context, e: ast.Expr, what: str) -> int:
    """``e`` as a compile-time integer."""
    found = convert.without_enum(constant(cx, e, None, what))
    if not isinstance(found, ir.Literal) or not isinstance(found.type, Int | Bits) or not isinstance(found.value, int):
        cx.unit.reporter.fail(ast.begin(e), f"{what} must be an integer, not {found.type}")
    return int(found.value)


def is_constant(e: ir.Expr) -> bool:
    """Whether the compiler knows the value."""
    if isinstance(e, ir.Aggregate):
        return all(is_constant(i) for i in e.elements)
    return isinstance(e, ir.Literal | ir.InvalidHeader)


def condition(cx: Context, e: ast.Expr) -> ir.Expr:
    """``e`` as the condition of a statement: a ``bool``; any other type is an error."""
    found = lower(cx, e)
    if not isinstance(found.type, Bool):
        cx.unit.reporter.fail(ast.begin(e), f"a condition must be a bool, not {found.type}")
    return found


def find(cx: Context, name: str, at: int, rooted: bool) -> Entity:
    """What ``name`` means at ``at``."""
    entity = (cx.unit.globals if rooted else cx.scope).find(name, at)
    if entity is None and name == "this":
        cx.unit.reporter.fail(at, "'this' can be used only in an instance's implementation of an abstract method")
    if entity is None:
        cx.unit.reporter.fail(at, f"'{name}' is not declared")
    if isinstance(entity, Poison):
        raise Reported
    return entity


def lvalue(cx: Context, e: ast.Expr) -> ir.Expr:
    """``e`` as something that can be written (spec 6.7)."""
    found = lower(cx, e)
    check_lvalue(cx, found, ast.begin(e))
    return found


def check_lvalue(cx: Context, found: ir.Expr, at: int) -> None:
    """Report an error unless ``found`` can be written to."""
    inner = found
    while True:
        match inner:
            case ir.FieldOf(base=base) | ir.Index(base=base) | ir.Slice(base=base):
                inner = base
            case ir.StackMember(base=base, name="next" | "last"):
                inner = base
            case ir.Var(variable=variable):
                why = cx.unit.frozen.get(variable)
                if why is not None:
                    cx.unit.reporter.fail(at, f"'{variable.name}' cannot be written: it is {why}")
                return
            case _:
                cx.unit.reporter.fail(at, "this expression cannot be written to")
