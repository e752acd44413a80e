"""Operator mutation: what is drawn, what is known to be equivalent, and what the scores say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest

from p4gen.families import parse_spec
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.ptf.equivalents import Equivalent, Equivalents, equivalents_in
from p4gen.ptf.family import conformance_of
from p4gen.ptf.judge import Finding
from p4gen.ptf.operators import Subject, faults_of, sample, subjects
from p4gen.ptf.scores import Score, score
from p4gen.vocabulary import Reliability


@pytest.fixture(scope="module")
def programs() -> list[Subject]:
    return [subject for mode in (Mode.II, Mode.III) for subject in subjects(EpicSpec(mode=mode))]


@pytest.mark.long
@pytest.mark.parametrize("family", ["epic", "scin", "multiwrite", "themis"])
def test_every_equivalent_mutation_is_one_and_says_why(family: str, programs: list[Subject]) -> None:
    """An entry that fits no mutation is stale: the template has changed, and with it the reason."""
    spec = parse_spec({"family": family})
    listed = equivalents_in(conformance_of(spec).equivalents).listed
    found = programs if family == "epic" else subjects(spec)
    assert len(found) > 1
    stale = [e for e in listed if not any(e.fits(s.name, mutant) for s in found for mutant in s.mutants)]
    assert stale == []
    assert all(len(e.reason.split()) > 5 for e in listed)
    keys = Counter((e.module, e.where, e.before, e.after, e.number, e.programs) for e in listed)
    assert [key for key, count in keys.items() if count > 1] == []


@pytest.mark.long
def test_programs_of_each_reliability_and_number_of_pipelines(programs: list[Subject]) -> None:
    assert [s.name for s in programs if s.name.endswith(("1", "2"))] == [
        f"{mode} {how} {count}" for mode in ("II", "III") for how in ("gbn", "sr") for count in (1, 2)
    ]
    by_name = {s.name: s for s in programs}
    assert {m.module for m in by_name["III sr 1 long"].mutants} == {"CheckOrder", "StartCursor"}
    assert "CheckOrder" not in {m.module for m in by_name["III sr 1"].mutants}
    assert "CheckOrder" in {m.module for m in by_name["III gbn 1"].mutants}


def test_a_sample_is_repeatable_and_gives_each_module_its_share(programs: list[Subject]) -> None:
    faults = faults_of(programs, Equivalents(()))
    drawn = sample(faults, 400, seed=3)
    assert len({fault.mutant for fault in drawn}) == 400
    assert [f.mutant for f in sample(faults, 400, seed=3)] == [f.mutant for f in drawn]
    assert [f.mutant for f in sample(faults, 400, seed=4)] != [f.mutant for f in drawn]
    shares = Counter((f.subject.name, f.mutant.module) for f in faults)
    got = Counter((f.subject.name, f.mutant.module) for f in drawn)
    for stratum, count in shares.items():
        assert abs(got[stratum] - 400 * count / len(faults)) < 2, stratum


def test_what_is_equivalent_is_not_drawn(programs: list[Subject]) -> None:
    first = programs[0].mutants[0]
    only, why = ("II gbn",), "nobody can see it"
    entry = Equivalent(first.module, first.before, first.after, why, first.where, first.number, only)
    faults = faults_of(programs, Equivalents((entry,)))
    equivalent = [f for f in faults if f.reason is not None]
    assert {f.subject.name for f in equivalent} == {"II gbn 1", "II gbn 2"}
    assert not {f.mutant for f in equivalent} & {f.mutant for f in sample(faults, len(faults), seed=1)}


def test_faults_are_where_they_say(programs: list[Subject]) -> None:
    subject = next(s for s in programs if s.name == "III gbn 1")
    mutant = next(m for m in subject.mutants if m.module == "LastAcked" and "ack.epoch" in m.before)
    assert subject.template(mutant).startswith("templates/epic/receive_ack.p4.j2:")


def test_scores_count_what_somebody_could_have_caught() -> None:
    findings = [Finding.CAUGHT] * 3 + [Finding.SURVIVED, Finding.UNCLEAR, Finding.INVALID]
    found = score([("a", finding) for finding in findings] + [("b", Finding.CAUGHT)])
    assert found == {"a": Score(3, 1, 1, 1), "b": Score(1)}
    assert found["a"].share == pytest.approx(0.6)
    assert [found["a"].reaches(percent) for percent in (0, 60, 61)] == [True, True, False]
    assert found["b"].reaches(100)
    assert not Score(invalid=1).reaches(0)


def p4gen(words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "p4gen", *words.split()], check=False, capture_output=True, text=True)


@pytest.mark.long
def test_faults_by_operators_from_the_command_line() -> None:
    result = p4gen("ptf mutate --mode II --operators --reliability gbn --pipelines 1 --faults 3 --seed 5 --json")
    report = json.loads(result.stdout)
    assert set(report["programs"]) == {"II gbn 1"}
    assert len(report["mutations"]) == 3
    assert {m["finding"] for m in report["mutations"]} <= {"caught", "survived"}
    assert all(m["template"].startswith("templates/") and m["before"] != m["after"] for m in report["mutations"])
    assert (result.returncode == 0) == report["passed"] == (report["score"] >= 0.98)


def test_reliabilities_can_be_chosen() -> None:
    assert [s.name for s in subjects(EpicSpec(mode=Mode.III), (Reliability.SACK,), (1,))] == [
        "III sack 1",
        "III sack 1 long",
    ]


def test_mode_i_has_programs_that_take_packets_in_order_alone() -> None:
    found = subjects(EpicSpec(mode=Mode.I), (Reliability.GBN, Reliability.SR), (1,))
    assert [s.name for s in found] == ["I gbn 1", "I gbn 1 long"]
