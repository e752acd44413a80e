"""``p4gen ptf run --target tofino-model`` with stand-ins: all but what only a switch does, which forwards markers."""

from __future__ import annotations

import functools
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from p4gen.cli.ptf.run import command as ptf_run
from p4gen.errors import FailedError
from p4gen.switch import targets
from p4gen.switch.tofino import tools
from p4gen.switch.tofino.process import running_tofino

from .standins import MISSING, StandIns
from .test_process import needs_root, nothing_left

pytestmark = [
    needs_root,
    pytest.mark.skipif(bool(MISSING), reason=f"missing: {', '.join(MISSING)}"),
]
__all__ = ["nothing_left"]
PORTS = (0, 1, 3, 4)
"""Those of a program for Tofino 2 with 4 ports."""
SCENARIO = "test_validation.WrongQp"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Result, StandIns]]:
    """Runs the command with stand-ins that follow a plan."""

    def command(*words: str, **plan: Any) -> tuple[Result, StandIns]:
        sde = StandIns(tmp_path / "sde", **plan)
        monkeypatch.setenv("SDE_INSTALL", str(sde.folder))
        monkeypatch.delenv("P4C_TOFINO", raising=False)
        monkeypatch.setattr(tools, "huge_pages", lambda: tools.HUGE_PAGES)
        # Without a switch, no marker comes: there is no use in waiting for it for long.
        monkeypatch.setattr(targets, "running_tofino", functools.partial(running_tofino, slower=0.2))
        small = ["--lanes", "8", "--ports", "4", "--groups", "1", "--fan-in", "4", "--window", "2", "--message", "2"]
        argv = ["--mode", "II", "--arch", "t2na", *small, "--target", "tofino-model", "--seed", "1"]
        return CliRunner().invoke(ptf_run, [*argv, "--out", str(tmp_path / "out"), *words]), sde

    return command


def test_everything_up_to_the_switch(
    run: Callable[..., tuple[Result, StandIns]], nothing_left: Callable[[StandIns], None], tmp_path: Path
) -> None:
    result, sde = run("--test", SCENARIO, "--test", "test_forwarding.PlainIpIsRouted", driver={"runtime": {}})
    assert result.exit_code == 1, result.output
    assert "0 passed, 2 failed" in result.output
    assert "p4c 0" in result.output
    events = sde.events()
    assert not [event for event in events if event["what"] == "wrong"]
    (ended,) = (event for event in events if (event["who"], event["what"]) == ("tofino-model", "stopped"))
    assert set(ended["frames"]) == {f"veth{2 * port + end}" for port in PORTS for end in (0, 1)}
    # Both scenarios have sent a marker into each port, and nothing else before it comes back.
    assert [ended["frames"][f"veth{2 * port}"] for port in PORTS] == [2] * len(PORTS)
    (folder,) = (tmp_path / "out/runs").iterdir()
    failures = [element.attrib["message"] for element in ET.parse(folder / "junit.xml").iter("failure")]
    assert len(failures) == 2
    assert all("markers sent into port 0, 1, 3, 4 did not leave the switch in 1 s" in text for text in failures)
    nothing_left(sde)


@pytest.mark.parametrize("call", ["subscribe", "bind", "describe", "read", "write"])
def test_the_driver_dies_at_each_step(
    call: str, run: Callable[..., tuple[Result, StandIns]], nothing_left: Callable[[StandIns], None], tmp_path: Path
) -> None:
    file = tmp_path / "report.json"
    result, sde = run("--test", SCENARIO, "--report", str(file), driver={"runtime": {"dies_at": call}})
    assert isinstance(result.exception, FailedError)
    assert "bf_switchd has ended" in str(result.exception)
    assert "exit status 9" in str(result.exception)
    report = json.loads(file.read_text())
    assert "bf_switchd has ended" in report["problem"]
    assert report["run"]["versions"]["p4c"] == "0"
    (program,) = report["programs"]
    assert set(program["commands"]) == {"tofino-model", "bf_switchd"}
    assert program["descriptions"]["manifest.json"]["spec"]["arch"] == "t2na"
    assert program["logs"]["switchd.log"] == ["bf_switchd says something"]
    nothing_left(sde)


def test_the_model_dies_while_scenarios_run(
    run: Callable[..., tuple[Result, StandIns]], nothing_left: Callable[[StandIns], None], tmp_path: Path
) -> None:
    """The driver, which still answers, makes the file for which the model waits."""
    plan = {"model": {"lives": "written"}, "driver": {"runtime": {"touches": str(tmp_path / "sde/written")}}}
    result, sde = run("--test", SCENARIO, **plan)
    assert isinstance(result.exception, FailedError)
    assert "tofino-model has ended" in str(result.exception)
    assert "exit status 4" in str(result.exception)
    nothing_left(sde)
