"""Walks over an automaton that take each of its transitions: for a switch whose states only packets can lead to."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

Automaton = Mapping[int, Sequence[tuple[T, int]]]
"""By state: its transitions, each with the state that it leads to."""


def walks(automaton: Automaton[T], first: int) -> Iterator[list[T]]:
    """Walks that begin in the first state and together take each transition that can be reached from there.

    Each goes on to the nearest transition that none has taken yet, and ends when it cannot reach any.
    """
    left = {state: deque(transitions) for state, transitions in automaton.items()}
    while True:
        here, walk = first, list[T]()
        while (way := _nearest(automaton, left, here)) is not None:
            steps, there = way
            step, here = left[there].popleft()
            walk += [*steps, step]
        if not walk:
            return
        yield walk


def _nearest(
    automaton: Automaton[T], left: Mapping[int, deque[tuple[T, int]]], here: int
) -> tuple[list[T], int] | None:
    """The shortest way to a state with transitions that are left; None if there is none."""
    came: dict[int, tuple[int, T] | None] = {here: None}
    waiting = deque([here])
    while waiting:
        state = waiting.popleft()
        if left.get(state):
            there, steps = state, list[T]()
            while (before := came[state]) is not None:
                state, step = before
                steps.append(step)
            return steps[::-1], there
        for step, after in automaton.get(state, ()):
            if after not in came:
                came[after] = state, step
                waiting.append(after)
    return None
