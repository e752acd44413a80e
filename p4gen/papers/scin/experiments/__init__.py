"""SCIN's figures and statements, repeated in the simulator."""

from __future__ import annotations

from typing import Final

from p4gen.experiments.experiment import Experiments
from p4gen.papers.scin.experiments.figure_10 import FIGURE_10
from p4gen.papers.scin.experiments.figure_11 import FIGURE_11
from p4gen.papers.scin.experiments.figure_12 import FIGURE_12
from p4gen.papers.scin.experiments.figure_fpga import FIGURE_FPGA
from p4gen.papers.scin.experiments.figure_inq import FIGURE_INQ
from p4gen.papers.scin.experiments.figure_quantised import FIGURE_QUANTISED

FACET: Final = Experiments(
    {
        "table-1": FIGURE_INQ,
        "prototype": FIGURE_FPGA,
        "figure-10": FIGURE_10,
        "figure-10-inq": FIGURE_QUANTISED,
        "figure-11": FIGURE_11,
        "figure-12": FIGURE_12,
    }
)
