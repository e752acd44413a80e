"""Figures and the table of MultiWrite's paper, repeated in the simulator."""

from __future__ import annotations

from typing import Final

from p4gen.net.figures.figure import Figures
from p4gen.papers.multiwrite.figures.dispatch import FIGURE_8, TABLE_1
from p4gen.papers.multiwrite.figures.gather import FIGURE_6, FIGURE_7

FACET: Final = Figures("MultiWrite", {"6": FIGURE_6, "7": FIGURE_7, "8": FIGURE_8, "table1": TABLE_1})
