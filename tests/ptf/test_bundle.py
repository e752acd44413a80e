"""The file about a run that users send: what is in it, and what is not."""

from __future__ import annotations

import getpass
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from p4gen.errors import InputError
from p4gen.ptf import bundle
from p4gen.ptf.report import Outcome, TestResult
from p4gen.ptf.runner import SuiteResult
from p4gen.switch.running import Program


@pytest.fixture
def part(tmp_path: Path) -> bundle.Part:
    """A program in a home folder, whose logs say more than anybody should know."""
    home = tmp_path / "home" / "somebody"
    built, run = home / "build" / "prog", home / "run"
    (built / "tofino").mkdir(parents=True)
    run.mkdir()
    (built / "manifest.json").write_text(json.dumps({"program": "prog", "capabilities": {}}))
    (built / "tofino/manifest.json").write_text(json.dumps({"compiler_version": "9.13"}))
    (built / "tofino/p4c.log").write_text("p4c says something\n")
    (run / "commands.json").write_text(json.dumps({"tofino-model": [f"{home}/sde/bin/tofino-model", "-d", "1"]}))
    (run / "ports.json").write_text('{"PortToVeth": []}')
    (run / "prog.conf").write_text("no JSON")
    lines = [f"line {n}" for n in range(1000)]
    (run / "model.log").write_text(
        "\n".join([*lines, f"opened {home}/x with hunter2-hunter2 by somebody at far.example"])
    )
    test = TestResult("test_a.B", Outcome.FAILED, 1.5, "it failed", f"File {home}/y.py")
    return bundle.Part(
        Program(built / "prog.p4", built / "prog.p4info.txtpb"), run, SuiteResult((test,), 2.0, "a problem")
    )


@pytest.fixture
def text(part: bundle.Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "somebody"))
    monkeypatch.setenv("BUILD_TOKEN", "hunter2-hunter2")
    monkeypatch.setattr(platform, "node", lambda: "far.example")
    monkeypatch.setattr(getpass, "getuser", lambda: "somebody")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    file = tmp_path / "report.json"
    bundle.write(file, {"seed": 7, "versions": {"p4c": "9.13"}}, [part], "bf_switchd has ended")
    return file.read_text()


def test_what_is_in_it(text: str) -> None:
    content = json.loads(text)
    assert content["run"] == {"seed": 7, "versions": {"p4c": "9.13"}}
    assert content["problem"] == "bf_switchd has ended"
    (program,) = content["programs"]
    assert program["program"] == "prog"
    assert program["descriptions"]["manifest.json"]["program"] == "prog"
    assert program["descriptions"]["tofino/manifest.json"] == {"compiler_version": "9.13"}
    assert program["commands"] == {"tofino-model": ["~/sde/bin/tofino-model", "-d", "1"]}
    assert program["files"] == {"ports.json": {"PortToVeth": []}, "prog.conf": None}
    assert program["problem"] == "a problem"
    (test,) = program["tests"]
    assert (test["name"], test["outcome"], test["message"]) == ("test_a.B", "failed", "it failed")
    assert program["logs"]["p4c.log"] == ["p4c says something"]
    last = program["logs"]["model.log"]
    assert len(last) == 200
    assert last[-1] == "opened ~/x with (secret) by (user) at (host)"


def test_what_is_not_in_it(text: str, tmp_path: Path) -> None:
    for secret in ("hunter2", "somebody", "far.example", str(tmp_path)):
        assert secret not in text


def test_a_run_that_ended_early_has_no_results(part: bundle.Part, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    bundle.write(file, {}, [bundle.Part(part.program, tmp_path / "never made", None)], "p4c refuses it")
    (program,) = json.loads(file.read_text())["programs"]
    assert (program["tests"], program["commands"]) == ([], None)


@pytest.mark.parametrize("name", [".", "nowhere/report.json"])
def test_a_place_that_cannot_be_written_is_refused_before_the_run(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^report: error: cannot write"):
        bundle.check_path(tmp_path / name)


@pytest.mark.long
def test_the_command_writes_it(tmp_path: Path) -> None:
    small = ["--lanes", "8", "--window", "2", "--message", "2", "--groups", "2", "--fan-in", "4", "--ports", "8"]
    words = ["ptf", "run", *small, "--mode", "II", "--seed", "5", "--test", "test_validation.WrongQp"]
    argv = [sys.executable, "-m", "p4gen", *words, "--report", "report.json"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["run"]["seed"] == 5
    assert content["run"]["passed"] is True
    (program,) = content["programs"]
    assert [test["outcome"] for test in program["tests"]] == ["passed"]
    assert "ptf.log" in program["logs"]
