"""Figure 12: what AllReduces by SCIN mean for inference, by model, batch and length (sections 2.1 and 4.5).

Computation is not measured, but reckoned: a layer takes what its products or its memory take, whichever is longer, and
a time for its kernels besides. The rate of products and that time are fitted to the largest shares of AllReduce that
Figure 3 states, one of prefilling and one of decoding; all else follows. AllReduces are simulated at some sizes, and in
between, and beyond, on the line through these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Final

from p4gen.experiments.experiment import Check, Experiment, Order, Report, near, within
from p4gen.papers.scin.experiments.figure_10 import ring
from p4gen.papers.scin.experiments.figure_quantised import NODES, PREFILL, SIZES, cell, spec
from p4gen.papers.scin.experiments.study import PLANE_RATE, PLANES, capacity

BATCHES: Final = (1, 8, 32, 128)
LENGTHS: Final = (128, 512, 2048, 4096)
TOKENS: Final = 64
"""Of an answer; a token is decoded behind half of them on average."""
MEMORY: Final = 4.8e12
"""Bytes a second of an H200's memory."""
DECODE: Final = ((0.25, 1.29), (0.30, 1.34))
"""Figure 3's largest shares of AllReduce in decoding, and Figure 12's speed-ups of TPOT: FP16, FP8."""
STEPS: Final = 60
"""Of a bisection."""
ROUNDS: Final = 8
"""In which the two of a GPU's numbers are fitted in turn."""
Times = Callable[[float], float]
"""Microseconds of an AllReduce of so many bytes."""


@dataclass(frozen=True)
class Model:
    """A model of LLaMA-2 (arXiv:2307.09288)."""

    name: str
    parameters: float
    layers: int
    hidden: int
    kept: int
    """Elements of a token's keys, and of its values, in each layer."""


MODELS: Final = (
    Model("7B", 6.74e9, 32, 4096, 4096),
    Model("13B", 13.0e9, 40, 5120, 5120),
    Model("70B", 69.0e9, 80, 8192, 1024),
)


@dataclass(frozen=True)
class Input:
    """What is prefilled, and decoded behind it."""

    model: Model
    batch: int
    length: int

    def size(self, *, prefills: bool) -> float:
        """Bytes of an AllReduce, two of which each layer has: 2bsh, or 2bh."""
        return 2.0 * self.batch * self.model.hidden * (self.length if prefills else 1)

    def computed(self, gpu: Gpu, *, prefills: bool) -> float:
        """Microseconds of computation at each of the nodes."""
        model, tokens = self.model, self.batch * (self.length if prefills else 1)
        seen = self.length / 2 if prefills else self.length + TOKENS / 2
        products = 2 * model.parameters * tokens + 4 * model.layers * model.hidden * seen * tokens
        kept = 0 if prefills else 2 * 2 * model.layers * model.kept * seen * self.batch
        memory = (model.parameters * gpu.bytes + kept) / MEMORY
        return max(products / gpu.rate, memory) / NODES * 1e6 + model.layers * gpu.kernels

    def reduced(self, times: Times, *, prefills: bool) -> float:
        """Microseconds of its AllReduces."""
        return 2 * self.model.layers * times(self.size(prefills=prefills))


@dataclass(frozen=True)
class Gpu:
    """What computes."""

    bytes: int
    """Of a weight."""
    rate: float
    """Products and sums a second."""
    kernels: float
    """Microseconds of a layer beside these."""


INPUTS: Final = tuple(Input(*each) for each in product(MODELS, BATCHES, LENGTHS))


def line(points: Mapping[int, float]) -> Times:
    """The line through times by size."""
    sizes = sorted(points)

    def at(size: float) -> float:
        below = max((one for one in sizes[:-1] if one <= size), default=sizes[0])
        above = sizes[sizes.index(below) + 1]
        slope = (points[above] - points[below]) / (above - below)
        return points[below] + slope * (size - below)

    return at


def share(gpu: Gpu, times: Times, *, prefills: bool) -> float:
    """The largest one of AllReduces in the time of any input."""
    shares = []
    for each in INPUTS:
        reduced = each.reduced(times, prefills=prefills)
        shares.append(reduced / (reduced + each.computed(gpu, prefills=prefills)))
    return max(shares)


