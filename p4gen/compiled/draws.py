"""Random numbers by a counter: draw ``i`` of a key is the same, whatever was drawn before (Philox4x32-10; J. K. Salmon
et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011)."""

from __future__ import annotations

from typing import Final

from p4gen.compiled.cached import compiled

_WORD: Final = 0xFFFFFFFF
_MULTIPLIERS: Final = 0xD2511F53, 0xCD9E8D57
_STEPS: Final = 0x9E3779B9, 0xBB67AE85
_ROUNDS: Final = 10


@compiled
def words(key: int, counter: int) -> tuple[int, int]:
    """The first two 32-bit words of a draw. ``key`` and ``counter`` have 64 bits."""
    a, b, c, d = counter & _WORD, (counter >> 32) & _WORD, 0, 0
    one, other = key & _WORD, (key >> 32) & _WORD
    for _ in range(_ROUNDS):
        first, second = _MULTIPLIERS[0] * a, _MULTIPLIERS[1] * c
        a, b, c, d = (
            ((second >> 32) & _WORD) ^ b ^ one,
            second & _WORD,
            ((first >> 32) & _WORD) ^ d ^ other,
            first & _WORD,
        )
        one, other = (one + _STEPS[0]) & _WORD, (other + _STEPS[1]) & _WORD
    return a, b


@compiled
def uniform(key: int, counter: int) -> float:
    """Draw ``counter`` of ``key``: a number from 0 up to, not including, 1, with 53 bits."""
    high, low = words(key, counter)
    return float(high << 21 | low >> 11) / (1 << 53)
