"""Scenarios end with the runner that started them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from patience import until

SUITE = """
import time
from p4gen.ptf.testcase import ReportedTest


class A_Runs(ReportedTest):
    def runTest(self):
        with open("pid", "w") as file:
            file.write(str(__import__("os").getpid()))
        time.sleep(1)


class B_MustNotRun(ReportedTest):
    def runTest(self):
        open("survived", "w").close()
"""

RUNNER = """
import contextlib, sys
from pathlib import Path
from p4gen.ptf.runner import run_suite
from p4gen.switch.running import Program, RunningSwitch
folder = Path(sys.argv[1])
nothing = RunningSwitch("none", folder, "none", folder, folder, "unix", {"dir": str(folder), "ports": 0})
switch = lambda *_: contextlib.nullcontext(nothing)
run_suite(Program(folder, folder), folder, ports=0, params={}, suite=[folder / "suite"], switch=switch)
"""


def test_ptf_ends_when_its_runner_is_killed(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "orphan.py").write_text(SUITE)
    runner = subprocess.Popen([sys.executable, "-c", RUNNER, str(tmp_path)])
    try:
        pid = int(_eventually(tmp_path / "pid"))
    finally:
        runner.send_signal(signal.SIGKILL)
        runner.wait()
    until(lambda: not _alive(pid))
    assert not (tmp_path / "survived").exists()


def _eventually(path: Path) -> str:
    """The text of a file that is about to be written."""
    until(lambda: path.exists() and path.read_text())
    return path.read_text()


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
