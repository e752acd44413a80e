"""Edges that a switch has given up are left at once on an idle machine, and later on a busy one."""

from __future__ import annotations

from itertools import count

from p4gen.manager.switches.givenup import LONGEST, GivenUp

EDGE = 7


def looks(answer: float, *, healthy_at: int = -1) -> int | None:
    """The second of the look at which an edge that ticks find given up is left; None if it is not in 200 looks."""
    edges, ticks = GivenUp(), 0
    for second in range(200):
        ticks += second != healthy_at
        if EDGE in edges.dead({EDGE: ticks, EDGE + 1: 3}, float(second), answer):
            return second
    return None


def test_on_an_idle_machine_at_the_first_look_that_finds_it() -> None:
    assert looks(0.005) == 1


def test_on_a_busy_machine_after_a_hundred_answers_but_not_for_ever() -> None:
    assert looks(0.2) == 20
    assert looks(1e6) == LONGEST


def test_an_edge_that_makes_progress_meanwhile_begins_again() -> None:
    assert looks(0.2, healthy_at=15) == 15 + 20


def test_it_follows_the_machine() -> None:
    edges, ticks = GivenUp(), count()
    assert [bool(edges.dead({EDGE: next(ticks)}, float(at), 1.0)) for at in range(5)] == [False] * 5
    assert edges.dead({EDGE: next(ticks)}, 5.0, 0.01) == {EDGE}
