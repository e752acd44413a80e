"""Figures of Themis's paper, repeated in the simulator."""

from __future__ import annotations

from typing import Final

from p4gen.families.themis.figure_1 import FIGURE_1
from p4gen.families.themis.figure_5 import FIGURE_5
from p4gen.families.themis.figure_evidence import FIGURE_EVIDENCE
from p4gen.families.themis.figure_loss import FIGURE_LOSS
from p4gen.net.figure import Figures

FACET: Final = Figures("Themis", {"1": FIGURE_1, "5": FIGURE_5, "evidence": FIGURE_EVIDENCE, "loss": FIGURE_LOSS})
