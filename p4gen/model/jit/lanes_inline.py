"""Inlines the controls that a lane's control applies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from p4gen.p4 import ir


def flattened(control: ir.Control) -> ir.Control:
    """The control with the statements of the controls that it applies, where that makes no difference: they have no
    tables, and change only variables of the control."""
    if not _applies(control.body):
        return control
    return replace(control, body=_without(control.body))


def _applies(s: ir.Stmt) -> bool:
    match s:
        case ir.ApplyBlock():
            return True
        case ir.Block(body=body):
            return any(map(_applies, body))
        case ir.If(then=then, otherwise=otherwise):
            return _applies(then) or (otherwise is not None and _applies(otherwise))
    return False


def _without(s: Any) -> Any:
    """A statement without applications."""
    match s:
        case ir.ApplyBlock():
            return _statements(s) or s
        case ir.Block(body=body):
            return replace(s, body=tuple(map(_without, body)))
        case ir.If(then=then, otherwise=otherwise):
            return replace(s, then=_without(then), otherwise=None if otherwise is None else _without(otherwise))
    return s


def _statements(applied: ir.ApplyBlock) -> ir.Block | None:
    """An application as a block; None if the control is not that simple."""
    control = applied.block
    if not isinstance(control, ir.Control) or control.tables:
        return None
    taken: list[ir.Stmt] = []
    names: dict[ir.Variable, ir.Variable] = {}
    for param, arg in zip(control.params, applied.args, strict=True):
        if param.direction in ("in", "none") and arg.expr is not None:
            taken.append(ir.Declare(applied.pos, param.variable, arg.expr))
        elif param.direction == "inout" and isinstance(arg.expr, ir.Var) and arg.expr.variable not in names.values():
            names[param.variable] = arg.expr.variable
        else:
            return None
    body: tuple[ir.Stmt, ...] = _renamed((*control.locals, control.body), names)
    return ir.Block(applied.pos, (*taken, *map(_without, body)))


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _renamed(node: Any, names: Mapping[ir.Variable, ir.Variable]) -> Any:
    """A piece of IR with other variables."""
    if isinstance(node, tuple):
        return tuple(_renamed(each, names) for each in node)
    if isinstance(node, ir.Var):
        return replace(node, variable=names[node.variable]) if node.variable in names else node
    if not isinstance(node, (ir.Stmt, ir.Expr, ir.Arg)):
        return node
    kind: Any = type(node)
    before = {name: getattr(node, name) for name in _names(kind)}
    after = {name: _renamed(value, names) for name, value in before.items()}
    changed: Any = {name: value for name, value in after.items() if value is not before[name]}
    return replace(node, **changed) if changed else node
