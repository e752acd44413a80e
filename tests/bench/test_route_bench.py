"""The benchmark of routing; no times are tested."""

from __future__ import annotations

import json

from click.testing import CliRunner

from p4gen.cli.app import cli


def test_the_table() -> None:
    done = CliRunner().invoke(cli, ["bench", "route", "--largest", "2", "--json", "--seed", "2"])
    assert done.exit_code == 0, done.output
    plans = json.loads(done.stdout)["plans"]
    assert [(each["switches"], each["hosts"], each["workers"]) for each in plans] == [(48, 576, 100), (96, 2304, 200)]
    assert all(each["gap"] == 0 for each in plans)
