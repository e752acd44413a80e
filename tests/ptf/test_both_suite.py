"""The suites of two families on programs of both."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from p4gen.cli.app import cli
from p4gen.families import load_spec
from p4gen.papers.epic.spec import EpicSpec
from p4gen.program import compose, render
from p4gen.ptf.family import conformance_of, modules_of, scenario_modules, suite_of
from p4gen.resources import resource

BESIDE = "--beside themis:paths=4,queue=16,queue-banks=4,connections=4"
SMALL = shlex.split(f"{BESIDE} --lanes 8 --window 2 --message 2 --ports 8 --fan-in 4")
SUITE = resource("ptf_tests")


def ptf(out: Path, *arguments: str) -> int:
    """The exit status of the suite on a small program."""
    return int(cli.main(["ptf", "run", *SMALL, "--out", str(out), *arguments], standalone_mode=False) or 0)


@pytest.mark.sample(2)
@pytest.mark.parametrize("ip", ["4", "6", "both"])
@pytest.mark.parametrize(("mode", "own"), [("II", "test_aggregation"), ("III", "test_iii_retransmission")])
@pytest.mark.long
def test_scenarios_of_both_families_and_about_both_pass(tmp_path: Path, mode: str, own: str, ip: str) -> None:
    chosen = [word for name in ("test_both", "test_compensation", own) for word in ("--test", name)]
    assert ptf(tmp_path, "--mode", mode, "--ip", ip, "--engine", "jit", *chosen) == 0


@pytest.mark.long
def test_the_paper_s_listing_fails_beside_epic_as_well(tmp_path: Path) -> None:
    listing = "themis:paths=4,queue=16,queue-banks=4,connections=4,variant=late-compensation"
    scenario = ("--mode", "III", "--test", "test_psn_queue.LatePacketDoesNotArm")
    assert ptf(tmp_path, *scenario) == 0
    assert ptf(tmp_path, *scenario, "--beside", listing) == 1


@pytest.mark.parametrize("mode", ["II", "III"])
def test_all_scenarios_of_both_families_have_a_program(mode: str) -> None:
    """Each run is on a program of both."""
    spec = load_spec(flags={"mode": mode, "beside": "themis"})
    served = set(scenario_modules(spec))
    assert set(modules_of((SUITE / "themis",))) | {"test_both"} <= served
    alone = load_spec(flags={"mode": mode})
    assert set(scenario_modules(alone)) <= served
    assert [folder.name for folder in suite_of(spec)] == ["epic_themis", "ptf_tests", "themis", "ordinary"]
    runs = conformance_of(spec).runs(spec)
    assert all(run.spec.beside is not None for run in runs)
    assert len({run.spec.program for run in runs}) == len(runs) > 10
    tested = {test.partition(".")[0] for run in runs for test in run.tests or scenario_modules(run.spec)}
    assert served <= tested | {"test_pipelines"}  # Themis-D has one pipeline


def test_the_faults_of_both_families_are_seeded_into_programs_of_both() -> None:
    spec = load_spec(flags={"mode": "III", "beside": "themis"})
    seeding = conformance_of(spec).seeding(spec)
    alone = {family: load_spec(flags={"mode": mode}) for family, mode in (("epic", "III"), ("themis", "themis"))}
    for one in alone.values():
        listed = conformance_of(one).seeding(one).mutations
        there = [fault for fault in seeding.mutations if fault.name in {other.name for other in listed}]
        assert len(there) > 0.9 * len(listed) - 15  # some are of programs in which the two cannot be
    program = "beside-plain"
    text = render(compose(EpicSpec.model_validate(seeding.programs[program]))).text
    found = [fault for fault in seeding.mutations if fault.program == program]
    assert len(found) > 50
    assert all(fault.apply(text) != text for fault in found)
