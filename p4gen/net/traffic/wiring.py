"""The connections that traffic between hosts needs, and the members that send over them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from p4gen.groups.connections import Connection as Placed
from p4gen.groups.group import Endpoint
from p4gen.host.collectives.algorithms import Algorithm, Link, links, member
from p4gen.host.collectives.alltoall import AllToAll, AllToAllConfig, Exchange
from p4gen.host.collectives.arrays import Array, array_type
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import Connection
from p4gen.host.collectives.steps import StepCollectives
from p4gen.host.transport.clock import Clock
from p4gen.host.transport.nic import Nic
from p4gen.host.transport.rc import QueuePair
from p4gen.host.transport.verbs import Completion, Peer
from p4gen.host.transport.wire import PRIORITY_SHIFT
from p4gen.net.traffic.flow import Flow
from p4gen.net.traffic.traffic import Pattern, Traffic, TrafficConfig
from p4gen.plan.placement.placer import Names, switch_of
from p4gen.rocev2.codes import ECN_ECT0
from p4gen.vocabulary import DType, Op

FIRST_QP: Final = 0x1000
PORTS: Final = range(0xC000, 0x10000)
"""UDP source ports; a connection's are drawn."""
Ends = tuple[Connection, Connection]
"""Both ends of a connection."""


@dataclass(frozen=True)
class Track:
    """One direction of a connection that carries data: the requester of ``source``, the responder of
    ``destination``."""

    name: str
    group: int
    source: QueuePair
    destination: QueuePair
    line_rate: int
    """The rate of the sender's link, bit/s."""


class Wiring:
    """The connections of a run. ``connections`` are those that carry data, for the switches. QPs' numbers begin at
    ``first_qp``."""

    def __init__(self, config: TrafficConfig, first_qp: int = FIRST_QP) -> None:
        self.connections: list[Placed] = []
        self.chance = random.Random(f"{config.seed} hosts")  # noqa: S311 - a simulation, to be repeatable
        self._config, self._first_qp = config, first_qp
        self._names = Names.of(config.topology, map(config.spec_of, config.topology.switches))
        self._qps: Counter[str] = Counter()
        self.ends: list[dict[Link, Ends]] = [{} for _ in config.traffic]
        """The connections of each group. Its hosts are ranks in their order."""
        for used in (True, False):
            for traffic, ends in zip(config.traffic, self.ends, strict=True):
                both, hosts = _both_ways(traffic, config), traffic.hosts
                for link in _links(traffic, config):
                    if _used(link, traffic, config) is used:
                        ends[link] = self._connect(hosts[link.a], hosts[link.b], both=both, used=used)

    def _connect(self, a: str, b: str, *, both: bool = False, used: bool = True) -> Ends:
        """Make a connection. Data goes from ``a`` to ``b``, or with ``both`` both ways. Without ``used``, switches do
        not know it."""
        qp = self._config.qp(self.chance.randrange(1 << 24))
        ends = [(a, self._qp(a), self._port()), (b, self._qp(b), self._port())]
        for (host, number, _), (far, far_number, far_port) in (ends, ends[::-1]) if both else (ends,):
            if used:
                self.connections.append(
                    Placed(
                        len(self.connections),
                        self._endpoint(host, number),
                        self._endpoint(far, far_number),
                        far_port,
                        self._config.priority << PRIORITY_SHIFT | (ECN_ECT0 if self._config.dcqcn is not None else 0),
                    )
                )
        (_, qp_a, port_a), (_, qp_b, port_b) = ends
        return (
            Connection(qp_a, Peer(self._gateway(a), self._names.ip[b], qp_b, port_a), qp),
            Connection(qp_b, Peer(self._gateway(b), self._names.ip[a], qp_a, port_b), qp),
        )

    def _qp(self, host: str) -> int:
        self._qps[host] += 1
        return self._first_qp + self._qps[host] - 1

    def _port(self) -> int:
        return self.chance.choice(PORTS)

    def _gateway(self, host: str) -> int:
        return self._names.mac[switch_of(self._config.topology, host)]

    def _endpoint(self, host: str, qp: int) -> Endpoint:
        return Endpoint(self._names.mac[host], self._names.ip[host], qp)


