"""MultiWrite in a search of states: acknowledged means at all destinations, and no token twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from p4gen.cli.app import cli
from p4gen.errors import InputError
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.papers.multiwrite.verification.searching import Sets, WriteScope, named
from p4gen.ptf.family import conformance_of
from p4gen.verification.findings.counterexample import play, save
from p4gen.verification.findings.results import Result
from p4gen.verification.findings.story import Story, events_of
from p4gen.verification.search.search import Search
from p4gen.verification.seeding.hunt import Hunt
from p4gen.verification.system import System
from p4gen.verification.world import Budget
from p4gen.vocabulary.topology import load_topology, packaged

SEEDING = conformance_of(MultiwriteSpec()).seeding(MultiwriteSpec())


def scope(name: str = "star-3", packets: int = 2, budget: Budget | None = None, **fields: Any) -> WriteScope:
    spec = MultiwriteSpec.model_validate({"payload": 64, "contexts": 4, "edges": 4, "slots": 4, "ports": 4} | fields)
    return WriteScope(load_topology(packaged(name)), spec, packets, budget=budget or Budget(losses=1))


def searched(of: WriteScope) -> Result:
    return Search(System(of.with_engine("interp")), reduce=True, workers=1).run()


def seeded(of: WriteScope, fault: str) -> WriteScope:
    (mutation,) = (each for each in SEEDING.mutations if each.name == fault)
    return of.with_fault(mutation)


@pytest.mark.sample(3)
@pytest.mark.parametrize("repair", ["source", "hop"])
@pytest.mark.parametrize("budget", [Budget(losses=1), Budget(duplicates=1), Budget(delays=1)], ids=str)
def test_all_tokens_arrive_once_and_none_is_acknowledged_too_early(repair: str, budget: Budget) -> None:
    result = searched(scope(budget=budget, repair=repair))
    assert result.complete, result.sentence()


def test_a_tree_of_two_tiers() -> None:
    result = searched(scope("tree-3-2", packets=1))
    assert result.complete, result.sentence()


@pytest.mark.parametrize("name", ["star-3", "tree-3-2"])
def test_sums_arrive_once_whatever_is_lost_and_comes_twice(name: str) -> None:
    result = searched(scope(name, budget=Budget(losses=1, duplicates=1), repair="hop", combine="int32"))
    assert result.complete, result.sentence()


@pytest.mark.parametrize("fault", ["outputs-overwritten", "cursor-adds", "source-is-told"])
def test_wrong_sums_are_found(fault: str) -> None:
    of = scope(repair="hop", combine="int32")
    seeding = conformance_of(of.program).seeding(of.program)
    (mutation,) = (each for each in seeding.mutations if each.name == fault)
    assert searched(of.with_fault(mutation)).problem is not None


@pytest.mark.parametrize(
    ("fault", "packets", "losses"),
    [
        ("min-is-max", 2, 1),
        ("repeat-gets-new-psn", 1, 1),
        ("nak-acknowledges-its-own", 2, 1),
        ("gap-nak-of-epsn", 3, 2),
    ],
)
def test_what_is_acknowledged_too_early_is_found(fault: str, packets: int, losses: int) -> None:
    """A packet that is missing somewhere, and that nobody sends any more: no end can be reached."""
    result = searched(seeded(scope(packets=packets, budget=Budget(losses)), fault))
    assert result.problem is not None
    assert result.problem.property == "livelock"


def test_what_no_network_loses_is_not_dropped() -> None:
    result = searched(seeded(scope(), "ack-own-edge-only"))
    assert result.problem is not None
    assert result.problem.property == "drops"


def test_sets_of_destinations_differ() -> None:
    assert [named(token, 4) for token in range(4)] == [(1, 2, 3), (1,), (3,), (1, 2, 3)]
    assert [named(token, 4, Sets.LAST_TWICE) for token in range(4)] == [(1, 2, 3), (3,), (3,), (1, 2, 3)]
    assert "in turn to all, last, last" in replace(scope(), sets=Sets.LAST_TWICE).sentence()


@pytest.mark.parametrize(
    ("fault", "scope"),
    [("subset-of-all", "three tokens"), ("min-is-max", "a loss"), ("nak-overtakes", "")],
)
def test_listed_faults_are_searched_for(fault: str, scope: str) -> None:
    (mutation,) = (each for each in SEEDING.mutations if each.name == fault)
    found = Hunt(SEEDING, states=20_000, scopes=("three tokens", "a loss")).find(mutation)
    assert (found.name, found.missing, found.doubt) == (scope, False, "")
    assert bool(found.why) == (not scope)


def test_what_a_nak_that_overtakes_does_is_no_harm() -> None:
    """The source is answered once more, and by an ACK: why no search finds it, and only the suite does."""
    of = scope(packets=3, budget=Budget(losses=2))
    assert searched(seeded(replace(of, sets=Sets.LAST_TWICE), "nak-overtakes")).complete


def test_a_counterexample_can_be_played_again(tmp_path: Any) -> None:
    of = seeded(scope(packets=1), "repeat-gets-new-psn")
    result = searched(of)
    assert result.problem is not None
    story = Story(System(of))
    for event in events_of(story.system, result.problem.events):
        story.play(event)
    files = save(story, result.problem, tmp_path)
    (schedule,) = (path for path in files if path.suffix == ".yaml")
    again, violated = play(schedule)
    assert again.system.scope.as_data() == of.as_data()
    assert violated == result.problem.property


def test_what_a_scope_refuses() -> None:
    with pytest.raises(InputError, match="5 packets; the program has 4 slots"):
        scope(packets=5).world()
    wrong = CliRunner().invoke(cli, ["verify", "--mode", "multiwrite", "--concurrent", "2"])
    assert str(wrong.exception) == "--concurrent: error: is for groups; multiwrite_r32_x4_subset_p64 serves none"
