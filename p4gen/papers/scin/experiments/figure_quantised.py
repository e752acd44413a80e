"""Figure 10 with quantisation in the network, and what that means for prefilling (Figure 12; sections 4.2 and 4.4)."""

from __future__ import annotations

from typing import Final

from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Experiment, Order, Report, near
from p4gen.papers.scin.experiments.figure_10 import LARGE, SMALL, ring
from p4gen.papers.scin.experiments.study import PLANE_RATE, PLANES, Timed, capacity, pages, plane, timed
from p4gen.papers.scin.spec import ScinSpec

FASTER: Final = 3.8
"""Times that INQ is faster than the ring for large messages (section 4.2)."""
MORE: Final = 16 / (8 + 8 / 32)
"""Bits of a number without and with INQ: the paper's 1.94 (section 3.4.4)."""
PREFILL: Final = (("FP16", 0.47, 1.52), ("FP8", 0.59, 1.74))
"""Figure 3's shares of AllReduce in prefilling, and Figure 12's speed-ups of TTFT."""
LATENCY: Final = {False: "20ns", True: "100ns"}
"""Of the switch, without and with INQ: 20 and 100 cycles (section 4.1)."""
SIZES: Final = {"quick": (SMALL, 1 << 20, LARGE), "paper": (SMALL, 1 << 20, LARGE, 64 << 20)}
NODES: Final = 8


def spec(*, quantised: bool) -> ScinSpec:
    """Packets of 1,024 bytes, and 256 KB of them in flight: scales come first, so that a wave takes longer."""
    fields = {"waves": 16, "wave": 16, "contexts": 1, "edges": NODES, "ports": NODES}
    numbers = {"dtype": "mxint8", "block": 32, "lanes": 1024} if quantised else {"lanes": 256}
    return ScinSpec.model_validate(fields | numbers)


def _perform(order: Order) -> Report:
    sizes = SIZES[order.scale]
    asked = [(quantised, size) for quantised in (False, True) for size in sizes]
    found = order.run([cell(quantised, size, order) for quantised, size in asked])
    times = {key: one.call / 1e6 for key, one in zip(asked, found.values(), strict=True)}
    most = PLANES * capacity(spec(quantised=False), PLANE_RATE)
    few, largest = sizes[1], sizes[-1]
    rates = [times[quantised, largest] - times[quantised, few] for quantised in (False, True)]
    rows = tuple(
        (
            pages(size),
            times[False, size],
            times[True, size],
            times[False, size] / times[True, size],
            ring(NODES, size, most) / times[True, size],
        )
        for size in sizes
    )
    factor = ring(NODES, LARGE, most) / times[True, LARGE]
    return Report(
        ("size", "16 bits, us", "INQ, us", "times the bandwidth", "times faster than a ring"),
        rows,
        (
            near(f"from {pages(few)} to {pages(largest)}: times the bandwidth", rates[0] / rates[1], MORE, 0.05),
            near(f"{pages(LARGE)}: times faster than the ring", factor, FASTER, 0.1),
            *(
                near(f"{kind}, TTFT: times faster", 1 / (1 - share + share / factor), paper, 0.03)
                for kind, share, paper in PREFILL
            ),
        ),
        (
            "a plane of four with a quarter of the data; sizes are those of numbers of 16 bits",
            "packets of 1,024 bytes, 256 KB in flight; int32 stands for 16 bits, since time depends on bytes",
            "MXINT8 with blocks of 32, which have as many bits as the paper's blocks of 64 with scales of 16 bits",
            "100 ns in the switch with INQ, 20 without; quantising operands takes no time, as there",
            f"bandwidth: what is added from {pages(few)} to {pages(largest)}, so without a call's latency",
            "TTFT by Amdahl's law: the paper's shares of AllReduce in prefilling (47 and 59 %)",
        ),
        {},
    )


def cell(quantised: bool, size: int, order: Order) -> Cell[Timed]:
    """An AllReduce of ``size`` bytes of 16-bit numbers."""
    program, network = spec(quantised=quantised), plane(NODES, LATENCY[quantised])
    numbers = size // 2 // PLANES
    packets = max(1, numbers * (1 if quantised else 2) // program.payload)
    arguments = (program, network, packets, order.engine, order.seed)
    return Cell(f"{program.dtype}/{pages(size)}", timed, arguments)


FIGURE_QUANTISED: Final = Experiment(
    {"quick": "up to 16 MiB, a minute", "paper": "up to 64 MiB, some minutes"}, _perform, check="quick"
)
