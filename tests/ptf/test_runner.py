"""The runner against a toy suite whose every misbehaviour must be noticed. The switch is a mirror."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p4gen.errors import FailedError
from p4gen.papers.epic.spec import EpicSpec
from p4gen.ptf import runner
from p4gen.ptf.conformance import run_conformance
from p4gen.ptf.family import SuiteRun
from p4gen.ptf.report import Outcome, TestResult
from p4gen.ptf.runner import SuiteResult, run_suite
from p4gen.switch.running import Program, RunningSwitch
from p4gen.switch.unix import UnixPorts

NO_PROGRAM = Program(Path("none"), Path("none"))

TOY = """
import os
import time

import ptf
from p4gen.ptf.testcase import ReportedTest, parameter


class A_FrameComesBack(ReportedTest):
    def runTest(self):
        big = bytes(range(256)) * 34
        for port in (0, 1):
            ptf.dataplane_instance.send(0, port, big)
            found = ptf.dataplane_instance.poll(port_number=port, timeout=300)
            self.equal("frame mirrored", found.packet == big, True)


class B_ParametersArrive(ReportedTest):
    def runTest(self):
        self.equal("text", parameter("text"), "it's; a \\\\ \\"test\\"\\nof quoting = 1")
        self.equal("nested", parameter("nested"), {"a": [1, None, True]})


class C_Fails(ReportedTest):
    def runTest(self):
        self.equal("the answer", 41, 42)


class D_Raises(ReportedTest):
    def runTest(self):
        parameter("nowhere")


class E_Skips(ReportedTest):
    def runTest(self):
        self.skipTest("no reason")


class F_SkipsInSetUp(ReportedTest):
    def setUp(self):
        self.skipTest("at once")

    def runTest(self):
        pass


class G_Hangs(ReportedTest):
    def runTest(self):
        time.sleep(3600)


class H_Crashes(ReportedTest):
    def runTest(self):
        os._exit(0)
