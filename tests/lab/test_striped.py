"""A plan with several trees in a lab: they carry their shares of each call, and one of them is enough."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from manager.plans import pair

from p4gen.cli.app import cli
from p4gen.errors import InputError

from .labs import SMALL, lab
from .traces import Traces


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(pair().to_json()))
    return file


@pytest.mark.long
def test_trees_carry_their_shares(tmp_path: Path, plan: Path, machine: Traces, seed: int) -> None:
    scenario = ["--collective", "allreduce", "--size", "64K", "--repeat", "3", "--deadline", "120"]
    arguments = ["clos:2x2x1@10G", *SMALL, "--policy", "aro", "--plan", str(plan), *scenario, "--seed", str(seed)]
    done = lab(tmp_path, *arguments, "--json")
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"]) == (0, True), done.stdout
    assert [call["right"] for call in report["calls"]] == [True] * 3
    assert len(report["ranks"]) == 2
    for rank in report["ranks"]:
        first, second = rank["trees"].values()
        if not rank["resent"]:
            # 3 calls of 512 messages of 2 packets, and one announcement and Barriers for each call
            assert second == 3 * (512 * 4 // 10 * 2 + 1)
            assert first == 3 * ((512 - 512 * 4 // 10) * 2 + 1) + 3
        assert first + second == rank["sent"]
        assert first / rank["sent"] == pytest.approx(0.6, abs=0.01 + rank["resent"] / rank["sent"])
    (folder,) = (tmp_path / "runs").iterdir()
    repeated = json.loads((folder / "run.json").read_text())["arguments"]
    assert repeated[repeated.index("--plan") + 1] == str(folder / "plan.json")
    assert json.loads((folder / "plan.json").read_text()) == json.loads(plan.read_text())


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["clos:2x2x1@10G"], "--plan is for --policy aro"),
        (["clos:2x2x1@10G", "--policy", "edge-disjoint"], "--plan is for --policy aro"),
        (["clos:2x2x1", "--policy", "aro"], "it is for the topology 'clos-2x2x1' with digest"),
    ],
)
def test_plans_that_a_lab_does_not_take(plan: Path, arguments: list[str], why: str) -> None:
    with pytest.raises((InputError, click.UsageError), match=why):
        cli.main(["lab", *arguments, "--plan", str(plan)], standalone_mode=False)
