"""The benchmark of the simulator of flows; no times are tested."""

from __future__ import annotations

import json

from click.testing import CliRunner

from p4gen.bench.flow import measure_flow
from p4gen.cli.app import cli


def test_a_larger_mix_has_more_events() -> None:
    few, many = (measure_flow(jobs, 1, "ring", 3) for jobs in (4, 16))
    assert (few.hosts, few.jobs, many.jobs) == (256, 4, 16)
    assert 0 < few.events < many.events


def test_the_table() -> None:
    done = CliRunner().invoke(cli, ["bench", "flow", "--jobs", "8", "--json", "--seed", "2"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    sizes = [(each["jobs"], each["hosts"]) for each in report["simulations"]]
    assert sizes == [(1, 2048), (2, 2048), (4, 2048), (8, 2048), (1, 256), (1, 512), (1, 1024), (1, 2048)]
