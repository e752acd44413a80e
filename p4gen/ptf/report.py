"""How a PTF test tells the runner what came of it: one JSON object a line, on a pipe it inherits."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from enum import StrEnum

from p4gen.records import from_plain


class Outcome(StrEnum):
    """What came of a test."""

    PASSED = "passed"
    FAILED = "failed"
    """An assertion did not hold."""
    ERROR = "error"
    """The test could not be carried out: it raised something else, or ran out of time."""
    SKIPPED = "skipped"
    """The program under test has nothing to do with the scenario; the message says why."""


@dataclass(frozen=True)
class TestResult:
    """One finished test: ``name`` is module.Class, ``message`` one line, ``details`` the whole traceback."""

    __test__ = False  # the name is no invitation to pytest

    name: str
    outcome: Outcome
    seconds: float
    message: str = ""
    details: str = ""

    @property
    def ok(self) -> bool:
        """Passed or skipped."""
        return self.outcome in (Outcome.PASSED, Outcome.SKIPPED)


def write(descriptor: int, result: TestResult) -> None:
    """Send a result to the runner at the other end of ``descriptor``."""
    line = json.dumps(asdict(result)).encode() + b"\n"
    while line:
        line = line[os.write(descriptor, line) :]


def read(line: bytes) -> TestResult:
    """The result that ``write`` sent; ValueError when the line is not one."""
    return from_plain(TestResult, json.loads(line))
