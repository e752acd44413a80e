"""Sums of floating-point numbers have the same bits on every engine: interpreter, native code, BMv2 where it is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from p4gen.p4 import p4c
from p4gen.switch import bmv2
from p4gen.switch.dataplane import Dataplane
from p4gen.switch.running import Program, scratch
from p4gen.vocabulary import DType, Op
from p4gen.vocabulary.folds import Fold
from p4gen.vocabulary.reductions import Numbers

from .folds import Switch, Words, harness

LANES = 8
PAIRS = 10_000
SIGNS = {DType.FLOAT32: 0x80000000, DType.FLOAT16: 0x80008000, DType.BFLOAT16: 0x80008000}
MISSING = [tool for tool in (bmv2.SWITCH, p4c.COMPILER) if shutil.which(tool) is None]


def pairs(dtype: DType, seed: int) -> Words:
    """Two rows of ``PAIRS`` elements: any bits, and such as nearly cancel or differ in their exponents by little."""
    chance = np.random.default_rng(seed)
    lanes = PAIRS // dtype.number_format.per_lane
    a = chance.integers(0, 1 << 32, lanes, np.uint32)
    kind = np.arange(lanes) % 3
    cancels = (a ^ np.uint32(SIGNS[dtype])) + chance.integers(-3, 4, lanes).astype(np.uint32)
    near = a ^ chance.integers(0, 1 << 26, lanes, np.uint32)
    b = np.where(kind == 1, cancels, np.where(kind == 2, near, chance.integers(0, 1 << 32, lanes, np.uint32)))
    return np.stack([a, b])


class OnBmv2:
    """BMv2 in the place of ``Switch``'s model."""

    engine = "bmv2"

    def __init__(self, ports: Dataplane, received: list[tuple[int, bytes]]) -> None:
        self.ports, self.received = ports, received

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        self.received.clear()
        self.ports.send(port, frame)
        self.ports.settle()
        return self.received


@contextmanager
def on_bmv2(fold: Fold, place: Path) -> Iterator[Switch]:
    """A ``Switch`` whose packets BMv2 handles."""
    switch, received = Switch.of(fold, 2, LANES, "interp"), []
    text = harness(fold.functions, fold.lines("element", range(2)), 2, LANES)
    made = Program.of_text(text, place)
    output = p4c.compile_for_bmv2(p4c.find() or "", made.p4, place)
    with (
        bmv2.running_bmv2(Program(made.p4, made.p4info, output.json), place, range(2)) as running,
        running.connect(),
        Dataplane(str(running.platform_args["address"]), lambda port, data: received.append((port, data))) as ports,
    ):
        replaced: Any = OnBmv2(ports, received)
        switch.model = replaced
        yield switch


@pytest.mark.parametrize("dtype", SIGNS, ids=str)
@pytest.mark.parametrize("engine", ["interp", "bmv2"])
def test_ten_thousand_pairs_have_the_bits_of_native_code(engine: str, dtype: DType, seed: int, tmp_path: Path) -> None:
    if engine == "bmv2" and MISSING:
        pytest.skip(f"not on PATH: {', '.join(MISSING)}")
    fold = Fold(Numbers(Op.SUM, dtype), counts=True)
    rows = pairs(dtype, seed)
    right, large = Switch.of(fold, 2, LANES)(rows)
    assert large.any()
    if engine == "interp":
        got, full = Switch.of(fold, 2, LANES, engine)(rows)
    else:
        with scratch() as place, on_bmv2(fold, place) as switch:
            got, full = switch(rows)
    assert np.array_equal(got, right)
    assert np.array_equal(full, large)
