"""Themis's figures and statements, repeated in the simulator."""

from __future__ import annotations

from typing import Final

from p4gen.experiments.experiment import Experiments
from p4gen.papers.themis.experiments.figure_1 import FIGURE_1
from p4gen.papers.themis.experiments.figure_5 import FIGURE_5
from p4gen.papers.themis.experiments.figure_evidence import FIGURE_EVIDENCE
from p4gen.papers.themis.experiments.figure_loss import FIGURE_LOSS

FACET: Final = Experiments(
    {"figure-1": FIGURE_1, "figure-5": FIGURE_5, "evidence": FIGURE_EVIDENCE, "loss": FIGURE_LOSS}
)
