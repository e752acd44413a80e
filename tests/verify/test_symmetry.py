"""Symmetry: one state for each that exchanges make of it, the same verdicts, and ways that can be played."""

from __future__ import annotations

from typing import Any

import pytest

from p4gen.errors import InputError
from p4gen.host.collectives.plan import Flow
from p4gen.library.verification import reductions
from p4gen.verification.findings.story import Story, events_of
from p4gen.verification.search.search import Search
from p4gen.verification.search.symmetry import turns_of
from p4gen.verification.system import System
from p4gen.verification.world import Budget
from p4gen.vocabulary.message import Collective
from verify.scopes import scope

SCOPES: dict[str, dict[str, Any]] = {
    "a loss": {"budget": Budget(losses=1), "packets": 2},
    "a duplicate and a delay": {"budget": Budget(duplicates=1, delays=1), "packets": 2},
    "a corruption": {"budget": Budget(corruptions=1), "packets": 2},
    "an early timeout": {"budget": Budget(timeouts=1), "packets": 2},
    "two groups": {"groups": 2, "packets": 2, "window": 1},
    "three hosts": {"topology": "star-3", "packets": 2},
    "two leaves": {"topology": "tree-3-2", "packets": 2, "window": 1},
}


@pytest.mark.parametrize("mode", ["II", "III"])
@pytest.mark.parametrize("name", SCOPES)
@pytest.mark.sample(4)
def test_states_stand_for_those_that_there_are(mode: str, name: str) -> None:
    """The sizes of the orbits add up to the number of states, and their transitions to that of transitions."""
    one = scope(mode, **SCOPES[name])
    whole, kept = (Search(System(one), reduce=False, symmetry=each).run() for each in (False, True))
    assert whole.complete
    assert kept.complete
    assert kept.stood == (whole.distinct, whole.transitions)
    assert kept.depth == whole.depth
    assert kept.distinct < whole.distinct * 2 // 3


def test_counts_do_not_depend_on_the_number_of_workers() -> None:
    one = scope("III", "star-3", budget=Budget(losses=1), packets=2)
    results = [Search(System(one), symmetry=True, workers=workers).run() for workers in (1, 3)]
    assert len({(r.distinct, r.transitions, r.depth, r.ends, r.complete) for r in results}) == 1


@pytest.mark.parametrize(
    ("variant", "fields"),
    [
        ("psn-recycling", {"flow": Flow.ACKS, "window": 1, "packets": 4}),
        ("stale-arrived", {"window": 1, "packets": 4, "budget": Budget(duplicates=1)}),
        ("no-nak", {"budget": Budget(losses=1)}),
        ("nak-storm", {"budget": Budget(losses=1)}),
    ],
)
@pytest.mark.long
def test_a_wrong_design_is_found_as_soon(variant: str, fields: dict[str, Any]) -> None:
    """What is printed can be played, and shows what is said to be wrong."""
    system = System(scope("III", variant=variant, **fields))
    shortest = Search(System(system.scope), reduce=False).run().problem
    problem = Search(system, reduce=False, symmetry=True).run().problem
    reduced = Search(System(system.scope), symmetry=True).run().problem
    assert shortest is not None
    assert problem is not None
    assert reduced is not None
    assert reduced.property == shortest.property
    assert (problem.property, len(problem.events)) == (shortest.property, len(shortest.events))
    story = Story(System(system.scope))
    for event in events_of(system, problem.events):
        story.play(event)
    if variant != "no-nak":
        assert problem.property in story.violations()
        assert problem.text in story.text()


def test_exchanges_keep_links_and_roots() -> None:
    assert len(turns_of(System(scope("III", "tree-3-2")))) == 8
    assert len(turns_of(System(scope("III", "star-3")))) == 6
    assert len(turns_of(System(scope("III", "star-3", collectives=(Collective.REDUCE,))))) == 2


def test_parts_that_differ_are_not_exchanged() -> None:
    """Nobody says that the root differs: what is learned does."""
    system = System(scope("III", "star-3", packets=2, collectives=(Collective.BROADCAST,)))
    assert Search(system, symmetry=True).run().complete
    system.unlike = ()
    with pytest.raises(InputError, match="--reduction symmetry: "):
        Search(system, symmetry=True).run()


def test_reductions_are_a_list() -> None:
    assert [reductions(text) for text in ("por", "por,symmetry", "none")] == [
        (True, False),
        (True, True),
        (False, False),
    ]
    for wrong in ("none,por", "", "all"):
        with pytest.raises(ValueError, match="neither por nor symmetry"):
            reductions(wrong)
