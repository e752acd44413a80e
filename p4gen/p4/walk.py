"""Walking the IR: every statement and expression below a node, in source order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, TypeVar

from p4gen.p4 import ir

_LEAVES = (ir.Function, ir.Table, ir.Control, ir.Parser, ir.ExternInstance, ir.Variable, ir.ValueSet)


_SKIPPED = {"pos", "type", "annotations", "type_args", "name", "op"}
_ATOMS = {"str", "int", "bool", "int | bool | str"}
"""Types of fields that contain no nodes."""
N = TypeVar("N", bound=ir.Expr | ir.Stmt)


@cache
def _shape(kind: type[object]) -> tuple[bool, tuple[str, ...], Callable[[Any], Any] | None]:
    """Whether nodes of a kind are statements or expressions; the fields to look into, the last one first; and what gets
    them: one field's value, or a tuple of several."""
    if issubclass(kind, _LEAVES) or not is_dataclass(kind):
        return False, (), None
    names = tuple(f.name for f in reversed(fields(kind)) if f.name not in _SKIPPED and f.type not in _ATOMS)
    return issubclass(kind, ir.Expr | ir.Stmt), names, attrgetter(*names) if names else None


def walk(node: object) -> Iterator[ir.Expr | ir.Stmt]:
    """``node`` and what it is made of; functions, tables and blocks it refers to are not entered."""
    todo: list[Any] = [node]
    while todo:
        found = todo.pop()
        kind = type(found)
        if kind is tuple:
            todo.extend(found[::-1])
            continue
        wanted, names, parts = _shape(kind)  # type: ignore[arg-type]  # mypy takes type() of Any for unhashable
        if parts is not None:
            (todo.extend if len(names) > 1 else todo.append)(parts(found))
        if wanted:
            yield found


def rebuilt(node: N, **parts: Any) -> N:
    """``node`` with other parts; ``node`` itself if it has these already."""
    return node if all(getattr(node, name) is part for name, part in parts.items()) else replace(node, **parts)


@lru_cache(maxsize=16)
def used_by(block: ir.Control | ir.Parser) -> Used:
    """All that a top-level block reaches: the sub-blocks and tables it applies, the functions and actions it calls.

    The same object each time: rules and back ends ask for it one after the other.
    """
    used = Used()
    used.block(block)
    return used


def _called(nodes: Iterable[ir.Expr | ir.Stmt]) -> Iterator[ir.Function]:
    for node in nodes:
        if isinstance(node, ir.FunctionCall):
            yield from _called(walk(node.callee.body)) if node.callee.reorders else (node.callee,)


class Used:
    """Objects in the order they are first reached."""

    def __init__(self) -> None:
        self.blocks: dict[ir.Control | ir.Parser, None] = {}
        self.tables: dict[ir.Table, None] = {}
        self.functions: dict[ir.Function, None] = {}
        self.called: dict[ir.Function, None] = {}
        """The elements of ``functions`` that an apply block calls itself."""
        self.calls: list[ir.ExternCall] = []
        self.value_sets: dict[ir.ValueSet, None] = {}

    def code(self, body: ir.Stmt) -> ir.Stmt:
        """The part of ``body`` to look at: all of it."""
        return body

    def states(self, parser: ir.Parser) -> Iterable[ir.ParserState]:
        """The states to look at: all of them."""
        return parser.states.values()

    def block(self, block: ir.Control | ir.Parser) -> None:
        """Add ``block`` and all it reaches."""
        if block in self.blocks:
            return
        self.blocks[block] = None
        self._scan(block.locals)
        if isinstance(block, ir.Control):
            nodes = tuple(walk(self.code(block.body)))
            self.called.update(dict.fromkeys(_called(nodes)))
            self._reach(nodes)
            return
        for state in self.states(block):
            self._scan((state.body, state.transition))
            for case in state.transition.cases:
                self.value_sets.update((k, None) for k in case.keysets if isinstance(k, ir.ValueSet))

    def _scan(self, root: object) -> None:
        self._reach(walk(root))

    def _reach(self, nodes: Iterable[ir.Expr | ir.Stmt]) -> None:
        for node in nodes:
            match node:
                case ir.ApplyBlock(block=block):
                    self.block(block)
                case ir.ApplyTable(table=table):
                    self._table(table)
                case ir.FunctionCall(callee=callee):
                    self._function(callee)
                case ir.ExternCall(instance=instance):
                    self.calls.append(node)
                    for method in instance.methods.values() if instance is not None else ():
                        self._function(method)

    def _table(self, table: ir.Table) -> None:
        if table in self.tables:
            return
        self.tables[table] = None
        for key in table.keys:
            self._scan(key.expr)
        for ref in table.actions:
            self._scan(ref.bound)
            self._function(ref.action)

    def _function(self, function: ir.Function) -> None:
        if function in self.functions:
            return
        self.functions[function] = None
        self._scan(self.code(function.body))
