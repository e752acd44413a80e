"""The search: the kernel against a plain one, reductions against none, workers against each other, limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from p4gen.compiled import run
from p4gen.errors import FailedError, InputError
from p4gen.host.collectives.plan import Flow
from p4gen.verification.findings.results import Result
from p4gen.verification.scope import GroupScope
from p4gen.verification.search import knowledge
from p4gen.verification.search.search import Search, waits_for
from p4gen.verification.system import System
from p4gen.verification.world import Budget
from p4gen.vocabulary.message import Collective
from verify.reference import search
from verify.scopes import scope

SCOPES: dict[str, dict[str, Any]] = {
    "a loss": {"budget": Budget(losses=1), "packets": 2},
    "a duplicate": {"budget": Budget(duplicates=1), "packets": 2},
    "a delay": {"budget": Budget(delays=1), "packets": 2},
    "a corruption": {"budget": Budget(corruptions=1), "packets": 2},
    "an early timeout": {"budget": Budget(timeouts=1), "packets": 2},
    "a wrap": {"budget": Budget(losses=1), "packets": 2, "first_psn": 0xFFFFFF},
    "two groups": {"groups": 2, "packets": 2, "window": 1},
    "shared slots": {"groups": 2, "packets": 2, "window": 1, "locks": 1},
}


def found(one: GroupScope, *, reduce: bool = False, symmetry: bool = False, workers: int = 1, **limits: Any) -> Result:
    return Search(System(one), reduce=reduce, symmetry=symmetry, workers=workers).run(**limits)


@pytest.mark.sample(4)
@pytest.mark.parametrize("mode", ["II", "III"])
@pytest.mark.parametrize("name", SCOPES)
@pytest.mark.long
def test_the_kernel_finds_what_a_plain_search_finds(mode: str, name: str) -> None:
    one = scope(mode, **SCOPES[name])
    plain, result = search(System(one)), found(one)
    assert result.complete, result.sentence()
    assert (result.distinct, result.transitions, result.ends, 0) == (
        plain.distinct,
        plain.transitions,
        plain.ends,
        plain.wrong,
    )


@pytest.mark.parametrize("mode", ["II", "III"])
@pytest.mark.parametrize("name", SCOPES)
@pytest.mark.sample(4)
def test_a_reduced_search_has_the_same_verdict(mode: str, name: str) -> None:
    one = scope(mode, **SCOPES[name])
    reduced, whole = found(one, reduce=True), found(one)
    assert reduced.complete
    assert whole.complete
    assert reduced.ends == whole.ends
    assert reduced.distinct <= whole.distinct


@pytest.mark.parametrize("collective", ["allreduce", "reduce", "broadcast"])
@pytest.mark.parametrize("message", [1, 2])
def test_mode_i_survives_a_loss_and_a_duplicate(collective: str, message: int) -> None:
    """Its switches see PSNs that no other connection has; a message of two packets is stored whole."""
    budget, called = Budget(losses=1, duplicates=1), (Collective(collective),)
    one = scope("I", budget=budget, collectives=called, packets=2 + message, message=message)
    result = found(one, reduce=True)
    assert (result.complete, result.problem) == (True, None), result.sentence()
    assert result.ends


@pytest.mark.parametrize("reduce", [False, True])
@pytest.mark.long
def test_counts_do_not_depend_on_the_number_of_workers(reduce: bool) -> None:
    one = scope("III", "star-3", budget=Budget(losses=1), packets=2)
    results = [found(one, reduce=reduce, workers=workers) for workers in (1, 2, 3)]
    counts = {(r.distinct, r.transitions, r.depth, r.ends, r.complete) for r in results}
    assert len(counts) == 1
    assert results[0].complete


def test_a_rank_that_ignores_the_window_is_told_of() -> None:
    """Mode II drops what is too early, and counts it, before anything is overwritten."""
    eager = scope("II", window=1, slots=2, packets=5, rank_window=4)
    result = found(eager)
    assert result.problem is not None
    assert (result.problem.property, result.problem.text) == ("drops", "without a fault: CheckDuplicate.early")
    assert found(replace(eager, rank_window=None)).problem is None


def test_a_search_that_stops_is_incomplete() -> None:
    one = scope("III", budget=Budget(losses=1))
    result = found(one, depth=5)
    assert not result.complete
    assert result.problem is None
    assert "5 levels" in result.why
    result = Search(System(one), memory=28 * 100).run()
    assert not result.complete
    assert "full" in result.why


@pytest.mark.parametrize(
    ("variant", "fields", "violated", "most"),
    [
        ("psn-recycling", {"flow": "acks", "window": 1, "packets": 4}, "results", 7),
        ("root-copies", {"flow": "acks", "window": 1, "packets": 4, "budget": Budget(duplicates=1)}, "deadlock", 30),
        ("stale-arrived", {"window": 1, "packets": 4, "budget": Budget(duplicates=1)}, "results", 17),
        ("no-nak", {"budget": Budget(losses=1)}, "progress", 9),
        ("nak-storm", {"budget": Budget(losses=1)}, "progress", 4),
    ],
)
@pytest.mark.sample(2)
def test_wrong_designs_are_found(variant: str, fields: dict[str, Any], violated: str, most: int) -> None:
    chosen = dict(fields) | ({"flow": Flow(fields["flow"])} if "flow" in fields else {})
    one = scope("III", variant=variant, **chosen)
    shortest, reduced = found(one).problem, found(one, reduce=True).problem
    assert shortest is not None
    assert reduced is not None
    assert shortest.property == reduced.property == violated
    assert len(shortest.events) <= most
    assert len(shortest.events) <= len(reduced.events)


def test_the_first_search_says_what_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(scope("II", packets=2)).complete
    assert waits_for() == ""
    monkeypatch.setattr("p4gen.verification.search.search.is_kept", lambda function: function is run.run)
    assert waits_for() == "compiling hosts and the search, once"


def test_a_scope_that_exceeds_the_search_is_refused() -> None:
    """What the kernel has no numbers for must not be left out of a search that calls itself complete."""
    with pytest.raises(InputError, match="more than 8 duplicates and delays"):
        Search(System(scope("III", budget=Budget(duplicates=5, delays=4))))


def test_more_states_than_numbers_end_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge, "MOST", 20)
    with pytest.raises(FailedError, match="more than 20 states"):
        found(scope("III", budget=Budget(losses=1)))
