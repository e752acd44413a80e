"""Searches of groups: a program on a topology, the calls of ranks, and the faults that the network may commit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, pairwise
from typing import ClassVar

import numpy as np
from typing_extensions import override

from p4gen.errors import InputError
from p4gen.families import WrittenCollective
from p4gen.groups.ranks import recovery_of
from p4gen.groups.ticks import tick
from p4gen.host.collectives.arrays import Array, array_type, data_of, reduced
from p4gen.host.collectives.commlib import Communicator
from p4gen.host.collectives.plan import Flow, PsnSync
from p4gen.host.transport.nic import Nic
from p4gen.host.transport.verbs import Recovery
from p4gen.net.collectives.config import Call, SimConfig, Work
from p4gen.net.collectives.simulation import Simulation
from p4gen.net.collectives.values import expected
from p4gen.net.world.faults import Faults, Impairment
from p4gen.plan.placement.network import Placement
from p4gen.rocev2 import psn
from p4gen.verification.family import verification_of
from p4gen.verification.parts.collectives import CheckedRank, Rank
from p4gen.verification.world import Rules, Scope, World
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.message import Collective, message_of
from p4gen.vocabulary.ticks import EVERY_US

ROOTED = frozenset({Collective.REDUCE, Collective.BROADCAST})


@dataclass(frozen=True)
class GroupScope(Scope):
    """A search of groups: their program, the calls of their ranks, and the network's faults."""

    KIND: ClassVar = "collectives"

    program: WrittenCollective
    collectives: tuple[Collective, ...] = (Collective.ALLREDUCE,)
    """What every rank calls, one after the other."""
    packets: int = 3
    """Number of packets that a rank sends in a call, with the control message."""
    groups: int = 1
    """Number of groups of all ranks, which run at the same time."""
    first_psn: int = 5
    flow: Flow = Flow.RESULTS
    sync: PsnSync = PsnSync.SUBGROUPS
    recovery: Recovery | None = None
    """The NICs' loss recovery; by default the one that suits the program."""
    ack_every: int = 1
    rank_window: int | None = None
    """Messages that ranks keep outstanding, if they ignore the program's W."""
    stale: bool = False
    """Whether registers have the state of an earlier group with the same PSNs and another epoch."""
    earlier: tuple[Collective, ...] = ()
    """The calls of the earlier group; by default those of this one."""
    cut: bool = False
    """Whether the earlier group was cut off in the middle: only packets of the first rank have arrived."""
    roots: tuple[int, ...] = (0,)
    """The root ranks of Reduces and Broadcasts: of the first call, of the second, and so on, then from the beginning
    again."""
    idle_since: int | None = None
    """The first PSN of calls in the same epoch that used slots, and other words that may idle, for the last time; since
    then other calls have used the slots of others. All other registers are new. None: there were no such calls."""

    @override
    def sound(self) -> GroupScope | None:
        program = verification_of(self.program).sound(self.program)
        if self.fault is None and program == self.program:
            return None
        return replace(self, program=program, fault=None)

    @property
    def before(self) -> tuple[SimConfig, ...]:
        """The runs whose state is left in registers, one after the other; none if registers are new."""
        if self.stale:
            config = replace(self, collectives=self.earlier or self.collectives).config
            silent = self.topology.rank_hosts[1:] if self.cut else ()
            links = [f"{host}>{self.topology.ports[host][0].other(host)}" for host in silent]
            return (replace(config, epoch=1, faults=Faults(tuple(Impairment(link, loss=1) for link in links))),)
        if self.idle_since is None:
            return ()
        idle = replace(self.config, initial_psn=self.idle_since)
        if verification_of(self.program).idles(self.program):
            return (idle,)
        # The calls that have passed since. The last packets among them have taken all slots; a Broadcast of that many
        # may be
        # the scope's own first call.
        slots = self.program.slots_per_group
        refined = self.sync is PsnSync.REFINED
        if refined and self.collectives[0] is Collective.BROADCAST and self.packets > slots:
            return (idle,)
        passed = (Collective.BROADCAST,) if refined else self.collectives
        return idle, replace(
            replace(self, collectives=passed, packets=slots + 1).config,
            initial_psn=psn.add(self.first_psn, -2 * (slots + 1) * len(passed)),
        )

    @property
    def config(self) -> SimConfig:
        """The configuration of a simulation with the same calls, whose placement and switches are explored."""
        if not self.program.dtype.number_format.integer:
            raise InputError(f"dtype {self.program.dtype}: the data of a search are integers, whose sums are exact")
        if self.packets < 2 and any(each is not Collective.BARRIER for each in self.collectives):
            raise InputError(f"{self.packets} packets: a call has a control message and at least one packet of data")
        size = (self.packets - 1) * self.program.payload_bytes
        ranks = len(self.topology.rank_hosts)
        calls = tuple(
            Call(each, size * _shares(each, ranks), root)
            for each, root in zip(self.collectives, cycle(self.roots), strict=False)
        )
        return SimConfig(
            self.topology,
            self.program,
            work=(Work(calls),) * self.groups,
            initial_psn=self.first_psn,
            flow=self.flow,
            sync=self.sync,
            recovery=self.recovery,
            ack_every=self.ack_every,
            rank_window=self.rank_window,
            engine=self.engine,
            epoch=2 if self.stale else 1,
        )

    @override
    def world(self) -> World:
        simulation = Simulation(self.config, self.text)
        spec, placement = simulation.spec, simulation.placement
        self._leave(simulation)
        # Refined synchronisation skips PSNs, so a gap does not mean a loss.
        subgroups = self.sync is PsnSync.SUBGROUPS
        in_order = recovery_of(spec) is Recovery.GO_BACK_N and subgroups
        text, switches = self.text(spec), self.topology.switches
        return World(
            simulation.network,
            dict.fromkeys(switches, spec),
            placement.mac,
            placement.ip,
            {host: partial(self._tasks, simulation, host) for host in self.topology.rank_hosts},
            Rules(
                no_drops=subgroups and self._paced,
                announces=message_of(spec.roots),
                recovery=recovery_of(spec) if spec.terminates and subgroups else None,
                in_order=in_order,
            ),
            self.first_psn,
            placement.switches,
            dict.fromkeys(switches, text),
            [
                (edge.switch, edge.edge.port, tick(edge, EVERY_US / 1e6), f"{edge.switch}, edge {edge.edge.edge_id}")
                for edge in (placement.edges if spec.wants_ticks else ())
                if self._used(simulation, edge.switch, edge.context)
            ],
            [self.topology.rank_hosts[root] for root in self.roots] if ROOTED.intersection(self.collectives) else [],
            _own_psns(placement) if spec.own_psns else {},
        )

    @property
    def _paced(self) -> bool:
        """Whether no rank sends before there is room: ranks wait for results, or for acknowledgements that come with
        results. Elsewhere a switch answers "not ready"."""
        symmetric = {Collective.ALLREDUCE, Collective.BARRIER}
        return self.flow is Flow.RESULTS and (not self.program.terminates or symmetric.issuperset(self.collectives))

    def _leave(self, simulation: Simulation) -> None:
        """Set registers to the state that earlier runs have left, if the scope has some."""
        slots = verification_of(self.program).slots
        for earlier, later in pairwise([*(Simulation(config, self.text) for config in self.before), simulation]):
            earlier.run()
            for name, switch in later.network.switches.items():
                left = earlier.network.switches[name]
                for register in switch.register_names:
                    if self.stale or register.startswith(slots):
                        switch.register_cells(register)[:] = list(left.register_cells(register))

    def _tasks(self, simulation: Simulation, host: str, nic: Nic) -> list[CheckedRank]:
        found = []
        for group in simulation.groups:
            hosts = group.placed.request.ranks
            if host not in hosts:
                continue
            rank, calls, spec = hosts.index(host), group.work.calls, simulation.spec
            member = group.communicators[rank]
            assert isinstance(member, Communicator)
            inputs = [[self.values(group.number, each, call) for each in range(len(hosts))] for call in calls]
            mine = Rank(
                group.number,
                member.config,
                calls,
                tuple(values[rank] for values in inputs),
                tuple(expected(call, spec, values)[rank] for call, values in zip(calls, inputs, strict=True)),
                tuple(_arriving(call, spec, values, rank) for call, values in zip(calls, inputs, strict=True)),
                spec.shared_blocks > 0,
            )
            found.append(CheckedRank(nic, mine))
        # Groups that contend begin in another order at every other host.
        turned = simulation.spec.shared_blocks and self.topology.rank_hosts.index(host) % 2
        return found[::-1] if turned else found

    @staticmethod
    def _used(simulation: Simulation, switch: str, context: int) -> bool:
        """Whether a call of the scope uses a context."""
        for group in simulation.groups:
            used = {group.placed.channel(call.collective, call.root).key for call in group.work.calls}
            for channel in group.placed.channels:
                if channel.key in used:
                    for node, here in channel.contexts.items():
                        if (node.switch, here.context) == (switch, context):
                            return True
        return False

    @override
    def sentence(self) -> str:
        calls = ", then ".join(str(each) for each in self.collectives)
        left = "; registers of an earlier group" if self.stale else ""
        if self.idle_since is not None:
            idle = verification_of(self.program).idles(self.program)
            left = f"; {'slots idle' if idle else 'other calls'} since PSN {self.idle_since:#x}"
        eager = f"; ranks of window {self.rank_window}" if self.rank_window is not None else ""
        what = f"{calls}, {self.packets} packets from each rank"
        return f"{self.subject}: {what}; {self.budget.sentence()}{left}{eager}"

    def values(self, group: int, rank: int, call: Call) -> Array:
        """A rank's input: one element of each packet is (i + 1) * 256^rank, so that the sum shows every contribution
        that is missing, doubled or foreign; the next element is the number of the group."""
        elements = call.size // self.program.dtype.number_format.bytes
        if call.collective is Collective.ALLGATHER:
            elements //= len(self.topology.rank_hosts)
        values = np.zeros(elements, array_type(self.program.dtype))
        lanes = self.program.lanes
        at, shift = divmod(rank, 4)
        for number, start in enumerate(range(0, elements, lanes)):
            values[start + at] = (number % 120 + 1) << 8 * shift
            values[start + lanes - 1] += group
        return values


