"""Parser states and transitions (P4_16 specification 13)."""

from __future__ import annotations

from dataclasses import replace

from p4gen.errors import Pos
from p4gen.p4 import ir
from p4gen.p4.check import convert
from p4gen.p4.check.scope import Context, ValueSetEntity
from p4gen.p4.lower import bodies, evaluate, type_refs
from p4gen.p4.parse import ast
from p4gen.p4.parse.source import Reported
from p4gen.p4.types import Bits, Bool, Enum, Error, SerEnum, Struct, Tuple, Type, strip
from p4gen.p4.walk import walk


def states(cx: Context, decl: ast.ParserDecl) -> dict[str, ir.ParserState]:
    """The states of a parser instance by name."""
    declared: dict[str, int] = {}
    for state in decl.states:
        if state.name in ("accept", "reject"):
            cx.unit.reporter.error(state.at, f"state '{state.name}' is implicit and cannot be declared")
        elif state.name in declared:
            note = (declared[state.name], "the first is here")
            cx.unit.reporter.error(state.at, f"a second state '{state.name}'", note)
        declared[state.name] = state.at
    if "start" not in declared:
        cx.unit.reporter.error(decl.at, f"parser '{decl.name}' has no state 'start'")
    known = {*declared, "accept", "reject"}
    made = {s.name: _state(cx, s, known) for s in decl.states}
    _check_ends(cx, decl, made)
    return made


def _check_ends(cx: Context, decl: ast.ParserDecl, made: dict[str, ir.ParserState]) -> None:
    """A parser whose states never lead to ``accept`` or ``reject`` never ends."""
    reached, todo = {"start"}, ["start"]
    while todo:
        state = made.get(todo.pop())
        for case in state.transition.cases if state is not None else ():
            if case.state not in reached:
                reached.add(case.state)
                todo.append(case.state)
    if not reached & {"accept", "reject"} and all(s in made for s in reached):
        cx.unit.reporter.error(decl.at, f"parser '{decl.name}' never reaches accept or reject")


def _state(cx: Context, decl: ast.StateDecl, known: set[str]) -> ir.ParserState:
    inner = replace(cx.inner(), place="state")
    body = bodies.body(inner, decl.body)
    pos = cx.pos(decl.at)
    if decl.transition is None:
        cx.unit.reporter.warn(decl.at, f"state '{decl.name}' has no transition: it rejects")
        return ir.ParserState(decl.name, body, _to("reject", pos), pos)
    try:
        transition = _transition(inner, decl.transition, known)
    except Reported:
        transition = _to("reject", pos)
    return ir.ParserState(decl.name, body, transition, pos)


def _to(state: str, pos: Pos) -> ir.Transition:
    return ir.Transition((), (ir.SelectCase((), state, pos),), pos)


def _check_state(cx: Context, name: str, at: int, known: set[str]) -> None:
    if name not in known:
        cx.unit.reporter.error(at, f"there is no state '{name}'")


def _groups(given: tuple[ast.Expr, ...]) -> list[int]:
    """How many expressions each element of a select's list stands for, nested lists flattened."""
    return [sum(_groups(e.items)) if isinstance(e, ast.ListOf) else 1 for e in given]


def _flat(
    cx: Context, items: tuple[ast.Expr, ...], subjects: tuple[ast.Expr, ...], note: tuple[int, str]
) -> tuple[ast.Expr, ...]:
    """Keysets flattened as the subjects are; ``_`` for a nested list is one for each of its parts."""
    found: list[ast.Expr] = []
    if len(items) != len(subjects):
        at = items[0].at if items else 0
        cx.unit.reporter.fail(at, f"{len(items)} keysets for a select with {len(subjects)} expressions", note)
    for item, subject in zip(items, subjects, strict=True):
        if not isinstance(subject, ast.ListOf):
            found.append(item)
        elif isinstance(item, ast.DontCare):
            found += [item] * _groups((subject,))[0]
        elif isinstance(item, ast.ListOf):
            found += _flat(cx, item.items, subject.items, note)
        else:
            cx.unit.reporter.fail(item.at, "a list of keysets is needed here", note)
    return tuple(found)


def _transition(cx: Context, t: ast.Transition, known: set[str]) -> ir.Transition:
    pos = cx.pos(t.at)
    if t.subjects is None:
        _check_state(cx, t.state, t.at, known)
        return _to(t.state, pos)
    subjects = _subjects(cx, t.subjects)
    cases: list[ir.SelectCase] = []
    for case in t.cases:
        _check_state(cx, case.state, case.at, known)
        try:
            keysets = _keysets(cx, case.keyset, subjects, t)
        except Reported:
            keysets = ()
        cases.append(ir.SelectCase(keysets, case.state, cx.pos(case.at)))
    if not t.cases:
        cx.unit.reporter.warn(t.at, "this select has no cases: it rejects")
    return ir.Transition(subjects, tuple(cases), pos)


