"""Finds objects by their full P4Info name or a unique suffix of it, with an error that lists the alternatives."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

from p4gen.model.errors import ControlError

T = TypeVar("T")


def find(kind: str, name: str, among: Mapping[str, T], where: str = "") -> T:
    """The object whose name is ``name`` or ends in ``.name``.

    Raises ``ControlError``: ``table foo: no table of that name; there are …``.
    """
    if name in among:
        return among[name]
    found = [n for n in among if n.endswith("." + name)]
    if len(found) == 1:
        return among[found[0]]
    head = f"{where}{kind} {name}"
    if found:
        raise ControlError(f"{head}: the name is ambiguous: {', '.join(found)}")
    raise ControlError(f"{head}: no {kind} of that name; {alternatives(name, among)}")


def alternatives(name: str, names: Iterable[str], limit: int = 8) -> str:
    """``there are a, b and c``, the closest first, for the end of an error message."""
    every = list(names)
    if not every:
        return "there are none"
    short = name.rsplit(".", 1)[-1]
    ranked = sorted(every, key=lambda n: -difflib.SequenceMatcher(None, short, n.rsplit(".", 1)[-1]).ratio())
    more = f" and {len(every) - limit} more" if len(every) > limit else ""
    return f"there {'is' if len(every) == 1 else 'are'} {', '.join(ranked[:limit])}{more}"
