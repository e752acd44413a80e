"""Random traffic for Themis's programs, which differential tests send through two switches.

Everything derives from one seed. A connection's PSNs mostly go on, with some late, lost, repeated, or far off; its
host's NACKs are for PSNs near the newest, so that all verdicts are reached, and compensations too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from p4gen.difftest.events import Event, Mirroring, Packet, Request
from p4gen.difftest.family import Traffic
from p4gen.errors import InputError
from p4gen.groups import NextHop, Route, addresses
from p4gen.groups.config import routing
from p4gen.model.entries import Entry
from p4gen.papers.themis.control import (
    Connection,
    PathSet,
    Peer,
    clone_sessions,
    cm_entries,
    filter_entries,
    path_set_entries,
    spray_entry,
)
from p4gen.papers.themis.spec import Cm, Spread, ThemisSpec
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.cm import Datagram, Kind, Message
from p4gen.rocev2.headers import AETH, BTH, RETH, UDP, AtomicETH, Ethernet, ImmDt, IPv4, ip_from, ip_header, ipv4
from p4gen.rocev2.opcodes import Extension, Opcode, extensions
from p4gen.rocev2.packet import RocePacket
from p4gen.rocev2.places import places_for

_NACK_SHARE, _CM_SHARE, _REQUEST_EVERY = 0.3, 0.1, 40
_LEAST_PORTS: Final = 4
_NAK: Final = 0x60
_OPCODES: Final = (*range(0x18), 0x20, 0x64, 0x81, 0xFF)
_MAC: Final = 0x02AA00000001
_IPV6_NETWORK: Final = ip_from("fd00::")
_OPCODE_AT: Final = 42
_CLASS_AT: Final = 9
"""The management class in the payload of a management datagram, after the DETH."""


class Flow:
    """A connection and its PSNs so far."""

    def __init__(self, connection: Connection, rng: random.Random, *, here: bool) -> None:
        self.connection = connection
        self.here = here
        """Whether it ends at a host of this switch; else it begins at one."""
        self.psn = rng.choice((rng.getrandbits(24), (1 << 24) - 9, (1 << 16) - 9))
        self.missing: list[int] = []

    def next(self, rng: random.Random) -> int:
        """The PSN of its next request."""
        chance = rng.random()
        if self.missing and chance < 0.3:
            return self.missing.pop(rng.randrange(len(self.missing)))
        if chance < 0.36:
            return serial.add(self.psn, -rng.randrange(1, 40))
        if chance < 0.37:
            return rng.getrandbits(24)
        for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 5))):
            self.missing = [*self.missing[-8:], self.psn]
            self.psn = serial.add(self.psn, 1)
        self.psn = serial.add(self.psn, 1)
        return serial.add(self.psn, -1)

    def expected(self, rng: random.Random) -> int:
        """The ePSN of a NAK: mostly a PSN that is missing, else one near the next PSN."""
        if self.missing and rng.random() < 0.7:
            return rng.choice(self.missing)
        return serial.add(self.psn, rng.randrange(-12, 3))


class RandomTraffic:
    """An endless source of events for a program of ``spec``. Raises ``InputError`` if it has too few ports."""

    def __init__(self, spec: ThemisSpec, seed: int) -> None:
        if spec.ports < _LEAST_PORTS:
            raise InputError(f"{spec.program}: random traffic needs {_LEAST_PORTS} ports")
        if spec.spread in (Spread.RANDOM, Spread.FLOWLET, Spread.ADAPTIVE):
            raise InputError(f"{spec.program}: two switches do not draw the same random numbers")
        self._spec = spec
        self._random = random.Random(seed)  # noqa: S311 - tests are to be repeated
        self._spines = min(spec.ports - 2, spec.paths)
        self._networks = (*([0] if spec.ipv4 else []), *([_IPV6_NETWORK] if spec.roce_ipv6 else []))
        """What precedes the 32 last bits of addresses: nothing in those of IPv4."""
        self._flows = [self._flow(number) for number in range(min(spec.connections, 6))]
        self._epochs = [1] * len(self._flows)
        self._entries = [*self._initial()]
        self._removed: list[Entry] = []
        self._recent: list[Packet] = []

    def setup(self) -> list[Event]:
        """The initial configuration."""
        sessions = (Mirroring(session) for session in clone_sessions(self._spec))
        return [*(Request("insert", entry) for entry in self._entries), *sessions]

    def packets(self) -> Iterator[Event]:
        """Endless packets, with requests between them."""
        while True:
            if self._random.randrange(_REQUEST_EVERY) == 0:
                yield self._request()
            packet = self._packet()
            self._recent = [*self._recent[-30:], packet]
            yield packet

    # --- configuration ---

    def _flow(self, number: int) -> Flow:
        rng = self._random
        network = self._networks[number // 2 % len(self._networks)]
        here, away = (network | ipv4(ip) for ip in (f"10.0.0.{1 + number % 2}", f"10.1.0.{1 + number // 2}"))
        ends = Peer(away, 0x100 + number), Peer(here, 0x200 + number)
        delivered = self._spec.filters and (not self._spec.sprays or number % 3 != 2)
        connection = Connection(
            *(ends if delivered else ends[::-1]),
            answer_port=rng.randrange(49152, 65536),
            answer_tos=rng.getrandbits(8),
            writes_only=rng.random() < 0.2,
        )
        return Flow(connection, rng, here=delivered)

    def _initial(self) -> Iterator[Entry]:
        rng, ports = self._random, self._spec.ports
        hops = [NextHop(n, n % ports, 0x02BB00 + n, 0x02CC00 + n) for n in range(2 + self._spines)]
        for network in self._networks:
            ways = (("10.0.0.1", 0, 0, 1), ("10.0.0.2", 0, 1, 1), ("10.1.0.0", 16, 2, self._spines))
            yield from routing([Route(addresses.prefix(network | ipv4(ip), bits), *to) for ip, bits, *to in ways], ())
        yield from routing((), hops)
        yield from addresses.neighbours({network | ipv4("10.0.0.254"): _MAC for network in self._networks})
        if self._spec.by_psn:
            for number in range(min(self._spec.path_sets, 2)):
                weights = tuple(rng.randrange(1, 4) for _ in range(rng.randrange(1, self._spines + 1)))
                yield from path_set_entries(self._spec, PathSet(number, weights))
            for index in range(len(self._flows)):
                yield from self._entries_of(index)
        first, second = self._networks[0], self._networks[-1]
        yield from cm_entries(self._spec, {0: first | ipv4("10.0.0.1"), 1: second | ipv4("10.0.0.2")})

    def _entries_of(self, index: int) -> tuple[Entry, ...]:
        flow, path_set = self._flows[index], index % min(self._spec.path_sets, 2)
        if flow.here:
            port = index % 2
            return filter_entries(
                self._spec, flow.connection, path_set, index=index, epoch=self._epochs[index], port=port
            )
        return (spray_entry(self._spec, flow.connection, path_set),) if self._spec.sprays else ()

    def _request(self) -> Event:
        """An entry is removed or restored; or a connection begins a new generation."""
        rng = self._random
        if self._removed and rng.random() < 0.8:
            return Request("insert", self._removed.pop())
        index = rng.randrange(len(self._flows))
        if self._spec.by_psn and rng.random() < 0.5:
            self._epochs[index] = self._epochs[index] % 255 + 1
            found = self._entries_of(index)
            if found:
                return Request("modify", rng.choice(found))
        entry = rng.choice(self._entries)
        self._removed.append(entry)
        return Request("delete", entry)

    # --- packets ---

    def _packet(self) -> Packet:
        rng, flow = self._random, self._random.choice(self._flows)
        if self._recent and rng.random() < 0.03:
            return replace(rng.choice(self._recent), kind="repeated")
        if self._spec.cm is Cm.COPY and rng.random() < _CM_SHARE:
            return self._handshake(flow)
        answered = rng.random() < _NACK_SHARE
        packet = self._answer(flow) if answered else self._requested(flow)
        host = flow.connection.responder if flow.here else flow.connection.requester
        port = host.ip & 1 ^ 1 if answered == flow.here else rng.randrange(2, self._spec.ports)
        if rng.random() < 0.02:
            port = rng.randrange(self._spec.ports)
        frame, kind = packet.to_bytes(), "answer" if answered else "request"
        if rng.random() < 0.03:
            return Packet(port, self._spoilt(frame), f"spoilt {kind}")
        return Packet(port, frame, kind)

    def _handshake(self, flow: Flow) -> Packet:
        """A message of RDMA CM of either end, often from the right port."""
        rng = self._random
        src, dst = rng.sample((flow.connection.requester, flow.connection.responder), 2)
        message = Message.of(rng.choice(list(Kind)), local_id=rng.getrandbits(32))
        sent = Datagram(src.ip, dst.ip, message).packet(Ethernet(_MAC, _MAC + 1), ttl=rng.choice((64, 2, 1)))
        tag = rng.getrandbits(16) if rng.random() < 0.05 else None
        if rng.random() < 0.1:
            sent = replace(sent, bth=replace(sent.bth, dst_qp=rng.randrange(4))).sealed()
        if rng.random() < 0.1:
            sent = replace(sent, payload=sent.payload[:_CLASS_AT] + b"\4" + sent.payload[_CLASS_AT + 1 :]).sealed()
        port = src.ip & 1 ^ 1 if rng.random() < 0.8 else rng.randrange(self._spec.ports)
        frame = replace(sent, vlan=tag).to_bytes()
        return Packet(port, self._spoilt(frame) if rng.random() < 0.2 else frame, "handshake")

    def _requested(self, flow: Flow) -> RocePacket:
        rng = self._random
        opcode = rng.choice(_OPCODES) if rng.random() < 0.2 else rng.choice((0x01, 0x07, 0x0A))
        there, size = extensions(opcode), rng.choice((0, 4, 64, 256))
        packet = self._from(flow.connection.requester, flow.connection.responder, 51000)
        bth = BTH(opcode, flow.connection.responder.qp, flow.next(rng), ack_request=rng.random() < 0.5)
        packet = replace(
            packet,
            bth=bth,
            reth=RETH(0x1000, 0x77, size) if Extension.RETH in there else None,
            immdt=ImmDt(5) if Extension.IMMDT in there else None,
            atomic_eth=AtomicETH(0x1000, 0x77, 1, 2) if Extension.ATOMIC_ETH in there else None,
            aeth=AETH(0x1F, 1) if Extension.AETH in there else None,
            payload=rng.randbytes(size),
        ).sealed()
        return packet.with_udp_checksum() if rng.random() < 0.2 else packet

    def _answer(self, flow: Flow) -> RocePacket:
        rng = self._random
        packet = self._from(flow.connection.responder, flow.connection.requester, flow.connection.answer_port)
        syndrome = rng.choice((_NAK, _NAK, _NAK, 0x1F, 0x1F, 0x21, 0x61, rng.getrandbits(8)))
        bth = BTH(Opcode.ACKNOWLEDGE, flow.connection.requester.qp, flow.expected(rng))
        return replace(packet, bth=bth, aeth=AETH(syndrome, rng.getrandbits(24))).sealed()

    def _from(self, src: Peer, dst: Peer, port: int) -> RocePacket:
        rng = self._random
        ip = ip_header(src.ip, dst.ip, ttl=rng.choice((64, 63, 2, 1)), tos=rng.getrandbits(8))
        if isinstance(ip, IPv4):
            ip = replace(ip, identification=rng.getrandbits(16))
        else:
            ip = replace(ip, flow_label=rng.getrandbits(20))
        tag = rng.getrandbits(16) if rng.random() < 0.05 else None
        ethernet = Ethernet(_MAC, _MAC + 1, places_for(src.ip).ether_type)
        return RocePacket(ethernet, ip, UDP(port), BTH(0, 0, 0), vlan=tag)

    def _spoilt(self, frame: bytes) -> bytes:
        rng = self._random
        how: Callable[[bytes], bytes] = rng.choice((self._flipped, self._cut))
        return how(frame)

    def _flipped(self, frame: bytes) -> bytes:
        at = self._random.randrange(len(frame))
        return frame[:at] + bytes((frame[at] ^ 1 << self._random.randrange(8),)) + frame[at + 1 :]

    def _cut(self, frame: bytes) -> bytes:
        return frame[: self._random.randrange(14, len(frame))]


def _goes_round(spec: ThemisSpec, frame: bytes) -> bool:
    return spec.filters and len(frame) > _OPCODE_AT


FACET: Traffic[ThemisSpec] = Traffic(source=RandomTraffic, goes_round=_goes_round)
