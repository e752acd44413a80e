"""How PTF tests report their results to the runner: one JSON object per line, on a pipe that they inherit."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from enum import StrEnum

from p4gen.records import from_plain


class Outcome(StrEnum):
    """How a test of a scenario has ended."""

    PASSED = "passed"
    FAILED = "failed"
    """An assertion did not hold."""
    ERROR = "error"
    """The test could not be run to its end: it raised another exception, or ran out of time."""
    SKIPPED = "skipped"
    """The scenario does not apply to the program under test; the message says why."""


@dataclass(frozen=True)
class TestResult:
    """One finished test: ``name`` is module.Class, ``message`` one line, ``details`` the whole traceback."""

    __test__ = False  # not a pytest class, despite its name

    name: str
    outcome: Outcome
    seconds: float
    message: str = ""
    details: str = ""

    @property
    def ok(self) -> bool:
        """Whether the test has passed, or was skipped."""
        return self.outcome in (Outcome.PASSED, Outcome.SKIPPED)


def write(descriptor: int, result: TestResult) -> None:
    """Send a result to the runner, through ``descriptor``."""
    line = json.dumps(asdict(result)).encode() + b"\n"
    while line:
        line = line[os.write(descriptor, line) :]


def read(line: bytes) -> TestResult:
    """The result that ``write`` sent. Raises ``ValueError`` when the line is not one."""
    return from_plain(TestResult, json.loads(line))
