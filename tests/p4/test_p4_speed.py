"""The front end is fast enough to run on every build: its work grows with the program, and no faster."""

from __future__ import annotations

import sys
from types import FrameType

from p4gen.p4.compile import compile_text
from p4gen.papers.epic.spec import EpicSpec
from p4gen.program import compose, render


def work(lanes: int) -> tuple[int, int]:
    """(functions called while a program is compiled, characters of its text)."""
    text = render(compose(EpicSpec.model_validate({"mode": "II", "lanes": lanes}))).text
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        found = compile_text(text, "speed.p4")
    finally:
        sys.setprofile(None)
    assert not found.warnings
    return calls, len(text)


def test_four_times_the_lanes_are_no_more_than_four_times_the_work() -> None:
    (small, few), (large, many) = work(64), work(256)
    assert large < 4 * small
    assert small < 10 * few  # it was 4.2, and for 256 lanes 5.3
    assert large < 10 * many