def _bisected(low: float, high: float, above: Callable[[float], bool]) -> float:
    """Where what grows exceeds something."""
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if above(middle) else (middle, high)
    return high


def fitted(size: int, prefilling: float, decoding: float, times: Times) -> Gpu:
    """The GPU, with weights of ``size`` bytes, that has these largest shares."""
    gpu = Gpu(size, 1e15, 10.0)
    for _ in range(ROUNDS):
        kernels = _bisected(1, 1000, partial(_slow, gpu, times, decoding))
        gpu = replace(gpu, kernels=kernels)
        rate = _bisected(1e13, 1e17, partial(_fast, gpu, times, prefilling))
        gpu = replace(gpu, rate=rate)
    return gpu


def _slow(gpu: Gpu, times: Times, most: float, kernels: float) -> bool:
    return share(replace(gpu, kernels=kernels), times, prefills=False) < most


def _fast(gpu: Gpu, times: Times, most: float, rate: float) -> bool:
    return share(replace(gpu, rate=rate), times, prefills=True) > most


def faster(one: Input, gpu: Gpu, before: Times, after: Times, *, prefills: bool) -> float:
    """How many times."""
    computed = one.computed(gpu, prefills=prefills)
    slow, fast = (one.reduced(times, prefills=prefills) for times in (before, after))
    return (computed + slow) / (computed + fast)


def _perform(order: Order) -> Report:
    sizes = SIZES["quick"]
    asked = [(quantised, size) for quantised in (False, True) for size in sizes]
    found = order.run([cell(quantised, size, order) for quantised, size in asked])
    calls = {key: one.call / 1e6 for key, one in zip(asked, found.values(), strict=True)}
    exact, quantised = (line({size: calls[how, size] for size in sizes}) for how in (False, True))
    most = PLANES * capacity(spec(quantised=False), PLANE_RATE)

    def software(size: float) -> float:
        return ring(NODES, size, most)

    gpus = [
        fitted(size, prefill[1], decode[0], software)
        for size, prefill, decode in zip((2, 1), PREFILL, DECODE, strict=True)
    ]
    grid = [
        [faster(one, gpu, software, exact if not prefills else quantised, prefills=prefills) for one in INPUTS]
        for prefills in (True, False)
        for gpu in gpus
    ]
    return Report(
        ("model", "batch", "length", "FP16, TTFT", "FP8, TTFT", "FP16, TPOT", "FP8, TPOT"),
        tuple(
            (one.model.name, str(one.batch), str(one.length), *factors)
            for one, *factors in zip(INPUTS, *grid, strict=True)
        ),
        tuple(_checks(grid)),
        (
            "computation is reckoned, not measured: a layer takes its products or its memory's time (4.8 TB/s, an "
            "H200), and its kernels' besides",
            *(
                f"{name}: {gpu.rate / 1e12:,.0f} TFLOPS and {gpu.kernels:.0f} us a layer are fitted to Figure 3's "
                f"largest shares ({100 * prefill[1]:.0f} and {100 * decode[0]:.0f} %)"
                for name, gpu, prefill, decode in zip(("FP16", "FP8"), gpus, PREFILL, DECODE, strict=True)
            ),
            "AllReduces with quantisation in prefilling, without in decoding; beyond 16 MiB on a line",
            "the ring is that of Figure 10, a formula",
        ),
        {},
    )


def _checks(grid: Sequence[Sequence[float]]) -> Iterator[Check]:
    wanted = [(f"{kind}, TTFT", paper) for kind, _, paper in PREFILL]
    wanted += [(f"{kind}, TPOT", paper) for (kind, *_), (_, paper) in zip(PREFILL, DECODE, strict=True)]
    for (what, paper), factors in zip(wanted, grid, strict=True):
        yield near(f"{what}: times faster at most", max(factors), paper, 0.1)
        yield within(f"{what}: times faster at least", min(factors), 1.0, paper)
    for (what, _), factors in zip(wanted[2:], grid[2:], strict=True):
        falls = all(
            one >= other
            for at in range(0, len(INPUTS), len(LENGTHS))
            for one, other in zip(factors[at:], factors[at + 1 : at + len(LENGTHS)], strict=False)
        )
        yield Check(f"{what}: longer inputs gain less", falls)


FIGURE_12: Final = Experiment({"paper": "a minute"}, _perform, check="paper")
