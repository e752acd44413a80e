"""Elements and scales for random traffic: any bits, and of floating-point numbers mostly such as are near others."""

from __future__ import annotations

import random
from typing import Final

from p4gen.papers.scin.spec import ScinSpec

_NEAR: Final = {1: (127, 128, 125, 255), 2: (0x3C00, 0x3D55, 0x4000, 0x2FFF, 0x0400, 0x03FF, 0x7BFF, 0x7C00)}
"""Scales of so many bytes whose elements add up to something, the least and the greatest, and one that is none."""
_FRACTION: Final = {"float32": 23, "float16": 10, "bfloat16": 7}
"""Bits of a significand."""


def elements(spec: ScinSpec, rng: random.Random) -> bytes:
    """A packet's worth of them. Sums of any bits of floating-point numbers are those of the largest: so most packets
    have numbers around one, subnormal ones, zeros, infinite ones, and what is no number."""
    if not spec.floating or rng.random() < 0.2:
        return rng.randbytes(spec.payload)
    return b"".join(_number(spec, rng).to_bytes(spec.element_bytes) for _ in range(spec.lanes))


def scales(spec: ScinSpec, rng: random.Random) -> bytes:
    """The scales of a wave: mostly those of ``_NEAR``, else any bits."""
    size = spec.scaling.scale_bytes
    chosen = _NEAR[size] if rng.random() < 0.8 else range(1 << 8 * size)
    return b"".join(rng.choice(chosen).to_bytes(size) for _ in range(spec.scales))


def _number(spec: ScinSpec, rng: random.Random) -> int:
    width, fraction = 8 * spec.element_bytes, _FRACTION[spec.dtype]
    bias = (1 << (width - fraction - 2)) - 1
    sign, significand = rng.getrandbits(1) << (width - 1), rng.getrandbits(fraction)
    special = 0, 0, 1, 2 * bias, 2 * bias + 1
    exponent = rng.choice(special) if rng.random() < 0.1 else bias + rng.randrange(-3, 3)
    return sign | exponent << fraction | (significand if rng.random() < 0.9 else 0)
