"""veth pairs to send frames over; skipped where they cannot be made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from p4gen.errors import FailedError, MissingToolError
from p4gen.switch.veth import veth_pairs


@pytest.fixture
def pair() -> Iterator[tuple[str, str]]:
    """Both ends of a veth pair."""
    try:
        made = veth_pairs([0])
        ends = made.__enter__()[0]
    except (FailedError, MissingToolError) as problem:
        pytest.skip(f"veth interfaces cannot be made: {problem}")
    try:
        yield ends
    finally:
        made.__exit__(None, None, None)
