"""IPv6, in programs of any family that know it: routed as IPv4 is, and the switch's own addresses resolved."""

from __future__ import annotations

import struct
from dataclasses import replace
from ipaddress import IPv6Address

from p4gen.groups.config import routing
from p4gen.groups.group import NextHop, Route, SwitchConfig
from p4gen.model.entries import Action, Entry, Exact
from p4gen.ptf.scenario import Output, SwitchTest, composed
from p4gen.rocev2 import codes
from p4gen.rocev2.headers import UDP, Ethernet, IPv4, ip_from, ones_complement_sum
from p4gen.rocev2.layouts import IPV6, NDP

HOSTS = (0x02AA00000001, 0x02AA00000002)
OURS, OUR_MAC = "fd00:5::1", 0x02DD00000001
TAG = struct.pack("!HH", codes.ETHERTYPE_VLAN, 5 << 13 | 100)
TWO_TAGS = (struct.pack("!HH", codes.ETHERTYPE_QINQ, 3 << 13 | 200) + TAG, 2 * TAG)
"""As IEEE 802.1ad has them, and as they were before."""


def framed(dst: int, src: int, packet: bytes, tag: bytes = b"") -> bytes:
    """An Ethernet frame, with a tag or with none."""
    ethernet = Ethernet(dst, src, codes.ETHERTYPE_IPV6).pack()
    return ethernet[:12] + tag + ethernet[12:] + packet


def ipv6(dst: str, payload: bytes, src: str = "fd00:9::1", /, *, protocol: int = 17, **fields: int) -> bytes:
    """A packet; ``fields`` are further ones of its header."""
    header = {
        "version": 6, "dscp": 0, "ecn": 0, "flow_label": 0, "payload_length": len(payload), "next_header": protocol,
        "hop_limit": 64, "src_addr": int(IPv6Address(src)), "dst_addr": int(IPv6Address(dst)),
    } | fields  # fmt: skip
    return IPV6.word.pack(**header).to_bytes(IPV6.size) + payload


class Ipv6Test(SwitchTest):
    """Routes fd00:p::/32 to port p for four ports, and 2001:db8::/32 to all of them. The switch has the address
    ``OURS``."""

    def unfit(self) -> str | None:
        return None if self.program.ipv6 else "the program knows IPv4 only"

    def setUp(self) -> None:
        super().setUp()
        ports = self.program.architecture.front_ports(self.program.ports)[:4]
        self.hops = [
            NextHop(number, port, src_mac=0x02BB00000000 | port, dst_mac=0x02CC00000000 | port)
            for number, port in enumerate(ports)
        ]
        routes = [Route(f"fd00:{hop.port:x}::/32", hop.hop_id) for hop in self.hops]
        routes.append(Route("2001:db8::/32", self.hops[0].hop_id, len(self.hops)))
        routes += [Route(f"{everything}/8", self.hops[0].hop_id) for everything in ("fe00::", "ff00::", "::")]
        self.install(SwitchConfig(routing(routes, self.hops), (), ()))
        answer = Action("answer", {"mac": OUR_MAC})
        key = {"hdr.ndp.target": Exact(int(IPv6Address(OURS)))}
        self.control.insert(Entry("ipv6_neighbours", key, answer))

    def datagram(self, ports: tuple[int, int] = (6000, 5000)) -> bytes:
        """A UDP datagram of 20 bytes."""
        return UDP(*ports, 20).pack() + self.random.randbytes(12)

    def leaves(self, packet: bytes, tag: bytes = b"") -> int:
        """Check that a packet leaves as from a router, with its tag, by one port, which is returned."""
        self.send(self.hops[0].port, framed(*HOSTS, packet, tag))
        output = self.only(self.outputs())
        hop = next(each for each in self.hops if each.port == output.port)
        left = packet[:7] + bytes((packet[7] - 1,)) + packet[8:]
        self.equal("frame", output.frame.hex(), framed(hop.dst_mac, hop.src_mac, left, tag).hex())
        return output.port

    def dropped(self, frame: bytes, reason: str) -> None:
        """Check that a frame is dropped for a reason."""
        (index,) = (d.index for d in composed(self.program).drops if f"{d.module.name}.{d.drop.reason}" == reason)
        before = self.counts("IncIngress.drops")
        self.send(self.hops[0].port, frame)
        self.expect_nothing()
        self.equal("drops", self.counts("IncIngress.drops") - before, {index: 1})


