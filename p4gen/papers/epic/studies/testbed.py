"""The results of EPIC's testbed, eight hosts at a Tofino with links of 100 Gb/s: Tables 9 to 14 (§I.3).

Gb/s of algorithm throughput by size in bytes; of a Barrier, of size 0, thousands a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from p4gen.vocabulary.message import Collective


class Row(StrEnum):
    """A row of a table, by the paper's name."""

    EPIC = "EPIC-II"
    SWITCHML = "SwitchML"
    ATP_7 = "ATP 7-to-1"
    """The parameter server's host hands its own gradients to it."""
    ATP_8 = "ATP 8-to-1"
    """It sends them to the switch, as the others do."""
    RING_1K = "NCCL-Ring-1KB"
    RING_256 = "NCCL-Ring-256B"
    TREE_1K = "NCCL-Tree-1KB"
    TREE_256 = "NCCL-Tree-256B"


SIZES: Final = tuple(4 << 10 << 2 * power for power in range(10))
"""4 KiB to 1 GiB."""


def _row(*figures: float) -> Mapping[int, float]:
    return dict(zip(SIZES, figures, strict=True))


def _beside_nccl(
    epic: Sequence[float], of_1k: Sequence[float], of_256: Sequence[float]
) -> Mapping[Row, Mapping[int, float]]:
    return {Row.EPIC: _row(*epic), Row.RING_1K: _row(*of_1k), Row.RING_256: _row(*of_256)}


TESTBED: Final[Mapping[Collective, Mapping[Row, Mapping[int, float]]]] = {
    Collective.ALLREDUCE: {
        Row.EPIC: _row(5.42, 16.84, 41.72, 59.46, 60.79, 62.65, 64.35, 61.70, 66.64, 65.29),
        Row.SWITCHML: _row(3.85, 13.10, 32.73, 52.34, 61.56, 64.39, 65.14, 65.37, 65.37, 65.38),
        Row.ATP_7: _row(1.98, 7.21, 21.24, 41.34, 54.16, 58.71, 59.97, 60.29, 60.37, 60.37),
        Row.ATP_8: _row(1.92, 6.47, 15.93, 25.07, 29.27, 30.54, 30.88, 30.96, 30.96, 30.94),
        Row.RING_1K: _row(0.015, 0.058, 0.243, 0.91, 3.47, 13.34, 29.06, 40.99, 46.33, 47.97),
        Row.RING_256: _row(0.015, 0.060, 0.251, 0.82, 3.71, 12.10, 26.55, 36.01, 39.73, 41.07),
        Row.TREE_1K: _row(0.015, 0.060, 0.244, 0.89, 3.17, 11.05, 24.85, 31.89, 33.51, 34.10),
        Row.TREE_256: _row(0.015, 0.060, 0.223, 0.86, 3.12, 10.12, 21.39, 27.37, 29.01, 29.29),
    },
    Collective.REDUCE: _beside_nccl(
        (4.19, 16.58, 37.17, 55.56, 71.63, 74.39, 67.70, 66.28, 68.38, 66.68),
        (0.016, 0.065, 0.263, 1.018, 3.867, 14.25, 40.72, 64.97, 67.09, 67.26),
        (0.015, 0.060, 0.240, 0.997, 3.586, 12.73, 12.73, 57.70, 59.82, 59.56),
    ),
    Collective.REDUCE_SCATTER: _beside_nccl(
        (3.97, 15.64, 39.59, 62.47, 61.36, 74.33, 66.61, 71.55, 67.21, 66.30),
        (0.014, 0.056, 0.218, 0.926, 3.34, 12.92, 41.07, 72.29, 89.58, 95.58),
        (0.014, 0.056, 0.240, 0.927, 3.65, 12.70, 35.97, 62.24, 77.74, 81.32),
    ),
    Collective.BROADCAST: _beside_nccl(
        (4.45, 16.08, 41.22, 72.92, 86.18, 89.76, 90.86, 92.13, 88.73, 88.96),
        (0.015, 0.061, 0.24, 0.913, 3.52, 12.92, 39.99, 65.61, 66.60, 66.60),
        (0.015, 0.063, 0.24, 0.99, 3.61, 12.92, 35.63, 55.54, 60.02, 62.86),
    ),
    Collective.ALLGATHER: _beside_nccl(
        (4.37, 16.66, 39.11, 72.56, 86.26, 89.97, 91.69, 92.08, 90.73, 90.55),
        (0.015, 0.059, 0.232, 0.883, 3.76, 13.58, 39.93, 70.26, 89.37, 95.58),
        (0.014, 0.058, 0.235, 0.885, 3.70, 12.34, 37.26, 62.01, 74.22, 80.74),
    ),
    Collective.BARRIER: {Row.EPIC: {0: 165.0}, Row.RING_1K: {0: 0.458}},
}
"""By collective, in the order of the tables. NCCL has a ring but where a row says tree; of Barriers the paper names
neither algorithm nor packets."""
