"""EPIC's figures that are simulated apart from its tables."""

from p4gen.net.figures.figure import Figures
from p4gen.papers.epic.latency import LATENCY

FACET = Figures(paper="EPIC", figures={"latency": LATENCY})