class PacketsAreRouted(Ipv6Test):
    """By the longest prefix, whatever their protocol and length. All but the hop limit stays, RoCEv2 too."""

    def runTest(self) -> None:
        for hop in self.hops:
            for protocol in (0, 6, 17, 58, 253):
                for tag in (b"", TAG, *TWO_TAGS):
                    payload = self.random.randbytes(self.random.choice((0, 3, 32, 400)))
                    flow, ecn = self.random.getrandbits(20), self.random.randrange(4)
                    variant = {"protocol": protocol, "hop_limit": 255, "dscp": 9, "ecn": ecn, "flow_label": flow}
                    packet = ipv6(f"fd00:{hop.port:x}::9", payload, **variant)
                    self.equal("port", self.leaves(packet, tag), hop.port)
            other = ipv6(f"fd00:{hop.port:x}::9", b"\x87\x00" + self.random.randbytes(30), protocol=253, hop_limit=255)
            self.equal("port of what reads like a solicitation", self.leaves(other), hop.port)
            roce = UDP(49152, codes.ROCE_UDP_PORT, 280).pack() + self.random.randbytes(272)
            self.equal("port of RoCEv2", self.leaves(ipv6(f"fd00:{hop.port:x}::9", roce)), hop.port)


class TwoTagsStay(Ipv6Test):
    """IPv4 is routed under two tags, too; what is no IP, or has an outer tag or another one alone, is not."""

    def runTest(self) -> None:
        hop, udp = self.hops[2], self.datagram()
        packet, known = ipv6(f"fd00:{hop.port:x}::9", udp), self.program.ipv4
        reason = f"Forward.not_{'ipv4' if known else 'ipv6'}"
        outer, inner = TWO_TAGS[0][:4], TWO_TAGS[0][4:]
        self.dropped(framed(*HOSTS, packet, outer), reason)
        self.dropped(framed(*HOSTS, packet, b"\x91\x00" + inner[2:]), reason)
        self.dropped(framed(*HOSTS, packet, outer + b"\x91\x00" + inner[2:]), reason)
        old = IPv4(ip_from("10.9.9.9"), ip_from("198.51.100.7"), total_length=IPv4.SIZE + len(udp))
        old = replace(old, checksum=old.right_checksum())
        left = replace(old, ttl=old.ttl - 1)
        left = replace(left, checksum=left.right_checksum())
        if known:
            self.install(SwitchConfig(routing([Route("198.51.100.0/24", hop.hop_id)], []), (), ()))
        for tags in TWO_TAGS:
            self.dropped(Ethernet(*HOSTS).pack()[:12] + tags + codes.ETHERTYPE_ARP.to_bytes(2) + packet, reason)
            under = tags + codes.ETHERTYPE_IPV4.to_bytes(2)
            frame = Ethernet(*HOSTS).pack()[:12] + under + old.pack() + udp
            if known:
                self.send(self.hops[0].port, frame)
                routed = Ethernet(hop.dst_mac, hop.src_mac).pack()[:12] + under + left.pack() + udp
                self.expect([Output(hop.port, routed)])
            else:
                self.dropped(frame, reason)


class FlowsAreSpread(Ipv6Test):
    """Of equally good ports a flow has one; another address, flow label, protocol or port may have another."""

    def runTest(self) -> None:
        to, udp = "2001:db8::7", self.datagram()
        self.equal("ports of a flow", len({self.leaves(ipv6(to, udp)) for _ in range(4)}), 1)
        others = {
            "source": [ipv6(to, udp, f"fd00:9::1:{i}") for i in range(32)],
            "destination": [ipv6(f"2001:db8::{i:x}", udp) for i in range(32)],
            "flow label": [ipv6(to, udp, flow_label=i) for i in range(32)],
            "protocol": [ipv6(to, udp, protocol=100 + i) for i in range(32)],
            "UDP source port": [ipv6(to, self.datagram((6000 + i, 5000))) for i in range(32)],
            "UDP destination port": [ipv6(to, self.datagram((6000, 5000 + i))) for i in range(32)],
        }
        for what, packets in others.items():
            self.equal(f"several ports by {what}", len({self.leaves(packet) for packet in packets}) > 1, True)


