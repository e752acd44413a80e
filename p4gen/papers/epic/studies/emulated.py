"""The results of EPIC's emulation: Tables 19 to 24 (§J.4).

Mb/s by size in bytes; of a Barrier, of size 0, calls a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from p4gen.papers.epic.spec import Mode
from p4gen.vocabulary.message import Collective

CALLS: Final = 10
"""How many each figure is the mean of."""
SIZES: Final = tuple(4 << 10 << 2 * power for power in range(10))


def _by_size(*figures: Sequence[float]) -> Mapping[Mode, Mapping[int, float]]:
    """Those of each mode, in the order of ``Mode``."""
    return {mode: dict(zip(SIZES, row, strict=True)) for mode, row in zip(Mode, figures, strict=True)}


EMULATED: Final[Mapping[Collective, Mapping[Mode, Mapping[int, float]]]] = {
    Collective.ALLREDUCE: _by_size(
        (2.47, 10.24, 35.89, 78.97, 182.44, 247.87, 381.91, 417.60, 425.77, 426.94),
        (14.74, 48.10, 67.32, 85.11, 88.96, 93.74, 86.64, 89.33, 94.11, 97.86),
        (15.69, 64.14, 88.69, 86.77, 72.54, 75.54, 74.86, 75.46, 75.13, 75.64),
    ),
    Collective.REDUCE: _by_size(
        (4.49, 25.29, 88.78, 108.50, 210.33, 449.22, 511.03, 504.83, 511.96, 506.10),
        (19.02, 66.77, 103.23, 112.01, 98.91, 98.82, 96.11, 97.17, 95.25, 93.96),
        (18.65, 49.05, 82.01, 105.59, 105.75, 107.95, 110.28, 112.99, 107.59, 110.28),
    ),
    Collective.REDUCE_SCATTER: _by_size(
        (3.27, 9.69, 19.64, 62.09, 71.67, 72.54, 70.88, 70.66, 70.10, 68.47),
        (6.55, 21.84, 65.53, 104.85, 104.85, 101.68, 96.55, 95.69, 95.35, 70.20),
        (6.48, 24.63, 57.72, 98.65, 95.06, 116.64, 120.05, 121.37, 118.08, 120.32),
    ),
    Collective.BROADCAST: _by_size(
        (35.23, 14.17, 50.57, 75.10, 78.75, 81.84, 81.92, 90.75, 78.53, 76.33),
        (25.23, 62.27, 117.95, 115.80, 125.39, 139.29, 145.74, 132.86, 142.72, 138.55),
        (48.30, 165.46, 324.95, 381.13, 230.07, 210.80, 209.80, 188.76, 188.09, 223.44),
    ),
    Collective.ALLGATHER: _by_size(
        (32.66, 119.70, 92.34, 181.59, 281.61, 302.07, 316.87, 322.67, 308.44, 313.16),
        (6.35, 24.40, 75.88, 147.62, 200.50, 216.69, 265.47, 276.48, 272.88, 262.54),
        (0.01, 0.04, 0.18, 0.71, 2.84, 10.87, 37.18, 95.66, 146.18, 169.30),
    ),
    Collective.BARRIER: {Mode.I: {0: 1331.25}, Mode.II: {0: 590.0}, Mode.III: {0: 2502.15}},
}  # fmt: skip
"""By collective, in the order of the tables. The text beside Table 24 calls it Table 30."""

MPI: Final[Mapping[Collective, Mapping[int, float]]] = {
    collective: dict(zip(SIZES if len(row) > 1 else (0,), row, strict=True))
    for collective, row in {
        Collective.ALLREDUCE: (1.71, 3.72, 14.89, 21.12, 73.90, 181.22, 316.46, 249.17, 434.01, 501.59),
        Collective.REDUCE: (9.70, 37.94, 14.90, 30.29, 51.77, 184.31, 328.64, 311.63, 343.51, 454.53),
        Collective.REDUCE_SCATTER: (1.71, 6.83, 5.28, 17.37, 73.54, 181.02, 345.97, 436.25, 464.15, 601.30),
        Collective.BROADCAST: (9.55, 36.47, 14.89, 58.17, 222.20, 599.20, 902.72, 1212.81, 832.36, 984.33),
        Collective.ALLGATHER: (6.83, 27.32, 33.57, 107.00, 194.20, 384.41, 429.84, 585.25, 566.77, 826.64),
        Collective.BARRIER: (37.81,),
    }.items()
}  # fmt: skip
"""Open MPI 4.1.5 over TCP, in the same units."""
