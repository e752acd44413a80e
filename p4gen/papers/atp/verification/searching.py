"""What a search of states explores of ATP: the workers of a job add a gradient, with a server on the last host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Final

import numpy as np
from typing_extensions import override

from p4gen.errors import InputError
from p4gen.groups.group import SwitchConfig
from p4gen.host.transport.clock import MS
from p4gen.host.transport.nic import Nic
from p4gen.net.world.faults import Faults
from p4gen.net.world.network import Network
from p4gen.p4.compile import program_from
from p4gen.papers.atp.control import configuration
from p4gen.papers.atp.frames import Packet
from p4gen.papers.atp.hosts import members
from p4gen.papers.atp.member import AtpWorker
from p4gen.papers.atp.numbers import FACTOR, Array
from p4gen.papers.atp.placing import PlacedJob, placed_job, sites
from p4gen.papers.atp.server import AtpServer
from p4gen.papers.atp.spec import AtpSpec
from p4gen.plan.placement.plain import PlainPlacement, place_plain
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


class AddingWorker:
    """A worker that adds a gradient, or a server (``p4gen.verification.parts.hosts.SearchedTask``)."""

    STATE: ClassVar = ("done", "problem")

    def __init__(self, scope: GradientScope, number: int, worker: AtpWorker, server: AtpServer | None) -> None:
        self.name, self.done, self.problem = f"worker {number}", False, ""
        self._parts = {"worker": worker} | ({} if server is None else {"server": server})
        self._worker, self._gradient, self._expected = worker, scope.gradient(number), scope.total()
        worker.on_sum = self._end

    def start(self) -> None:
        """Send the first packets."""
        self._worker.add(self._gradient)

    def parts(self) -> dict[str, object]:
        """The task itself, its worker, and the server if it is here."""
        return {"task": self, **self._parts}

    def forget_times(self) -> None:
        """Forget times, and what is counted."""
        for part in self._parts.values():
            part.forget_times()

    def _end(self, total: Array) -> None:
        self.done = True
        wrong = np.flatnonzero(total != self._expected)
        if wrong.size:
            at = int(wrong[0])
            found, right = int(total[at] * FACTOR), int(self._expected[at] * FACTOR)
            self.problem = f"{self.name}: element {at} is {found:#x}, NumPy says {right:#x}"


@dataclass(frozen=True)
class GradientScope(Scope):
    """The workers of all hosts add a gradient of ``packets`` packets, all of which may be on the way at once."""

    program: AtpSpec
    packets: int = 2

    def gradient(self, worker: int) -> Array:
        """A worker's numbers, which tell workers and packets apart in every sum."""
        whole = np.arange(1, self.packets + 1, dtype=np.int64) << 5 * worker
        return np.repeat((whole / FACTOR).astype(np.float32), self.program.lanes)

    def total(self) -> Array:
        """The sum of all workers' numbers."""
        gradients = [self.gradient(worker) for worker in range(len(self.topology.rank_hosts))]
        return np.array(np.sum(gradients, axis=0, dtype=np.float32))

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
        plain = place_plain(topology, dict.fromkeys(topology.switches, spec), ())
        text = self.text(spec)
        program = program_from(text, f"{spec.program}.p4")
        programs = dict.fromkeys(topology.switches, program)
        network = Network(topology, plain, programs, Faults(), 1, self.engine, payload=spec.payload)
        network.kinds.describe = Packet.described
        placed = placed_job(topology, plain, 1, sends=True, server=len(ranks) - 1)
        configs = dict(plain.switches)
        for switch, here in sites(topology, plain, [placed]).items():
            held = configuration(spec, here)
            held.install(network.switches[switch])
            configs[switch] = SwitchConfig((*configs[switch].entries, *held.entries), held.multicast_groups)
        return World(
            network,
            dict.fromkeys(topology.switches, spec),
            plain.mac,
            plain.ip,
            {host: partial(self._tasks, placed, plain, number) for number, host in enumerate(ranks)},
            Rules(no_drops=True),
            0,
            configs,
            dict.fromkeys(topology.switches, text),
            unlike=ranks[-1:],
        )

    def _tasks(self, placed: PlacedJob, plain: PlainPlacement, number: int, nic: Nic) -> Sequence[SearchedTask]:
        worker, server = members(placed, number, plain, nic, self.program.lanes, MS, self.packets)
        return [AddingWorker(self, number, worker, server)]


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
