"""Ordinary traffic, which a switch routes beside whatever else its program does: families take these scenarios over."""

from __future__ import annotations

import struct
from dataclasses import replace

from p4gen.groups.config import routing
from p4gen.groups.group import NextHop, Route, SwitchConfig
from p4gen.model.entries import Action, Entry, Exact
from p4gen.ptf.scenario import Output, SwitchTest, composed
from p4gen.rocev2.codes import ETHERTYPE_ARP, ETHERTYPE_VLAN
from p4gen.rocev2.headers import UDP, Ethernet, IPv4, ipv4, ones_complement_sum

HOSTS = (0x02AA00000001, 0x02AA00000002)
OURS, OUR_MAC = ipv4("169.254.0.1"), 0x02DD00000001

TAG = struct.pack("!HH", ETHERTYPE_VLAN, 5 << 13 | 100)


def tagged(ethernet: Ethernet, tag: bytes) -> bytes:
    """An Ethernet header with a tag, or with none."""
    packed = ethernet.pack()
    return packed[:12] + tag + packed[12:]


class OrdinaryTest(SwitchTest):
    """Routes 192.168.p.0/24 to port p for four ports, and 198.51.100.0/24 to all of them."""

    over_ipv6 = False

    def setUp(self) -> None:
        super().setUp()
        ports = self.program.architecture.front_ports(self.program.ports)[:4]
        self.hops = [
            NextHop(number, port, src_mac=0x02BB00000000 | port, dst_mac=0x02CC00000000 | port)
            for number, port in enumerate(ports)
        ]
        routes = [Route(f"192.168.{hop.port}.0/24", hop.hop_id) for hop in self.hops]
        routes.append(Route("198.51.100.0/24", self.hops[0].hop_id, len(self.hops)))
        self.install(SwitchConfig(routing(routes, self.hops), (), ()))

    def datagram(
        self,
        dst: str,
        *,
        src: str = "10.9.0.1",
        protocol: int = 17,
        ports: tuple[int, int] = (6000, 5000),
        ttl: int = 64,
    ) -> IPv4:
        """The header of a datagram of 40 bytes."""
        header = IPv4(ipv4(src), ipv4(dst), protocol, ttl, identification=self.random.getrandbits(16), total_length=40)
        self.payload = UDP(*ports, 20).pack() + self.random.randbytes(12)
        return replace(header, checksum=header.right_checksum())

    def leaves(self, ip: IPv4, tag: bytes = b"") -> int:
        """Check that a datagram leaves as from a router, with its tag, by one port, which is returned."""
        self.send(self.hops[0].port, tagged(Ethernet(*HOSTS), tag) + ip.pack() + self.payload)
        output = self.only(self.outputs())
        hop = next(each for each in self.hops if each.port == output.port)
        left = replace(ip, ttl=ip.ttl - 1)
        left = replace(left, checksum=left.right_checksum())
        expected = tagged(Ethernet(hop.dst_mac, hop.src_mac), tag) + left.pack() + self.payload
        self.equal("frame", output.frame.hex(), expected.hex())
        return output.port

    def dropped(self, frame: bytes, reason: str) -> None:
        """Check that a frame is dropped for a reason."""
        (index,) = (d.index for d in composed(self.program).drops if f"{d.module.name}.{d.drop.reason}" == reason)
        before = self.counts("IncIngress.drops")
        self.send(self.hops[0].port, frame)
        self.expect_nothing()
        self.equal("drops", self.counts("IncIngress.drops") - before, {index: 1})


class DatagramsAreRouted(OrdinaryTest):
    """By the longest prefix, whatever their protocol."""

    def runTest(self) -> None:
        for hop in self.hops:
            for protocol in (1, 6, 17, 253):
                for tag in (b"", TAG):
                    ip = self.datagram(f"192.168.{hop.port}.9", protocol=protocol)
                    self.equal("port", self.leaves(ip, tag), hop.port)


