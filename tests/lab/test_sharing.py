"""Three groups, switches with room for one: some policies refuse two of them, shares of time serve all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .labs import BMV2, SMALL, lab
from .traces import Traces

GROUPS = ("--ranks", "h0,h2", "--ranks", "h1,h3", "--ranks", "h0,h3")
"""All of them need s0, and two its link to s1."""
CALLS = 8


def arguments(policy: str, *more: str) -> list[str]:
    scenario = ["--collective", "allreduce", "--size", "4K", "--repeat", str(CALLS), "--deadline", "60"]
    return ["tree-3-2", *SMALL, "--groups", "1", "--policy", policy, *scenario, *GROUPS, *more]


def test_groups_have_the_switches_in_turns(tmp_path: Path, machine: Traces, seed: int) -> None:
    done = lab(tmp_path, *arguments("time-shared", "--seed", str(seed), "--json"))
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"], report["refused"]) == (0, True, {}), done.stdout
    assert [group["hosts"] for group in report["groups"]] == [["h0", "h2"], ["h1", "h3"], ["h0", "h3"]]
    for group in report["groups"]:
        assert [call["right"] for call in group["calls"]] == [True] * CALLS
        # Nobody does without for more than three calls in a row.
        rings = "".join("r" if call["ring"] else "s" for call in group["calls"])
        assert "rrrr" not in rings, rings


@pytest.mark.parametrize("target", ["embedded", pytest.param("bmv2", marks=BMV2)])
def test_groups_that_share_slots_by_locks(target: str, tmp_path: Path, machine: Traces, seed: int) -> None:
    """All calls are right, whether switches carry them or the ring, and no call waits for another group's."""
    scenario = ("--collective", "allreduce", "--size", "4K", "--repeat", str(CALLS), "--seed", str(seed), "--json")
    program = (*SMALL, "--groups", "3", "--locks", "1", "--target", target)
    done = lab(tmp_path, "tree-3-2", *program, *GROUPS, *scenario)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"]) == (0, True), done.stdout
    calls = [call for group in report["groups"] for call in group["calls"]]
    assert [(call["right"], call["begun"]) for call in calls] == [(True, 1)] * 3 * CALLS
    assert not all(call["ring"] for call in calls)


@pytest.mark.parametrize(
    "program",
    [("II", "--verb", "write", "--groups", "12"), ("scin",), ("multiwrite",)],
    ids=["epic", "scin", "multiwrite"],
)
def test_groups_whose_ranks_offer_memory(program: tuple[str, ...], tmp_path: Path, machine: Traces, seed: int) -> None:
    call = "allgather" if program == ("multiwrite",) else "allreduce"
    scenario = ("--collective", call, "--size", "4K", "--repeat", "6", "--ranks", "h0,h1", "--ranks", "h2,h3")
    done = lab(tmp_path, "star-4", "--mode", *program, *scenario, "--seed", str(seed), "--json")
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"]) == (0, True), done.stdout
    for group in report["groups"]:
        assert [(call["right"], call["ring"]) for call in group["calls"]] == [(True, False)] * 6


@pytest.mark.parametrize(
    "place", [("--fail", "s0-s1@0.2s-0.6s", "--repeat", "150"), ("--policy", "ring")], ids=["moved", "ring"]
)
def test_groups_with_a_ring_offer_memory(place: tuple[str, ...], tmp_path: Path, machine: Traces, seed: int) -> None:
    """Their calls are right on the ring, and in each generation on switches, which write to the same memory."""
    program = ("--mode", "II", "--verb", "write", "--lanes", "64", "--groups", "12", "--fallback")
    scenario = ("--collective", "allreduce", "--size", "64K", *place, "--seed", str(seed), "--json")
    done = lab(tmp_path, "tree-3-2", *program, *scenario)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"]) == (0, True), done.stdout
    assert all(call["right"] for call in report["calls"])
    assert report["calls"][0]["ring"] == ("ring" in place)


def test_groups_that_keep_their_windows_have_all_calls_on_switches(tmp_path: Path, machine: Traces, seed: int) -> None:
    """The same groups with duties of a half are in each other's way, however long a period is."""
    turns = ("--turn", "g0=0%-50%", "--turn", "g1=50%-100%", "--period", "6s", "--json")
    scenario = ["--collective", "allreduce", "--size", "4K", "--repeat", "2", "--ranks", "h0,h2", "--ranks", "h1,h3"]
    done = lab(
        tmp_path, "tree-3-2", *SMALL, "--groups", "1", "--policy", "time-shared", *scenario, *turns, "--seed", str(seed)
    )
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"]) == (0, True), done.stdout
    for group in report["groups"]:
        assert [(call["right"], call["ring"]) for call in group["calls"]] == [(True, False)] * 2
    assert report["leases"] == {"held": 1, "granted": 4, "refused": 0, "outside": 0}


@pytest.mark.long
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("policy", "why"),
    [("edge-disjoint", "of its tree is in that of group g0"), ("widest-path", "0 of 1 are free (groups)")],
)
def test_other_policies_refuse_the_second_and_the_third_group(
    policy: str, why: str, tmp_path: Path, machine: Traces, seed: int
) -> None:
    done = lab(tmp_path, *arguments(policy, "--seed", str(seed)))
    assert done.returncode == 1, done.stdout + done.stderr
    for group in ("group g1 (h1 h3) is refused: root s0", "group g2 (h0 h3) is refused: root s0"):
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(group)]
        assert why in line
    assert "calls carried by switches: 8, by the ring: 0" in done.stdout
