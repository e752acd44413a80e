"""A second opinion on folds: Berkeley SoftFloat, which computes IEEE 754 in integers, not in the processor's units."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

from p4gen.vocabulary import DType, Op
from p4gen.vocabulary.folds import Fold
from p4gen.vocabulary.reductions import Numbers

from .folds import Switch
from .test_halves import LANES, drawn, halves_of, lanes_of

softfloat = pytest.importorskip("softfloatpy", reason="softfloatpy is not installed: pip install softfloatpy")
SOURCES = 3
ELEMENTS = 10240 // (2 * LANES) * 2 * LANES


def binary32(bits: int) -> Any:
    return softfloat.Float32.from_bytes(bits.to_bytes(4))


CONVERSIONS: dict[DType, tuple[Callable[[int], Any], Callable[[Any], int]]] = {
    DType.FLOAT32: (binary32, lambda number: int.from_bytes(number.to_bytes())),
    DType.FLOAT16: (
        lambda bits: softfloat.f16_to_f32(softfloat.Float16.from_bytes(bits.to_bytes(2))),
        lambda number: int.from_bytes(softfloat.f32_to_f16(number).to_bytes()),
    ),
    DType.BFLOAT16: (
        lambda bits: softfloat.bf16_to_f32(softfloat.BFloat16.from_bytes(bits.to_bytes(2))),
        lambda number: int.from_bytes(softfloat.f32_to_bf16(number).to_bytes()),
    ),
}
"""From an element's bits to binary32, and back with one rounding."""
NAN = {DType.FLOAT32: 0x7FC00000, DType.FLOAT16: 0x7E00, DType.BFLOAT16: 0x7FC0}


@pytest.mark.parametrize("dtype", CONVERSIONS, ids=str)
def test_folds_are_those_of_softfloat(dtype: DType, seed: int) -> None:
    softfloat.set_rounding_mode(softfloat.RoundingMode.NEAR_EVEN)
    switch = Switch.of(Fold(Numbers(Op.SUM, dtype)), SOURCES)
    rows = drawn(np.random.default_rng(seed), SOURCES, ELEMENTS)
    lanes, _ = switch(lanes_of(rows))
    halves = dtype is not DType.FLOAT32
    columns, got = (rows, halves_of(lanes)) if halves else (lanes_of(rows), lanes)
    widen, narrow = CONVERSIONS[dtype]
    wrong = []
    for element, result in zip(columns.T.tolist(), got.tolist(), strict=True):
        total = reduce(softfloat.f32_add, map(widen, element))
        right = NAN[dtype] if softfloat.f32_is_nan(total) else narrow(total)
        if result != right:
            wrong.append(f"{[f'{each:x}' for each in element]}: {result:x}, not {right:x}")
    assert not wrong, f"{len(wrong)} of {len(got)}: {wrong[:5]}"
