"""Random events: packets of ranks and switches, faults on the way, and unrelated packets.

Everything derives from one seed. A program's features are reached on purpose (all collectives and roles, slots used
again, PSNs that wrap, epochs that change, gaps, retransmissions), because traffic without a plan would nearly always be
dropped in the parser. ``streams`` has the fault-free traffic, this module the rest.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from p4gen.difftest.events import Event, Mirroring, Packet, Replication, Request
from p4gen.difftest.layout import Line, layout
from p4gen.difftest.noise import spoilt
from p4gen.groups.config import configure
from p4gen.groups.group import Edge, NextHop, Route
from p4gen.model.entries import Entry, Exact, MulticastGroup
from p4gen.papers.epic.codes import SYNDROMES, OwnOpcode
from p4gen.papers.epic.locks import verdicts
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.traffic.streams import SENDS, Said, Stream
from p4gen.rocev2 import layouts
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.codes import ETHERTYPE_ARP, ETHERTYPE_IPV6, ETHERTYPE_VLAN, ROCE_UDP_PORT, arp_form
from p4gen.rocev2.headers import (
    AETH,
    BTH,
    RETH,
    UDP,
    AtomicETH,
    Ethernet,
    ImmDt,
    IPv4,
    IPv6,
    ip_from,
    ip_header,
    is_ipv6,
)
from p4gen.rocev2.ndp import solicitation
from p4gen.rocev2.opcodes import Extension, Opcode, extensions
from p4gen.rocev2.packet import RocePacket
from p4gen.rocev2.places import places_for

REQUEST_EVERY = 25
"""Packets per request of the control plane."""
_REMEMBERED = 64
_EXTREMES = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_HOPS = 6
_TAGGED = 0.08
_GRANTS = 0.8
"""The share of payloads that refuse nothing, where groups share blocks of slots."""


@dataclass(frozen=True)
class _Ahead:
    """How far the PSNs of a connection are ahead of the numbers that its packets have in the group."""

    received: int = 0
    sent: int = 0


def _ahead(spec: EpicSpec, stream: Stream) -> Iterator[tuple[Line, _Ahead]]:
    first = stream.served.contexts[0].first_psn
    for line in stream.served.lines:
        firsts = (line.edge.first_received, line.edge.first_sent)
        yield line, _Ahead(*(psn - first for psn in firsts)) if spec.own_psns else _Ahead()


class RandomTraffic:
    """An endless source of events for a program of ``spec``. Raises ``InputError`` if it has no room for a group."""

    def __init__(self, spec: EpicSpec, seed: int) -> None:
        self._spec = spec
        self.random = random.Random(seed)  # noqa: S311 - tests are to be repeated
        self.streams = tuple(Stream(spec, served, self.random) for served in layout(spec, self.random))
        groups = [group for stream in self.streams for group in stream.served.contexts]
        self._ahead = {line: ahead for stream in self.streams for line, ahead in _ahead(spec, stream)}
        self.next_hops = self._next_hops()
        self._config = configure(spec, groups, self.routes(), self.next_hops)
        self._removed: list[Entry] = []
        self._narrowed: list[Entry] = []
        self._recent: list[Packet] = []
        self._ticked: tuple[int, Edge] | None = None

    def setup(self) -> list[Event]:
        """The initial configuration."""
        return [
            *(Request("insert", entry) for entry in self._config.entries),
            *(Replication(group) for group in self._config.multicast_groups),
            *(Mirroring(session) for session in self._config.clone_sessions),
        ]

    def packets(self) -> Iterator[Event]:
        """Endless packets, with occasional requests; a request with number n precedes the n-th packet."""
        while True:
            if self.random.randrange(REQUEST_EVERY) == 0:
                yield from self._requests()
            yield self.packet()

    def packet(self) -> Packet:
        """Draw the next packet, of any kind."""
        packet = self._packet()
        self._recent = [*self._recent[-_REMEMBERED:], packet]
        return packet

    # --- routes ---

    def routes(self) -> list[Route]:
        """Routes of different lengths, each over one of ``next_hops``."""
        ipv4 = [
            Route("192.168.0.0/16", 0),
            Route("192.168.7.0/24", 1),
            Route("192.168.7.9/32", 2),
            Route("172.16.0.0/12", 3, 2 if self._spec.architecture.masks_hashes else 3),
            Route("0.0.0.0/0", 0, 2),
        ]
        ipv6 = [
            Route("2001:db8::/32", 0),
            Route("2001:db8:7::/48", 1),
            Route("2001:db8:7::9/128", 2),
            Route("2001:db8:8::/48", 3, 3),
            Route("::/0", 0, 2),
        ]
        return [*(ipv4 if self._spec.ipv4 else ()), *(ipv6 if self._spec.ipv6 else ())]

    def _next_hops(self) -> list[NextHop]:
        return [NextHop(n, self._any_port(), 0x02AA00 + n, 0x02BB00 + n) for n in range(_HOPS)]

    def _any_port(self) -> int:
        return self._spec.architecture.front_port(self.random.randrange(self._spec.ports))

    def _beside(self, port: int) -> int:
        """A port of the same pipe: other pipes have registers of their own."""
        arch = self._spec.architecture
        ports = [each for each in arch.front_ports(self._spec.ports) if arch.pipe_of(each) == arch.pipe_of(port)]
        return self.random.choice(ports)

    # --- requests ---

    def _requests(self) -> Iterator[Event]:
        kinds: tuple[Callable[[], Iterator[Event]], ...] = (
            self._new_epoch, self._new_epoch, self._narrow, self._toggle, self._toggle, self._wrong, self._regroup,
        )  # fmt: skip
        yield from self.random.choice(kinds)()

    def _new_epoch(self) -> Iterator[Event]:
        """A group is initialised again: its slots hold old state, and its PSNs may be anywhere."""
        rng, stream = self.random, self.random.choice(self.streams)
        context = stream.served.contexts[0]
        stream.restart(stream.served.with_epoch(context.epoch % 255 + 1, rng.randrange(1 << 24)))
        for group in stream.served.contexts:
            state = {"epoch": group.epoch}
            if self._spec.mode.augmented:
                state["first_psn"] = group.first_psn
            key = {"context": Exact(group.context)}
            entry = next(e for e in self._config.entries if e.table == "contexts" and e.match == key)
            yield Request("modify", replace(entry, action=replace(entry.action, args=state)))

    def _narrow(self) -> Iterator[Event]:
        """One edge of a group does not contribute for a while, or all do again."""
        if self._narrowed and self.random.random() < 0.8:
            yield Request("modify", self._narrowed.pop())
            return
        entry = self.random.choice([e for e in self._config.entries if "source_mask" in e.action.args])
        mask = entry.action.args["source_mask"]
        bits = [bit for bit in range(32) if mask >> bit & 1]
        narrower = {**entry.action.args, "source_mask": mask & ~(1 << self.random.choice(bits))}
        self._narrowed.append(entry)
        yield Request("modify", replace(entry, action=replace(entry.action, args=narrower)))

    def _toggle(self) -> Iterator[Event]:
        """An entry is removed, or restored."""
        if self._removed and self.random.random() < 0.85:
            yield Request("insert", self._removed.pop(self.random.randrange(len(self._removed))))
            return
        entry = self.random.choice(self._config.entries)
        self._removed.append(entry)
        yield Request("delete", entry)

    def _wrong(self) -> Iterator[Event]:
        """A request that both switches must refuse, or both carry out, whatever the state of the table."""
        entry = self.random.choice([e for e in self._config.entries if e.table != "contexts"])
        verb = self.random.choice(("insert", "modify"))
        yield Request(verb, entry)

    def _regroup(self) -> Iterator[Event]:
        """Results go to some of the edges only, or to all again."""
        group = self.random.choice(self._config.multicast_groups)
        replicas = group.replicas
        if self.random.random() < 0.4 and len(replicas) > 1:
            replicas = tuple(self.random.sample(replicas, len(replicas) - 1))
        yield Replication(MulticastGroup(group.group_id, replicas))

    # --- packets ---

    def _packet(self) -> Packet:
        kinds: list[tuple[int, Callable[[], Packet]]] = [
            (70, self._stream), (6, self._repeated), (4, self._stale), (4, self._out_of_turn),
            (3, self._unrequested), (3, self._notification), (2, self._odd_control), (4, self._spoilt),
            (3, self._other_opcode), (3, self._malformed), (3, self._foreign), (5, self._ordinary), (2, self._noise),
            (2, self._question),
        ]  # fmt: skip
        if self._spec.mode.augmented:
            kinds += [(6, self._tick), (1, self._forged)]
        weights = [weight for weight, _ in kinds]
        return self.random.choices([make for _, make in kinds], weights)[0]()

    def _send(self, line: Line, packet: RocePacket | bytes, kind: str) -> Packet:
        port = line.edge.port
        if self.random.random() < 0.005:  # it is refused there, and so lost to its group
            port = self._beside(port)
        return Packet(port, packet if isinstance(packet, bytes) else packet.to_bytes(), kind)

    def _stream(self) -> Packet:
        """The next packet of a rank or a switch."""
        return self._make(self.random.choice(self.streams).next())

    def _make(self, said: Said) -> Packet:
        frame = self._packet_of(said).sealed().to_bytes()
        if said.opcode == Opcode.ACKNOWLEDGE and self.random.random() < 0.2:
            frame = frame.ljust(64, b"\0")
        return self._send(said.line, frame, said.kind)

    def _packet_of(self, said: Said) -> RocePacket:
        rng = self.random
        bth = BTH(said.opcode, said.line.edge.local.qp, self._psn(said.line, said.opcode, said.psn))
        if said.opcode == Opcode.ACKNOWLEDGE:
            return self._from(said.line.edge, bth, aeth=AETH(said.syndrome, said.msn))
        bth = replace(bth, ack_request=rng.random() < 0.6)
        if rng.random() < 0.1:
            bth = replace(bth, solicited=True, mig_request=rng.random() < 0.5, pkey=rng.choice((0xFFFF, 0x7FFF)))
        if said.value is not None:
            return self._from(said.line.edge, bth, immdt=ImmDt(said.value))
        return self._from(said.line.edge, bth, payload=self._payload())

    def _psn(self, line: Line, opcode: int, number: int) -> int:
        """The PSN on the wire of the packet with this number. A connection's PSNs stay as far ahead of the numbers of
        packets when its group has a new epoch."""
        ahead = self._ahead[line]
        return serial.add(number, ahead.sent if opcode == Opcode.ACKNOWLEDGE else ahead.received)

    def _payload(self) -> bytes:
        rng, spec = self.random, self._spec
        if spec.locks and rng.random() < _GRANTS:
            return verdicts(spec).granted.to_bytes(spec.lane_bits // 8) * spec.lanes
        if rng.random() < 0.3:
            return b"".join(rng.choice(_EXTREMES).to_bytes(4) for _ in range(self._spec.lanes))
        return rng.randbytes(self._spec.payload_bytes)

    def _from(
        self, edge: Edge, bth: BTH, *, aeth: AETH | None = None, immdt: ImmDt | None = None, payload: bytes = b""
    ) -> RocePacket:
        """A packet from the far end of an edge; sometimes with an 802.1Q tag."""
        rng = self.random
        fields = {"ttl": rng.choice((64, 63, 1, 255)), "tos": rng.choice((0, 0, 2, 3, 0x68))}
        ip = ip_header(edge.remote.ip, edge.local.ip, **fields)
        if isinstance(ip, IPv4):
            ip = replace(ip, identification=rng.getrandbits(16))
        else:
            ip = replace(ip, flow_label=rng.getrandbits(20))
        ethernet = Ethernet(edge.local.mac, edge.remote.mac, places_for(edge.local.ip).ether_type)
        udp = UDP(0xD000 + edge.edge_id % 64)
        tag = rng.getrandbits(16) if rng.random() < _TAGGED else None
        return RocePacket(ethernet, ip, udp, bth, aeth=aeth, immdt=immdt, payload=payload, vlan=tag)

    def _repeated(self) -> Packet:
        """A duplicate of a recent packet."""
        if self._recent and self.random.random() < 0.5:
            return replace(self.random.choice(self._recent), kind="repeated")
        return self._make(replace(self.random.choice(self.streams).repetition(), kind="repeated"))

    def _out_of_turn(self) -> Packet:
        stream = self.random.choice(self.streams)
        return self._make(stream.beyond() if self.random.random() < 0.3 else stream.gap())

    def _unrequested(self) -> Packet:
        return self._make(self.random.choice(self.streams).unrequested())

    def _stale(self) -> Packet:
        """A PSN far before or far after its slot's."""
        rng, stream = self.random, self.random.choice(self.streams)
        slots = self._spec.slots_per_group
        ahead = rng.choice((-slots, -1, -2 * slots, slots, 2 * slots, 1 << 23, (1 << 23) - 1, -(1 << 23) + slots))
        line = rng.choice(stream.served.lines)
        opcode = rng.choice(SENDS)
        bth = BTH(opcode, line.edge.local.qp, self._psn(line, opcode, serial.add(stream.start, ahead)))
        return self._send(line, self._from(line.edge, bth, payload=self._payload()).sealed(), "stale")

    def _notification(self) -> Packet:
        """A congestion notification for packets sent over an edge."""
        line = self.random.choice(self.random.choice(self.streams).served.lines)
        bth = BTH(Opcode.CNP, line.edge.local.qp, self.random.choice((0, self.random.getrandbits(24))), becn=True)
        return self._send(line, self._from(line.edge, bth, payload=bytes(16)).sealed(), "notification")

    def _odd_control(self) -> Packet:
        """A control message whose announcement is unsupported or not valid at present."""
        rng, stream = self.random, self.random.choice(self.streams)
        line = rng.choice(stream.served.lines)
        value = rng.choice((rng.getrandbits(32), stream.value ^ 1 << rng.randrange(32), stream.value))
        at = rng.choice((0, 1, -1, stream.packets + 1))
        said = Said(line, Opcode.SEND_ONLY_IMM, serial.add(stream.start, at), value, kind="odd control")
        in_place_of_data = replace(stream.beyond(), opcode=Opcode.SEND_ONLY_IMM, value=value, kind="odd control")
        return self._make(rng.choice((said, in_place_of_data)))

    def _tick(self) -> Packet:
        """A tick for an edge; often for one that has just had one."""
        rng = self.random
        if self._ticked is None or rng.random() < 0.5:
            self._ticked = rng.choice(rng.choice(self.streams).served.edges)
        pipeline, edge = self._ticked
        bth = BTH(OwnOpcode.TICK, edge.local.qp, rng.choice((0, rng.getrandbits(24))))
        return Packet(
            self._spec.architecture.cpu_port,
            self._from(edge, bth, aeth=AETH(pipeline, rng.choice((2, 2000, 1 << 17)))).sealed().to_bytes(),
            "tick",
        )

    def _forged(self) -> Packet:
        """Ticks and cursors from ports that never send them."""
        rng, line = self.random, self.random.choice(self.random.choice(self.streams).served.lines)
        opcode = rng.choice((OwnOpcode.TICK, OwnOpcode.CURSOR, OwnOpcode.CURSOR))
        bth = BTH(opcode, line.edge.local.qp, rng.getrandbits(24))
        packet = self._from(line.edge, bth, aeth=AETH(0, rng.getrandbits(24))).sealed().to_bytes()
        from_agent = opcode == OwnOpcode.CURSOR and rng.random() < 0.5
        return Packet(self._spec.architecture.cpu_port if from_agent else line.edge.port, packet, "forged")

    def _sound(self) -> tuple[Line, RocePacket]:
        said = self.random.choice(self.streams).repetition()
        return said.line, self._packet_of(said)

    def _spoilt(self) -> Packet:
        """Bits flipped on the way: the ICRC must detect it."""
        line, packet = self._sound()
        frame = bytearray(packet.sealed().to_bytes())
        for _ in range(self.random.choice((1, 1, 2, 8))):
            frame[self.random.randrange(len(frame))] ^= 1 << self.random.randrange(8)
        return self._send(line, bytes(frame), "spoilt")

    def _malformed(self) -> Packet:
        """One field is wrong, and the checksums are right for it."""
        rng = self.random
        line, packet = self._sound()
        sealed = packet.sealed()
        size = sealed.ip.total_length
        first, *others = self._malformed_ip(packet)
        cases: tuple[Callable[[], RocePacket | bytes], ...] = (
            lambda: replace(packet, bth=replace(packet.bth, version=rng.randrange(1, 16))).sealed(),
            lambda: replace(packet, bth=replace(packet.bth, pkey=rng.choice((0, 0x8000, 0xFFFE, 0xBFFF)))).sealed(),
            first,
            lambda: packet.sealed(total_length=size + rng.choice((-4, 4, -size + 20, 1))),
            lambda: packet.sealed(udp_length=sealed.udp.length + rng.choice((-4, 4, 1))),
            lambda: packet.sealed(icrc=rng.randbytes(4)),
            lambda: replace(packet, payload=packet.payload[: -4 * rng.randrange(1, 3)]).sealed(),
            lambda: replace(packet, payload=packet.payload + rng.randbytes(4)).sealed(),
            lambda: replace(packet, payload=packet.payload + rng.randbytes(4)).sealed(udp_length=sealed.udp.length),
            lambda: sealed.to_bytes() + rng.randbytes(rng.randrange(1, 8)),
            lambda: sealed.to_bytes()[: rng.randrange(14, len(sealed.to_bytes()))],
            lambda: replace(packet, bth=replace(packet.bth, pad_count=rng.randrange(1, 4))).sealed(),
            *others,
            sealed.with_udp_checksum,
        )  # fmt: skip
        return self._send(line, rng.choice(cases)(), "malformed")

    def _malformed_ip(self, packet: RocePacket) -> tuple[Callable[[], RocePacket], ...]:
        rng, ip = self.random, packet.ip
        if isinstance(ip, IPv6):
            return (
                lambda: replace(packet, ip=replace(ip, protocol=rng.choice((0, 6, 43, 44, 60)))).sealed(),
                lambda: replace(packet, ip=replace(ip, version=rng.choice((4, 5, 7)))).sealed(icrc=packet.icrc),
            )
        return (
            lambda: packet.sealed(checksum=packet.sealed().ipv4.checksum ^ 1 << rng.randrange(16)),
            lambda: replace(packet, ip=replace(ip, flags=rng.choice((0, 1, 2, 4)))).sealed(),
            lambda: replace(packet, ip=replace(ip, fragment_offset=rng.randrange(1, 64))).sealed(),
            lambda: replace(packet, ip=replace(ip, options=rng.randbytes(4 * rng.randrange(1, 10)))).sealed(),
        )

    def _other_opcode(self) -> Packet:
        """RoCE packets that the IncEngine does not reduce."""
        rng = self.random
        line, packet = self._sound()
        number = rng.choice((*map(int, Opcode), rng.randrange(256)))
        packet = replace(packet, bth=replace(packet.bth, opcode=number))
        found = extensions(number)
        packet = replace(packet, immdt=None)
        if Extension.RETH in found:
            packet = replace(packet, reth=RETH(rng.getrandbits(64), rng.getrandbits(32), len(packet.payload)))
        if Extension.AETH in found:
            packet = replace(packet, aeth=AETH(SYNDROMES["ack"], 5))
        if Extension.IMMDT in found:
            packet = replace(packet, immdt=ImmDt(rng.getrandbits(32)))
        if Extension.ATOMIC_ETH in found:
            packet = replace(packet, atomic_eth=AtomicETH(1, 2, 3, 4))
        if rng.random() < 0.3:
            packet = replace(packet, payload=b"")
        return self._send(line, packet.sealed(), "other opcode")

    def _foreign(self) -> Packet:
        """The right form from the wrong place, or to one."""
        rng = self.random
        line, packet = self._sound()
        ip, bth = packet.ip, packet.bth
        cases = (
            replace(packet, ip=replace(ip, src=ip.src ^ 1 << rng.randrange(32))),
            replace(packet, ip=replace(ip, dst=ip.dst ^ 1 << rng.randrange(20))),
            replace(packet, bth=replace(bth, dst_qp=bth.dst_qp ^ 1 << rng.randrange(24))),
            replace(packet, ip=replace(ip, src=self._any_line().edge.remote.ip & (1 << ip.src.bit_length()) - 1)),
            replace(packet, eth=replace(packet.eth, dst=rng.getrandbits(48))),
            replace(packet, udp=replace(packet.udp, dst_port=rng.choice((4790, 4792, 53)))),
        )
        return self._send(line, rng.choice(cases).sealed(), "foreign")

    def _any_line(self) -> Line:
        return self.random.choice([line for stream in self.streams for line in stream.served.lines])

    def _ordinary(self) -> Packet:
        """IP that has nothing to do with collectives."""
        rng = self.random
        if self._spec.ipv6 and (not self._spec.ipv4 or rng.random() < 0.5):
            return self._ordinary_ipv6()
        payload = rng.randbytes(rng.choice((0, 8, 26, 100, 1400)))
        addresses = [self._any_line().edge.local.ip & 0xFFFFFFFF]
        destination = rng.choice((0xC0A80000, 0xC0A80700, 0xC0A80709, 0xAC100000, 0x08080808, 10 << 24 | 1, *addresses))
        ip = IPv4(rng.getrandbits(32), destination | rng.getrandbits(3), protocol=rng.choice((1, 6, 17, 17, 47)))
        ip = replace(ip, ttl=rng.choice((0, 1, 2, 64, 255)), tos=rng.getrandbits(8), identification=rng.getrandbits(16))
        if rng.random() < 0.15:
            ip = replace(ip, options=rng.randbytes(4 * rng.randrange(1, 11)))
        ip = replace(ip, ihl=ip.size // 4, total_length=ip.size + 8 + len(payload))
        checksum = ip.right_checksum() ^ (0x0100 if rng.random() < 0.1 else 0)
        ip = replace(ip, checksum=checksum)
        udp = UDP(rng.getrandbits(16), rng.choice((53, ROCE_UDP_PORT, ROCE_UDP_PORT, 80)), length=8 + len(payload))
        frame = Ethernet(rng.getrandbits(48), rng.getrandbits(48)).pack() + ip.pack() + udp.pack() + payload
        return Packet(self._any_port(), frame, "ordinary")

    def _ordinary_ipv6(self) -> Packet:
        rng = self.random
        net = ip_from("2001:db8::")
        nets = net, net | 7 << 80, net | 7 << 80 | 9, net | 8 << 80 | rng.getrandbits(16), ip_from("fe80::1")
        away = rng.choice(nets)
        mapped = 0xFFFF << 32 | self._any_line().edge.local.ip & 0xFFFFFFFF
        ip = IPv6(net | rng.getrandbits(64), rng.choice((away, away, self._any_line().edge.local.ip, mapped)))
        ip = replace(ip, ttl=rng.choice((0, 1, 2, 64, 255)), tos=rng.getrandbits(8), flow_label=rng.getrandbits(20))
        data = rng.randbytes(rng.choice((0, 8, 26, 100, 1400)))
        udp = UDP(rng.getrandbits(16), rng.choice((53, ROCE_UDP_PORT, ROCE_UDP_PORT, 80)), length=8 + len(data))
        ip = replace(ip, protocol=rng.choice((6, 17, 17, 17, 58)), payload_length=udp.length)
        ends = Ethernet(rng.getrandbits(48), rng.getrandbits(48), ETHERTYPE_IPV6)
        return Packet(self._any_port(), ends.pack() + ip.pack() + udp.pack() + data, "ordinary")

    def _question(self) -> Packet:
        """ARP, or NDP: who has one of the switch's addresses, mostly."""
        rng, edge = self.random, self._any_line().edge
        asked = rng.choice((edge.local.ip, edge.local.ip, edge.remote.ip))
        if is_ipv6(asked):
            frame = solicitation(edge.remote.mac, edge.remote.ip, asked)
            return self._send(self._any_line(), spoilt(rng, frame) if rng.random() < 0.3 else frame, "question")
        form = rng.choice((1, 1, 1, 2, rng.getrandbits(16)))
        sender = {"src_mac": edge.remote.mac, "src_addr": edge.remote.ip}
        question = layouts.ARP.word.pack(form=arp_form(form), **sender, dst_mac=0, dst_addr=asked)
        arp = question.to_bytes(layouts.ARP.size) + bytes(rng.choice((0, 18)))
        tag = ETHERTYPE_VLAN.to_bytes(2) + rng.randbytes(2) if rng.random() < _TAGGED else b""
        ends = rng.choice((b"\xff" * 6, edge.local.mac.to_bytes(6))) + edge.remote.mac.to_bytes(6)
        return self._send(self._any_line(), ends + tag + ETHERTYPE_ARP.to_bytes(2) + arp, "question")

    def _noise(self) -> Packet:
        """Other EtherTypes, or very short frames."""
        rng = self.random
        head = Ethernet(rng.getrandbits(48), rng.getrandbits(48)).pack()[:12]
        kind = rng.choice((b"\x08\x06", b"\x86\xdd", b"\x81\x00\x00\x05\x08\x00", b"\x08\x00", rng.randbytes(2)))
        frame = head + kind + rng.randbytes(rng.choice((0, 1, 10, 46, 300)))
        return Packet(self._any_port(), frame[: rng.choice((14, len(frame), len(frame)))], "noise")