def _links(traffic: Traffic, config: TrafficConfig) -> Sequence[Link]:
    """The connections of a group. Data goes from rank ``a`` to rank ``b``, or both ways."""
    count = len(traffic.hosts)
    match traffic.pattern:
        case Pattern.FLOW:
            return [Link(0, 0, i) for i in range(1, count)]
        case Pattern.NEXT:
            return [Link(0, i, (i + 1) % count) for i in range(count)]
        case Pattern.ALLTOALL:
            return [Link(0, a, b) for a in range(count) for b in range(a + 1, count)]
        case Pattern.ALLREDUCE:
            return links(config.algorithm, count)


def _both_ways(traffic: Traffic, config: TrafficConfig) -> bool:
    ring = traffic.pattern is Pattern.ALLREDUCE and config.algorithm is Algorithm.RING
    return not (traffic.pattern.flows or ring)


def _used(link: Link, traffic: Traffic, config: TrafficConfig) -> bool:
    """Whether the pattern sends over a connection; a ring's star is for Barriers."""
    return _both_ways(traffic, config) or traffic.pattern.flows or link.channel < len(traffic.hosts)


class ExchangeTask:
    """A rank of a collective between hosts (``p4gen.net.job.Task``)."""

    STATE: ClassVar = ("_run", "started")

    def __init__(self, name: str, clock: Clock, member: AllToAll | StepCollectives, values: Array) -> None:
        self.name = name
        self.started: int | None = None
        """When it began, ps."""
        self._clock, self._member, self._values = clock, member, values
        self._run: Exchange | Invocation | None = None

    def start(self) -> None:
        """Send this rank's array to the others."""
        member, self.started = self._member, self._clock.now
        if isinstance(member, AllToAll):
            self._run = member.exchange(self._values)
        else:
            self._run = member.all_reduce(self._values, Op.SUM)

    @property
    def finished(self) -> int | None:
        """The time, in ps, at which it ended; None before."""
        return None if self._run is None else self._run.finished

    @property
    def done(self) -> bool:
        """Whether it has ended, successfully or not."""
        return self._run is not None and self._run.done

    @property
    def problem(self) -> str:
        """Why it failed; "" if it did not."""
        return str(self._run.error or "") if self._run is not None else ""

    def result(self) -> Array | None:
        """The array that the rank has received."""
        assert self._run is not None
        return self._run.result()

    def parts(self) -> dict[str, object]:
        """The parts that have state, by name."""
        return {"exchange": self, **self._member.parts()}


HostTask = Flow | ExchangeTask
"""The task of a host: it sends a flow, or exchanges arrays with others."""


@dataclass(frozen=True)
class Members:
    """The members that carry out a group's traffic (flows, or one for each host), and their input."""

    traffic: Traffic
    flows: Sequence[Flow] = ()
    exchanges: Sequence[ExchangeTask] = ()
    values: Sequence[Array] = ()

    @property
    def tasks(self) -> Sequence[HostTask]:
        """All of them, as tasks of the job."""
        return [*self.flows, *self.exchanges]


