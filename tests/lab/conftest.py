"""Labs need root and Mininet: without them these tests are skipped, and say so; with P4GEN_REQUIRE_LAB=1 they fail."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from p4gen.errors import MissingToolError, P4genError
from p4gen.labs import prerequisites
from p4gen.labs.softroce import guest, images, kernel
from p4gen.switch import targets

from .traces import MARK, Traces


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traces]:
    """A machine that can run labs; when the test ends, nothing of one may be left on it."""
    try:
        prerequisites.check(targets.EMBEDDED)
    except P4genError as error:
        if os.environ.get("P4GEN_REQUIRE_LAB") == "1":
            pytest.fail(f"P4GEN_REQUIRE_LAB=1, and {error}")
        pytest.skip(str(error))
    # Labs' sockets are in there, so its path has to be short.
    with tempfile.TemporaryDirectory(prefix="p4gen-") as name:
        traces = Traces(secrets.token_hex(8), Path(name))
        monkeypatch.setenv(MARK, traces.mark)
        monkeypatch.setenv("TMPDIR", name)
        traces.check()
        yield traces
        traces.check()


@pytest.fixture
def guests(machine: Traces) -> Traces:
    """A machine that can run labs with guests; without images, or QEMU, the test is skipped."""
    try:
        guest.check()
        images.find(kernel.DEFAULT)
    except MissingToolError as error:
        if os.environ.get("P4GEN_REQUIRE_SOFTROCE") == "1":
            pytest.fail(f"P4GEN_REQUIRE_SOFTROCE=1, and {error}")
        pytest.skip(str(error))
    return machine
