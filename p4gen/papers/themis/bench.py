"""The loads of Themis's benchmarks: requests that are spread or recorded, and NACKs with the shortest, typical and the
longest walks.

A NACK does not change the queue that it is compared with, so the queues are filled first, and NACKs alone are measured.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from p4gen.bench.workload import Benchmark, ByHand, Workload, dropped
from p4gen.errors import InputError
from p4gen.groups import NextHop, Route, SwitchConfig, addresses
from p4gen.groups.config import routing
from p4gen.model import Model
from p4gen.model.entries import Entry
from p4gen.model.jit import Batch
from p4gen.p4.compile import compile_text
from p4gen.papers.themis.control import (
    Connection,
    PathSet,
    Peer,
    clone_sessions,
    filter_entries,
    path_map_entries,
    path_set_entries,
    spray_entry,
)
from p4gen.papers.themis.roofline import loop, why_not
from p4gen.papers.themis.spec import ThemisSpec
from p4gen.program import compose, render
from p4gen.rocev2.headers import AETH, BTH, UDP, Ethernet, ip_from, ip_header, ipv4
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket
from p4gen.rocev2.places import places_for

_CONNECTIONS: Final = 32
_OPENING: Final = 8192
"""Requests in all that fill queues, at most."""
_PAYLOAD: Final = 1024
_MARKED: Final = 32
"""One packet in so many has no route: of what BMv2 forwards it keeps no count, but of what it drops."""
_SPREAD: Final = 40
"""The longest path delays a packet by so many packet times more than the shortest."""
_HOST, _AWAY = ipv4("10.0.0.1"), ipv4("10.1.0.1")
_NOWHERE: Final = ipv4("192.0.2.1")
_IPV6_NETWORK: Final = ip_from("fd00::")
_MAC: Final = 0x02AA00000001
_FIRST_SPINE: Final = 1
_VERDICTS: Final = "IncIngress.blocked_nack.verdicts"
_NAK: Final = 0x60

Frame = tuple[int, bytes]


@dataclass(frozen=True)
class _Leaf:
    """A leaf switch with one host, at port 0, and spines at the others."""

    spec: ThemisSpec
    text: str
    delivered: bool
    """Whether the connections end at the host; else they begin there."""

    @property
    def spines(self) -> int:
        return min(self.spec.ports - _FIRST_SPINE, self.spec.paths)

    def address(self, ip: int) -> int:
        """An IPv4 address, or the IPv6 address with these last bits if the program takes RoCEv2 over IPv6."""
        return ip | (_IPV6_NETWORK if self.spec.roce_ipv6 else 0)

    @property
    def connections(self) -> list[Connection]:
        count = min(_CONNECTIONS, self.spec.connections, _OPENING // self.spec.queue)
        away, host = self.address(_AWAY), self.address(_HOST)
        ends = [(Peer(away, 0x100 + n), Peer(host, 0x200 + n)) for n in range(count)]
        return [Connection(*(pair if self.delivered else pair[::-1]), answer_port=52000) for pair in ends]

    @property
    def hops(self) -> list[NextHop]:
        """By the numbers of ports."""
        return [NextHop(port, port, 0x02BB00 + port, 0x02CC00 + port) for port in range(_FIRST_SPINE + self.spines)]

    def config(self) -> SwitchConfig:
        here, away = (addresses.prefix(self.address(ip), 0) for ip in (_HOST, _AWAY))
        routes = [Route(here, 0), Route(away, _FIRST_SPINE, self.spines)]
        return SwitchConfig((*routing(routes, self.hops), *self._entries()), (), clone_sessions(self.spec))

    def _entries(self) -> Iterator[Entry]:
        if not self.spec.by_psn:
            return
        yield from path_set_entries(self.spec, PathSet.equal(0, self.spines))
        if self.spec.tiers > 2:
            yield from path_map_entries(self.spec, 0, range(self.spines))
        for index, connection in enumerate(self.connections):
            if self.delivered:
                yield from filter_entries(self.spec, connection, 0, index=index, epoch=1, port=0)
            else:
                yield spray_entry(self.spec, connection, 0)

    @property
    def ethernet(self) -> Ethernet:
        return Ethernet(_MAC, _MAC + 1, places_for(self.address(_HOST)).ether_type)

    def request(self, connection: Connection, psn: int, payload: bytes = b"", to: int | None = None) -> Frame:
        ip = ip_header(connection.requester.ip, connection.responder.ip if to is None else to)
        bth = BTH(Opcode.SEND_MIDDLE, connection.responder.qp, psn)
        packet = RocePacket(self.ethernet, ip, UDP(51000), bth, payload=payload)
        return _FIRST_SPINE if self.delivered else 0, packet.sealed().to_bytes()

    def nack(self, connection: Connection, psn: int) -> Frame:
        ip = ip_header(connection.responder.ip, connection.requester.ip, tos=connection.answer_tos)
        bth = BTH(Opcode.ACKNOWLEDGE, connection.requester.qp, psn)
        packet = RocePacket(self.ethernet, ip, UDP(connection.answer_port), bth, aeth=AETH(_NAK, 1))
        return 0, packet.sealed().to_bytes()

    def requests(self, load: str, packets: int, rng: random.Random) -> Requests:
        """Requests of all connections in turn, in order of their PSNs."""
        frames, connections = [], self.connections
        for number in range(packets):
            connection = connections[number % len(connections)]
            to = self.address(_NOWHERE) if number % _MARKED == _MARKED - 1 else None
            frames.append(self.request(connection, number // len(connections), rng.randbytes(_PAYLOAD), to))
        counter = dropped(self.spec, "Forward_no_route")
        return Requests(self.spec, load, self.text, self.config(), (), tuple(frames), counter, leaf=self)

    def nacks(self, load: str, packets: int, situations: Iterator[Situation]) -> Workload:
        """NACKs of all connections in turn; each has a situation of its own."""
        each = list(islice(situations, len(self.connections)))
        opening, nacks = [], []
        for connection, situation in zip(self.connections, each, strict=True):
            opening += [self.request(connection, psn) for psn in situation.arrived]
            nacks.append(self.nack(connection, situation.expected))
        frames = tuple(nacks[number % len(nacks)] for number in range(packets))
        work = Workload(self.spec, load, self.text, self.config(), tuple(opening), frames, (_VERDICTS, 0))
        verdicts = self._verdicts(work)
        passes = 1 + sum(verdicts[::16]) / packets
        first = max(range(1, 16), key=lambda verdict: verdicts[verdict])
        return Workload(
            self.spec, f"{load}, {passes:.1f} passes", self.text, work.config, work.opening, frames,
            (_VERDICTS, first), passes,
        )  # fmt: skip

    def _verdicts(self, work: Workload) -> list[int]:
        """How often each verdict was given; the first of each connection's 16 counts passes beyond the first."""
        model = work.configure(Model(compile_text(self.text, f"{self.spec.program}.p4").program, engine="jit"))
        model.process_batch(Batch.of(work.packets))
        return [count.packets for count in model.counters(_VERDICTS)]


