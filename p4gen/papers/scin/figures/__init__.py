"""Figures of SCIN's paper, repeated in the simulator."""

from __future__ import annotations

from typing import Final

from p4gen.net.figures.figure import Figures
from p4gen.papers.scin.figures.figure_10 import FIGURE_10
from p4gen.papers.scin.figures.figure_11 import FIGURE_11
from p4gen.papers.scin.figures.figure_fpga import FIGURE_FPGA
from p4gen.papers.scin.figures.figure_inq import FIGURE_INQ
from p4gen.papers.scin.figures.figure_quantised import FIGURE_QUANTISED

FACET: Final = Figures(
    "SCIN",
    {"fpga": FIGURE_FPGA, "10": FIGURE_10, "10-inq": FIGURE_QUANTISED, "11": FIGURE_11, "inq": FIGURE_INQ},
)
