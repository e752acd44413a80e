"""``p4gen flow``: what it prints, writes and refuses."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from p4gen.cli import lab as lab_verb
from p4gen.cli.app import cli
from p4gen.cli.flow import do_confirm

WORKLOAD = """\
fabric: {leaves: 2, spines: 2, hosts: 4}
slots: 8
jobs:
  - {name: a, tp: 2, dp: 2, compute: 1s, tp_volume: 12500M, dp_volume: 12500M, iterations: 2, count: 2}
"""


def test_a_workload_under_all_policies(tmp_path: Path) -> None:
    file, table, plot = tmp_path / "w.yaml", tmp_path / "jobs.csv", tmp_path / "jct.svg"
    file.write_text(WORKLOAD)
    arguments = ["flow", str(file), "--seed", "1", "--csv", str(table), "--plot", str(plot), "--json"]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert list(found["policies"]) == ["ring", "edge-disjoint", "spatial", "temporal"]
    mean = {policy: each["mean_jct"] for policy, each in found["policies"].items()}
    assert max(mean.values()) == mean["ring"] > mean["temporal"]
    rows = list(csv.DictReader(table.open()))
    assert len(rows) == 8
    assert rows[0]["job"] == "a.0"
    assert plot.read_text().startswith("<?xml")


@pytest.mark.parametrize(("factor", "passes"), [(1.1, True), (1.3, False)])
def test_labs_beside_flows(factor: float, passes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Sequence[str]] = []

    def lab(arguments: Sequence[str]) -> dict[str, Any]:
        ran.append(arguments)
        seconds = 20.0 if "ring" in arguments else 20.0 * factor
        calls = [{"ring": "ring" in arguments}] * 10
        return {"groups": [{"calls": calls}] * 3, "seconds": seconds, "passed": True, "folder": "build/runs/it"}

    monkeypatch.setattr(do_confirm, "_lab", lab)
    arguments = ["flow", "confirm", "--members", "two", "--seed", "1", "--json"]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == (0 if passes else 1)
    found = json.loads(done.stdout)["members"]["two"]
    assert len(found) == len(ran) == 5
    assert [row["flow_ratio"] for row in found] == pytest.approx([1.0] * 5)  # a ring of two moves as much as a tree
    assert [row["near"] for row in found] == [True, *[passes] * 4]
    assert [row["by_switches"] for row in found] == [0, *[30] * 4]
    for said in ran:  # every command is one that p4gen lab takes
        parsed = lab_verb.command.make_context("lab", [*said], resilient_parsing=True)
        assert parsed.params["bandwidth"] == ("20M",)
