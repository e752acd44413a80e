"""Locks of slots that groups share: the search knows all orders of their calls, and what a wrong protocol leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p4gen.ptf.mutations import Mutation
from p4gen.verification.scope import GroupScope
from p4gen.verification.search.search import Search
from p4gen.verification.seeding.ladder import TWO_SWITCHES
from p4gen.verification.system import System
from p4gen.verification.world import Budget
from verify.scopes import scope


def sharing(mode: str, budget: Budget) -> GroupScope:
    """Two groups that share slots."""
    return replace(scope(mode, window=2, packets=2, locks=1, budget=budget), groups=2)


@pytest.mark.parametrize("mode", ["II", "III"])
@pytest.mark.parametrize("budget", [Budget(), Budget(losses=1), Budget(duplicates=1)], ids=Budget.sentence)
def test_no_lock_is_left(mode: str, budget: Budget) -> None:
    result = Search(System(sharing(mode, budget))).run()
    assert result.complete, result.sentence()


@pytest.mark.parametrize("mode", ["II", "III"])
def test_no_tenure_is_partial(mode: str) -> None:
    result = Search(System(replace(sharing(mode, Budget()), topology=TWO_SWITCHES))).run()
    assert result.complete, result.sentence()


PARTIAL = Mutation("partial", "AcquireLease", "bit<1> ends = has & refused;", "bit<1> ends = 0;")
KEPT = Mutation("kept", "AcquireLease", "bit<1> ends = within & (down | last);", "bit<1> ends = 0;")
SHARED = Mutation("shared", "AcquireLease", "if (own == 1) { meta.flow.slot", "if (false) { meta.flow.slot")


@pytest.mark.parametrize("mode", ["II", "III"])
@pytest.mark.parametrize(("fault", "wrong"), [(PARTIAL, "locks"), (KEPT, "locks"), (SHARED, "drops")], ids=str)
def test_wrong_protocols_are_found(mode: str, fault: Mutation, wrong: str) -> None:
    one = replace(sharing(mode, Budget()), topology=TWO_SWITCHES, fault=fault)
    result = Search(System(one)).run()
    assert result.problem is not None
    assert result.problem.property == wrong
