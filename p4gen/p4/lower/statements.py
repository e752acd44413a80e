"""Statements (P4_16 specification 12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from p4gen.p4 import ir
from p4gen.p4.check import convert, operators
from p4gen.p4.check.scope import (
    BlockTypeOf,
    ConstantEntity,
    Context,
    ExternType,
    PackageType,
    SequenceType,
    VariableEntity,
)
from p4gen.p4.lower import bodies, calls, evaluate, type_refs
from p4gen.p4.parse import ast
from p4gen.p4.parse.source import Reported
from p4gen.p4.types import Bits, Enum, Error, Int, MatchKind, SerEnum, Stack, String, Tuple, Type, Void
from p4gen.p4.walk import walk

# --- declarations --------------------------------------------------------------------------------


def constant(cx: Context, s: ast.Constant) -> None:
    """Declare a constant; it leaves no statement."""
    type_ = type_refs.resolve(cx, s.type)
    check_known(cx, type_, s.type.at)
    found = evaluate.assigned(cx, s.value, type_, f"the value of '{s.name}'")
    if not evaluate.is_constant(found):
        cx.unit.reporter.fail(ast.begin(s.value), f"the value of constant '{s.name}' must be known at compile time")
    cx.declare(s.name, ConstantEntity(s.at, found))


def check_known(cx: Context, type_: Type, at: int) -> None:
    """Report an error for a type with ``_`` in it, which nothing infers in a declaration of a value."""
    if type_refs.has_dont_care(type_):
        cx.unit.reporter.fail(
            at, f"the type {type_} is not known: '_' stands only for what a constructor's arguments say"
        )


def check_variable_type(cx: Context, type_: Type, at: int, name: str) -> None:
    """Report an error if variables cannot have ``type_``."""
    if isinstance(type_, ExternType | BlockTypeOf | PackageType):
        cx.unit.reporter.fail(at, f"'{name}' of type {type_} must be an instance: {type_}(…) {name};")
    check_known(cx, type_, at)
    if isinstance(type_, Void | Int | String | MatchKind):
        cx.unit.reporter.fail(at, f"a variable cannot have type {type_}")


def variable(cx: Context, s: ast.Variable) -> ir.Stmt:
    """Declare a local variable."""
    type_ = type_refs.resolve(cx, s.type)
    check_variable_type(cx, type_, s.at, s.name)
    init = None
    if s.init is not None:
        init = evaluate.assigned(cx, s.init, type_, f"the value of '{s.name}'")
    made = ir.Variable(s.name, type_, cx.pos(s.at))
    outer = cx.scope.parent.find(s.name, s.at) if cx.scope.parent is not None else None
    if isinstance(outer, VariableEntity) and outer.parameter and cx.place not in ("control", "parser"):
        cx.unit.reporter.fail(s.at, f"'{s.name}' hides a parameter", (outer.at, "the parameter is here"))
    cx.declare(s.name, VariableEntity(s.at, made))
    return ir.Declare(made.pos, made, init)


def _instance(cx: Context, s: ast.Instance) -> ir.Stmt:
    cx.unit.reporter.fail(s.at, "instances cannot be declared among statements")


# --- simple statements ---------------------------------------------------------------------------


def _assignment(cx: Context, s: ast.Assignment) -> ir.Stmt:
    target = evaluate.lvalue(cx, s.target)
    if s.op:
        before: list[ir.Stmt] = []
        target = _evaluated_once(cx, target, before)
        found = operators.binary(cx, s.op, target, evaluate.value(cx, s.value), s.at)
        found = convert.coerce(cx, found, target.type, ast.begin(s.value))
        if before:
            pos = cx.pos(s.target.at)
            return ir.Block(pos, (*before, ir.Assign(pos, target, found)))
    else:
        found = evaluate.assigned(cx, s.value, target.type)
    return ir.Assign(cx.pos(s.target.at), target, found)


def _evaluated_once(cx: Context, target: ir.Expr, before: list[ir.Stmt]) -> ir.Expr:
    """``target`` with the indices in it that have effects moved to variables, declared in ``before``:
    ``a[f()] += 1`` calls ``f`` once."""
    match target:
        case ir.FieldOf(base=base) | ir.Slice(base=base) | ir.StackMember(base=base):
            return replace(target, base=_evaluated_once(cx, base, before))
        case ir.Index(base=base, index=index):
            base = _evaluated_once(cx, base, before)
            if any(isinstance(n, ir.FunctionCall | ir.ExternCall | ir.ApplyTable) for n in walk(index)):
                variable = ir.Variable("index", index.type, index.pos)
                before.append(ir.Declare(index.pos, variable, index))
                index = ir.Var(index.type, index.pos, variable)
            return replace(target, base=base, index=index)
    return target


def _call(cx: Context, s: ast.CallStmt) -> ir.Stmt | None:
    found = calls.call_statement(cx, s.call)
    # A folded call (static_assert) has no effect left.
    return None if isinstance(found, ir.Evaluate) and isinstance(found.expr, ir.Literal) else found


def _empty(_cx: Context, _s: ast.Empty) -> None:
    return None


def _return(cx: Context, s: ast.ReturnStmt) -> ir.Stmt:
    pos = cx.pos(s.at)
    if cx.place in ("state", "parser"):
        cx.unit.reporter.fail(s.at, "a parser state cannot return")
    if cx.returns is None or isinstance(cx.returns, Void):
        if s.value is not None:
            cx.unit.reporter.fail(s.at, "a value cannot be returned here")
        return ir.Return(pos, None)
    if s.value is None:
        cx.unit.reporter.fail(s.at, f"a value of type {cx.returns} must be returned")
    return ir.Return(pos, evaluate.assigned(cx, s.value, cx.returns, "the value returned"))


def _jump(cx: Context, s: ast.Jump) -> ir.Stmt:
    pos = cx.pos(s.at)
    if s.kind == "exit":
        if cx.place in ("state", "parser", "function"):
            cx.unit.reporter.fail(
                s.at, f"'exit' cannot be used in a {'function' if cx.place == 'function' else 'parser'}"
            )
        return ir.Exit(pos)
    if not cx.in_loop:
        cx.unit.reporter.fail(s.at, f"'{s.kind}' can be used only in a loop")
    return ir.Break(pos) if s.kind == "break" else ir.Continue(pos)


# --- branches ------------------------------------------------------------------------------------


def _nested(cx: Context, s: ast.Stmt) -> ir.Stmt:
    return (
        ir.Block(cx.pos(s.at), bodies.body(cx.inner(), (s,))) if not isinstance(s, ast.Block) else bodies.block(cx, s)
    )


def _if(cx: Context, s: ast.IfStmt) -> ir.Stmt:
    test: ir.Expr | None
    try:
        test = evaluate.condition(cx, s.condition)
    except Reported:
        test = None
    then = _nested(cx, s.then)
    otherwise = _nested(cx, s.otherwise) if s.otherwise is not None else None
    if test is None:
        raise Reported
    return ir.If(cx.pos(s.at), test, then, otherwise)


def _switch(cx: Context, s: ast.SwitchStmt) -> ir.Stmt:
    if cx.place in ("state", "parser"):
        cx.unit.reporter.fail(s.at, "'switch' cannot be used in a parser")
    applied: ir.Expr | None = None
    if isinstance(s.subject, ast.Member) and isinstance(s.subject.base, ast.CallOf):
        applied = calls.table_result(cx, s.subject.base, s.subject.name, s.subject.at, in_switch=True)
    subject = applied if applied is not None else evaluate.lower(cx, s.subject)
    on_action = isinstance(subject, ir.ApplyTable) and subject.result == "action_run"
    if not on_action and not isinstance(subject.type, Bits | SerEnum | Enum | Error):
        cx.unit.reporter.fail(ast.begin(s.subject), f"'switch' cannot choose by a value of type {subject.type}")
    cases: list[ir.SwitchCase] = []
    labels: list[ir.Expr] = []
    default: int | None = None
    seen: dict[object, int] = {}
    for case in s.cases:
        if default is not None:
            cx.unit.reporter.fail(case.at, "'default' must be the last label", (default, "'default' is here"))
        if case.label is None:
            default = case.at
        else:
            note = (s.subject.at, "the expression that it is compared with is here")
            if on_action:
                label = _action_label(cx, case.label, subject)
            else:
                label = evaluate.constant(cx, case.label, subject.type, "a label", note)
            if label.value in seen:
                note = (seen[label.value], "the first is here")
                cx.unit.reporter.fail(case.label.at, f"a second case for '{label.value}'", note)
            seen[label.value] = case.label.at
            labels.append(label)
        if case.body is not None:
            cases.append(ir.SwitchCase(() if default is not None else tuple(labels), bodies.block(cx, case.body)))
            labels = []
    if labels or (default is not None and not (cases and not cases[-1].labels)):
        cases.append(ir.SwitchCase(() if default is not None else tuple(labels), ir.Block(cx.pos(s.at), ())))
    return ir.Switch(cx.pos(s.at), subject, tuple(cases))


def _action_label(cx: Context, label: ast.Expr, subject: ir.Expr) -> ir.Literal:
    assert isinstance(subject, ir.ApplyTable)
    assert isinstance(subject.type, Enum)
    if not isinstance(label, ast.Name):
        cx.unit.reporter.fail(label.at, "a label here must be the name of an action")
    if label.name not in subject.type.members:
        cx.unit.reporter.fail(label.at, f"'{label.name}' is not an action of table '{subject.table.name}'")
    return ir.Literal(subject.type, cx.pos(label.at), label.name)


# --- loops ---------------------------------------------------------------------------------------


def _for(cx: Context, s: ast.ForStmt) -> ir.Stmt:
    _no_loop_in_parser(cx, s.at)
    inner = cx.inner()
    init = bodies.body(inner, s.init)
    test = evaluate.condition(inner, s.condition)
    update = bodies.body(inner, s.update)
    return ir.For(cx.pos(s.at), init, test, update, _nested(replace(inner, in_loop=True), s.body))


def _for_in(cx: Context, s: ast.ForInStmt) -> ir.Stmt:
    _no_loop_in_parser(cx, s.at)
    type_ = type_refs.resolve(cx, s.type)
    check_variable_type(cx, type_, s.at, s.name)
    values: tuple[ir.Expr, ir.Expr] | ir.Expr
    if isinstance(s.values, ast.RangeOf):
        what = "a bound of the range"
        values = (
            evaluate.lower_as(cx, s.values.low, type_, what),
            evaluate.lower_as(cx, s.values.high, type_, what),
        )
    else:
        values = _collection(cx, s.values, type_)
    inner = replace(cx.inner(), in_loop=True)
    made = ir.Variable(s.name, type_, cx.pos(s.at))
    inner.declare(s.name, VariableEntity(s.at, made))
    return ir.ForIn(cx.pos(s.at), made, values, _nested(inner, s.body))


def _collection(cx: Context, e: ast.Expr, type_: Type) -> ir.Expr:
    found = evaluate.value(cx, e)
    if isinstance(found.type, Tuple) and isinstance(found, ir.Aggregate):
        return convert.coerce(cx, found, SequenceType(type_), e.at)
    if not isinstance(found.type, Stack | SequenceType):
        cx.unit.reporter.fail(e.at, f"a loop cannot iterate over a value of type {found.type}")
    if found.type.element != type_:
        cx.unit.reporter.fail(e.at, f"the elements have type {found.type.element}, not {type_}")
    return found


def _no_loop_in_parser(cx: Context, at: int) -> None:
    if cx.place in ("state", "parser"):
        cx.unit.reporter.fail(at, "loops cannot be used in a parser")


STATEMENTS: dict[type[ast.Node], Callable[[Context, Any], ir.Stmt | None]] = {
    ast.Block: bodies.block,
    ast.Constant: constant,
    ast.Variable: variable,
    ast.Instance: _instance,
    ast.Assignment: _assignment,
    ast.CallStmt: _call,
    ast.Empty: _empty,
    ast.ReturnStmt: _return,
    ast.Jump: _jump,
    ast.IfStmt: _if,
    ast.SwitchStmt: _switch,
    ast.ForStmt: _for,
    ast.ForInStmt: _for_in,
}
