"""EPIC's tables and statements, repeated: by flow and packet simulation, by searches of states, by a
switch's model, in labs."""

from __future__ import annotations

from typing import Final

from p4gen.experiments.experiment import Experiments
from p4gen.papers.epic.experiments.emulation import EMULATION
from p4gen.papers.epic.experiments.iterations import ITERATIONS
from p4gen.papers.epic.experiments.latency import LATENCY
from p4gen.papers.epic.experiments.modes import COMPARISON, LOSS_LAW
from p4gen.papers.epic.experiments.overlap import OVERLAP
from p4gen.papers.epic.experiments.resources import RESOURCES
from p4gen.papers.epic.experiments.searches import SEARCHES
from p4gen.papers.epic.experiments.sharing import SHARING
from p4gen.papers.epic.experiments.testbed import TABLES
from p4gen.papers.epic.experiments.throughput import THROUGHPUT
from p4gen.papers.epic.experiments.training import TRAINING

FACET: Final = Experiments(
    {
        "table-8": SEARCHES,
        **TABLES,
        "table-17": RESOURCES,
        **TRAINING,
        "table-19": EMULATION,
        **THROUGHPUT,
        "table-34": ITERATIONS,
        "figure-10": COMPARISON,
        "figure-14": OVERLAP,
        "loss-law": LOSS_LAW,
        **SHARING,
        "latency": LATENCY,
    }
)
