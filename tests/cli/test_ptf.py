"""``p4gen ptf``: which scenarios it lists, refuses and leaves out, and what its exit status says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SMALL = ["--lanes", "8", "--window", "2", "--message", "2", "--groups", "2", "--fan-in", "4", "--ports", "8"]


def p4gen(*args: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "p4gen", *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.sample(1)
@pytest.mark.parametrize("mode", ["II", "III"])
@pytest.mark.long
def test_the_list_has_what_fits_and_why_the_rest_does_not(tmp_path: Path, mode: str) -> None:
    done = p4gen("ptf", "list", "--mode", mode, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    fitting, _, others = done.stdout.partition("\n\n")
    foreign = "test_validation." if mode == "III" else "test_iii_"
    assert foreign not in done.stdout
    assert all(line.startswith("test_") for line in fitting.splitlines())
    assert ": the program has one pipeline" in others
    everything = json.loads(p4gen("ptf", "list", "--mode", mode, "--json", cwd=tmp_path).stdout)["scenarios"]
    assert {s["name"] for s in everything if s["unfit"] is None} == {line.split()[0] for line in fitting.splitlines()}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_the_list_asked_for_by_a_flag(tmp_path: Path) -> None:
    """As scripts do that are older than ``p4gen ptf list``."""
    wishes = ("--mode", "III", "--test", "test_order", "--json")
    before, now = p4gen("ptf", *wishes, "--list", cwd=tmp_path), p4gen("ptf", "list", *wishes, cwd=tmp_path)
    assert before.returncode == now.returncode == 0, before.stderr
    assert before.stdout == now.stdout
    assert json.loads(now.stdout)["scenarios"]


@pytest.mark.long
def test_a_run_recorded_before_there_was_ptf_run_is_repeated(tmp_path: Path) -> None:
    arguments = [*SMALL, "--mode", "II", "--test", "test_validation.WrongQp", "--seed", "5"]
    done = p4gen("ptf", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = (tmp_path / "build/runs").iterdir()
    record = json.loads((folder / "run.json").read_text())
    assert record["arguments"][:2] == ["ptf", "run"]
    (folder / "run.json").write_text(json.dumps(record | {"arguments": ["ptf", *record["arguments"][2:]]}))
    again = p4gen("rerun", folder, cwd=tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "seed 5" in again.stdout
    assert "1 passed, 0 failed" in again.stdout


@pytest.mark.long
def test_an_unknown_scenario_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    done = p4gen("ptf", "--test", "test_validatoin", "--test", "test_order", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert (
        done.stderr
        == "--test: error: there is no scenario 'test_validatoin'; did you mean test_validation or test_vlan?\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_what_does_not_fit_is_named_and_no_failure(tmp_path: Path) -> None:
    tests = ("--test", "test_validation.WrongIcrc", "--test", "test_validation.WrongQp")
    done = p4gen("ptf", *SMALL, "--icrc", "ignore", *tests, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not run   test_validation.WrongIcrc: the program does not check the ICRC" in done.stdout
    assert "1 passed, 0 failed, 1 not run" in done.stdout


@pytest.mark.long
def test_a_run_in_which_nothing_ran_is_no_pass(tmp_path: Path) -> None:
    alone = ("--icrc", "ignore", "--test", "test_validation.WrongIcrc")
    done = p4gen("ptf", *SMALL, *alone, cwd=tmp_path)
    assert done.returncode == 1
    assert "nothing ran: no scenario applies to the program" in done.stdout
    report = json.loads(p4gen("ptf", *SMALL, *alone, "--json", cwd=tmp_path).stdout)
    assert report["passed"] is False
    assert report["not_run"] == {"test_validation.WrongIcrc": "the program does not check the ICRC"}


@pytest.mark.long
def test_a_matrix_is_drawn_by_seed_and_can_be_run_again(tmp_path: Path) -> None:
    """The same programs again from the run's folder; a line each."""
    wishes = ("--mode", "III", "--op", "dynamic", "--matrix", "2", "--test", "test_iii_order.Contributions")
    done = p4gen("ptf", *wishes, "--seed", "5", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split()[-1] for line in done.stdout.splitlines() if " passed, 0 failed,   0 not run " in line]
    assert len(set(lines)) == 2
    assert all(line.startswith("variant_modeiii_") and "dynamic" in line for line in lines)
    (folder,) = (tmp_path / "build/runs").iterdir()
    again = p4gen("rerun", folder, cwd=tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr
    assert [line in again.stdout for line in lines] == [True, True]


@pytest.mark.parametrize(
    ("args", "cause"),
    [
        (["--matrix", "some"], "--matrix: error: 'some' is neither a number of programs nor all"),
        (["--matrix", "2", "--lanes", "16"], "it does not go with --lanes"),
        (["--matrix", "2", "--trace", "--test", "test_order"], "--matrix does not go with --trace"),
    ],
)
@pytest.mark.long
def test_wrong_wishes_for_a_matrix(tmp_path: Path, args: list[str], cause: str) -> None:
    done = p4gen("ptf", *args, cwd=tmp_path)
    assert done.returncode == 2
    assert cause in done.stderr
    assert list(tmp_path.iterdir()) == []
