"""Operator mutation: what is drawn, what is known to be equivalent, and what the scores say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest

from p4gen.families import parse_spec
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.ptf.equivalents import Equivalent, Equivalents
from p4gen.ptf.family import equivalents_of
from p4gen.ptf.judge import Finding
from p4gen.ptf.mutants import Mutant, made_mutants, sample
from p4gen.ptf.scores import Score, score
from p4gen.vocabulary import Reliability

NONE = Equivalents(())


@pytest.fixture(scope="module")
def made() -> list[Mutant]:
    return [mutant for mode in (Mode.II, Mode.III) for mutant in made_mutants(EpicSpec(mode=mode), NONE)]


def subjects_of(mutants: list[Mutant]) -> list[str]:
    return list(dict.fromkeys(mutant.subject.name for mutant in mutants))


def described(equivalent: Equivalent, mutant: Mutant) -> bool:
    """Whether an entry describes this mutant."""
    found = mutant.described
    return (
        (equivalent.module, equivalent.before, equivalent.after) == (mutant.module, found["before"], found["after"])
        and equivalent.where in ("", found["where"])
        and equivalent.number in (0, found["number"])
        and (not equivalent.programs or any(mutant.subject.name.startswith(name) for name in equivalent.programs))
    )


@pytest.mark.long
@pytest.mark.parametrize("family", ["atp", "epic", "scin", "multiwrite", "switchml", "themis"])
def test_every_equivalent_mutation_is_one_and_says_why(family: str, made: list[Mutant]) -> None:
    """An entry that fits no mutation is stale: the template has changed, and with it the reason."""
    kinds = [{"ip": ip} for ip in ("4", "6", "both")]
    if family == "switchml":  # whose packets are IPv4's
        kinds = [{"transport": transport} for transport in ("udp", "roce")]
    if family == "atp":
        kinds = [{}]
    if family == "multiwrite":
        kinds = [*kinds, {"repair": "hop", "combine": "int32"}]
    specs = [parse_spec({"family": family, **fields}) for fields in kinds]
    listed = equivalents_of(specs[-1]).listed
    found = [mutant for spec in specs for mutant in made_mutants(spec, NONE, tuple(Reliability))] + (
        made if family == "epic" else []
    )
    by_text: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in found:
        by_text.setdefault((mutant.module, mutant.described["before"]), []).append(mutant)
    stale = [e for e in listed if not any(described(e, mutant) for mutant in by_text.get((e.module, e.before), ()))]
    assert stale == []
    assert all(len(e.reason.split()) > 5 for e in listed)
    keys = Counter((e.module, e.where, e.before, e.after, e.number, e.programs) for e in listed)
    assert [key for key, count in keys.items() if count > 1] == []


@pytest.mark.long
def test_programs_of_each_reliability_and_number_of_pipelines(made: list[Mutant]) -> None:
    assert [name for name in subjects_of(made) if name.endswith(("1", "2"))] == [
        f"{mode} {how} {count}" for mode in ("II", "III") for how in ("gbn", "sr") for count in (1, 2)
    ]
    modules: dict[str, set[str]] = {}
    for mutant in made:
        modules.setdefault(mutant.subject.name, set()).add(mutant.module)
    assert modules["III sr 1 long"] == {"CheckOrder", "StartCursor"}
    assert "CheckOrder" not in modules["III sr 1"]
    assert "CheckOrder" in modules["III gbn 1"]


def test_a_sample_is_repeatable_and_gives_each_module_its_share(made: list[Mutant]) -> None:
    drawn = sample(made, 400, seed=3)
    assert len(set(drawn)) == 400
    assert sample(made, 400, seed=3) == drawn
    assert sample(made, 400, seed=4) != drawn
    shares = Counter((each.subject.name, each.module) for each in made)
    got = Counter((each.subject.name, each.module) for each in drawn)
    for stratum, count in shares.items():
        assert abs(got[stratum] - 400 * count / len(made)) < 2, stratum


def test_what_is_equivalent_says_why(made: list[Mutant]) -> None:
    first, only, why = made[0].described, ("II gbn",), "nobody can see it"
    entry = Equivalent(first["module"], first["before"], first["after"], why, first["where"], first["number"], only)
    found = made_mutants(EpicSpec(mode=Mode.II), Equivalents((entry,)))
    equivalent = [mutant for mutant in found if mutant.equivalent is not None]
    assert {mutant.subject.name for mutant in equivalent} == {"II gbn 1", "II gbn 2"}
    assert {mutant.equivalent for mutant in equivalent} == {why}
    assert all(described(entry, mutant) for mutant in equivalent)


def test_mutants_are_where_they_say(made: list[Mutant]) -> None:
    found = next(
        mutant
        for mutant in made
        if mutant.subject.name == "III gbn 1" and mutant.module == "LastAcked" and "ack.epoch" in mutant.change
    )
    assert found.described["template"].startswith("templates/epic/receive_ack.p4.j2:")
    assert found.described["template"] in found.place


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
def test_listed_faults_from_the_command_line() -> None:
    words = "ptf mutate --mode II --fault ttl-kept --fault icrc-stale --engine jit --seed 1"
    report = json.loads(p4gen(f"{words} --json").stdout)
    assert {m["name"]: m["finding"] for m in report["mutations"]} == {"ttl-kept": "caught", "icrc-stale": "caught"}
    assert (report["passed"], report["score"], set(report["programs"])) == (True, 1.0, {"plain"})
    told = p4gen(words).stdout
    assert "2 faults in 1 program\n" in told
    assert "2 of 2 faults caught (100.0 %), 0 survived, 0 unclear, 0 invalid" in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--fault ttl-kpet", "--fault: error: 'ttl-kpet' is no listed fault of modeii_sum_int32_x64"),
        ("--fault ttl-kept --operators", "--fault does not go with --operators"),
        ("--fault ttl-kept --faults 3", "--fault does not go with --faults"),
    ],
)
def test_faults_that_there_are_not(words: str, said: str) -> None:
    done = p4gen(f"ptf mutate --mode II {words}")
    assert done.returncode == 2
    assert said in done.stderr


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
    found = made_mutants(EpicSpec(mode=Mode.III), NONE, (Reliability.SACK,), (1,))
    assert subjects_of(found) == ["III sack 1", "III sack 1 long"]


def test_mode_i_has_programs_that_take_packets_in_order_alone() -> None:
    found = made_mutants(EpicSpec(mode=Mode.I), NONE, (Reliability.GBN, Reliability.SR), (1,))
    assert subjects_of(found) == ["I gbn 1", "I gbn 1 long"]
