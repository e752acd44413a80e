"""The model for Spin: Spin stores as many states as a search without reduction finds, and has the same verdict."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from p4gen.cli.app import cli
from p4gen.verification.search.search import Search
from p4gen.verification.system import System
from p4gen.verification.world import Budget
from verify.scopes import scope

pytestmark = pytest.mark.skipif(
    not (shutil.which("spin") and shutil.which("gcc")), reason="spin and gcc are not on PATH"
)


def written_to(folder: Path) -> list[str]:
    return ["--export", "promela", "--out", str(folder)]


def explored(here: Path) -> tuple[int, int]:
    """States that Spin stores, and errors that it finds."""
    subprocess.run(["spin", "-a", "model.pml"], cwd=here, check=True, capture_output=True)
    subprocess.run(["gcc", "-O1", "-DSAFETY", "-DNOREDUCE", "-o", "pan", "pan.c"], cwd=here, check=True)
    said = subprocess.run([here / "pan", "-m1000000"], cwd=here, check=True, capture_output=True, text=True).stdout
    states, errors = re.search(r"(\d+) states, stored", said), re.search(r"errors: (\d+)", said)
    assert states is not None, said
    assert errors is not None, said
    return int(states[1]), int(errors[1])


@pytest.mark.parametrize("mode", ["II", "III"])
@pytest.mark.long
def test_spin_stores_the_states_of_a_search(mode: str, tmp_path: Path) -> None:
    arguments = [
        "verify",
        "star-2",
        "--mode",
        mode,
        "--fan-in",
        "4",
        "--packets",
        "2",
        "--export",
        "promela",
        "--out",
        str(tmp_path),
    ]
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = Search(System(scope(mode, packets=2, budget=Budget(losses=1))), reduce=False).run()
    # Spin has one more: the state before the hosts have sent anything.
    assert explored(tmp_path) == (found.distinct + 1, 0)


def test_spin_finds_a_wrong_design(tmp_path: Path) -> None:
    arguments = [
        "verify",
        "star-2",
        "--mode",
        "III",
        "--variant",
        "nak-storm",
        "--export",
        "promela",
        "--out",
        str(tmp_path),
    ]
    assert CliRunner().invoke(cli, arguments, catch_exceptions=False).exit_code == 0
    assert explored(tmp_path)[1] == 1
