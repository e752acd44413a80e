"""Programs of every family route IPv6, and answer for the switch's own addresses."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from p4gen.choices import ENGINES
from p4gen.cli.app import cli
from p4gen.errors import InputError
from p4gen.families import load_spec
from p4gen.papers.epic.spec import EpicSpec
from p4gen.program import compose, render
from p4gen.ptf.family import conformance_of, scenario_modules
from p4gen.ptf.mutations import Mutation

SEEDING = conformance_of(EpicSpec()).seeding(EpicSpec())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "program",
    [
        "--mode I --lanes 8",
        "--mode II --lanes 8 --pipelines 2",
        "--mode III --lanes 8 --beside themis:paths=4,queue=16,queue-banks=4,connections=4",
        "--mode themis-s",
        "--mode themis",
        "--mode scin --lanes 8",
        "--mode multiwrite --payload 64",
        "--mode multiwrite --payload 64 --repair hop",
    ],
)
@pytest.mark.sample(4)
def test_scenarios_of_ipv6_pass(program: str, engine: str, tmp_path: Path) -> None:
    chosen = ["--ip", "both", "--test", "test_ipv6", "--engine", engine, "--out", str(tmp_path)]
    assert not cli.main(["ptf", "run", *shlex.split(program), *chosen], standalone_mode=False)


@pytest.mark.parametrize("ip", ["6", "both"])
@pytest.mark.parametrize("mode", ["I", "II", "III"])
@pytest.mark.sample(3)
def test_scenarios_of_groups_over_ipv6_pass(mode: str, ip: str, tmp_path: Path) -> None:
    program = f"--mode {mode} --ip {ip} --lanes 8 --groups 4 --fan-in 4 --ports 8".split()
    about = ["test_kinds"] if mode == "II" else ["test_iii_kinds"]
    some = ["test_aggregation", "test_validation"] if mode == "II" else ["test_iii_order", "test_iii_congestion"]
    tests = [word for name in about + some for word in ("--test", name)]
    assert not cli.main(["ptf", "run", *program, *tests, "--out", str(tmp_path)], standalone_mode=False)


@pytest.mark.parametrize("ip", ["6", "both"])
@pytest.mark.parametrize("mode", ["themis", "themis-d"])
@pytest.mark.sample(1)
def test_scenarios_of_connections_over_ipv6_pass(mode: str, ip: str, tmp_path: Path) -> None:
    program = f"--mode {mode} --ip {ip} --paths 4 --queue 16 --queue-banks 4 --connections 4 --ports 8".split()
    tests = [word for name in ("test_ends", "test_compensation", "test_spray") for word in ("--test", name)]
    assert not cli.main(["ptf", "run", *program, *tests, "--out", str(tmp_path)], standalone_mode=False)


@pytest.mark.parametrize("mode", ["I", "II", "III"])
def test_a_program_of_ipv6_alone_has_nothing_of_ipv4(mode: str) -> None:
    text = render(compose(EpicSpec.model_validate({"mode": mode, "ip": "6", "name": "x"})), line_directives=False).text
    code = "\n".join(line.split("//")[0] for line in text.splitlines())
    assert [word for word in ("ipv4", "arp", "verify_checksum", "update_checksum") if word in code.lower()] == []


def test_seeded_faults_follow_the_kinds_of_a_spec() -> None:
    spec = EpicSpec(ip="6")
    listed = conformance_of(spec).seeding(spec)
    assert {fields["ip"] for fields in listed.programs.values()} == {"6"}
    assert len(listed.mutations) > 150
    assert "its text is not in programs of ip 6" in listed.left_out["arp-replies-answered"]


@pytest.mark.parametrize(
    "mutation", [one for one in SEEDING.mutations if one.program == "ipv6"], ids=lambda one: one.name
)
def test_a_fault_fits_its_program(mutation: Mutation) -> None:
    text = render(compose(EpicSpec.model_validate(SEEDING.programs[mutation.program]))).text
    assert mutation.apply(text) != text


def test_programs_without_ipv6_have_no_scenarios_of_it() -> None:
    for fields in ({"mode": "II"}, {"mode": "scin"}, {"mode": "themis"}):
        assert "test_ipv6" not in scenario_modules(load_spec(None, fields))
        assert "test_ipv6" in scenario_modules(load_spec(None, {**fields, "ip": "both"}))


def test_other_families_refuse_what_they_do_not_know() -> None:
    with pytest.raises(InputError, match="take RoCEv2 over IPv4 only: ip both"):
        load_spec(None, {"mode": "switchml", "ip": "6"})


def test_programs_for_a_tofino_know_ipv4_only() -> None:
    with pytest.raises(InputError, match="programs for tna know IPv4 only"):
        load_spec(None, {"arch": "tna", "ip": "both"})
