"""Draws by a counter: the known answers of Random123, and their spread."""

from __future__ import annotations

import numpy as np

from p4gen.compiled.draws import uniform, words


def test_the_known_answer() -> None:
    """Philox4x32-10 of Random123's ``kat_vectors``: counter 0, key 0."""
    assert words(0, 0) == (0x6627E8D5, 0xE169C58D)


def test_draws_are_spread_evenly() -> None:
    drawn = np.array([uniform(7, i) for i in range(20_000)])
    assert drawn.min() >= 0
    assert drawn.max() < 1
    counts, _ = np.histogram(drawn, 20, (0, 1))
    # 1,000 in each part, with a standard deviation of 31.
    assert abs(counts - 1000).max() < 200


def test_keys_and_counters_give_different_draws() -> None:
    drawn = {uniform(key, counter) for key in (0, 1, 1 << 40) for counter in (0, 1, 1 << 40)}
    assert len(drawn) == 9
