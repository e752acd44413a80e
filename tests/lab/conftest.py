"""Labs need root and Mininet: without them these tests are skipped, and say so; with P4GEN_REQUIRE_LAB=1 they fail."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from p4gen.errors import P4genError
from p4gen.lab import prerequisites
from p4gen.switch import targets

from .traces import Traces


@pytest.fixture
def machine() -> Iterator[Traces]:
    """A machine that can run labs; when the test ends, nothing of one may be left on it."""
    try:
        prerequisites.check(targets.EMBEDDED)
    except P4genError as error:
        if os.environ.get("P4GEN_REQUIRE_LAB") == "1":
            pytest.fail(f"P4GEN_REQUIRE_LAB=1, and {error}")
        pytest.skip(str(error))
    traces = Traces.now()
    yield traces
    traces.check()
