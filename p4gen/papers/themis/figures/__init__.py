"""Figures of Themis's paper, repeated in the simulator."""

from __future__ import annotations

from typing import Final

from p4gen.net.figures.figure import Figures
from p4gen.papers.themis.figures.figure_1 import FIGURE_1
from p4gen.papers.themis.figures.figure_5 import FIGURE_5
from p4gen.papers.themis.figures.figure_evidence import FIGURE_EVIDENCE
from p4gen.papers.themis.figures.figure_loss import FIGURE_LOSS

FACET: Final = Figures("Themis", {"1": FIGURE_1, "5": FIGURE_5, "evidence": FIGURE_EVIDENCE, "loss": FIGURE_LOSS})