@dataclass(frozen=True, kw_only=True)
class Requests(Workload):
    """The load of requests alone, on the leaf switch of their source or of their destination."""

    leaf: _Leaf


@dataclass(frozen=True)
class Situation:
    """What a connection's host was sent before its NACK: PSNs in their order of arrival at the switch."""

    arrived: Sequence[int]
    expected: int


def _shortest() -> Iterator[Situation]:
    """The packet arrived last, after a larger one."""
    while True:
        yield Situation((1, 0), 0)


def _longest(spec: ThemisSpec) -> Iterator[Situation]:
    """The queue is full of a larger PSN of another path, and its newest place is in the middle of a row."""
    while True:
        yield Situation((1,) * (spec.queue + spec.queue_banks // 2), 0)


def typical(spec: ThemisSpec, paths: int, rng: random.Random) -> Iterator[Situation]:
    """NACKs of a NIC-SR whose packets come by paths of random lengths, without loss, at the moment when they reach the
    switch: a last-hop round trip of half a queue after the packet that caused them (section 4 has 67 packets, and twice
    as many entries by default)."""
    trip, sent = spec.queue // 2, 6 * spec.queue
    while True:
        delays = [rng.uniform(0, _SPREAD) for _ in range(paths)]
        order = sorted((psn + delays[psn % paths], psn) for psn in range(sent))
        nacks = list(_nacks(order))
        settled = [(at, psn) for at, psn in nacks if 3 * spec.queue < at < sent - trip]
        if not settled:
            continue
        caused, expected = rng.choice(settled)
        arrived = [psn for at, psn in order if at < caused + trip]
        kept = spec.queue + rng.randrange(spec.queue_banks)
        yield Situation(arrived[-kept:], expected)


def _nacks(order: Sequence[tuple[float, int]]) -> Iterator[tuple[float, int]]:
    """When a NIC-SR gets the packets that make it send NACKs, and the PSNs that it expects then."""
    expected, kept, asked = 0, set[int](), -1
    for at, psn in order:
        kept.add(psn)
        while expected in kept:
            kept.remove(expected)
            expected += 1
        if psn > expected > asked:
            asked = expected
            yield at, expected


def _workloads(spec: ThemisSpec, packets: int, seed: int) -> tuple[Workload, ...]:
    if spec.ports < _FIRST_SPINE + 2:
        raise InputError(f"a benchmark needs a program with {_FIRST_SPINE + 2} ports: a host's, and two spines'")
    text, rng = render(compose(spec)).text, random.Random(seed)  # noqa: S311 - a load, to be repeatable
    source, destination = _Leaf(spec, text, delivered=False), _Leaf(spec, text, delivered=True)
    loads: list[Workload] = []
    if not spec.filters or spec.sprays:
        loads.append(source.requests("requests sprayed" if spec.sprays else "requests spread", packets, rng))
    if spec.filters:
        walks: dict[str, Callable[[], Iterator[Situation]]] = {
            "NACKs, shortest walk": _shortest,
            "NACKs, typical walks": lambda: typical(spec, destination.spines, rng),
            "NACKs, longest walk": lambda: _longest(spec),
        }
        if not spec.walks:
            walks = {"NACKs": walks["NACKs, typical walks"]}
        loads.append(destination.requests("requests recorded", packets, rng))
        loads += [destination.nacks(name, packets, situations()) for name, situations in walks.items()]
    return tuple(loads)


def _by_hand(work: Workload, folder: Path) -> ByHand | str:
    if not isinstance(work, Requests):
        return "the C loop is written for requests"
    leaf = work.leaf
    reason = why_not(leaf.spec)
    return reason or loop(work, folder, leaf.connections, leaf.hops, delivered=leaf.delivered)


FACET: Benchmark[ThemisSpec] = Benchmark(_workloads, _by_hand)