def _shares(collective: Collective, ranks: int) -> int:
    """How often a rank's packets of one phase make the data of a call."""
    if collective is Collective.BARRIER:
        return 0
    return ranks if collective in (Collective.REDUCE_SCATTER, Collective.ALLGATHER) else 1


def _arriving(call: Call, spec: CollectiveSpec, values: Sequence[Array], rank: int) -> bytes:
    """The data that the network brings to a rank for a call: the reduction of the others' values, or the root's values.
    Empty for calls of several phases, which are checked when they end."""
    match call.collective:
        case Collective.ALLREDUCE:
            sent = list(values)
        case Collective.REDUCE if rank == call.root:
            sent = [each for number, each in enumerate(values) if number != rank]
        case Collective.BROADCAST if rank != call.root:
            sent = [values[call.root]]
        case _:
            return b""
    return bytes(data_of(reduced(call.kind(spec)[0], sent, saturating=spec.saturating), spec.payload_bytes))


def _own_psns(placement: Placement) -> dict[str, dict[int, int]]:
    """``World.own_psns`` of connections that begin with PSNs of their own."""
    hosts = {ip: host for host, ip in placement.ip.items()}
    found: dict[str, dict[int, int]] = defaultdict(dict)
    for placed in placement.edges:
        edge = placed.edge
        found[placed.switch][edge.local.qp] = edge.first_received
        if edge.first_hop:
            found[hosts[edge.remote.ip]][edge.remote.qp] = edge.first_sent
    return dict(found)
