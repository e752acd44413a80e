"""What quantisation costs, as in Table 1: in the network once for a sum (INQ), or at each step of a ring (RQ).

The paper measures a language model's perplexity; here it is the ratio of signal to quantisation noise of an AllReduce.
Its operands are drawn like activations of such models: few channels are much greater than the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Experiment, Order, Report, within
from p4gen.papers.scin.ranks.blocks import Array
from p4gen.papers.scin.ranks.numbers import NUMBERS, BlockNumbers

BLOCKS: Final = (32, 64, 128, 256, 512)
RANKS: Final = (2, 4, 8, 16, 32)
ROWS: Final = 64
CHANNELS: Final = 4096
OUTLIERS: Final = 0.003
"""Share of the channels that are 30 times as great."""
SPARE: Final = 1.0
"""dB between what has an order."""
Quantise = Callable[[Array], Array]


def activations(ranks: int, seed: int) -> Array:
    """Operands (ranks, rows, channels): Gaussian, log-normal channels, outliers."""
    chance = np.random.default_rng(seed)
    channel = chance.lognormal(0.0, 0.5, CHANNELS)
    channel[chance.permutation(CHANNELS)[: round(OUTLIERS * CHANNELS)]] *= 30
    return chance.normal(size=(ranks, ROWS, CHANNELS)) * channel


def blocked(numbers: Array, block: int) -> Array:
    """Blocks along the channels, the hidden dimension."""
    return numbers.reshape(*numbers.shape[:-1], -1, block)


def by_greatest(most: int) -> Quantise:
    """The paper's scale: the greatest magnitude, as a float16 number; ``most`` is the greatest element."""

    def quantise(blocks: Array) -> Array:
        scale = (np.abs(blocks).max(axis=-1, keepdims=True) / most).astype(np.float16).astype(np.float64)
        scale = np.where(scale > 0, scale, 1.0)
        return np.asarray(np.clip(np.rint(blocks / scale), -most, most) * scale)

    return quantise


def by_power(bits: int) -> Quantise:
    """A power of two as the scale (E8M0); elements of ``bits`` bits."""
    most, below = 2 ** (bits - 1) - 1, bits - 2

    def quantise(blocks: Array) -> Array:
        greatest = np.abs(blocks).max(axis=-1, keepdims=True)
        _, exponent = np.frexp(np.where(greatest > 0, greatest, 1.0))
        scale = np.ldexp(1.0, exponent - 1 - below)
        return np.asarray(np.clip(np.rint(blocks / scale), -most, most) * scale)

    return quantise


def in_network(blocks: Array, quantise: Quantise) -> Array:
    """Every operand is quantised, and the sum."""
    return quantise(quantise(blocks).sum(axis=0))


def in_a_ring(blocks: Array, quantise: Quantise) -> Array:
    """A partial sum is quantised before each step; the last one for all."""
    partial = blocks[0]
    for operand in blocks[1:]:
        partial = quantise(partial) + operand
    return quantise(partial)


def by_integers(blocks: Array, numbers: BlockNumbers) -> Array:
    """The sum as programs compute it."""
    return numbers.dequantise(*numbers.add(*numbers.quantise(blocks)))


def sqnr(found: Array, exact: Array) -> float:
    """Signal to quantisation noise, dB."""
    return float(10 * np.log10((exact**2).sum() / ((found - exact) ** 2).sum()))


@dataclass(frozen=True)
class Setting:
    """A row: an AllReduce of elements of ``bits`` bits."""

    bits: int = 8
    ranks: int = 8
    block: int = 64

    @property
    def name(self) -> str:
        """The row's label, as in "8 bits, 8 ranks, blocks of 64"."""
        return f"{self.bits} bits, {self.ranks} ranks, blocks of {self.block}"


@dataclass(frozen=True)
class Noise:
    """SQNR in dB of each way to add."""

    inq: float
    """In the network, the paper's scales."""
    power: float
    """In the network, powers of two as scales."""
    ring: float
    int8_float16: float | None
    """The paper's scales, in the integers of programs; of 8 bits only."""
    mxint8: float | None
    """Powers of two, in the integers of programs."""


def measured(setting: Setting, seed: int) -> Noise:
    """Draw activations, and measure the noise of each way to add them."""
    blocks = blocked(activations(setting.ranks, seed), setting.block)
    exact, most = blocks.sum(axis=0), 2 ** (setting.bits - 1) - 1
    return Noise(
        sqnr(in_network(blocks, by_greatest(most)), exact),
        sqnr(in_network(blocks, by_power(setting.bits)), exact),
        sqnr(in_a_ring(blocks, by_greatest(most)), exact),
        *(
            sqnr(by_integers(blocks, NUMBERS[name]), exact) if setting.bits == 8 else None
            for name in ("int8_float16", "mxint8")
        ),
    )


SETTINGS: Final = (
    *(Setting(block=block) for block in BLOCKS),
    Setting(bits=4),
    *(Setting(ranks=ranks) for ranks in RANKS if ranks != 8),
)


def _perform(order: Order) -> Report:
    noises = order.run([Cell(setting.name, measured, (setting, order.seed)) for setting in SETTINGS])
    found = {setting: noises[setting.name] for setting in SETTINGS}
    return Report(
        (
            "setting",
            "INQ, float16 scale, dB",
            "INQ, power of two, dB",
            "ring, dB",
            "int8_float16 in integers, dB",
            "mxint8 in integers, dB",
        ),
        tuple((setting.name, *astuple(noise)) for setting, noise in found.items()),
        tuple(_checks(found)),
        (
            f"{ROWS} x {CHANNELS} elements a rank: Gaussian, channels log-normal, {OUTLIERS:.1%} of them 30-fold",
            "a model's perplexity is not measured; what is checked is the order of the paper's Table 1",
        ),
        {},
    )


def _checks(found: Mapping[Setting, Noise]) -> Iterator[Check]:
    def order(what: str, gain: float) -> Check:
        return Check(f"{what}: {gain:.2f} dB, at least {SPARE:g}", gain >= SPARE)

    for block in BLOCKS:
        noise = found[Setting(block=block)]
        yield order(f"INQ over a ring, blocks of {block}", noise.inq - noise.ring)
    for small, large in pairwise(BLOCKS):
        one, other = found[Setting(block=small)], found[Setting(block=large)]
        yield order(f"INQ: blocks of {small} over {large}", one.inq - other.inq)
        yield order(f"ring: blocks of {small} over {large}", one.ring - other.ring)
    yield order("INQ over a ring, 4 bits", found[Setting(bits=4)].inq - found[Setting(bits=4)].ring)
    pair = found[Setting(ranks=2)]
    yield order("a ring over INQ with 2 ranks: it has one step less", pair.ring - pair.inq)
    each = [found[Setting(ranks=ranks)].inq for ranks in RANKS]
    yield within("INQ does not depend on the number of ranks: spread", max(each) - min(each), 0, 0.5, " dB")
    same = found[Setting(block=32)].power - found[Setting()].inq
    yield within("powers of two in blocks of 32 less float16 in blocks of 64, 8.25 bits both", same, -1, 1, " dB")
    for block in (32, 64):
        noise = found[Setting(block=block)]
        for name, integers, floats in (
            ("int8_float16", noise.int8_float16, noise.inq),
            ("mxint8", noise.mxint8, noise.power),
        ):
            if integers is not None:
                what = f"{name}: integers less floats, blocks of {block}"
                yield within(what, integers - floats, -0.1, 0.1, " dB")


FIGURE_INQ: Final = Experiment({"paper": "some seconds"}, _perform, check="paper")
