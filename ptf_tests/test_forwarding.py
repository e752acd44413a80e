"""Ordinary traffic, RoCE or not, is routed as IPv4 and otherwise untouched, whatever groups do beside it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

from base import Output
from mode_ii import ModeIITest

from p4gen.groups import NextHop, Route
from p4gen.groups.config import configure
from p4gen.rocev2.headers import AETH, BTH, RETH, UDP, Ethernet, IPv4, internet_checksum, ipv4
from p4gen.rocev2.opcodes import Ack, Opcode
from p4gen.rocev2.packet import RocePacket

HERE = 0x02AA00000001
SENDER = 0x02AA00000002


def hop_to(port: int, hop_id: int | None = None) -> NextHop:
    """A next hop at ``port`` with its own MAC addresses."""
    number = port if hop_id is None else hop_id
    return NextHop(number, port, src_mac=0x02BB00000000 | number, dst_mac=0x02CC00000000 | number)


class Routing(ModeIITest):
    """Routes 192.168.p.0/24 to port p for four ports, beside a group that is being served."""

    over_ipv6 = False

    def unfit(self) -> str | None:
        return None if self.spec.ports >= 4 else f"the program has {self.spec.ports} ports"

    def setUp(self) -> None:
        super().setUp()
        self.group = self.group_of(2)
        self.hops = [hop_to(port) for port in self.front[:4]]
        self.add_routes([Route(f"192.168.{hop.port}.0/24", hop.hop_id) for hop in self.hops], self.hops)

    def add_routes(self, routes: Sequence[Route], hops: Sequence[NextHop] = ()) -> None:
        self.install(configure(self.spec, [], routes, hops))

    def equal_hops(self) -> dict[int, NextHop]:
        """Four equally good next hops to 198.51.100.0/24, by port."""
        hops = {port: hop_to(port, hop_id=200 + number) for number, port in enumerate(self.front[:4])}
        self.add_routes([Route("198.51.100.0/24", 200, len(hops))], tuple(hops.values()))
        return hops

    def ip_frame(
        self,
        dst: int,
        payload: bytes,
        protocol: int = 17,
        *,
        ttl: int = 64,
        options: bytes = b"",
        tos: int = 0,
        src: str = "192.168.0.9",
    ) -> bytes:
        """A frame of a host at port 0, with a correct IPv4 checksum."""
        header = IPv4(
            ipv4(src),
            dst,
            protocol,
            ttl,
            tos,
            identification=self.random.getrandbits(16),
            total_length=20 + len(options) + len(payload),
            ihl=5 + len(options) // 4,
            options=options,
        )
        header = replace(header, checksum=header.right_checksum())
        return Ethernet(HERE, SENDER).pack() + header.pack() + payload

    def udp(self, payload: bytes, port: int = 5000, source: int = 6000) -> bytes:
        return UDP(source, port, UDP.SIZE + len(payload)).pack() + payload

    def roce(self, dst: int, bth: BTH, **fields: object) -> bytes:
        """A RoCEv2 frame between two hosts that are no members of any group."""
        packet = RocePacket(Ethernet(HERE, SENDER), IPv4(ipv4("192.168.0.9"), dst), UDP(), bth)
        return replace(packet, **fields).sealed().to_bytes()  # type: ignore[arg-type]

    def routed(self, frame: bytes, hop: NextHop) -> bytes:
        """What a router makes of a frame (RFC 1812): other MAC addresses, TTL - 1, and a checksum to match."""
        ip_size = 4 * (frame[14] & 0xF)
        header = bytearray(frame[14 : 14 + ip_size])
        header[8] -= 1
        header[10:12] = bytes(2)
        header[10:12] = internet_checksum(bytes(header)).to_bytes(2)
        return Ethernet(hop.dst_mac, hop.src_mac).pack() + bytes(header) + frame[14 + ip_size :]

    def expect_routed(self, frame: bytes, hop: NextHop, *, in_port: int = 0) -> None:
        state = self.state()
        self.send(in_port, frame)
        self.expect([Output(hop.port, self.routed(frame, hop))])
        self.equal("registers changed by ordinary traffic", self.state() == state, True)

    def expect_dropped(self, frame: bytes, reason: str) -> None:
        self.refused(self.group, 0, frame, reason)

    def to(self, hop: NextHop) -> int:
        """The address of a host that is reached over a next hop."""
        return ipv4(f"192.168.{hop.port}.{self.random.randrange(1, 255)}")


class PlainIpIsRouted(Routing):
    """UDP, TCP, ICMP and an unknown protocol, of many sizes, to every next hop."""

    def runTest(self) -> None:
        for hop in self.hops:
            for protocol, size in ((17, 0), (17, 1), (6, 20), (1, 64), (253, 333), (17, 1472), (17, 8000)):
                data = self.random.randbytes(size)
                payload = self.udp(data) if protocol == 17 else data
                tos = self.random.getrandbits(8)
                self.expect_routed(self.ip_frame(self.to(hop), payload, protocol, tos=tos), hop)


class ShortFramesKeepTheirPadding(Routing):
    """Ethernet pads to 60 bytes; what follows the datagram is passed on."""

    def runTest(self) -> None:
        frame = self.ip_frame(self.to(self.hops[1]), self.udp(b"hi")).ljust(60, b"\0")
        self.expect_routed(frame, self.hops[1])


class IpOptionsAreRouted(Routing):
    """A header with options: their bytes stay, and the checksum covers them."""

    def runTest(self) -> None:
        for words in (1, 3, 10):
            options = b"\x01" * (4 * words - 1) + b"\0"
            frame = self.ip_frame(self.to(self.hops[1]), self.udp(b"with options"), options=options)
            self.expect_routed(frame, self.hops[1])


class FragmentsAreRouted(Routing):
    """Fragments, also of datagrams to RoCEv2's port: only the first has a UDP header."""

    def runTest(self) -> None:
        for flags_and_offset in (0x2000, 0x2001, 0x0010):
            frame = bytearray(self.ip_frame(self.to(self.hops[1]), self.udp(self.random.randbytes(32), port=4791)))
            header = IPv4.unpack(bytes(frame), 14)
            header = replace(header, flags=flags_and_offset >> 13, fragment_offset=flags_and_offset & 0x1FFF)
            frame[14:34] = replace(header, checksum=header.right_checksum()).pack()
            self.expect_routed(bytes(frame), self.hops[1])


