"""EPIC's tables of its packet-level simulation (25 to 32, and 35; sections 7.4 and K): ours beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from p4gen.experiments.experiment import Experiment, Order, Report
from p4gen.net.collectives.config import SimConfig
from p4gen.net.study import Axis, report
from p4gen.papers.epic import studies
from p4gen.papers.epic.studies.sweep import EPIC_PROGRAM, LARGEST, table_points
from p4gen.papers.epic.studies.tables import PAPER, K, M
from p4gen.vocabulary.topology import load_topology

NETWORK: Final = "star-8"
SEEDS: Final = 3
"""Runs of each lossy point at the scale ``paper``, whose median counts."""
QUICK: Final[Mapping[Axis, Sequence[float] | None]] = {
    Axis.SIZE: (4 * K, 64 * K), Axis.LOSS: (0, 1, 5), Axis.LINKS: (0, 2, 4), Axis.NOTHING: None,
}  # fmt: skip
_SMALL: Final = 256 * K
"""Bytes of a call at the scale ``quick``, where the size is not what is varied."""


def _perform(number: int, order: Order) -> Report:
    table, quick = PAPER[number], order.scale == "quick"
    size = _SMALL if quick else LARGEST
    base = SimConfig(load_topology(NETWORK), EPIC_PROGRAM, size=size, seed=order.seed, engine=order.engine)
    values = QUICK[table.axis] if quick else table.values
    points = table_points(number, base, values)
    title = f"EPIC, Table {number}: {table.caption}"
    return report(studies.FACET, points, title, table.unit, 1 if quick else SEEDS, order)


def _experiment(number: int) -> Experiment:
    lossy = PAPER[number].axis in (Axis.LOSS, Axis.LINKS)
    return Experiment(
        {
            "paper": f"calls of {LARGEST // M} MiB: ten minutes" if lossy else "up to 1 GiB: ten minutes, 17 GB",
            "quick": f"three of the paper's values, {_SMALL // K} KiB" if lossy else "two of the paper's sizes",
        },
        lambda order: _perform(number, order),
        check="quick",
        partly=True,
    )


THROUGHPUT: Final = {f"table-{number}": _experiment(number) for number in PAPER}
"""The experiments of this module by name."""