class HeadersAreCarriedOver(OrdinaryTest):
    """A router changes the time to live, and the checksum with it. Options stay; what arrives wrong leaves wrong."""

    def runTest(self) -> None:
        hop = self.hops[1]
        for options, error in ((b"", 0), (b"", 0x5A5A), (b"\x01" * 8, 0), (b"\x01" * 8, 0x5A5A)):
            ip = self.datagram(f"192.168.{hop.port}.9")
            ip = replace(ip, options=options, ihl=5 + len(options) // 4, total_length=40 + len(options))
            ip = replace(ip, checksum=ip.right_checksum() ^ error)
            self.send(self.hops[0].port, Ethernet(*HOSTS).pack() + ip.pack() + self.payload)
            output = self.only(self.outputs())
            left = IPv4.unpack(output.frame, Ethernet.SIZE)
            self.equal("sum of the header", *(ones_complement_sum([each.pack()]) for each in (left, ip)))
            left = replace(left, ttl=ip.ttl, checksum=ip.checksum)
            self.equal("frame but for both", output.frame[14 + ip.size :].hex(), self.payload.hex())
            self.equal("header but for both", left, ip)


class FlowsAreSpread(OrdinaryTest):
    """Of equally good ports a flow has one; another address, protocol or UDP port alone may have another."""

    def runTest(self) -> None:
        flow = self.datagram("198.51.100.7")
        self.equal("ports of a flow", len({self.leaves(flow) for _ in range(4)}), 1)
        others = {
            "source": [self.datagram("198.51.100.7", src=f"10.9.1.{i}") for i in range(32)],
            "destination": [self.datagram(f"198.51.100.{i}") for i in range(32)],
            "protocol": [self.datagram("198.51.100.7", protocol=100 + i) for i in range(32)],
        }
        for what, datagrams in others.items():
            self.equal(f"several ports by {what}", len({self.leaves(ip) for ip in datagrams}) > 1, True)
        for end in (0, 1):
            ports = [(6000 + (0 if end else i), 5000 + (i if end else 0)) for i in range(32)]
            taken = {self.leaves(self.datagram("198.51.100.7", ports=each)) for each in ports}
            self.equal(f"several ports by UDP port {end}", len(taken) > 1, True)


class WhatCannotBeRoutedIsDropped(OrdinaryTest):
    """No route, no time to live, no IPv4: each with its reason."""

    def runTest(self) -> None:
        to = f"192.168.{self.hops[1].port}.9"
        for ip, reason in (
            (self.datagram("203.0.113.1"), "Forward.no_route"),
            (self.datagram(to, ttl=1), "Forward.ttl_expired"),
            (self.datagram(to, ttl=0), "Forward.ttl_expired"),
        ):
            self.dropped(Ethernet(*HOSTS).pack() + ip.pack() + self.payload, reason)
        for tag in (b"", TAG):
            frame = tagged(Ethernet(*HOSTS, 0x88B5), tag) + self.datagram(to).pack() + self.payload
            self.dropped(frame, "Forward.not_ipv4")
        self.leaves(self.datagram(to, ttl=2))


class AddressesAreResolved(OrdinaryTest):
    """The switch answers ARP requests for its addresses, and nothing else that is ARP."""

    def runTest(self) -> None:
        self.control.insert(Entry("neighbours", {"hdr.arp.dst_addr": Exact(OURS)}, Action("answer", {"mac": OUR_MAC})))
        asker, address = HOSTS[1], ipv4("10.9.0.1")
        for port in (hop.port for hop in self.hops):
            for tag in (b"", TAG):
                self.send(port, self.arp((1 << 48) - 1, asker, 1, (asker, address), (0, OURS), tag))
                self.expect([Output(port, self.arp(asker, OUR_MAC, 2, (OUR_MAC, OURS), (asker, address), tag))])
        for operation, target in ((1, OURS + 1), (2, OURS)):
            self.dropped(self.arp((1 << 48) - 1, asker, operation, (asker, address), (0, target)), "AnswerArp.not_ours")

    def arp(
        self, dst: int, src: int, operation: int, sender: tuple[int, int], target: tuple[int, int], tag: bytes = b""
    ) -> bytes:
        """A frame; ``sender`` and ``target`` are MAC and IPv4 addresses."""
        ends = b"".join(mac.to_bytes(6) + ip.to_bytes(4) for mac, ip in (sender, target))
        ethernet = tagged(Ethernet(dst, src, ETHERTYPE_ARP), tag)
        return ethernet + struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation) + ends
