"""Random events for a Mode-II program: what ranks send, what goes wrong on the way, and what has no business there.

Everything derives from one seed. A program's features are reached on purpose (slots are reused, PSNs wrap, epochs
change), because traffic without a plan would nearly always be dropped in the parser.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from p4gen.difftest.events import Event, Packet, Replication, Request
from p4gen.manager.config import Edge, Endpoint, Group, NextHop, Route, SwitchConfig, configure
from p4gen.model.entries import Entry, MulticastGroup
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import AETH, BTH, RETH, UDP, AtomicETH, Ethernet, ImmDt, IPv4
from p4gen.rocev2.opcodes import Extension, Opcode, extensions
from p4gen.rocev2.packet import RocePacket
from p4gen.spec import ProgramSpec

_REQUEST_EVERY = 25
"""Packets per request of the control plane."""
_RANKS = (2, 3, 4, 5, 8)
_REMEMBERED = 64
_EXTREMES = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_SENDS = (Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY)
_HOPS = 6


@dataclass
class _Member:
    """A group and where its ranks are in their streams; ``first`` is the oldest PSN that is not complete."""

    group: Group
    first: int
    opcodes: dict[int, int]
    sent: dict[int, set[int]]


class Traffic:
    """An endless source of events for a program of ``spec``."""

    def __init__(self, spec: ProgramSpec, seed: int) -> None:
        self._spec = spec
        self._random = random.Random(seed)  # noqa: S311 - tests are to be repeated
        self._members = [self._new_group(context) for context in range(min(spec.groups, 3))]
        self._config = configure(spec, [m.group for m in self._members], self._routes(), self._next_hops())
        self._removed: list[Entry] = []
        self._recent: list[Packet] = []

    def setup(self) -> list[Event]:
        """The configuration to begin with."""
        groups = [Replication(group) for group in self._config.multicast_groups]
        return [*(Request("insert", entry) for entry in self._config.entries), *groups]

    def packets(self) -> Iterator[Event]:
        """Packets for ever, with a request now and then; a request before the n-th packet comes before it."""
        while True:
            if self._random.randrange(_REQUEST_EVERY) == 0:
                yield from self._requests()
            packet = self._packet()
            self._recent = [*self._recent[-_REMEMBERED:], packet]
            yield packet

    # --- groups and routes ---

    def _new_group(self, context: int) -> _Member:
        spec, rng = self._spec, self._random
        ranks = min(rng.choice(_RANKS), spec.fan_in, spec.ports)
        ports = rng.sample(range(spec.ports), ranks)
        # Some groups live on the edge of the PSN's wrap.
        first = rng.choice((rng.randrange(1 << 24), serial.add(0, -rng.randrange(1, 40))))
        local_ip = 10 << 24 | context << 16 | 1
        edges = tuple(
            Edge(
                1 + context * spec.fan_in + rank,
                port,
                Endpoint(0x020000000000 | context << 8, local_ip, 0x100 + rank),
                Endpoint(0x020000010000 | context << 8 | rank, local_ip + 0x100 + rank, 0xFEDC00 + rank),
                0xC000 + context * 64 + rank,
            )
            for rank, port in enumerate(ports)
        )
        group = Group(context, edges, context * spec.slots_per_group, spec.slots_per_group, 1 + context)
        return _Member(group, first, {}, {})

    def _routes(self) -> list[Route]:
        return [
            Route("192.168.0.0/16", 0),
            Route("192.168.7.0/24", 1),
            Route("192.168.7.9/32", 2),
            Route("172.16.0.0/12", 3, 3),
            Route("0.0.0.0/0", 0, 2),
        ]

    def _next_hops(self) -> list[NextHop]:
        ports = self._spec.ports
        return [NextHop(n, self._random.randrange(ports), 0x02AA00 + n, 0x02BB00 + n) for n in range(_HOPS)]

    # --- requests ---

    def _requests(self) -> Iterator[Event]:
        kinds: tuple[Callable[[], Iterator[Event]], ...] = (
            self._new_epoch, self._new_epoch, self._narrow, self._narrow, self._narrow, self._toggle, self._toggle,
            self._toggle, self._wrong, self._regroup,
        )  # fmt: skip
        yield from self._random.choice(kinds)()

    def _of(self, member: _Member) -> SwitchConfig:
        return configure(self._spec, [member.group])

    def _invocation(self, member: _Member) -> Entry:
        return next(e for e in self._of(member).entries if "source_mask" in e.action.args)

    def _new_epoch(self) -> Iterator[Event]:
        """A group is initialised again: what its slots hold is from the past."""
        member = self._random.choice(self._members)
        member.group = replace(member.group, epoch=member.group.epoch % 255 + 1)
        yield Request("modify", self._invocation(member))

    def _narrow(self) -> Iterator[Event]:
        """One edge of a group does not contribute for a while, or all do again."""
        member = self._random.choice(self._members)
        entry = self._invocation(member)
        mask = member.group.source_mask
        if self._random.random() < 0.7:
            mask &= ~(1 << self._random.randrange(len(member.group.edges)))
        yield Request(
            "modify", replace(entry, action=replace(entry.action, args={**entry.action.args, "source_mask": mask}))
        )

    def _toggle(self) -> Iterator[Event]:
        """An entry goes away, or comes back."""
        if self._removed and self._random.random() < 0.85:
            yield Request("insert", self._removed.pop(self._random.randrange(len(self._removed))))
            return
        entry = self._random.choice(self._config.entries)
        self._removed.append(entry)
        yield Request("delete", entry)

    def _wrong(self) -> Iterator[Event]:
        """A request that both switches must refuse, or both carry out, whatever the state of the table."""
        entry = self._random.choice(self._config.entries)
        verb = self._random.choice(("insert", "modify"))
        yield Request(verb, entry)

    def _regroup(self) -> Iterator[Event]:
        """Results go to some of the edges only, or to all again."""
        group = self._random.choice(self._config.multicast_groups)
        replicas = group.replicas
        if self._random.random() < 0.5 and len(replicas) > 1:
            replicas = tuple(self._random.sample(replicas, len(replicas) - 1))
        yield Replication(MulticastGroup(group.group_id, replicas))

    # --- packets ---

    def _packet(self) -> Packet:
        kinds: tuple[tuple[int, Callable[[], Packet]], ...] = (
            (50, self._contribution), (8, self._repeated), (6, self._stale), (5, self._acknowledgement),
            (6, self._spoilt), (5, self._other_opcode), (5, self._malformed), (4, self._foreign), (8, self._ordinary),
            (3, self._noise),
        )  # fmt: skip
        weights = [weight for weight, _ in kinds]
        return self._random.choices([make for _, make in kinds], weights)[0]()

    def _send(self, group: Group, rank: int, packet: RocePacket | bytes, kind: str) -> Packet:
        port = group.edges[rank].port
        if self._random.random() < 0.02:
            port = self._random.randrange(self._spec.ports)
        return Packet(port, packet if isinstance(packet, bytes) else packet.to_bytes(), kind)

    def _contribution(self) -> Packet:
        """The next packet of a rank, in a window in which some lag behind others."""
        rng, member = self._random, self._random.choice(self._members)
        ranks = range(len(member.group.edges))
        while member.sent.get(member.first, set()).issuperset(ranks):
            member.sent.pop(member.first, None)
            member.opcodes.pop(member.first, None)
            member.first = serial.add(member.first, 1)
        psn = serial.add(member.first, min(int(rng.expovariate(1.5)), 3))
        missing = [rank for rank in ranks if rank not in member.sent.get(psn, set())]
        rank = rng.choice(missing or list(ranks))
        member.sent.setdefault(psn, set()).add(rank)
        return self._send(member.group, rank, self._data(member, rank, psn).sealed(), "contribution")

    def _data(self, member: _Member, rank: int, psn: int) -> RocePacket:
        rng = self._random
        opcode = member.opcodes.setdefault(psn, rng.choice(_SENDS))
        if rng.random() < 0.04:
            opcode = rng.choice(_SENDS)
        bth = BTH(opcode, member.group.edges[rank].local.qp, psn, ack_request=rng.random() < 0.6)
        if rng.random() < 0.1:
            bth = replace(bth, solicited=True, mig_request=rng.random() < 0.5, pkey=rng.choice((0xFFFF, 0x7FFF)))
        return self._from_rank(member.group, rank, bth, payload=self._payload())

    def _payload(self) -> bytes:
        rng = self._random
        if rng.random() < 0.3:
            return b"".join(rng.choice(_EXTREMES).to_bytes(4) for _ in range(self._spec.lanes))
        return rng.randbytes(self._spec.payload_bytes)

    def _from_rank(
        self, group: Group, rank: int, bth: BTH, *, aeth: AETH | None = None, payload: bytes = b""
    ) -> RocePacket:
        edge, rng = group.edges[rank], self._random
        ip = IPv4(edge.remote.ip, edge.local.ip, ttl=rng.choice((64, 63, 1, 255)), tos=rng.choice((0, 0, 2, 3, 0x68)))
        ip = replace(ip, identification=rng.getrandbits(16))
        return RocePacket(
            Ethernet(edge.local.mac, edge.remote.mac), ip, UDP(49152 + rank), bth, aeth=aeth, payload=payload
        )

    def _repeated(self) -> Packet:
        """Something sent not long ago, again."""
        if not self._recent:
            return self._contribution()
        return replace(self._random.choice(self._recent), kind="repeated")

    def _stale(self) -> Packet:
        """A PSN that its slot has left behind, or will not reach for long."""
        rng, member = self._random, self._random.choice(self._members)
        slots = self._spec.slots_per_group
        ahead = rng.choice((-slots, -1, -2 * slots, slots, 2 * slots, 1 << 23, (1 << 23) - 1, -(1 << 23) + slots))
        rank = rng.randrange(len(member.group.edges))
        bth = BTH(rng.choice(_SENDS), member.group.edges[rank].local.qp, serial.add(member.first, ahead))
        return self._send(
            member.group, rank, self._from_rank(member.group, rank, bth, payload=self._payload()).sealed(), "stale"
        )

    def _acknowledgement(self) -> Packet:
        rng, member = self._random, self._random.choice(self._members)
        rank = rng.randrange(len(member.group.edges))
        syndrome = rng.choice((0x1F, 0x1F, 0x60, 0x61, 0x20, 0x3F, 0x00, 0x80))
        bth = BTH(Opcode.ACKNOWLEDGE, member.group.edges[rank].local.qp, member.first)
        packet = self._from_rank(member.group, rank, bth, aeth=AETH(syndrome, rng.getrandbits(24))).sealed()
        frame = packet.to_bytes()
        return self._send(
            member.group, rank, frame.ljust(60, b"\0") if rng.random() < 0.3 else frame, "acknowledgement"
        )

    def _sound(self) -> tuple[_Member, int, RocePacket]:
        member = self._random.choice(self._members)
        rank = self._random.randrange(len(member.group.edges))
        psn = serial.add(member.first, self._random.randrange(3))
        return member, rank, self._data(member, rank, psn)

    def _spoilt(self) -> Packet:
        """Bits turned over on the way: the ICRC must tell."""
        member, rank, packet = self._sound()
        frame = bytearray(packet.sealed().to_bytes())
        for _ in range(self._random.choice((1, 1, 2, 8))):
            frame[self._random.randrange(len(frame))] ^= 1 << self._random.randrange(8)
        return self._send(member.group, rank, bytes(frame), "spoilt")

    def _malformed(self) -> Packet:
        """One field is wrong, and the checksums are right for it."""
        rng = self._random
        member, rank, packet = self._sound()
        sealed = packet.sealed()
        size = sealed.ip.total_length
        cases: tuple[Callable[[], RocePacket | bytes], ...] = (
            lambda: replace(packet, bth=replace(packet.bth, version=rng.randrange(1, 16))).sealed(),
            lambda: replace(packet, bth=replace(packet.bth, pkey=rng.choice((0, 0x8000, 0xFFFE, 0xBFFF)))).sealed(),
            lambda: packet.sealed(checksum=sealed.ip.checksum ^ 1 << rng.randrange(16)),
            lambda: packet.sealed(total_length=size + rng.choice((-4, 4, -size + 20, 1))),
            lambda: packet.sealed(udp_length=sealed.udp.length + rng.choice((-4, 4, 1))),
            lambda: packet.sealed(icrc=rng.randbytes(4)),
            lambda: replace(packet, payload=packet.payload[: -4 * rng.randrange(1, 3)]).sealed(),
            lambda: replace(packet, payload=packet.payload + rng.randbytes(4)).sealed(),
            lambda: replace(packet, payload=packet.payload + rng.randbytes(4)).sealed(udp_length=sealed.udp.length),
            lambda: sealed.to_bytes() + rng.randbytes(rng.randrange(1, 8)),
            lambda: sealed.to_bytes()[: rng.randrange(14, len(sealed.to_bytes()))],
            lambda: replace(packet, bth=replace(packet.bth, pad_count=rng.randrange(1, 4))).sealed(),
            lambda: replace(packet, ip=replace(packet.ip, flags=rng.choice((0, 1, 2, 4)))).sealed(),
            lambda: replace(packet, ip=replace(packet.ip, fragment_offset=rng.randrange(1, 64))).sealed(),
            lambda: replace(packet, ip=replace(packet.ip, options=rng.randbytes(4 * rng.randrange(1, 10)))).sealed(),
            sealed.with_udp_checksum,
        )  # fmt: skip
        return self._send(member.group, rank, rng.choice(cases)(), "malformed")

    def _other_opcode(self) -> Packet:
        """Everything that has an opcode and is not ours to reduce."""
        rng = self._random
        member, rank, packet = self._sound()
        number = rng.choice((*map(int, Opcode), rng.randrange(256)))
        packet = replace(packet, bth=replace(packet.bth, opcode=number))
        found = extensions(number)
        if Extension.RETH in found:
            packet = replace(packet, reth=RETH(rng.getrandbits(64), rng.getrandbits(32), len(packet.payload)))
        if Extension.AETH in found:
            packet = replace(packet, aeth=AETH(0x1F, 5))
        if Extension.IMMDT in found:
            packet = replace(packet, immdt=ImmDt(rng.getrandbits(32)))
        if Extension.ATOMIC_ETH in found:
            packet = replace(packet, atomic_eth=AtomicETH(1, 2, 3, 4))
        if rng.random() < 0.3:
            packet = replace(packet, payload=b"")
        return self._send(member.group, rank, packet.sealed(), "other opcode")

    def _foreign(self) -> Packet:
        """The right form from the wrong place, or to one."""
        rng = self._random
        member, rank, packet = self._sound()
        ip, bth = packet.ip, packet.bth
        cases = (
            replace(packet, ip=replace(ip, src=ip.src ^ 1 << rng.randrange(32))),
            replace(packet, ip=replace(ip, dst=ip.dst ^ 1 << rng.randrange(20))),
            replace(packet, bth=replace(bth, dst_qp=bth.dst_qp ^ 1 << rng.randrange(24))),
            replace(packet, ip=replace(ip, src=rng.choice(rng.choice(self._members).group.edges).remote.ip)),
            replace(packet, eth=replace(packet.eth, dst=rng.getrandbits(48))),
            replace(packet, udp=replace(packet.udp, dst_port=rng.choice((4790, 4792, 53)))),
        )
        return self._send(member.group, rank, rng.choice(cases).sealed(), "foreign")

    def _ordinary(self) -> Packet:
        """IPv4 that has nothing to do with collectives."""
        rng = self._random
        payload = rng.randbytes(rng.choice((0, 8, 26, 100, 1400)))
        destination = rng.choice((0xC0A80000, 0xC0A80700, 0xC0A80709, 0xAC100000, 0x08080808, 10 << 24 | 1))
        ip = IPv4(rng.getrandbits(32), destination | rng.getrandbits(3), protocol=rng.choice((1, 6, 17, 17, 47)))
        ip = replace(ip, ttl=rng.choice((0, 1, 2, 64, 255)), tos=rng.getrandbits(8), identification=rng.getrandbits(16))
        if rng.random() < 0.15:
            ip = replace(ip, options=rng.randbytes(4 * rng.randrange(1, 11)))
        ip = replace(ip, ihl=ip.size // 4, total_length=ip.size + 8 + len(payload))
        checksum = ip.right_checksum() ^ (0x0100 if rng.random() < 0.1 else 0)
        ip = replace(ip, checksum=checksum)
        udp = UDP(rng.getrandbits(16), rng.choice((53, 4791, 4791, 80)), length=8 + len(payload))
        frame = Ethernet(rng.getrandbits(48), rng.getrandbits(48)).pack() + ip.pack() + udp.pack() + payload
        return Packet(rng.randrange(self._spec.ports), frame, "ordinary")

    def _noise(self) -> Packet:
        """No IPv4, or hardly a frame."""
        rng = self._random
        head = Ethernet(rng.getrandbits(48), rng.getrandbits(48)).pack()[:12]
        kind = rng.choice((b"\x08\x06", b"\x86\xdd", b"\x81\x00\x00\x05\x08\x00", b"\x08\x00", rng.randbytes(2)))
        frame = head + kind + rng.randbytes(rng.choice((0, 1, 10, 46, 300)))
        return Packet(rng.randrange(self._spec.ports), frame[: rng.choice((14, len(frame), len(frame)))], "noise")
