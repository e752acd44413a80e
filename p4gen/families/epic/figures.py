"""EPIC's figures that are simulated apart from its tables."""

from p4gen.families.epic.latency import LATENCY
from p4gen.net.figure import Figures

FACET = Figures(paper="EPIC", figures={"latency": LATENCY})
