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


def test_programs_for_a_tofino_know_ipv4_only() -> None:
    with pytest.raises(InputError, match="programs for tna know IPv4 only"):
        load_spec(None, {"arch": "tna", "ip": "both"})
