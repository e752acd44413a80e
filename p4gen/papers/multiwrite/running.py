"""The job of ``p4gen sim run``: calls of all ranks on a topology, every byte beside NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from typing_extensions import override

from p4gen.host.transport.clock import SECOND, US, duration_text
from p4gen.host.transport.verbs import Recovery
from p4gen.net.job import Stuck
from p4gen.net.order import RunOrder
from p4gen.net.result import MEMORY_RIGHT, RunResult, ending
from p4gen.papers.multiwrite.ranks.calls import memory_problem
from p4gen.papers.multiwrite.ranks.options import MOE, Adds
from p4gen.papers.multiwrite.ranks.planning import fitted
from p4gen.papers.multiwrite.ranks.relaying import Rank
from p4gen.papers.multiwrite.ranks.run_plans import run_plan
from p4gen.papers.multiwrite.simulation import Calls, WriteConfig, WriteSimulation
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.vocabulary.topology import TopologySpec

_HEADERS = 150
"""Bytes of a packet beside its data, more or less: for the time that a packet takes."""


class WriteRun(WriteSimulation):
    """The run that an order asks for. Raises ``InputError`` if the program cannot serve it."""

    def __init__(self, order: RunOrder[MultiwriteSpec]) -> None:
        topology, made = order.topology, run_plan(order)
        self._order = order
        spec = fitted(order.program, topology, len(made.layers))
        drawn = np.random.default_rng(order.seed)
        self.calls = [made.draw(drawn) for _ in range(order.repeat)]
        """What all ranks call, one after the other."""
        layers, recovery = made.layers, order.recovery or Recovery.GO_BACK_N
        super().__init__(
            WriteConfig(
                topology,
                spec,
                layers,
                order.faults,
                recovery,
                _timeout(spec, topology, len(layers)) if order.timeout is None else order.timeout,
                order.retry_count,
                order.dcqcn,
                order.seed,
                order.engine,
            )
        )
        self._title = f"{made.title} on {topology.name}, {spec.program}, {recovery}"
        self._ranks = [Rank(members, self.network.loop) for members in zip(*self.layers, strict=True)]
        steps = [self._step(number) for number in range(order.repeat)]
        self.tasks = [Calls(f"rank {rank.rank}", rank, steps) for rank in self._ranks]
        self._problems: list[str] = []

    @property
    @override
    def title(self) -> str:
        return self._title

    # --- running ---

    def progress(self) -> tuple[int, int]:
        """Calls that have begun, and all of them."""
        total = len(self.calls) * len(self.tasks)
        return total - sum(len(task.left) for task in self.tasks), total

    @override
    def result(self, stuck: Stuck | None) -> RunResult:
        spec = self.config.spec
        errors = [] if stuck else list(self._wrong())
        duration = self.network.loop.now if stuck else max(rank.ended for rank in self._ranks)
        came = sum(pair.responder.expected for pair in self.pairs)
        rate = came * spec.payload * 8 * SECOND / len(self._ranks) / duration if duration else 0.0
        packets = f"{came:,} packets have come to ranks in their order, {rate / 1e9:.2f} Gb/s of data a rank"
        result = RunResult(
            errors=(*self._problems, *errors),
            stuck=() if stuck is None else stuck.reasons,
            lines=(*ending(duration, len(self.calls), stuck), packets),
            verdict=MEMORY_RIGHT,
            values={"program": spec.program, "received": came, "gbps_received": round(rate / 1e9, 3)},
            **self.counted(duration),
        )
        compares = self._order.collective == MOE and self._order.options["adds"] is Adds.BOTH
        return self._compared(result) if compares and result.ended else result

    def _compared(self, result: RunResult) -> RunResult:
        """The result beside that of the same layers by plain writes."""
        plain = WriteRun(replace(self._order, options={**self._order.options, "adds": Adds.SOURCE})).run()
        if not plain.ended:
            return replace(result, errors=(*result.errors, *(f"by plain writes: {why}" for why in plain.stuck)))
        (time, most), (plain_time, plain_most) = (
            (each.duration, max(link.bytes for link in each.links)) for each in (result, plain)
        )
        lines = (
            f"switches add: {duration_text(time)}, {most:,} bytes on the busiest link",
            f"plain writes: {duration_text(plain_time)}, {plain_most:,} bytes: {plain_time / time:.2f} times the time, "
            f"{plain_most / most:.2f} times the bytes",
        )
        values = {"plain_duration": plain_time / SECOND, "busiest_bytes": most, "plain_busiest_bytes": plain_most}
        errors = (*result.errors, *(f"by plain writes: {error}" for error in plain.errors))
        return replace(result, lines=(*result.lines, *lines), values={**result.values, **values}, errors=errors)

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
        for rank in self._ranks:
            if problem := self.calls[-1].problem(rank):
                yield f"rank {rank.rank}, call {len(self.calls)}: {problem}"
        for number, (members, first_psns) in enumerate(zip(self.layers, self.first_psns, strict=True)):
            calls = [call.layer(number) for call in self.calls]
            for member in members:
                if problem := memory_problem(member, calls, first_psns):
                    yield f"rank {member.rank}: {problem}"


def _timeout(spec: MultiwriteSpec, topology: TopologySpec, layers: int) -> int:
    """Twice the time in which all packets that sources may have outstanding pass the slowest link, ps."""
    slowest: int = min(topology.setting(link, "bandwidth") for link in topology.links)
    bits = 8 * layers * len(topology.rank_hosts) * spec.slots * (spec.payload + _HEADERS)
    return max(100 * US, 2 * bits * SECOND // slowest)
