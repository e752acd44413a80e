"""What tables and their entries share: the listed actions, and properties that are flags (P4_16 specification 14.2)."""

from __future__ import annotations

from p4gen.p4 import ir
from p4gen.p4.check.scope import ActionEntity, Context
from p4gen.p4.lower import arguments, evaluate
from p4gen.p4.parse import ast, ast_table
from p4gen.p4.types import Bool

Entities = dict[str, tuple[ir.ActionRef, ActionEntity, ast_table.TableAction]]


def find_action(cx: Context, name: str, at: int, rooted: bool) -> ActionEntity:
    """The action that ``name`` means here."""
    entity = evaluate.find(cx, name, at, rooted)
    if not isinstance(entity, ActionEntity):
        cx.unit.reporter.fail(at, f"'{name}' is not an action", (entity.at, f"'{name}' was declared here"))
    return entity


def action_call(cx: Context, e: ast.Expr | ast_table.TableAction, entities: Entities, what: str) -> ir.ActionCall:
    """A listed action with constants for its data, as default actions and entries have it."""
    args: tuple[ast.Argument, ...] = ()
    match e:
        case ast_table.TableAction(name=name, rooted=rooted, args=given):
            args = given or ()
        case ast.Name(name=name, rooted=rooted):
            pass
        case ast.CallOf(callee=ast.Name(name=name, rooted=rooted), args=args):
            pass
        case _:
            cx.unit.reporter.fail(e.at, f"{what} must be an action")
    found = entities.get(name)
    if found is None:
        cx.unit.reporter.fail(e.at, f"'{name}' is not in the table's list of actions")
    ref, entity, listed = found
    if find_action(cx, name, e.at, rooted) is not entity:
        note = (listed.at, "the action listed is another one of that name")
        cx.unit.reporter.fail(e.at, f"'{name}' is not in the table's list of actions", note)
    params = entity.signature.params
    data = tuple(p for p in params if p.direction == "none")
    given_exprs = arguments.match(cx, e.at, entity.signature, args)
    values: list[int | bool | str] = []
    for p, source in zip(params, given_exprs, strict=True):
        if p.direction != "none":
            bound = next(
                (a.value for i, a in enumerate(listed.args or ()) if (a.name or params[i].name) == p.name), None
            )
            if source is not None and bound is not None and not ast.same(source, bound):
                note = (bound.at, "it is given here")
                cx.unit.reporter.fail(
                    source.at, f"argument '{p.name}' differs from the one in the list of actions", note
                )
            continue
        expr = source if source is not None else p.default
        if expr is None:
            cx.unit.reporter.fail(e.at, f"no argument for parameter '{p.name}' of '{name}'")
        values.append(evaluate.constant(cx, expr, p.type, f"argument '{p.name}' of '{name}'").value)
    assert len(values) == len(data)
    return ir.ActionCall(ref, tuple(values))


def flag(cx: Context, prop: ast_table.Property | None, default: bool = False) -> bool:
    """The value of a property that is true or false; ``default`` without it."""
    if prop is None:
        return default
    found = evaluate.constant(cx, prop.value, None, f"'{prop.name}'")
    if not isinstance(found.type, Bool):
        cx.unit.reporter.fail(prop.value.at, f"'{prop.name}' must be true or false, not {found.type}")
    return bool(found.value)
