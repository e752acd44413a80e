"""Mutations of a program: the same program with one small fault.

They are made on the typed IR, so that a condition, an operand or a register access is changed, not a piece of text. A
construct that occurs once in the text is mutated in all instances of its control at once, as a wrong line would be.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from p4gen.errors import Pos
from p4gen.p4 import ir
from p4gen.p4.compile import Compiled
from p4gen.p4.mutate.expressions import (
    argument_variants,
    condition_variants,
    misplaced,
    parts_kept,
    variants,
    zero_of,
)
from p4gen.p4.mutate.rewrite import rewritten
from p4gen.p4.show import expression, select_case, statement
from p4gen.p4.simplify import simplified
from p4gen.p4.walk import used_by, walk

DROPPED = "(dropped)"


@dataclass(frozen=True)
class Ignored:
    """A table's key field that matches every value."""

    table: str
    key: int


@dataclass(frozen=True, eq=False)
class Mutant:
    """A small change at ``pos``: in ``where`` (apply, an action, a table, a parser state) of the control or parser
    ``module``, ``before`` becomes ``after``."""

    module: str
    where: str
    operator: str
    before: str
    after: str
    pos: Pos
    number: int = 1
    """The number among mutations with the same text, in the order of the program."""
    exchanges: list[tuple[object, object]] = field(default_factory=list)
    ignored: tuple[Ignored, ...] = ()

    @property
    def key(self) -> tuple[str, str, str, str, str, int]:
        """The identity of the mutation among those of its program, independent of line numbers."""
        return self.module, self.where, self.operator, self.before, self.after, self.number

    def apply(self, program: ir.Program) -> ir.Program:
        """The program with the change."""
        return rewritten(program, dict(self.exchanges))


def mutants(compiled: Compiled) -> list[Mutant]:
    """All mutations of a program, in the order of its text."""
    program = compiled.program
    declared = sorted((pos.line, name) for name, pos in compiled.declared.items() if pos.file == program.source)
    lines = [line for line, _ in declared]
    found: dict[tuple[object, ...], Mutant] = {}
    counts: dict[tuple[object, ...], int] = {}
    for where, pos, changes in _owners(program):
        if pos.file != program.source:
            continue
        module = declared[bisect_right(lines, pos.line) - 1][1]
        seen: dict[tuple[object, ...], int] = {}
        for change in changes:
            before, after = _cut(change.before, change.after)
            at = (module, where, change.pos, change.operator, before, after)
            seen[at] = seen.get(at, 0) + 1
            mutant = found.get((*at, seen[at]))
            if mutant is None:
                text = (module, where, change.operator, before, after)
                counts[text] = counts.get(text, 0) + 1
                mutant = Mutant(module, where, change.operator, before, after, change.pos, counts[text])
                found[(*at, seen[at])] = mutant
            mutant.exchanges.append((change.old, change.new))
            if change.ignored is not None:
                found[(*at, seen[at])] = replace(mutant, ignored=(*mutant.ignored, change.ignored))
    return sorted(found.values(), key=lambda m: (m.pos.line, m.pos.column))


@dataclass(frozen=True, eq=False)
class _Change:
    """A change from ``old`` to ``new``, with the texts ``before`` and ``after``."""

    operator: str
    before: str
    after: str
    pos: Pos
    old: object
    new: object
    ignored: Ignored | None = None


def _owners(program: ir.Program) -> Iterator[tuple[str, Pos, Iterator[_Change]]]:
    """All objects with code: their names in reports, the positions of their declarations, and the possible changes.

    Bodies of methods are left out: they may refer to the instance that they belong to.
    """
    seen: set[object] = {method for extern in program.externs for method in extern.methods.values()}
    for block in program.blocks.values():
        used = used_by(block)
        for owner in (*used.blocks, *used.functions, *used.tables):
            if owner not in seen:
                seen.add(owner)
                yield from _owned(owner)


def _owned(owner: object) -> Iterator[tuple[str, Pos, Iterator[_Change]]]:
    match owner:
        case ir.Control(locals=locals_, body=body, pos=pos):
            yield "apply", pos, _statements((*locals_, body))
        case ir.Parser(locals=locals_, states=states, pos=pos):
            yield "locals", pos, _statements(locals_)
            for state in states.values():
                yield state.name, pos, _statements(state.body)
                yield state.name, pos, _transition(state.transition)
        case ir.Function(name=name, body=body, pos=pos):
            yield name.rpartition(".")[2], pos, _statements(body)
        case ir.Table(name=name, pos=pos):
            yield name.rpartition(".")[2], pos, _keys(owner)


def _statements(code: object) -> Iterator[_Change]:
    for node in walk(code):
        if isinstance(node, ir.Stmt):
            before = statement(node)
            texts = {before, _simple(node)}
            for operator, new in _changed(node):
                after = statement(new) if new is not None else DROPPED
                simple = _simple(new) if new is not None else DROPPED
                if simple in texts or after in texts:
                    continue
                texts |= {simple, after}
                if isinstance(node, ir.If) and operator == _ELSE:
                    before, after = f"{before} … else …", f"{before} …"
                yield _Change(operator, before, after, node.pos, node, new or ir.Block(node.pos, ()))
                before = statement(node)


