"""Replacement of nodes in a program: nodes that refer to replaced ones are rebuilt, everything else is shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from p4gen.p4 import ir

_KEPT = (ir.Variable, ir.ExternInstance, ir.ValueSet, ir.Param)


def rewritten(program: ir.Program, exchanges: Mapping[object, object]) -> ir.Program:
    """``program`` with each node that is a key of ``exchanges``, by identity, replaced with its value.

    New nodes are not searched, so one exchange must not be inside another's.
    """
    return _Rewriter({id(old): new for old, new in exchanges.items()}).program(program)


@cache
def _fields(kind: type[Any]) -> tuple[str, ...]:
    """The fields of a kind of nodes that may contain nodes; none for kinds that are not rebuilt."""
    if not kind.__module__.startswith(f"{ir.__name__}.") or kind in _KEPT:
        return ()
    skip = {"pos", "type", "name", "annotations", "type_args", "op"}
    return tuple(f.name for f in fields(kind) if f.name not in skip)


class _Rewriter:
    def __init__(self, done: dict[int, object]) -> None:
        self._done = done

    def program(self, program: ir.Program) -> ir.Program:
        new = self._node(program)
        assert isinstance(new, ir.Program)
        return new

    def _node(self, node: Any) -> Any:
        if isinstance(node, tuple):
            new = tuple(map(self._node, node))
            return node if all(a is b for a, b in zip(node, new, strict=True)) else new
        if isinstance(node, dict):
            return {key: self._node(value) for key, value in node.items()}
        names = _fields(type(node))  # type: ignore[arg-type]  # mypy takes type() of Any for unhashable
        if not names:
            return node
        if (found := self._done.get(id(node))) is not None:
            return found
        changes = {}
        for name in names:
            old = getattr(node, name)
            new = self._node(old)
            if new is not old and (not isinstance(old, dict) or any(new[k] is not old[k] for k in old)):
                changes[name] = new
        built = self._done[id(node)] = replace(node, **changes) if changes else node
        return built
