"""Figures 10 and 12: AllReduce against a ring in software, and what that means for inference (section 4.2, 4.4)."""

from __future__ import annotations

from typing import Final

from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Experiment, Order, Report, near, within
from p4gen.experiments.plot import Series, chart_svg
from p4gen.papers.scin.experiments.study import PLANE_RATE, PLANES, Timed, capacity, pages, plane, timed
from p4gen.papers.scin.spec import ScinSpec

STEP: Final = 0.93
"""Microseconds that each step of the ring takes beside its data: a fence and a flag. Not in the paper; with it, this
line and SCIN's own explain its factors for small, large and sixteen nodes."""
SMALL: Final = 4 << 10
SCALES: Final = {
    "quick": (SMALL, 64 << 10, 1 << 20, 16 << 20),
    "paper": (SMALL, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20),
}
FASTER_SMALL, FASTER_LARGE = 8.7, 2.0
LARGE: Final = 16 << 20
FULL: Final = 64 << 20
"""From this size on, the paper's bandwidth is close to the most that there is."""
DECODE: Final = (("FP16", 0.25, 1.29), ("FP8", 0.30, 1.34))
"""Figure 3's shares of AllReduce in decoding, and Figure 12's speed-ups of TPOT."""


def spec(nodes: int) -> ScinSpec:
    """Twice the paper's 64 KB in flight: slots are kept until results are acknowledged."""
    return ScinSpec(lanes=256, waves=16, wave=8, contexts=1, edges=nodes, ports=max(8, nodes))


def ring(nodes: int, size: float, rate: float) -> float:
    """Microseconds of an AllReduce by a ring; ``rate`` in bytes a second."""
    return 2 * (nodes - 1) * (size / (nodes * rate) * 1e6 + STEP)


def _perform(order: Order) -> Report:
    sizes = SCALES[order.scale]
    asked = [(nodes, size) for nodes in (8, 16) for size in (sizes if nodes == 8 else (SMALL, LARGE))]
    found = order.run([_cell(nodes, size, order) for nodes, size in asked])
    times = {key: one.call / 1e6 for key, one in zip(asked, found.values(), strict=True)}
    rows: list[tuple[str | float | None, ...]] = []
    factors: dict[tuple[int, int], float] = {}
    most = PLANES * capacity(spec(8), PLANE_RATE)
    checks: list[Check] = []
    for (nodes, size), ours in times.items():
        factor = factors[nodes, size] = ring(nodes, size, most) / ours
        paper = {SMALL: FASTER_SMALL, LARGE: FASTER_LARGE}.get(size) if nodes == 8 else None
        share = size / (ours * 1e-6) / most
        rows.append((str(nodes), pages(size), ours, ring(nodes, size, most), factor, paper, 100 * share))
        if nodes == 8 and size >= FULL:
            checks.append(within(f"{pages(size)}: share of the link", share, 0.95, 1.0))
    checks += [
        near("8 nodes, 4 KiB: times faster than the ring", factors[8, SMALL], FASTER_SMALL, 0.1),
        near("8 nodes, 16 MiB: times faster than the ring", factors[8, LARGE], FASTER_LARGE, 0.1),
        within("16 nodes, 4 KiB: times faster, an order of magnitude", factors[16, SMALL], 10, 25),
        *(
            near(f"{kind}, TPOT: times faster", 1 / (1 - share + share / factors[8, SMALL]), paper, 0.03)
            for kind, share, paper in DECODE
        ),
    ]
    curve = [factors[8, size] for size in sizes]
    return Report(
        ("nodes", "size", "ours, us", "ring, us", "times faster", "paper", "% of the link"),
        tuple(rows),
        tuple(checks),
        (
            "a plane of four (star, 900 Gb/s and 250 ns a link in each direction, 20 ns in the switch) with a quarter "
            "of the data; packets of 1,024 bytes, 128 KB in flight",
            f"the ring is 2(N - 1)(S/(NB) + {STEP} us), B what WRITEs can carry; the step is fitted to the paper",
            "TPOT by Amdahl's law: the paper's shares of AllReduce in decoding (25 and 30 %), the factor of 4 KiB",
            "quantisation in the network, and with it TTFT, is not part of this figure",
        ),
        {
            ".svg": chart_svg(
                "SCIN, Figure 10: AllReduce of 8 nodes", "size", [pages(size) for size in sizes], "times faster",
                [Series("than a ring", curve)],
            )
        },
    )  # fmt: skip


def _cell(nodes: int, size: int, order: Order) -> Cell[Timed]:
    packets = max(1, size // PLANES // spec(nodes).payload)
    arguments = (spec(nodes), plane(nodes), packets, order.engine, order.seed)
    return Cell(f"{nodes} nodes/{pages(size)}", timed, arguments)


FIGURE_10: Final = Experiment(
    {"quick": "up to 16 MiB, half a minute", "paper": "up to 256 MiB, some minutes"}, _perform, check="quick"
)
