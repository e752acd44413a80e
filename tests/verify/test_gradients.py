"""ATP in a search of states: sums are right whatever is lost, late or repeated, but workers may wait for a timer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p4gen.errors import InputError
from p4gen.library.search_options import SearchOptions
from p4gen.library.verification import scope_of
from p4gen.papers.atp.verification.searching import GradientScope, ladder
from p4gen.ptf.family import conformance_of
from p4gen.verification.findings.confirm import confirm
from p4gen.verification.findings.counterexample import play, save, story_of
from p4gen.verification.findings.results import Problem
from p4gen.verification.search.search import Search
from p4gen.verification.system import System


def scope(topology: str = "star-2", fields: dict[str, Any] | None = None, **options: Any) -> GradientScope:
    """The scope of options, with two packets, and no losses unless they say so."""
    asked = SearchOptions.checked({"loss": 0, "packets": 2, **options})
    found = scope_of(topology, None, {"mode": "atp", **(fields or {})}, asked)
    assert isinstance(found, GradientScope)
    return found


def search(of: GradientScope, *, reduce: bool = True) -> Search:
    return Search(System(of), reduce=reduce, workers=1)


def shortest(of: GradientScope) -> Problem:
    problem = search(of, reduce=False).run().problem
    assert problem is not None
    return problem


@pytest.mark.parametrize(
    "options",
    [{"loss": 2, "timeouts": 1}, {"loss": 1, "duplicate": 1}, {"loss": 1, "reorder": 1}, {"loss": 1, "forge": 1}],
    ids=str,
)
def test_sums_are_right(options: dict[str, Any]) -> None:
    """Two packets share one aggregator."""
    result = search(scope(**options)).run()
    assert result.complete, result.sentence()
    assert result.problem is None


@pytest.mark.parametrize("name", ["two racks and an early timeout"])
def test_sums_of_racks_are_right(name: str) -> None:
    of = dict(ladder(scope().program))[name]
    result = search(of).run()
    assert result.complete, result.sentence()
    assert result.problem is None


def test_a_collision_makes_workers_wait_though_nothing_is_lost(tmp_path: Path) -> None:
    """One worker's packet has met another packet's aggregator and gone on, and the other worker's has taken it
    afterwards: the sum stays there until somebody sends again. Packets with places of their own do not wait."""
    of = scope()
    problem = shortest(of)
    assert problem.property == "progress"
    assert len(problem.events) == 9
    story = story_of(System(of), problem.events)
    (schedule,) = (path for path in save(story, problem, tmp_path) if path.suffix == ".yaml")
    again, _ = play(schedule)
    assert again.system.scope.as_data() == of.as_data()
    assert search(scope(fields={"aggregators": 4})).run().problem is None


def test_adding_whatever_has_a_new_worker_counts_another_one_twice() -> None:
    """The rule of the authors' program, at the server's switch: a packet that has met a collision at its rack is in the
    sum already when the rack's sum comes, which was asked for by a packet that is sent again."""
    of = dict(ladder(scope().program))["two racks and an early timeout"]
    seeding = conformance_of(of.program).seeding(of.program)
    (fault,) = (each for each in seeding.mutations if each.name == "any-new-worker-adds")
    problem = shortest(replace(of, fault=fault))
    assert (problem.property, len(problem.events)) == ("results", 20)


def test_steps_are_the_same_on_the_interpreter() -> None:
    searching = search(scope(loss=1, duplicate=1))
    assert searching.run().complete
    assert not confirm(searching.knowledge, "interp").difference


@pytest.mark.parametrize(
    ("topology", "options", "cause"),
    [
        ("star-2", {"corrupt": 1}, "nothing in a packet covers its elements"),
        ("star-2", {"first_psn": "7"}, "packets have no PSNs"),
        ("star-2", {"packets": 16}, "15 packets at most"),
        ("star-8", {}, "4 workers"),
    ],
)
def test_wrong_scopes_are_refused(topology: str, options: dict[str, Any], cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        System(scope(topology, **options))
