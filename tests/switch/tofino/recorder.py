"""A transport that keeps requests; what it answers to read requests is given to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Recorder:
    """``p4gen.switch.tofino.bfrt.connection.Transport``."""

    def __init__(self, *answers: Any) -> None:
        self.written: list[Any] = []
        self.asked: list[Any] = []
        self._answers = list(answers)

    def write(self, request: Any) -> Any:
        self.written.append(request)
        return None

    def read(self, request: Any) -> Iterable[Any]:
        self.asked.append(request)
        return [self._answers.pop(0)] if self._answers else []
