"""Tests of the model run on both engines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from p4gen.choices import EngineName

from . import programs


@pytest.fixture(params=["interp", "jit"], autouse=True)
def engine(request: pytest.FixtureRequest) -> Iterator[EngineName]:
    """The engine of ``programs.switch``."""
    before, programs.ENGINE = programs.ENGINE, request.param
    yield request.param
    programs.ENGINE = before
