"""Calls of extern instances' methods (P4_16 specification 11.3.1)."""

from __future__ import annotations

from p4gen.p4 import ir
from p4gen.p4.check import order
from p4gen.p4.check.scope import Context, ExternType, Signature
from p4gen.p4.lower import arguments, inference, type_refs
from p4gen.p4.parse import ast
from p4gen.p4.types import Annotation, Type


def extern_method(
    cx: Context, e: ast.CallOf, callee: ast.Member, instance: ir.ExternInstance | None, type_: Type
) -> ir.Expr | ir.Stmt:
    """A call of a method of an extern instance."""
    assert isinstance(type_, ExternType)
    decl, sig = extern_signature(cx, e, callee, type_)
    warn_deprecated(cx, e.at, f"{type_.name}.{decl.name}", decl.annotations)
    given = tuple(type_refs.resolve(cx, a) for a in e.type_args)
    bindings, args = arguments.lower(cx, e.at, sig, given, e.args, constants=True)
    returns = inference.substitute(sig.returns, bindings)
    types = tuple(bindings[v] for v in sig.type_vars)
    if instance is None:
        cx.unit.reporter.fail(e.at, f"calls through a parameter of type {type_} are not supported")
    pos = cx.pos(callee.at)
    return order.evaluated(
        decl.name, pos, returns, args, arguments.order(sig, e.args),
        lambda passed: ir.ExternCall(returns, pos, instance, decl.name, types, passed, decl.annotations),
        decl.annotations,
    )  # fmt: skip


def extern_signature(
    cx: Context, e: ast.CallOf, callee: ast.Member, type_: ExternType
) -> tuple[ast.FunctionDecl, Signature]:
    """The declaration of the method that ``e`` calls, and its signature with the extern's type arguments filled in."""
    extern = type_.entity.decl
    assert isinstance(extern, ast.ExternDecl)
    methods = [m for m in extern.methods if m.name == callee.name and m.returns is not None]
    if not methods:
        cx.unit.reporter.fail(
            callee.at, f"extern {type_} has no method '{callee.name}'", (extern.at, "it is declared here")
        )
    decl = arguments.choose(cx, e.at, callee.name, methods, e.args)
    return decl, type_refs.signature(type_.entity.context, decl, type_)


def warn_deprecated(cx: Context, at: int, name: str, annotations: tuple[Annotation, ...]) -> None:
    """Warn at a call of something that is ``@deprecated``."""
    for annotation in annotations:
        if annotation.name == "deprecated":
            reason = f": {annotation.args[0]}" if annotation.args else ""
            cx.unit.reporter.warn(at, f"'{name}' is deprecated{reason}")
