"""``p4gen route``: what it prints, writes and refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from p4gen.cli.app import cli
from p4gen.errors import InputError

SMALL = ["route", "--fabric", "4x3x4", "--workers", "9", "--pipelines", "2", "--ina", "40%", "--seed", "1"]


def test_plans_are_compared_written_and_drawn(tmp_path: Path) -> None:
    pytest.importorskip("highspy", reason="highspy is not installed: pip install 'p4gen[route]'")
    plan, picture = tmp_path / "plan.json", tmp_path / "route.svg"
    arguments = [*SMALL, "--repeat", "3", "--out", str(plan), "--plot", str(picture)]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert "3 instances: 9 workers, 2 switches aggregate" in done.output
    assert [line.split()[0] for line in done.output.splitlines()[3:7]] == ["random", "aggtree", "aro-acc", "aro"]
    found = json.loads(plan.read_text())["plans"]
    assert found["aro"]["gap"] == 0
    assert all(each["problems"] == [] and len(each["paths"]) == 9 for each in found.values())
    assert picture.read_text().startswith("<?xml")


def test_standard_output_is_one_object_only() -> None:
    pytest.importorskip("highspy", reason="highspy is not installed: pip install 'p4gen[route]'")
    command = [sys.executable, "-m", "p4gen", *SMALL, "--algorithm", "aro", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    assert json.loads(done.stdout)["algorithms"]["aro"]["worst_gap"] == 0


def test_baselines_need_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    done = CliRunner().invoke(cli, [*SMALL, "--algorithm", "random", "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    assert list(json.loads(done.stdout)["algorithms"]) == ["random"]


@pytest.mark.parametrize("fabric", ["4x3", "0x3x4", "axbxc", "4x3x4x5"])
def test_fabrics_that_are_none_are_refused(fabric: str) -> None:
    with pytest.raises(InputError, match="leaves x spines x hosts"):
        CliRunner().invoke(cli, ["route", "--fabric", fabric, "--algorithm", "random"], catch_exceptions=False)
