"""Reduces a sequence that shows a difference to a minimal one (delta debugging)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def shortest_tail(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """The shortest tail of 1, 2, 4, … items that fails; all items if no shorter tail does."""
    size = 1
    while size < len(items):
        if fails(items[-size:]):
            return list(items[-size:])
        size *= 2
    return list(items)


def minimise(items: Sequence[T], fails: Callable[[Sequence[T]], bool], seconds: float = 120.0) -> list[T]:
    """A failing subsequence from which no single item can be removed (Zeller's ddmin).

    ``items`` itself must fail. After ``seconds``, the shortest failing subsequence found so far is returned.
    """
    deadline = time.monotonic() + seconds
    current = list(items)
    parts = 2
    while len(current) >= 2 and time.monotonic() < deadline:
        size = max(len(current) // parts, 1)
        for start in range(0, len(current), size):
            shorter = current[:start] + current[start + size :]
            if shorter and fails(shorter):
                current, parts = shorter, max(parts - 1, 2)
                break
            if time.monotonic() > deadline:
                break
        else:
            if size == 1:
                break
            parts = min(parts * 2, len(current))
    return current
