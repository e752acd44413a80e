"""Runs of EPIC: collectives of groups on IncTrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4gen.net.runs import Runs
from p4gen.papers.epic.spec import EpicSpec
from p4gen.vocabulary.message import Collective

if TYPE_CHECKING:
    from p4gen.net.collectives.simulation import Simulation
    from p4gen.net.order import RunOrder


def _job(order: RunOrder[EpicSpec]) -> Simulation:
    from p4gen.net.collectives.leased import LeasedSimulation  # noqa: PLC0415 - options are read without it
    from p4gen.net.collectives.simulation import Simulation, group_run  # noqa: PLC0415

    return (LeasedSimulation if order.program.locks else Simulation)(group_run(order))


FACET: Runs[EpicSpec] = Runs(
    tuple(map(str, Collective)), _job, also=frozenset({"root", "concurrent", "sync", "calls", "plan"})
)