def members(
    number: int,
    traffic: Traffic,
    ends: Mapping[Link, Ends],
    nics: Mapping[str, Nic],
    config: TrafficConfig,
    chance: np.random.Generator,
    pattern: bytes,
) -> tuple[Members, list[Track]]:
    """The members of group ``number``, and the directions in which they send."""
    hosts, count = traffic.hosts, len(traffic.hosts)
    clock = nics[hosts[0]].clock

    if not config.arrays and not traffic.pattern.flows:
        return _without_arrays(number, traffic, ends, nics, config, pattern)
    if traffic.pattern.flows:
        flows: list[Flow] = []
        for link, (near, far) in ends.items():
            name = f"group {number} flow {len(flows)}"
            blocks = traffic.size // config.message if config.endless else 0
            flow = Flow(name, traffic.size, pattern, blocks, writes=config.writes)
            if config.endless:  # each message that arrives releases one more, so that few are posted
                flow.next = flow
                for _ in range(1 + config.window * config.mtu // config.message):
                    flow.release()
            flow.source = nics[hosts[link.a]].create_pair(near.qp, near.peer, near.qp_config, flow.on_sent)
            flow.destination = nics[hosts[link.b]].create_pair(far.qp, far.peer, far.qp_config, flow.on_arrival)
            flows.append(flow)
        return Members(traffic, flows=flows), _tracks(number, traffic, ends, nics, config)
    form = DType.INT32.number_format
    low, high = int(form.least) // count + 1, (int(form.greatest) + 1) // count - 1
    values = [chance.integers(low, high, traffic.size // form.bytes, array_type(DType.INT32)) for _ in hosts]
    exchanges = []
    for rank, host in enumerate(hosts):
        mine = {link: each[link.b == rank] for link, each in ends.items() if rank in (link.a, link.b)}
        one: AllToAll | StepCollectives
        if traffic.pattern is Pattern.ALLTOALL:
            peers = {link.to(rank): end for link, end in mine.items()}
            one = AllToAll(nics[host], AllToAllConfig(rank, count, peers, config.ahead))
        else:
            one = member(config.algorithm, nics[host], rank, count, mine)
        exchanges.append(ExchangeTask(f"group {number} rank {rank}", clock, one, values[rank]))
    return Members(traffic, exchanges=exchanges, values=values), _tracks(number, traffic, ends, nics, config)


def _tracks(
    number: int, traffic: Traffic, ends: Mapping[Link, Ends], nics: Mapping[str, Nic], config: TrafficConfig
) -> list[Track]:
    """The directions in which data goes, in the order of their sources."""
    ways = {link: each for link, each in ends.items() if _used(link, traffic, config)}
    if _both_ways(traffic, config):
        ways |= {Link(link.channel, link.b, link.a): each[::-1] for link, each in ways.items()}
    hosts, found = traffic.hosts, []
    for link, (near, far) in sorted(ways.items(), key=lambda way: (way[0].a, way[0].b, way[0].channel)):
        a, b = hosts[link.a], hosts[link.b]
        source, destination = nics[a].pairs[near.qp], nics[b].pairs[far.qp]
        line_rate = config.topology.setting(config.topology.ports[a][0], "bandwidth")
        found.append(Track(f"{a}>{b}", number, source, destination, line_rate))
    return found


class _Turn:
    """One end of a connection that is the source of one flow and the destination of another."""

    def __init__(self, sending: Flow, receiving: Flow) -> None:
        self._sending, self._receiving = sending, receiving

    def completed(self, completion: Completion) -> None:
        """Give a completion to the flow that sends, or to the one that receives."""
        if completion.receive:
            self._receiving.on_arrival(completion)
        else:
            self._sending.on_sent(completion)


def _without_arrays(
    number: int,
    traffic: Traffic,
    ends: Mapping[Link, Ends],
    nics: Mapping[str, Nic],
    config: TrafficConfig,
    pattern: bytes,
) -> tuple[Members, list[Track]]:
    """A collective as flows that send the same messages: on a ring each waits for the flow of its left neighbour. A
    part that is longer than a message is sent as several equal messages, and is rounded up to a multiple of 4 bytes for
    each."""
    hosts, count = traffic.hosts, len(traffic.hosts)
    pieces = -(-traffic.size // (count * config.message))
    message = -(-traffic.size // (4 * count * pieces)) * 4
    stretch = memoryview(pattern)[: 2 * message]
    ring = traffic.pattern is Pattern.ALLREDUCE
    blocks = 2 * (count - 1) if ring else 1
    used = {(link.a, link.b): each for link, each in ends.items() if _used(link, traffic, config)}
    ways = [way for ends_at in used for way in ((ends_at,) if ring else (ends_at, ends_at[::-1]))]
    flows = {
        way: Flow(f"group {number} flow {i}", blocks * pieces * message, stretch, blocks, writes=config.writes)
        for i, way in enumerate(ways)
    }
    for (a, b), (near, far) in used.items():
        there, back = flows[a, b], flows.get((b, a)) if not ring else None
        done_near, done_far = (
            (there.on_sent, there.on_arrival)
            if back is None
            else (_Turn(there, back).completed, _Turn(back, there).completed)
        )
        there.source = nics[hosts[a]].create_pair(near.qp, near.peer, near.qp_config, done_near)
        there.destination = nics[hosts[b]].create_pair(far.qp, far.peer, far.qp_config, done_far)
        if back is not None:
            back.source, back.destination = there.destination, there.source
        if ring:
            there.next = flows[b, (b + 1) % count]
    return Members(traffic, flows=tuple(flows.values())), _tracks(number, traffic, ends, nics, config)
