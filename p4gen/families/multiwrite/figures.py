"""Figures and the table of MultiWrite's paper, repeated in the simulator."""

from __future__ import annotations

from typing import Final

from p4gen.families.multiwrite.figures_dispatch import FIGURE_8, TABLE_1
from p4gen.families.multiwrite.figures_gather import FIGURE_6, FIGURE_7
from p4gen.net.figure import Figures

FACET: Final = Figures("MultiWrite", {"6": FIGURE_6, "7": FIGURE_7, "8": FIGURE_8, "table1": TABLE_1})
