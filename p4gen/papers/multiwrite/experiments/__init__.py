"""Figures and the table of MultiWrite's paper, repeated in the simulator."""

from __future__ import annotations

from typing import Final

from p4gen.experiments.experiment import Experiments
from p4gen.papers.multiwrite.experiments.dispatch import FIGURE_8, TABLE_1
from p4gen.papers.multiwrite.experiments.gather import FIGURE_6, FIGURE_7

FACET: Final = Experiments({"table-1": TABLE_1, "figure-6": FIGURE_6, "figure-7": FIGURE_7, "figure-8": FIGURE_8})
