"""Groups that share slots by locks in switches, and have rings of hosts for calls that are refused (EPIC §6.2)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from typing_extensions import override

from p4gen.host.collectives.algorithms import Algorithm
from p4gen.host.collectives.leased import LeasedCommunicator, LeasedInvocation
from p4gen.host.transport.clock import duration_text
from p4gen.net.collectives.config import SimConfig
from p4gen.net.collectives.hosts import HostsSimulation
from p4gen.net.collectives.running import RunningGroup
from p4gen.net.collectives.simulation import SimResult
from p4gen.net.job import Stuck
from p4gen.plan.placement.placed import PlacedGroup


class LeasedSimulation(HostsSimulation):
    """A simulation of such groups."""

    def __init__(self, config: SimConfig) -> None:
        super().__init__(config, Algorithm.RING)

    @override
    def _members(self, placed: PlacedGroup, pace: int | None) -> Sequence[LeasedCommunicator]:
        nics, hosts = self.network.nics, placed.request.ranks
        return [
            LeasedCommunicator(nics[host], self._group(placed, rank, pace), ring)
            for rank, (host, ring) in enumerate(zip(hosts, self.rings(placed, pace), strict=True))
        ]

    @override
    def result(self, stuck: Stuck | None) -> SimResult:
        found = super().result(stuck)
        if stuck is not None:
            return found
        calls = [each for group in self.groups for each in group.ranks[0].made if isinstance(each, LeasedInvocation)]
        times = [
            each.answered - each.started for each in calls if each.answered is not None and each.started is not None
        ]
        granted = sum(each.granted or False for each in calls)
        lines = tuple(filter(None, map(_line, self.groups)))
        middle = int(statistics.median(times)) if times else 0
        line = f"an answer takes {duration_text(middle)}, in the middle"
        values = {"granted": granted, "refused": len(calls) - granted, "answer_us": middle / 1e6}
        return replace(found, lines=(*found.lines, *lines, line), values={**found.values, **values})


def _line(group: RunningGroup) -> str:
    made = [each for each in group.ranks[0].made if isinstance(each, LeasedInvocation)]
    granted = sum(each.granted or False for each in made)
    return f"group {group.number}: {granted} calls over the tree, {len(made) - granted} over the ring"
