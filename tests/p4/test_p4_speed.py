"""The front end is fast enough to run on every build."""

from __future__ import annotations

import time

import pytest

from p4gen.inc import compose
from p4gen.p4.compile import compile_text
from p4gen.render import render
from p4gen.spec import ProgramSpec


@pytest.mark.parametrize(("lanes", "limit"), [(64, 0.5), (256, 1.5)])
def test_a_generated_program_compiles_in_time(lanes: int, limit: float) -> None:
    text = render(compose(ProgramSpec.model_validate({"mode": "II", "lanes": lanes}))).text
    best = 1e9
    for _ in range(3):
        start = time.perf_counter()
        found = compile_text(text, "speed.p4")
        best = min(best, time.perf_counter() - start)
    assert not found.warnings
    assert best < limit
