"""The base class of tests that report their outcome to the runner."""

from __future__ import annotations

import os
import re
import time
import traceback
from pathlib import Path
from typing import Any
from unittest import TestResult as UnittestResult

import p4gen
from p4gen.ptf import report
from p4gen.ptf.framework import BaseTest, ptf
from p4gen.ptf.report import Outcome


def parameters() -> dict[str, Any]:
    """The parameters that PTF parsed from ``-t``; empty if it was not valid Python, which PTF does not report."""
    given: dict[str, Any] | None = ptf.testutils.TEST_PARAMS
    return given or {}


def parameter(name: str) -> Any:
    """A test parameter. Raises ``KeyError``, which lists those that were given, when it is missing."""
    given = parameters()
    if name not in given:
        raise KeyError(f"test parameter {name} is missing; given: {', '.join(sorted(given)) or 'none'}")
    return given[name]


class ReportedTest(BaseTest):  # type: ignore[misc]  # PTF is untyped
    """A test that reports its outcome to the runner that started PTF, if there is one (parameter ``results_fd``).

    With the parameter ``stop_on_failure``, no test is started after one that failed.
    """

    def run(self, result: UnittestResult | None = None) -> None:
        """Run the test and report its outcome."""
        result = result if result is not None else self.defaultTestResult()
        # An error in tearDown may follow a failure: the later outcome counts.
        kinds = ((Outcome.SKIPPED, result.skipped), (Outcome.FAILED, result.failures), (Outcome.ERROR, result.errors))
        before = [len(entries) for _, entries in kinds]
        started = time.monotonic()
        try:
            super().run(result)
        except BaseException:
            self._report(Outcome.ERROR, started, traceback.format_exc())
            raise
        outcome, text = Outcome.PASSED, ""
        for (kind, entries), old in zip(kinds, before, strict=True):
            if len(entries) > old:
                outcome, text = kind, entries[-1][1]
        if outcome is Outcome.FAILED and not _is_ours(text):
            outcome = Outcome.ERROR
        self._report(outcome, started, text)
        # PTF's own --failfast never reaches its unittest runner.
        if outcome in (Outcome.FAILED, Outcome.ERROR) and parameters().get("stop_on_failure"):
            result.stop()

    def misfit_of(self, program: Any) -> str | None:
        """Why this test does not apply to a program; None if it does."""
        return self.misfit(program)

    def misfit(self, _spec: Any) -> str | None:
        """The same for the spec of the test's family, which may be beside the program's own."""
        return None

    def equal(self, what: str, actual: object, expected: object) -> None:
        """Raises ``AssertionError``, with ``what`` and both values, unless they are equal."""
        if actual != expected:
            raise AssertionError(f"{what}: {actual!r}, expected {expected!r}")

    def _report(self, outcome: Outcome, started: float, text: str) -> None:
        seconds = time.monotonic() - started
        found = report.TestResult(str(self), outcome, seconds, _cause(text), text)
        if (take := parameters().get("results")) is not None:
            take(found)
        descriptor = parameters().get("results_fd")
        if descriptor is not None:
            try:
                report.write(descriptor, found)
            except BrokenPipeError:
                # The runner was killed before it could end this process.
                os._exit(1)


_FRAME = re.compile(r'^ +File "([^"]+)", line ', re.MULTILINE)


def _is_ours(text: str) -> bool:
    """Whether an assertion belongs to the suite. A failed assertion of a library or of p4gen says nothing about the
    program."""
    frames = _FRAME.findall(text)
    place = Path(frames[-1]).resolve() if frames else None
    return place is None or place in _OURS or not place.is_relative_to(_PACKAGE) or "ptf_tests" in place.parts


_PACKAGE = Path(p4gen.__file__).resolve().parent
_OURS = (Path(__file__).resolve(), _PACKAGE / "ptf" / "memory.py", _PACKAGE / "ptf" / "scenario.py")


def _cause(text: str) -> str:
    """The line of a traceback with the last exception."""
    lines = [line for line in text.strip().splitlines() if line and not line.startswith((" ", "~", "^"))]
    starts = [line for line in lines if line.split(":")[0].rpartition(".")[2].endswith(("Error", "Exception"))]
    return (starts or lines or [""])[-1]