class EveryTtlAndChecksum(Routing):
    """The updated checksum is right over the whole range, including the corner cases of one's complement."""

    def runTest(self) -> None:
        hop = self.hops[1]
        frames = [self.ip_frame(self.to(hop), self.udp(b""), ttl=ttl) for ttl in (2, 3, 64, 127, 128, 129, 254, 255)]
        # Identifications that bring the checksum to the values around its wrap.
        for wanted in (0x0000, 0x0001, 0x00FF, 0x0100, 0xFEFE, 0xFEFF, 0xFF00, 0xFFFE):
            header = IPv4(ipv4("192.168.0.9"), self.to(hop), total_length=28)
            missing = (header.right_checksum() - wanted) % 0xFFFF
            header = replace(header, identification=missing)
            header = replace(header, checksum=header.right_checksum())
            frames.append(Ethernet(HERE, SENDER).pack() + header.pack() + self.udp(b""))
        for frame in frames:
            self.send(0, frame)
        self.expect([Output(hop.port, self.routed(frame, hop)) for frame in frames])


class ExpiredTtlIsDropped(Routing):
    """A TTL of 1 must not become 0 and travel on (RFC 1812, 5.3.1)."""

    def runTest(self) -> None:
        for ttl in (0, 1):
            frame = self.ip_frame(self.to(self.hops[1]), self.udp(b"old"), ttl=ttl)
            self.expect_dropped(frame, "Forward.ttl_expired")


class NoRouteIsCounted(Routing):
    def runTest(self) -> None:
        for dst in ("192.169.1.1", "8.8.8.8", "255.255.255.255"):
            self.expect_dropped(self.ip_frame(ipv4(dst), self.udp(b"lost")), "Forward.no_route")


class NotIpIsCounted(Routing):
    """Unknown ethertypes are dropped and counted; IPv6 is one for a program that does not know it."""

    def runTest(self) -> None:
        for ethertype in (*(() if self.spec.ipv6 else (0x86DD,)), 0x88B5, 0x88CC):
            frame = Ethernet(HERE, SENDER, ethertype).pack() + self.random.randbytes(46)
            self.expect_dropped(frame, "Forward.not_ipv4")


class LongestPrefixWins(Routing):
    """A host route beats a /24, which beats the default route."""

    def runTest(self) -> None:
        near, far = hop_to(self.front[-1], hop_id=100), hop_to(0, hop_id=101)
        self.add_routes([Route("192.168.1.77/32", 100), Route("0.0.0.0/0", 101)], [near, far])
        for dst, hop in (("192.168.1.77", near), ("192.168.1.78", self.hops[1]), ("8.8.8.8", far)):
            self.expect_routed(self.ip_frame(ipv4(dst), self.udp(b"which way")), hop, in_port=1)


class EqualPathsAreUsedByFlow(Routing):
    """ECMP: packets of a flow stay together, and many flows use every path."""

    def runTest(self) -> None:
        hops = self.equal_hops()
        flows = [
            self.ip_frame(ipv4("198.51.100.1"), self.udp(b"flow", source=source), protocol=17)
            for source in self.random.sample(range(1024, 65536), 64)
        ]
        used = set()
        for frame in flows:
            self.send(0, frame, frame, frame)
            outputs = self.outputs()
            self.equal("copies of a flow's three packets", len(outputs), 3)
            (port,) = {output.port for output in outputs}
            self.equal("routed frame", outputs[0].frame, self.routed(frame, hops[port]))
            used.add(port)
        self.equal("ports used by 64 flows", used, hops.keys())


