"""A leaf switch between two hosts and four spines, with connections that its hosts begin, and others that end at them.

What a scenario expects is derived from PSNs and the paper's rules; every frame that a host gets passes the independent
checks of p4gen.rocev2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from p4gen.groups import NextHop, Route, SwitchConfig
from p4gen.groups.addresses import prefix
from p4gen.groups.config import routing
from p4gen.model.entries import Entry
from p4gen.papers.themis.control import (
    Connection,
    PathSet,
    Peer,
    clone_sessions,
    filter_entries,
    path_set_entries,
)
from p4gen.papers.themis.spec import Blocked, ThemisSpec
from p4gen.ptf.scenario import Output, SwitchTest
from p4gen.rocev2.headers import AETH, BTH, RETH, UDP, AtomicETH, Ethernet, ImmDt, IPv4, ip_header, ipv4
from p4gen.rocev2.opcodes import Extension, Opcode, extensions
from p4gen.rocev2.packet import RocePacket
from p4gen.rocev2.places import places_for
from p4gen.vocabulary.program import part_of

SPINES = 4
FIRST_SPINE = 2
"""Ports: 0 and 1 lead to hosts, those from here on to spines."""
HOSTS = (ipv4("10.0.0.1"), ipv4("10.0.0.2"))
AWAY = ipv4("10.1.0.9")
"""The last 32 bits of the addresses of hosts, the latter of another rack."""
NAK, ACK, RNR = 0x60, 0x1F, 0x21


@dataclass(frozen=True)
class Flow:
    """A connection, and how its packets look: UDP source ports of requests, and the MAC addresses of this switch."""

    connection: Connection
    request_port: int = 51000

    def request(
        self, psn: int, opcode: int = Opcode.SEND_MIDDLE, payload: bytes = b"sprayed!", *, src: int | None = None
    ) -> RocePacket:
        """A request with the headers that its opcode calls for."""
        there = extensions(opcode)
        flags = {"ack_request": bool(psn & 1), "solicited": bool(psn & 2)}
        packet = self._packet(self.connection.requester.ip if src is None else src, self.connection.responder)
        return replace(
            packet,
            udp=UDP(self.request_port),
            bth=BTH(opcode, self.connection.responder.qp, psn % (1 << 24), **flags),
            reth=RETH(0x1000, 0x77, len(payload)) if Extension.RETH in there else None,
            immdt=ImmDt(5) if Extension.IMMDT in there else None,
            atomic_eth=AtomicETH(0x1000, 0x77, 1, 2) if Extension.ATOMIC_ETH in there else None,
            aeth=AETH(ACK, 1) if Extension.AETH in there else None,
            payload=payload,
        ).sealed()

    def answer(self, psn: int, syndrome: int = NAK, msn: int = 0x00BEEF, *, src: int | None = None) -> RocePacket:
        """An answer of the responder: by default a NACK."""
        packet = self._packet(self.connection.responder.ip if src is None else src, self.connection.requester)
        bth = BTH(Opcode.ACKNOWLEDGE, self.connection.requester.qp, psn % (1 << 24))
        udp = UDP(self.connection.answer_port)
        ip = replace(packet.ip, tos=self.connection.answer_tos)
        return replace(packet, ip=ip, udp=udp, bth=bth, aeth=AETH(syndrome, msn)).sealed()

    def _packet(self, src: int, to: Peer) -> RocePacket:
        ip = ip_header(src, to.ip)
        ip = replace(ip, identification=0x51A7) if isinstance(ip, IPv4) else replace(ip, flow_label=0x51A7)
        eth = Ethernet(0x02AA00000001, 0x02AA00000002, places_for(to.ip).ether_type)
        return RocePacket(eth, ip, UDP(), BTH(0, 0, 0))


def lacking(spec: ThemisSpec) -> str | None:
    """What a program lacks for a leaf switch as it is here; None if nothing."""
    if spec.ports < FIRST_SPINE + SPINES:
        return f"the program has {spec.ports} ports"
    return f"the program sprays over {spec.paths} paths" if spec.paths < SPINES else None


class LeafTest(SwitchTest):
    """A leaf switch with routes; connections are added by scenarios."""

    spec: ThemisSpec
    kind = ThemisSpec

    def misfit(self, spec: ThemisSpec) -> str | None:
        """Why this scenario does not apply to the program; None if it does."""
        self.spec = spec
        return lacking(spec) or self.unfit()

    @property
    def themis(self) -> ThemisSpec:
        """Themis's part of the program under test."""
        spec = part_of(self.program, ThemisSpec)
        assert spec is not None
        return spec

    def setUp(self) -> None:
        super().setUp()
        self.hops = [
            NextHop(port, port, src_mac=0x02BB00000000 | port, dst_mac=0x02CC00000000 | port)
            for port in range(FIRST_SPINE + SPINES)
        ]
        self.hosts = tuple(map(self.address, HOSTS))
        self.away = self.address(AWAY)
        self.nack_bytes = 82 if self.ipv6 else 62
        routes = [Route(prefix(host, 0), port) for port, host in enumerate(self.hosts)]
        self.install(SwitchConfig(routing(routes, self.hops), (), clone_sessions(self.themis)))
        self.route_away(SPINES)

    def route_away(self, spines: int) -> None:
        """Other racks are reached through the first ``spines`` spines."""
        self.install(SwitchConfig(self.ways_out(spines), (), ()))

    def ways_out(self, spines: int = SPINES, first: int = FIRST_SPINE) -> tuple[Entry, ...]:
        """The route to other racks."""
        return routing([Route(prefix(self.address(ipv4("10.1.0.0")), 16), first, spines)], ())

    def path_set(self, *weights: int, number: int = 1) -> PathSet:
        """A path set in the switch."""
        paths = PathSet(number, weights)
        self.control.insert(*path_set_entries(self.themis, paths))
        return paths

    def outgoing(self, number: int = 0) -> Flow:
        """A connection that a host begins; not known to the switch."""
        connection = Connection(Peer(self.hosts[0], 0x100 + number), Peer(self.away, 0x200 + number))
        return Flow(connection, 51000 + number)

    def incoming(self, number: int = 0, host: int = 0) -> Flow:
        """A connection from another rack to a host; not known to the switch."""
        ends = Peer(self.away, 0x300 + number), Peer(self.hosts[host], 0x400 + number)
        return Flow(Connection(*ends, answer_port=52000 + number, answer_tos=0x6A), 53000 + number)

    # --- frames ---

    def routed(self, packet: RocePacket, hop: int) -> bytes:
        """What a router makes of a frame (RFC 1812): other MAC addresses, TTL - 1, and a checksum to match."""
        eth = Ethernet(self.hops[hop].dst_mac, self.hops[hop].src_mac, packet.eth.ethertype)
        ip = replace(packet.ip, ttl=packet.ip.ttl - 1)
        ip = replace(ip, checksum=ip.right_checksum()) if isinstance(ip, IPv4) else ip
        return replace(packet, eth=eth, ip=ip).to_bytes()

    def ports_taken(self, packets: Iterable[RocePacket], port: int = 0) -> list[int]:
        """The ports by which packets leave, sent one after the other; each must leave whole, by one port."""
        taken = []
        for packet in packets:
            self.send(port, packet.to_bytes())
            output = self.only(self.outputs())
            self.equal("frame", output.frame.hex(), self.routed(packet, output.port).hex())
            taken.append(output.port)
        return taken

    def base_of(self, flow: Flow) -> int:
        """The spine that ECMP gives a connection, from 0."""
        (port,) = self.ports_taken([flow.request(0)])
        return port - FIRST_SPINE


