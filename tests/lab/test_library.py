"""``p4gen.lab``: labs from a program."""

from __future__ import annotations

import doctest
import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import p4gen

from .traces import Traces

ROOT = Path(__file__).parents[2]


def test_a_lab_from_python(machine: Traces, tmp_path: Path) -> None:
    with p4gen.lab("star-3", {"mode": "III", "lanes": 8}, seed=1, out=tmp_path) as lab:
        found = lab.run("allreduce", "16K")
        assert found.ok, found.text
        assert found.run is not None
        assert [call["right"] for call in found.run["calls"]] == [True]
        assert lab.fail("h0-s0").text.startswith("h0-s0 is down\n")
        assert "h0-s0 is up" in lab.restore("h0-s0").text
        assert lab.run("barrier", repeat=3).to_dict()["run"]["group"]
        pinged = lab.command("h0 ping h1")
        assert pinged.ok
        assert "3 packets transmitted, 3 received" in pinged.text
        wrong = lab.command("run allredoce 16K")
        assert (wrong.ok, wrong.run) == (False, None)
        assert "'allredoce' is not a collective" in wrong.text
        with pytest.raises(p4gen.InputError, match="a command is one line"):
            lab.command("groups\nexit")
        lab.command("exit")
        with pytest.raises(p4gen.FailedError, match="the lab has ended"):
            lab.command("groups")


def test_the_example_of_the_docstring_is_true(machine: Traces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (inspect.getdoc(p4gen.lab) or "").replace("  # doctest: +SKIP", "")
    example = doctest.DocTestParser().get_doctest(text, {}, "lab", None, None)
    runner = doctest.DocTestRunner()
    runner.run(example)
    assert runner.summarize() == (0, 2)  # failed, attempted


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("lab_*.py")), ids=lambda file: file.stem)
def test_examples_run(machine: Traces, tmp_path: Path, example: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(example), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("right: True") == 6
    assert "h0-s0 is up" in run.stdout
    assert "packets in" in run.stdout


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"timeout": "1us"}, p4gen.InputError, "^timeout: error: a retransmission timer in real time"),
        ({"target": "asic"}, p4gen.InputError, "'asic' is not one of"),
    ],
)
def test_a_lab_that_cannot_be(
    machine: Traces, tmp_path: Path, options: dict[str, Any], error: type[p4gen.P4genError], message: str
) -> None:
    with pytest.raises(error, match=message):
        p4gen.lab("star-3", {"mode": "II", "lanes": 8}, out=tmp_path, **options)