"""


@contextmanager
def mirror(_program: Program, directory: Path, ports: range) -> Iterator[RunningSwitch]:
    """A switch that sends every frame back where it came from."""
    with UnixPorts(lambda port, frame: [(port, frame)], directory, ports) as carrier:
        thread = threading.Thread(target=carrier.run)
        thread.start()
        try:
            arguments = {"dir": str(directory), "ports": len(ports)}
            yield RunningSwitch("mirror", directory, "none", Path("none"), Path("none"), "unix", arguments)
        finally:
            carrier.stop()
            thread.join()


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "toy.py").write_text(TOY)
    return folder


def run(suite: Path, *tests: str, **options: Any) -> SuiteResult:
    params = {"text": 'it\'s; a \\ "test"\nof quoting = 1', "nested": {"a": [1, None, True]}}
    names = [f"toy.{test}" for test in tests]
    return run_suite(
        NO_PROGRAM, suite.parent, ports=2, params=params, suite=[suite], tests=names, switch=mirror, **options
    )


def test_outcomes_are_told_apart(suite: Path) -> None:
    seen: list[TestResult] = []
    names = ["A_FrameComesBack", "B_ParametersArrive", "C_Fails", "D_Raises", "E_Skips", "F_SkipsInSetUp"]
    result = run(suite, *names, progress=seen.append)
    assert result.problem is None
    assert not result.passed
    assert tuple(seen) == result.tests
    assert [(test.name, test.outcome) for test in result.tests] == [
        ("toy.A_FrameComesBack", Outcome.PASSED),
        ("toy.B_ParametersArrive", Outcome.PASSED),
        ("toy.C_Fails", Outcome.FAILED),
        ("toy.D_Raises", Outcome.ERROR),
        ("toy.E_Skips", Outcome.SKIPPED),
        ("toy.F_SkipsInSetUp", Outcome.SKIPPED),
    ]
    messages = [test.message for test in result.tests]
    assert messages[2] == "AssertionError: the answer: 41, expected 42"
    assert "test parameter nowhere is missing; given: nested, results_fd" in messages[3]
    assert messages[4:] == ["no reason", "at once"]
    assert "Traceback" in result.failures[0].details


def test_a_passing_run_passes_and_cleans_up(suite: Path) -> None:
    result = run(suite, "A_FrameComesBack", "E_Skips")
    assert result.passed
    assert not list(suite.parent.glob("*.sock"))
    assert {"ptf.out", "ptf.log", "ptf.pcap"} <= {path.name for path in suite.parent.iterdir()}


def test_a_relative_folder_will_do(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(suite.parent)
    params = {"text": "", "nested": {}}
    here = run_suite(
        NO_PROGRAM, Path(), ports=2, params=params, suite=[Path("suite")], tests=["toy.E_Skips"], switch=mirror
    )
    assert here.problem is None


def test_stopping_at_the_first_failure(suite: Path) -> None:
    result = run(suite, "B_ParametersArrive", "D_Raises", "A_FrameComesBack", stop_on_failure=True)
    assert result.problem is None
    assert [test.outcome for test in result.tests] == [Outcome.PASSED, Outcome.ERROR]


def test_a_hanging_test_is_an_error_and_the_next_one_runs(suite: Path) -> None:
    result = run(suite, "G_Hangs", "B_ParametersArrive", test_timeout=10)
    assert result.problem is None
    assert [test.outcome for test in result.tests] == [Outcome.ERROR, Outcome.PASSED]
    assert "Timeout" in result.tests[0].message


def test_a_hanging_suite_is_ended(suite: Path) -> None:
    result = run(suite, "B_ParametersArrive", "G_Hangs", silence=6)
    assert result.problem == "no scenario ended for 6 s"
    assert not result.passed


def test_the_end_of_a_process_of_the_switch_ends_the_suite(suite: Path) -> None:
    """Nothing else would end it: the scenario waits for an hour, the runner as long."""
    process = subprocess.Popen(["true"])

    @contextmanager
    def dead(program: Program, directory: Path, ports: range) -> Iterator[RunningSwitch]:
        with mirror(program, directory, ports) as running:
            yield replace(running, pids=(process.pid,))

    result = run_suite(NO_PROGRAM, suite.parent, ports=2, params={}, suite=[suite], tests=["toy.G_Hangs"], switch=dead)
    process.wait()
    assert result.problem == "a process of the switch has ended"
    assert not result.passed
    assert not result.tests


def test_a_slower_switch_gets_more_time(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def start(command: list[str], *_: object) -> None:
        commands.append(command)
        raise FailedError("enough is known")

    @contextmanager
    def slow(program: Program, directory: Path, ports: range) -> Iterator[RunningSwitch]:
        with mirror(program, directory, ports) as running:
            yield replace(running, platform_args={**running.platform_args, "slower": 20.0})

    monkeypatch.setattr(runner, "_start", start)
    for switch, limit in ((mirror, "900"), (slow, "18000")):
        with pytest.raises(FailedError, match="enough"):
            run_suite(NO_PROGRAM, suite.parent, ports=2, params={}, suite=[suite], switch=switch)
        command = commands.pop()
        assert command[command.index("--test-case-timeout") + 1] == limit


def test_a_crash_is_not_a_success(suite: Path) -> None:
    result = run(suite, "B_ParametersArrive", "H_Crashes")
    assert result.problem is not None
    assert "before running tests" in result.problem
    assert not result.passed


def test_no_test_is_not_a_success(suite: Path) -> None:
    (suite / "toy.py").write_text('"""Nothing here."""\n')
    assert (
        run(suite).problem == "PTF ended with exit code 1 before running tests: CRITICAL: no" or not run(suite).passed
    )


def test_only_skipped_tests_are_not_a_success(suite: Path) -> None:
    result = run(suite, "E_Skips")
    assert result.problem is None
    assert not result.passed


def test_a_suite_that_cannot_be_imported_says_why(suite: Path) -> None:
    (suite / "toy.py").write_text("import no_such_module\n")
    problem = run(suite).problem
    assert problem is not None
    assert "No module named 'no_such_module'" in problem


def test_what_does_not_report_is_noticed(suite: Path) -> None:
    (suite / "toy.py").write_text(
        "import unittest\nclass Silent(unittest.TestCase):\n    def runTest(self):\n        pass\n"
    )
    assert (run(suite).problem or "").startswith("PTF ran 1 tests, 0 reported their outcome")


def test_a_large_run_is_divided_among_jobs(suite: Path) -> None:
    """Its results are one, in the order of its tests; each part has logs of its own."""
    names = [f"test_{letter}" for letter in "lkjihgfedcba"]
    for name in names:
        (suite / f"{name}.py").write_text(TOY)
    tests = tuple(f"{name}.{kind}" for name in names for kind in ("E_Skips", "F_SkipsInSetUp"))
    result = run_conformance(
        [SuiteRun(EpicSpec(ports=2, fan_in=2), (*tests, "test_a.C_Fails"))],
        lambda _: NO_PROGRAM,
        suite.parent,
        seed=1,
        suite=(suite,),
        switch=mirror,
        jobs=2,
    )
    ((_, found),) = result.runs
    assert [test.name for test in found.tests] == [*tests, "test_a.C_Fails"]
    assert found.problem is None
    assert [test.name for test in found.failures] == ["test_a.C_Fails"]
    logs = [suite.parent / "0" / "ptf.out", suite.parent / "0" / "1" / "ptf.out"]
    assert [re.findall(r"Ran (\d+) tests", log.read_text()) for log in logs] == [["13"], ["12"]]
