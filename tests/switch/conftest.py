"""A directory whose path is short enough for socket addresses, and the program that the tests run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ECHO = Path(__file__).parent / "echo.p4"


@pytest.fixture
def echo() -> Path:
    return ECHO


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="p4gen-") as name:
        yield Path(name)