def _subjects(cx: Context, given: tuple[ast.Expr, ...]) -> tuple[ir.Expr, ...]:
    found: list[ir.Expr] = []
    for e in given:
        expr = evaluate.value(cx, e)
        parts = expr.elements if isinstance(expr, ir.Aggregate) and isinstance(expr.type, Tuple) else (expr,)
        for part in parts:
            if not isinstance(strip(part.type), Bits | Bool | Enum | SerEnum | Error):
                cx.unit.reporter.fail(e.at, f"select cannot choose by a value of type {part.type}")
        found.extend(parts)
    return tuple(found)


def _keysets(cx: Context, e: ast.Expr, subjects: tuple[ir.Expr, ...], select: ast.Transition) -> tuple[ir.Keyset, ...]:
    """One keyset a subject; a value set of a struct or tuple stands for all of them at once."""
    if isinstance(e, ast.DontCare):
        return tuple(ir.AnySet() for _ in subjects) or (ir.AnySet(),)
    note = (select.at, "the select is here")
    if isinstance(e, ast.Name):
        entity = cx.scope.find(e.name, e.at)
        if isinstance(entity, ValueSetEntity):
            return (_value_set(cx, e, entity.value_set, subjects, note),)
    given = select.subjects or ()
    items = e.items if isinstance(e, ast.ListOf) else (e,)
    if len(given) == 1 and isinstance(given[0], ast.ListOf) and isinstance(e, ast.ListOf):
        given = given[0].items
    items = _flat(cx, items, given, note) if any(isinstance(g, ast.ListOf) for g in given) else items
    if len(items) != len(subjects):
        cx.unit.reporter.fail(e.at, f"{len(items)} keysets for a select with {len(subjects)} expressions", note)
    return tuple(_keyset(cx, i, s.type, note) for i, s in zip(items, subjects, strict=True))


def _leaves(type_: Type) -> tuple[Type, ...]:
    bare = strip(type_)
    if isinstance(bare, Struct):
        return tuple(leaf for f in bare.fields for leaf in _leaves(f.type))
    if isinstance(bare, Tuple):
        return tuple(leaf for e in bare.elements for leaf in _leaves(e))
    return (type_,)


def _value_set(
    cx: Context, e: ast.Name, found: ir.ValueSet, subjects: tuple[ir.Expr, ...], note: tuple[int, str]
) -> ir.Keyset:
    bare = strip(found.type)
    wanted = _leaves(bare) if isinstance(bare, Struct | Tuple) else (found.type,)
    if tuple(s.type for s in subjects) != wanted:
        have = ", ".join(str(s.type) for s in subjects)
        cx.unit.reporter.fail(e.at, f"value set '{found.name}' holds {found.type}, which does not match ({have})", note)
    return found


def _keyset(cx: Context, e: ast.Expr, type_: Type, note: tuple[int, str]) -> ir.Keyset:
    if isinstance(e, ast.DontCare):
        return ir.AnySet()
    if isinstance(e, ast.Name):
        entity = cx.scope.find(e.name, e.at)
        if isinstance(entity, ValueSetEntity):
            if entity.value_set.type != type_:
                cx.unit.reporter.fail(e.at, f"value set '{e.name}' holds {entity.value_set.type}, not {type_}", note)
            return entity.value_set
    if isinstance(e, ast.MaskOf):
        return ir.MaskSet(_part(cx, e.value, type_), _part(cx, e.mask, type_))
    if isinstance(e, ast.RangeOf):
        return ir.RangeSet(_part(cx, e.low, type_), _part(cx, e.high, type_))
    found = evaluate.value(cx, e)
    if isinstance(type_, SerEnum) and found.type == type_.base:
        found = convert.cast(cx, found, type_, e.at)
    if any(isinstance(n, ir.FunctionCall | ir.ExternCall) for n in walk(found)):
        cx.unit.reporter.fail(e.at, "functions cannot be called in a keyset")
    return ir.ExactSet(convert.coerce(cx, found, type_, e.at, "this keyset", note))


def _part(cx: Context, e: ast.Expr, type_: Type) -> ir.Expr:
    """A bound or mask: of the subject's type, a serialisable enum's as its bits."""
    base = type_.base if isinstance(type_, SerEnum) else type_
    if not isinstance(strip(base), Bits):
        cx.unit.reporter.fail(e.at, f"masks and ranges need bit strings, not {type_}")
    found = convert.coerce(cx, evaluate.value(cx, e), base, e.at, "this keyset")
    if not evaluate.is_constant(found):
        cx.unit.reporter.fail(e.at, "masks and ranges must be compile-time constants")
    return found


def value_set(cx: Context, decl: ast.ValueSetDecl) -> ValueSetEntity:
    """A value set of a parser instance (spec 13.6)."""
    type_ = type_refs.resolve(cx, decl.type)
    if not isinstance(strip(type_), Bits | Bool | Enum | SerEnum | Error | Struct | Tuple):
        cx.unit.reporter.fail(decl.at, f"a value set cannot hold values of type {type_}")
    size = evaluate.constant_int(cx, decl.size, "the size of a value set")
    if size <= 0:
        cx.unit.reporter.fail(decl.size.at, "the size of a value set must be positive")
    made = ir.ValueSet(cx.full_name(decl.name, decl.annotations), type_, size, cx.pos(decl.at), decl.annotations)
    cx.unit.value_sets.append(made)
    return ValueSetEntity(decl.at, made)
