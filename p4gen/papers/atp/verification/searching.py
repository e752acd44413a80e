"""What a search of states explores of ATP: the workers of a job add a gradient, with a server on the last host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from typing_extensions import override

from p4gen.errors import InputError
from p4gen.host.collectives.workers import WorkerTask
from p4gen.host.transport.clock import MS
from p4gen.host.transport.nic import Nic
from p4gen.net.world.faults import Faults
from p4gen.net.world.network import Network
from p4gen.p4.compile import program_from
from p4gen.papers.atp.frames import Packet
from p4gen.papers.atp.numbers import FACTOR, Array
from p4gen.papers.atp.placing import member, placed
from p4gen.papers.atp.spec import AtpSpec
from p4gen.plan.placement.placed import PlacedGroup
from p4gen.verification.parts.hosts import SearchedTask
from p4gen.verification.world import Budget, Rules, Scope, World
from p4gen.vocabulary.topology import TopologySpec, load_topology

TOPOLOGY: Final = "star-2"
_RACKS: Final = {
    "name": "two-racks",
    "switches": ["s0", "s1"],
    "hosts": ["h0", "h1", "h2"],
    "links": [["s1", "s0"], ["h0", "s1"], ["h1", "s1"], ["h2", "s0"]],
}
"""The smallest network with a rack besides the server's."""
MOST_WORKERS, MOST_PACKETS = 4, 15
"""An element has five bits of its own for each worker, and a packet another number in them: float32 has 24."""


@dataclass(frozen=True)
class GradientScope(Scope):
    """The workers of all hosts add a gradient of ``packets`` packets, all of which may be on the way at once."""

    program: AtpSpec
    packets: int = 2

    def gradient(self, worker: int) -> Array:
        """A worker's numbers, which tell workers and packets apart in every sum."""
        whole = np.arange(1, self.packets + 1, dtype=np.int64) << 5 * worker
        return np.repeat((whole / FACTOR).astype(np.float32), self.program.lanes)

    @override
    def sound(self) -> GradientScope | None:
        return None if self.fault is None else replace(self, fault=None)

    @override
    def sentence(self) -> str:
        return f"{self.subject}: {self.packets} packets from each worker; {self.budget.sentence()}"

    @override
    def world(self) -> World:
        topology, spec = self.topology, self.program
        ranks = topology.rank_hosts
        if len(ranks) > MOST_WORKERS or self.packets > MOST_PACKETS:
            raise InputError(f"a search of ATP has {MOST_WORKERS} workers and {MOST_PACKETS} packets at most")
        placement, text = placed(topology, spec), self.text(spec)
        programs = dict.fromkeys(topology.switches, program_from(text, f"{spec.program}.p4"))
        network = Network(topology, placement, programs, Faults(), 1, self.engine, payload=spec.payload_bytes)
        network.kinds.describe = Packet.described
        (group,) = placement.groups
        return World(
            network,
            dict.fromkeys(topology.switches, spec),
            placement.mac,
            placement.ip,
            {host: partial(self._tasks, group, number) for number, host in enumerate(ranks)},
            Rules(no_drops=True),
            0,
            placement.switches,
            dict.fromkeys(topology.switches, text),
            unlike=ranks[-1:],
        )

    def _tasks(self, group: PlacedGroup, number: int, nic: Nic) -> Sequence[SearchedTask]:
        worker = member(self.program, group, number, nic, MS, self.packets)
        vectors = [self.gradient(each) for each in range(len(group.tree.ranks))]
        name = f"worker {number}"
        return [WorkerTask(name, number, worker, nic.clock, 1, lambda _: vectors, server=worker.server)]


def ladder(spec: AtpSpec) -> Iterator[tuple[str, GradientScope]]:
    """Small scopes in which listed faults are searched for, cheap ones first."""
    apart = GradientScope(load_topology(TOPOLOGY), spec)  # two packets in a row do not meet
    base = replace(apart, program=spec.model_copy(update={"aggregators": 1, "patience": 1}))
    yield "two packets", apart
    yield "a forgery", replace(apart, budget=Budget(forgeries=1))
    yield "a loss", replace(base, budget=Budget(losses=1))
    yield "an early timeout", replace(base, budget=Budget(timeouts=1))
    yield "a loss and a duplicate", replace(base, budget=Budget(losses=1, duplicates=1))
    yield "a loss and a delay", replace(base, budget=Budget(losses=1, delays=1))
    yield "two losses", replace(base, budget=Budget(losses=2))
    racks = TopologySpec.model_validate(_RACKS)
    yield "two racks and an early timeout", replace(base, topology=racks, budget=Budget(timeouts=1))
    yield "two racks, a loss and a duplicate", replace(base, topology=racks, budget=Budget(losses=1, duplicates=1))