def _cut(before: str, after: str) -> tuple[str, str]:
    """The differing parts of long texts with a few words around them."""
    if len(before) < _LONG or after == DROPPED:
        return before if len(before) < _LONG else before[:_LONG] + " …", after
    one, two = before.split(" "), after.split(" ")
    shorter = min(len(one), len(two))
    first = next((i for i in range(shorter) if one[i] != two[i]), shorter)
    last = next((i for i in range(shorter - first) if one[-1 - i] != two[-1 - i]), shorter - first)
    first, last = max(first - _AROUND, 0), max(last - _AROUND, 0)
    cut = (" ".join(words[first : len(words) - last]) for words in (one, two))
    before, after = (("… " if first else "") + text + (" …" if last else "") for text in cut)
    return before, after


_LONG, _AROUND = 120, 2
_ELSE = "else dropped"


def _changed(s: ir.Stmt) -> Iterator[tuple[str, ir.Stmt | None]]:
    """Variants of ``s`` that differ in one place; None stands for no statement."""
    match s:
        case ir.Assign(target=target, value=value):
            yield "dropped", None
            yield from ((what, replace(s, value=new)) for what, new in variants(value))
            if isinstance(value, ir.Binary) and value.op == "++":
                yield from ((what, replace(s, value=new)) for what, new in parts_kept(target, value))
            yield from ((what, replace(s, target=new)) for what, new in misplaced(target))
        case ir.Declare(init=init) if init is not None:
            if (zero := zero_of(init)) is not None:
                yield "dropped", replace(s, init=zero)
            yield from ((what, replace(s, init=new)) for what, new in variants(init))
        case ir.Evaluate(expr=expr):
            yield "dropped", None
            yield from ((what, replace(s, expr=new)) for what, new in variants(expr))
        case ir.ApplyBlock(args=args):
            yield "dropped", None
            yield from ((what, replace(s, args=new)) for what, new in argument_variants(args))
        case ir.If(condition=condition, otherwise=otherwise):
            yield from ((what, replace(s, condition=new)) for what, new in condition_variants(condition))
            if otherwise is not None:
                yield _ELSE, replace(s, otherwise=None)
        case ir.Switch():
            yield from _cases(s)
        case ir.Emit():
            yield "dropped", None
            yield "repeated", ir.Block(s.pos, (s, s))
        case ir.SetValidity() | ir.Extract() | ir.Verify() | ir.Return() | ir.Exit() | ir.Advance():
            yield "dropped", None


def _cases(s: ir.Switch) -> Iterator[tuple[str, ir.Stmt]]:
    yield from (("constant", replace(s, subject=new)) for _, new in variants(s.subject))
    for i, case in enumerate(s.cases):
        for k in range(len(case.labels)):
            labels = (*case.labels[:k], *case.labels[k + 1 :])
            rest = (replace(case, labels=labels),) if labels else ()
            yield (
                f"case {expression(case.labels[k])} dropped",
                replace(s, cases=(*s.cases[:i], *rest, *s.cases[i + 1 :])),
            )


def _transition(t: ir.Transition) -> Iterator[_Change]:
    for i, case in enumerate(t.cases):
        before = select_case(case)
        if len(t.cases) > 1:
            without = replace(t, cases=(*t.cases[:i], *t.cases[i + 1 :]))
            yield _Change("case dropped", before, DROPPED, case.pos, t, without)
        for k, keyset in enumerate(case.keysets):
            if t.subjects and not isinstance(keyset, ir.AnySet):
                new = replace(case, keysets=(*case.keysets[:k], ir.AnySet(), *case.keysets[k + 1 :]))
                cases = (*t.cases[:i], new, *t.cases[i + 1 :])
                yield _Change("any value", before, select_case(new), case.pos, t, replace(t, cases=cases))
            if isinstance(keyset, ir.ExactSet):
                for what, value in variants(keyset.expr):
                    new = replace(case, keysets=(*case.keysets[:k], ir.ExactSet(value), *case.keysets[k + 1 :]))
                    cases = (*t.cases[:i], new, *t.cases[i + 1 :])
                    yield _Change(what, before, select_case(new), case.pos, t, replace(t, cases=cases))


def _keys(table: ir.Table) -> Iterator[_Change]:
    for i, key in enumerate(table.keys):
        before = f"{expression(key.expr)}: {key.match_kind};"

        def keyed(new: ir.Expr, i: int = i, key: ir.Key = key) -> ir.Table:
            return replace(table, keys=(*table.keys[:i], replace(key, expr=new), *table.keys[i + 1 :]))

        if not table.entries:
            ignored = keyed(ir.Literal(key.expr.type, key.pos, 0))
            yield _Change("key ignored", before, DROPPED, key.pos, table, ignored, Ignored(table.name, i))
        for what, new in misplaced(key.expr):
            yield _Change(what, before, f"{expression(new)}: {key.match_kind};", key.pos, table, keyed(new))


def _simple(s: ir.Stmt) -> str:
    """The text of a statement with simplified expressions; equal texts have equal behaviour."""
    match s:
        case ir.Assign(value=value):
            return statement(replace(s, value=simplified(value)))
        case ir.Declare(init=init) if init is not None:
            return statement(replace(s, init=simplified(init)))
        case ir.If(condition=condition, otherwise=otherwise):
            return statement(replace(s, condition=simplified(condition))) + (" else" if otherwise is not None else "")
        case ir.Switch(cases=cases):
            return statement(s) + "".join(
                f" {len(case.labels)}:{[expression(x) for x in case.labels]}" for case in cases
            )
    return statement(s)
