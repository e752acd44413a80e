"""Runs that do not end say so, at once, and why."""

from __future__ import annotations

import pytest

from p4gen.host.transport.verbs import RECOVERIES, Recovery
from p4gen.net.collectives import diagnosis

from .runs import run, scripted


@pytest.mark.parametrize("recovery", RECOVERIES)
def test_a_deadlock_is_reported(recovery: Recovery) -> None:
    result = run(4, size=2048, timeout=0, recovery=recovery, faults=scripted("drop every UP_DATA of rank 2"))
    assert not result.ok
    assert result.throughput == 0
    found = result.diagnosis
    assert found is not None
    assert found.deadlocked
    (slot,) = [s for s in found.slots if s.missing == ("rank 2",)]
    assert slot.arrived == ("rank 0", "rank 1", "rank 3")
    assert all(state.unacknowledged == slot.psn == state.expects for state in found.ranks)
    assert any("UP_DATA of rank 2" in cause and "script" in cause for cause in found.causes)
    assert any("timer is off" in cause for cause in found.causes)


@pytest.mark.long
def test_a_run_that_goes_in_circles_is_given_up() -> None:
    result = run(3, size=128, faults=scripted("drop every DOWN_DATA of rank 1"), engine="jit")
    assert result.diagnosis is not None
    assert not result.diagnosis.deadlocked
    text = "\n".join(result.diagnosis.lines())
    assert "no more progress" in text
    assert "complete (SEND_" in text
    assert "DOWN_DATA of rank 1" in text


def test_retries_that_run_out_are_an_error_of_the_rank() -> None:
    result = run(3, size=128, retry_count=2, faults=scripted("drop every UP_* of rank 1"))
    assert not result.ok
    assert any("rank 1" in e and "retry counter exceeded" in e for e in result.errors)


def test_an_empty_slot_is_told_from_a_waiting_one() -> None:
    result = run(2, size=128, timeout=0, faults=scripted("drop every UP_*"))
    assert result.diagnosis is not None
    assert "empty" in str(result.diagnosis.slots[0])


def test_without_a_reader_of_registers_a_diagnosis_says_what_ranks_and_links_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not every family says how its programs' registers are read."""
    monkeypatch.setattr(diagnosis, "group_reader", lambda _: None)
    found = run(3, size=128, timeout=0, faults=scripted("drop every UP_DATA of rank 1")).diagnosis
    assert found is not None
    assert (found.slots, found.edges) == ((), ())
    assert [state.rank for state in found.ranks] == [0, 1, 2]
    assert any("UP_DATA of rank 1" in cause for cause in found.causes)
