"""Themis's suite, beyond what scripts/test runs: three tiers, the paper's listing, which fails, and all its faults."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from p4gen.cli.app import cli
from p4gen.papers.themis.spec import ThemisSpec
from p4gen.program import compose, render
from p4gen.ptf.family import conformance_of
from p4gen.ptf.mutations import Mutation

SEEDING = conformance_of(ThemisSpec()).seeding(ThemisSpec())

SMALL = shlex.split("--paths 4 --path-sets 4 --queue 16 --queue-banks 4 --connections 4 --ports 8")


def ptf(out: Path, *arguments: str) -> int:
    """The exit status of the suite on a small program."""
    command = ["ptf", "run", "--mode", "themis", *SMALL, "--out", str(out), *arguments]
    return int(cli.main(command, standalone_mode=False) or 0)


@pytest.mark.long
def test_the_suite_passes_with_three_tiers(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """A sample of it; all with --full."""
    some = () if pytestconfig.getoption("--full") else ("--sample", "80")
    assert ptf(tmp_path, "--tiers", "3", "--engine", "jit", *some) == 0


@pytest.mark.long
def test_the_listing_of_the_paper_fails(tmp_path: Path) -> None:
    scenario = ("--test", "test_psn_queue.LatePacketDoesNotArm")
    assert ptf(tmp_path, *scenario) == 0
    assert ptf(tmp_path, "--variant", "late-compensation", *scenario) == 1


@pytest.mark.parametrize("mutation", SEEDING.mutations, ids=lambda mutation: mutation.name)
def test_a_fault_fits_its_program(mutation: Mutation) -> None:
    spec = ThemisSpec.model_validate(SEEDING.programs[mutation.program])
    text = render(compose(spec)).text
    assert mutation.apply(text) != text
