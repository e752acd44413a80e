"""The base of tests that tell the runner what came of them."""

from __future__ import annotations

import contextlib
import os
import re
import time
import traceback
from pathlib import Path
from typing import Any
from unittest import TestResult as UnittestResult

import p4gen

with contextlib.redirect_stdout(None):  # PTF says which packet library it found
    import ptf.testutils
    from ptf.base_tests import BaseTest

from p4gen.ptf import report
from p4gen.ptf.report import Outcome


def parameters() -> dict[str, Any]:
    """What PTF made of ``-t``: nothing at all if it was no Python, without saying so."""
    given: dict[str, Any] | None = ptf.testutils.TEST_PARAMS
    return given or {}


def parameter(name: str) -> Any:
    """A test parameter; KeyError names the ones there are when it is missing."""
    given = parameters()
    if name not in given:
        raise KeyError(f"test parameter {name} is missing; given: {', '.join(sorted(given)) or 'none'}")
    return given[name]


class ReportedTest(BaseTest):  # type: ignore[misc]  # PTF is untyped
    """A test whose outcome goes to the runner that started PTF, if one did (parameter ``results_fd``).

    With the parameter ``stop_on_failure`` set, no test is begun after one that failed.
    """

    def run(self, result: UnittestResult | None = None) -> None:
        """Run the test and report its outcome."""
        result = result if result is not None else self.defaultTestResult()
        # An error in tearDown comes on top of a failure: the later kinds win.
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

    def misfit(self, _spec: Any) -> str | None:
        """Why a program has nothing to do with this test; None when it has."""
        return None

    def equal(self, what: str, actual: object, expected: object) -> None:
        """AssertionError, with ``what`` and both values, unless they are equal."""
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
                # The runner was killed before it could end us: nobody is left to test for.
                os._exit(1)


_FRAME = re.compile(r'^ +File "([^"]+)", line ', re.MULTILINE)


def _is_ours(text: str) -> bool:
    """Whether an assertion is one of the suite's: one of what the suite stands on, or of a library, that does not hold
    says nothing about the program."""
    frames = _FRAME.findall(text)
    place = Path(frames[-1]).resolve() if frames else None
    return place is None or place in _OURS or not place.is_relative_to(_PACKAGE) or "ptf_tests" in place.parts


_PACKAGE = Path(p4gen.__file__).resolve().parent
_OURS = (Path(__file__).resolve(), _PACKAGE / "ptf" / "memory.py")


def _cause(text: str) -> str:
    """The line of a traceback that says what went wrong: where its last exception begins."""
    lines = [line for line in text.strip().splitlines() if line and not line.startswith((" ", "~", "^"))]
    starts = [line for line in lines if line.split(":")[0].rpartition(".")[2].endswith(("Error", "Exception"))]
    return (starts or lines or [""])[-1]
