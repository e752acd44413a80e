"""``p4gen route``: what it prints, writes and refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from p4gen.cli.app import cli
from p4gen.errors import InputError
from p4gen.plan.route.study import USUAL

SMALL = ["route", "--fabric", "4x3x4", "--workers", "9", "--pipelines", "2", "--ina", "40%", "--seed", "1"]


def test_plans_are_compared_written_and_drawn(tmp_path: Path) -> None:
    plan, picture = tmp_path / "plan.json", tmp_path / "route.svg"
    arguments = [*SMALL, "--repeat", "3", "--out", str(plan), "--plot", str(picture)]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert "3 instances: 9 workers, 2 switches aggregate" in done.output
    assert [line.split()[0] for line in done.output.splitlines()[3:8]] == list(USUAL)
    found = json.loads(plan.read_text())["plans"]
    assert found["aro"]["gap"] == 0
    assert all(each["problems"] == [] and len(each["paths"]) == 9 for each in found.values())
    assert picture.read_text().startswith("<?xml")


def test_plans_of_several_tasks_are_written_and_drawn(tmp_path: Path) -> None:
    plan, picture = tmp_path / "plan.json", tmp_path / "route.svg"
    arguments = [*SMALL, "--tasks", "2", "--out", str(plan), "--plot", str(picture)]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    found = json.loads(plan.read_text())
    assert found["jobs"] == [[0, 1]]
    assert list(found["plans"]) == list(USUAL)
    for each in found["plans"].values():
        assert [len(task["paths"]) for task in each["tasks"]] == [9, 9]
        assert all(task["problems"] == [] for task in each["tasks"])
        assert each["value"] == pytest.approx(sum(task["rate_bps"] for task in each["tasks"]) / 100e9)
    assert picture.read_text().count("server") >= 2


def test_standard_output_is_one_object_only() -> None:
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


TREE = ["route", "tree", "clos:2x2x2", "--inc", "leaf0"]


def run_of(plan: Path) -> list[str]:
    return ["sim", "clos:2x2x2", "--plan", str(plan), "--lanes", "8", "--size", "256", "--engine", "interp"]


def test_a_tree_is_planned_and_written(tmp_path: Path) -> None:
    plan, picture = tmp_path / "tree.json", tmp_path / "tree.svg"
    done = CliRunner().invoke(cli, [*TREE, "--out", str(plan), "--plot", str(picture)], catch_exceptions=False)
    assert done.exit_code == 0
    assert picture.read_text().startswith("<?xml")
    assert "no tree is faster than 100.00 Gb/s: gap 0.0%" in done.output
    assert "lcs: refused, since branches meet in switches that do not aggregate" in done.output
    for more, reason in (
        (["--pipelines", "2"], "is for programs of 32 ports and 1 pipelines; this one has 32 and 2"),
        (["--mode", "scin"], "--plan is for collectives of IncTrees"),
        (["--concurrent", "2"], "--plan is for one group"),
    ):
        with pytest.raises((InputError, click.UsageError), match=reason):
            cli.main([*run_of(plan), *more], standalone_mode=False)
    with pytest.raises(InputError, match="it is for the topology 'clos-2x2x2'"):
        cli.main(["sim", "clos:2x2x4", *run_of(plan)[2:]], standalone_mode=False)


def test_a_topology_asks_for_a_tree() -> None:
    done = CliRunner().invoke(cli, ["route", "clos:2x2x2", "--inc", "leaf0", "--json"], catch_exceptions=False)
    assert json.loads(done.stdout)["rate_bps"] == 100e9
    with pytest.raises(click.UsageError, match="there is no command 'tre'; did you mean 'tree'"):
        cli.main(["route", "tre"], standalone_mode=False)


@pytest.mark.long
def test_a_plan_is_run(tmp_path: Path) -> None:
    plan = tmp_path / "tree.json"
    cli.main([*TREE, "--out", str(plan)], standalone_mode=False)
    done = CliRunner().invoke(cli, [*run_of(plan), "--seed", "1"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "plan by aro: 100.00 Gb/s with headers, gap 0.0%; goodput" in done.output


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--inc", "leaf7"], "there is no switch 'leaf7'"),
        (["--ranks", "h0,h9"], "there is no host 'h9'"),
        (["--ranks", "9"], "clos-2x2x2 has 4 hosts"),
        (["--ports", "2"], "switches have up to 4 links"),
        (["--inc", "leaf0", "--ina", "40%"], "give one of them"),
    ],
)
def test_trees_that_cannot_be_are_refused(more: list[str], reason: str) -> None:
    with pytest.raises((InputError, click.UsageError), match=reason):
        cli.main([*TREE, *more], standalone_mode=False)
