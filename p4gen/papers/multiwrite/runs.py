"""Runs of MultiWrite for ``p4gen sim run``: AllGather and dispatch on a topology, every byte beside NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from p4gen.errors import InputError
from p4gen.host.transport.clock import SECOND, US
from p4gen.host.transport.verbs import Recovery
from p4gen.net.own import FamilyResult, OwnRuns, RunOrder, outcome
from p4gen.net.world.network import Network
from p4gen.papers.multiwrite.ranks.calls import memory_problem
from p4gen.papers.multiwrite.ranks.planning import ALLGATHER, DISPATCH, fitted
from p4gen.papers.multiwrite.ranks.relaying import Rank
from p4gen.papers.multiwrite.ranks.run_plans import RUN_OPTIONS, run_plan
from p4gen.papers.multiwrite.simulation import WriteConfig, WriteSimulation
from p4gen.papers.multiwrite.spec import MultiwriteSpec

_HEADERS = 150
"""Bytes of a packet beside its data, more or less: for the time that a packet takes."""


class WriteRun:
    """A run (``p4gen.net.own.OwnRun``). Raises ``InputError`` if the program cannot serve it."""

    def __init__(self, order: RunOrder) -> None:
        assert isinstance(order.program, MultiwriteSpec)
        self._order, topology = order, order.topology
        made = run_plan(order)
        self.spec = fitted(order.program, topology, len(made.layers))
        drawn = np.random.default_rng(order.seed)
        self.title = f"{made.title} on {topology.name}, {self.spec.program}, {self._recovery}"
        self.calls = [made.draw(drawn) for _ in range(order.repeat)]
        """What all ranks call, one after the other."""
        self.simulation = WriteSimulation(
            WriteConfig(
                topology,
                self.spec,
                made.layers,
                order.faults,
                self._recovery,
                self._timeout(len(made.layers)) if order.timeout is None else order.timeout,
                order.retry_count,
                order.dcqcn,
                order.seed,
                order.engine,
            )
        )
        by_rank = zip(*self.simulation.layers, strict=True)
        self._ranks = [Rank(members, self.network.loop) for members in by_rank]
        self._problems: list[str] = []

    @property
    def _recovery(self) -> Recovery:
        return self._order.recovery or Recovery.GO_BACK_N

    @property
    def network(self) -> Network:
        """See ``OwnRun``."""
        return self.simulation.network

    @property
    def programs(self) -> Mapping[str, MultiwriteSpec]:
        """See ``OwnRun``."""
        return dict.fromkeys(self._order.topology.switches, self.spec)

    def _timeout(self, layers: int) -> int:
        """Twice the time in which all packets that sources may have outstanding pass the slowest link."""
        topology = self._order.topology
        slowest: int = min(topology.setting(link, "bandwidth") for link in topology.links)
        bits = 8 * layers * len(topology.rank_hosts) * self.spec.slots * (self.spec.payload + _HEADERS)
        return max(100 * US, 2 * bits * SECOND // slowest)

    # --- running ---

    def run(self, progress: Callable[[int, int], None] | None = None) -> FamilyResult:
        """See ``OwnRun``."""
        simulation = self.simulation
        stuck: tuple[str, ...] = ()
        steps = [self._step(number) for number in range(len(self.calls))]
        try:
            simulation.drive(self._ranks, steps, progress)
        except InputError as error:
            stuck = tuple(str(diagnostic) for diagnostic in error.diagnostics)
        errors = [] if stuck else list(self._wrong())
        duration = simulation.network.loop.now if stuck else max(rank.ended for rank in self._ranks)
        came = sum(pair.responder.expected for pair in simulation.pairs)
        rate = came * self.spec.payload * 8 * SECOND / len(self._ranks) / duration if duration else 0.0
        return outcome(
            self.network,
            simulation.pairs,
            simulation.drops(),
            duration,
            errors=[*self._problems, *errors],
            stuck=stuck,
            said=[f"{came:,} packets have come to ranks in their order, {rate / 1e9:.2f} Gb/s of data a rank"],
            figures={"program": self.spec.program, "received": came, "gbps_received": round(rate / 1e9, 3)},
        )

    def _step(self, number: int) -> Callable[[Rank], None]:
        def make(rank: Rank) -> None:
            self._check(rank, number)
            self.calls[number].start(rank)

        return make

    def _check(self, rank: Rank, number: int) -> None:
        """A rank's result of the call before."""
        if number and (problem := self.calls[number - 1].problem(rank)):
            self._problems.append(f"rank {rank.rank}, call {number}: {problem}")

    def _wrong(self) -> Iterator[str]:
        """The last call's results, and windows: after all calls, they hold what NumPy says, and nothing else."""
        simulation = self.simulation
        for rank in self._ranks:
            if problem := self.calls[-1].problem(rank):
                yield f"rank {rank.rank}, call {len(self.calls)}: {problem}"
        for number, (members, first_psns) in enumerate(zip(simulation.layers, simulation.first_psns, strict=True)):
            calls = [call.layer(number) for call in self.calls]
            for member in members:
                if problem := memory_problem(member, calls, first_psns):
                    yield f"rank {member.rank}: {problem}"


FACET = OwnRuns((ALLGATHER, DISPATCH), RUN_OPTIONS, WriteRun)