class WhatCannotBeRoutedIsDropped(Ipv6Test):
    """No route, no hops left, or an address that no router forwards, even where a route would have it."""

    def runTest(self) -> None:
        to, udp = f"fd00:{self.hops[1].port:x}::9", self.datagram()
        reasons = [(ipv6("fd01::1", udp), "no_route")]
        reasons += [(ipv6(to, udp, hop_limit=hops), "ttl_expired") for hops in (0, 1)]
        reasons += [
            (ipv6(one, udp), "not_forwarded") for one in ("ff02::1", "ff0e::1", "fe80::1", "febf::1", "::", "::1")
        ]
        reasons += [(ipv6(to, udp, one), "not_forwarded") for one in ("ff02::1", "fe80::1", "febf::1", "::", "::1")]
        if self.program.ipv4 and self.program.roce_ipv6:  # tables know IPv4 addresses as these
            mapped = "::ffff:198.51.100.7"
            reasons += [(ipv6(mapped, udp), "not_forwarded"), (ipv6(to, udp, mapped), "not_forwarded")]
        for packet, reason in reasons:
            for tag in (b"", TAG):
                self.dropped(framed(*HOSTS, packet, tag), f"Forward.{reason}")
        self.dropped(framed(*HOSTS, ipv6(to, udp)[:39]), f"Forward.not_{'ipv4' if self.program.ipv4 else 'ipv6'}")
        self.leaves(ipv6(to, udp, hop_limit=2))
        self.leaves(ipv6("fec0::1", udp))


class AddressesAreResolved(Ipv6Test):
    """The switch answers solicitations for its address, to a group or to itself, as RFC 4861 has them; no others."""

    ASKER = "fe80::aa"

    def solicitation(self, dst: str, target: str = OURS, src: str = ASKER, error: int = 0, **fields: int) -> bytes:
        """A packet; ``error`` is what its checksum is off by, ``fields`` are those of the message."""
        message = {
            "form": codes.NDP_SOLICITATION, "checksum": 0, "flags": 0, "target": int(IPv6Address(target)),
            "option": codes.NDP_SOURCE_MAC, "mac": HOSTS[1],
        } | fields  # fmt: skip
        return self.packet(dst, src, message, error)

    def packet(self, dst: str, src: str, message: dict[str, int], error: int = 0, hops: int = 255) -> bytes:
        """A packet of neighbour discovery with a right checksum, but for ``error``."""
        body = NDP.word.pack(**message).to_bytes(NDP.size)
        ends = b"".join(IPv6Address(end).packed for end in (src, dst))
        sum_ = 0xFFFF ^ ones_complement_sum([ends + struct.pack("!II", NDP.size, 58) + body])
        body = body[:2] + (sum_ ^ error).to_bytes(2) + body[4:]
        return ipv6(dst, body, src, protocol=codes.PROTOCOL_ICMPV6, hop_limit=hops)

    def runTest(self) -> None:
        multicast = "ff02::1:ff00:1"
        message = {
            "form": codes.NDP_ADVERTISEMENT, "checksum": 0, "flags": codes.NDP_ANSWERS,
            "target": int(IPv6Address(OURS)), "option": codes.NDP_TARGET_MAC, "mac": OUR_MAC,
        }  # fmt: skip
        for port in (hop.port for hop in self.hops):
            for tag in (b"", TAG):
                for dst, src in ((multicast, self.ASKER), (OURS, self.ASKER), (OURS, "fd00:9::1")):
                    self.send(port, framed(HOSTS[0], HOSTS[1], self.solicitation(dst, src=src), tag))
                    answer = framed(HOSTS[1], OUR_MAC, self.packet(src, OURS, message), tag)
                    self.expect([Output(port, answer)])
        for error in (1, 0x8000, 0xFFFF):
            self.dropped(framed(*HOSTS, self.solicitation(OURS, error=error)), "AnswerNdp.not_ours")
        for wrong in (
            self.solicitation(OURS, target="fd00:5::2"),
            self.solicitation(OURS, src="::"),
            self.solicitation(OURS, option=codes.NDP_TARGET_MAC),
        ):
            self.dropped(framed(*HOSTS, wrong), "AnswerNdp.not_ours")
        forwarded = self.solicitation(multicast)
        forwarded = forwarded[:7] + bytes((254,)) + forwarded[8:]
        self.dropped(framed(*HOSTS, forwarded), "Forward.not_forwarded")
        self.dropped(framed(*HOSTS, self.packet(multicast, self.ASKER, message)), "Forward.not_forwarded")