class DestinationTest(LeafTest):
    """A leaf switch whose host 0, at port 0, is the responder of a registered connection over ``n`` paths."""

    n = 2
    INDEX = 2
    """Index of its words of state: neither 0, nor the last one."""

    @property
    def weights(self) -> tuple[int, ...]:
        """The weights of its paths."""
        return (1,) * self.n

    def misfit(self, spec: ThemisSpec) -> str | None:
        """Needs Themis-D."""
        if not spec.filters:
            return "the program filters no NACKs"
        return super().misfit(spec)

    def setUp(self) -> None:
        super().setUp()
        self.path_set(*self.weights)
        self.flow = self.incoming()
        self.register(self.flow)

    def register(self, flow: Flow, *, index: int = INDEX, epoch: int = 1, port: int = 0, path_set: int = 1) -> None:
        """Have the switch filter a connection's NACKs."""
        self.epoch = epoch
        entries = filter_entries(self.themis, flow.connection, path_set, index=index, epoch=epoch, port=port)
        self.control.insert(*entries)

    def unregister(self, flow: Flow) -> None:
        """Have it forget the connection."""
        entries = filter_entries(self.themis, flow.connection, 1, index=self.INDEX, epoch=self.epoch, port=0)
        self.control.delete(*entries)

    def arrive(self, *psns: int, flow: Flow | None = None) -> None:
        """Requests come from the fabric; each must reach the host as it is, and nothing else must leave."""
        flow = flow or self.flow
        port = self.hosts.index(flow.connection.responder.ip)
        for psn in psns:
            packet = flow.request(psn)
            self.send(FIRST_SPINE, packet.to_bytes())
            self.expect([Output(port, self.routed(packet, port))])

    def answered(self, packet: RocePacket, *, port: int = 0) -> list[Output]:
        """The packets that leave for an answer of the host at ``port``."""
        self.send(port, packet.to_bytes())
        return self.outputs()

    def blocked(self, psn: int, flow: Flow | None = None, msn: int = 0x00BEEF) -> None:
        """The host's NACK for ``psn`` does not leave; at most an ACK of what it implies does."""
        flow = flow or self.flow
        outputs = self.answered(flow.answer(psn, msn=msn))
        if self.themis.blocked is Blocked.DROP:
            self.equal(f"NACK({psn}) blocked", outputs, [])
        else:
            self.equal("frames sent", len(outputs), 1)
            ack = self.routed(flow.answer(psn - 1, ACK, msn), outputs[0].port)
            self.equal(f"NACK({psn}) as an ACK", outputs[0].frame.hex(), ack.hex())

    def passes(self, packet: RocePacket, *, port: int = 0) -> int:
        """An answer leaves for the fabric, changed only as by routing. Returns the port."""
        outputs = self.answered(packet, port=port)
        self.equal("frames sent", len(outputs), 1)
        self.equal("frame", outputs[0].frame.hex(), self.routed(packet, outputs[0].port).hex())
        self.equal("by ECMP's port", outputs[0].port, self.hashed(packet, port=port))
        return outputs[0].port

    def hashed(self, packet: RocePacket, *, port: int = 0) -> int:
        """The port that ECMP gives a packet from ``port`` to another rack."""
        other = replace(packet, bth=BTH(Opcode.CNP, 0xEEEEEE, 0), aeth=None, payload=bytes(16))
        output = self.only(self.answered(other.sealed(), port=port))
        self.equal("by a spine's port", output.port >= FIRST_SPINE, True)
        return output.port

    def forwarded(self, psn: int, flow: Flow | None = None) -> None:
        """The host's NACK for ``psn`` leaves."""
        self.passes((flow or self.flow).answer(psn))

    def verdicts(self, index: int = INDEX) -> dict[str, int]:
        """How often each verdict has been given, by its name."""
        counts = self.counts("IncIngress.blocked_nack.verdicts")
        return {
            name: counts[16 * index + number] for number, name in enumerate(VERDICTS) if counts[16 * index + number]
        }


VERDICTS = ("UNDECIDED", "NO_EVIDENCE", "LAST_HOP", "LOST", "LATE", "UNKNOWN", "ARRIVED", "OVERTAKEN", "DISARMED",
            "COMPENSATED")  # fmt: skip
"""The program's ``verdict_t``."""