class FlowsAreToldApartByEveryField(Routing):
    """ECMP: flows that differ in one address, in the protocol or in one port alone go different ways."""

    def runTest(self) -> None:
        self.equal_hops()
        dst, numbers = ipv4("198.51.100.1"), range(1, 65)
        differing = {
            "source address": [self.ip_frame(dst, self.udp(b"x"), src=f"192.168.0.{n}") for n in numbers],
            "destination address": [self.ip_frame(ipv4(f"198.51.100.{n}"), self.udp(b"x")) for n in numbers],
            "protocol": [self.ip_frame(dst, b"some bytes", protocol=100 + n) for n in numbers],
            "source port": [self.ip_frame(dst, self.udp(b"x", source=2000 + n)) for n in numbers],
            "destination port": [self.ip_frame(dst, self.udp(b"x", port=2000 + n)) for n in numbers],
        }
        for field, frames in differing.items():
            self.send(0, *frames)
            used = {output.port for output in self.outputs()}
            self.equal(f"64 flows that differ in {field} use several ports", len(used) > 1, True)


class ForeignRoceIsUntouched(Routing):
    """RoCE between hosts that are in no group: of every kind, with our packets' very sizes, even with a wrong ICRC."""

    def runTest(self) -> None:
        hop = self.hops[2]
        data = self.random.randbytes(self.spec.payload_bytes)
        dst, qp = self.to(hop), self.group.edges[0].local.qp
        frames = [
            self.roce(dst, BTH(Opcode.SEND_ONLY, qp, 1, ack_request=True), payload=data),
            self.roce(dst, BTH(Opcode.SEND_MIDDLE, qp, 2), payload=self.random.randbytes(4096)),
            self.roce(dst, BTH(Opcode.SEND_LAST, qp, 3, pad_count=3), payload=data[:-4] + bytes(4)),
            self.roce(dst, BTH(Opcode.WRITE_ONLY, qp, 4), reth=RETH(1 << 40, 5, len(data)), payload=data),
            self.roce(dst, BTH(Opcode.READ_REQUEST, qp, 5), reth=RETH(1 << 40, 5, 4096)),
            self.roce(dst, BTH(Opcode.ACKNOWLEDGE, qp, 6), aeth=AETH(Ack().syndrome, 7)),
            self.roce(dst, BTH(Opcode.CNP, qp, 0, becn=True), payload=bytes(16)),
            self.roce(dst, BTH(Opcode.SEND_ONLY, qp, 8, version=7, pkey=5, fecn=True, reserved7=9), payload=data),
        ]
        # Not checked by the switch: a wrong ICRC, a wrong length, a frame that ends inside the BTH.
        sound = RocePacket(Ethernet(HERE, SENDER), IPv4(1, dst), UDP(), BTH(Opcode.SEND_ONLY, qp, 9), payload=data)
        frames.append(sound.sealed(icrc=b"\1\2\3\4").to_bytes())
        frames.append(sound.sealed(udp_length=11).to_bytes())
        frames.append(self.ip_frame(dst, self.udp(b"not a BTH", port=4791)))
        frames.append(sound.sealed().with_udp_checksum().to_bytes())
        for frame in frames:
            self.expect_routed(frame, hop)


class ForeignRoceFromAMember(Routing):
    """A rank's host has other connections too: what it sends to others is not the group's."""

    def runTest(self) -> None:
        hop, rank = self.hops[1], self.group.edges[0]
        packet = self.contribution(self.group, 0, self.random_psn(), self.random_values(1)[0])
        elsewhere = replace(packet, ip=replace(packet.ip, dst=self.to(hop))).sealed()
        self.expect_routed(elsewhere.to_bytes(), hop, in_port=rank.port)


class OtherTrafficToTheSwitchsAddress(Routing):
    """The group's switch address is an endpoint for RoCE only; the rest is routed like anything else."""

    def runTest(self) -> None:
        local = self.group.edges[0].local.ip
        frame = self.ip_frame(local, self.udp(b"ping"))
        self.expect_dropped(frame, "Forward.no_route")
        self.add_routes([Route("10.0.0.0/8", self.hops[1].hop_id)])
        self.expect_routed(frame, self.hops[1])
        # A contribution to the same address is still the group's.
        self.complete(self.group, self.random_psn())


class WrongIpChecksumStaysWrong(Routing):
    """A router may drop it, but must not repair it: RFC 1624's update keeps the error."""

    def runTest(self) -> None:
        hop = self.hops[1]
        frame = bytearray(self.ip_frame(self.to(hop), self.udp(b"damaged")))
        frame[14 + 5] ^= 0x10
        self.send(0, bytes(frame))
        for output in self.outputs():
            header = IPv4.unpack(output.frame, 14)
            (sent,) = struct.unpack_from("!H", frame, 24)
            self.equal("checksum is right", header.checksum == header.right_checksum(), False)
            self.equal("checksum changed", header.checksum != sent, True)


class RoutingBesideAReduction(Routing):
    """Ordinary frames between contributions of one round: each goes its own way."""

    def runTest(self) -> None:
        psn, values, hop = self.random_psn(), self.random_values(2), self.hops[1]
        frame = self.ip_frame(self.to(hop), self.udp(b"meanwhile"))
        self.contribute(self.group, [0], psn, values)
        self.expect_nothing()
        self.expect_routed(frame, hop)
        self.contribute(self.group, [1], psn, values)
        self.expect_results(self.group, [(psn, self.reduced(values))])
