"""Runs of EPIC: collectives of groups on IncTrees."""

from __future__ import annotations

from p4gen.net.collectives.simulation import Simulation, group_run
from p4gen.net.runs import Runs
from p4gen.papers.epic.spec import EpicSpec
from p4gen.vocabulary.message import Collective

FACET: Runs[EpicSpec] = Runs(
    tuple(map(str, Collective)),
    lambda order: Simulation(group_run(order)),
    also=frozenset({"root", "concurrent", "sync", "calls", "plan"}),
)
