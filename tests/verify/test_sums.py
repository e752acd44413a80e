"""SwitchML in a search of states: Algorithm 3 stands losses, and falls when packets change their order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from p4gen.errors import InputError
from p4gen.library.search_options import SearchOptions
from p4gen.library.verification import scope_of
from p4gen.papers.switchml.verification.searching import SumScope
from p4gen.ptf.family import conformance_of
from p4gen.verification.findings.confirm import confirm
from p4gen.verification.findings.counterexample import play, save, story_of
from p4gen.verification.findings.results import Problem
from p4gen.verification.findings.scenario import trial_in_process, write
from p4gen.verification.search.search import Search
from p4gen.verification.system import System


def scope(topology: str = "star-2", fields: dict[str, Any] | None = None, **options: Any) -> SumScope:
    """The scope of options, with no losses unless they say so."""
    asked = SearchOptions.checked({"loss": 0, **options})
    found = scope_of(topology, None, {"mode": "switchml", **(fields or {})}, asked)
    assert isinstance(found, SumScope)
    return found


def search(of: SumScope, *, reduce: bool = True) -> Search:
    return Search(System(of), reduce=reduce, workers=1)


def shortest(of: SumScope) -> Problem:
    problem = search(of, reduce=False).run().problem
    assert problem is not None
    return problem


@pytest.mark.parametrize("options", [{"loss": 1, "timeouts": 1}, {"forge": 1}, {"corrupt": 1, "reorder": 1}], ids=str)
def test_writes_stand_what_datagrams_stand(options: dict[str, Any]) -> None:
    """And damage: the ICRC covers elements."""
    result = search(scope(fields={"transport": "roce"}, **options)).run()
    assert result.complete, result.sentence()
    assert result.problem is None


@pytest.mark.parametrize("how", ["checked", "carried"])
@pytest.mark.parametrize("options", [{}, {"loss": 2, "timeouts": 2}, {"forge": 1}, {"loss": 1, "stale": True}], ids=str)
def test_losses_and_early_timeouts_change_no_sum(how: str, options: dict[str, Any]) -> None:
    result = search(scope(fields={"offsets": how}, **options)).run()
    assert result.complete, result.sentence()
    assert result.problem is None


@pytest.mark.parametrize("options", [{"reorder": 1}, {"duplicate": 1}], ids=str)
def test_the_papers_program_needs_links_that_keep_order(options: dict[str, Any], tmp_path: Path) -> None:
    """A vector that is late clears its worker's bit in the present version, so that the next use of the version that it
    is for begins with it. The run of every counterexample is a scenario, which the sound program passes."""
    of = scope(fields={"offsets": "carried"}, **options)
    problem = shortest(of)
    assert problem.property == "results"
    assert "element 64 is" in problem.text
    assert search(scope(**options)).run().complete
    story = story_of(System(of), problem.events)
    assert "slot 0 version 0 offset 0 arrives late; sends nothing" in story.text()
    (schedule,) = (path for path in save(story, problem, tmp_path) if path.suffix == ".yaml")
    again, _ = play(schedule)
    assert again.system.scope.as_data() == of.as_data()
    assert write(story_of(System(of), problem.events), problem.text, tmp_path) is not None
    assert trial_in_process(of, "s0", tmp_path) == (False, True)


@pytest.mark.long
def test_more_slots_workers_and_faults() -> None:
    of = scope("star-3", {"slots": 2}, packets=5, loss=1, reorder=1)
    assert search(of).run().complete


def test_steps_are_the_same_on_the_interpreter() -> None:
    searching = search(scope(loss=1, duplicate=1))
    assert searching.run().complete
    assert not confirm(searching.knowledge, "interp").difference


def test_what_an_earlier_generation_has_left_is_not_added() -> None:
    of = scope(stale=True)
    seeding = conformance_of(of.program).seeding(of.program)
    (fault,) = (each for each in seeding.mutations if each.name == "generations-counted-on")
    assert shortest(of.with_fault(fault)).property == "results"


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"corrupt": 1}, "nothing in an update covers its elements"),
        ({"first_psn": "7"}, "nobody compares the PSNs of updates"),
        ({"collectives": "reduce"}, "is for groups"),
        ({"packets": 121}, "120 packets at most"),
    ],
)
def test_wrong_scopes_are_refused(options: dict[str, Any], cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        System(scope(**options))
