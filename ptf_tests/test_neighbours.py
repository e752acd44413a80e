"""ARP (RFC 826): the switch answers for its own addresses, and for no others."""

from __future__ import annotations

import struct
from collections import Counter

from base import Output
from mode_ii import ModeIITest

from p4gen.groups.config import configure
from p4gen.rocev2.codes import ETHERTYPE_ARP, ETHERTYPE_VLAN
from p4gen.rocev2.headers import Ethernet, ipv4

BROADCAST = (1 << 48) - 1
ASKER, ASKER_IP = 0x02AA00000002, ipv4("10.0.0.77")
GATEWAY, GATEWAY_MAC = ipv4("169.254.0.1"), 0x02DD00000001
REQUEST, REPLY = 1, 2
FORM = (1, 0x0800, 6, 4)
"""Ethernet and IPv4, and the lengths of their addresses."""


def arp(
    operation: int,
    sender: tuple[int, int],
    target: tuple[int, int],
    *,
    dst: int = BROADCAST,
    src: int | None = None,
    form: tuple[int, int, int, int] = FORM,
) -> bytes:
    """A frame; ``sender`` and ``target`` are MAC and IPv4 addresses."""
    body = struct.pack("!HHBBH", *form, operation)
    for mac, ip in (sender, target):
        body += mac.to_bytes(6) + ip.to_bytes(4)
    return Ethernet(dst, sender[0] if src is None else src, ETHERTYPE_ARP).pack() + body


class Neighbours(ModeIITest):
    """A group is served, and the switch is somebody's gateway."""

    over_ipv6 = False

    def setUp(self) -> None:
        super().setUp()
        self.group = self.make_group(2)
        self.install(configure(self.spec, [self.group], gateways={GATEWAY: GATEWAY_MAC}))

    def ask(self, frame: bytes, *, port: int = 0) -> list[Output]:
        """The answers to one frame."""
        state = self.state()
        self.send(port, frame)
        outputs = self.outputs()
        self.equal("registers changed by ARP", self.state() == state, True)
        return outputs


class SwitchAnswersForItsAddresses(Neighbours):
    """The switch answers for its endpoints' addresses and its gateway address, on the port of the request."""

    def runTest(self) -> None:
        local = self.group.edges[0].local
        for ip, mac in ((local.ip, local.mac), (GATEWAY, GATEWAY_MAC)):
            for port in (self.front[0], self.front[-2]):
                request = arp(REQUEST, (ASKER, ASKER_IP), (0, ip))
                answer = arp(REPLY, (mac, ip), (ASKER, ASKER_IP), dst=ASKER)
                for padding in (b"", bytes(18)):
                    self.equal("answer", self.ask(request + padding, port=port), [Output(port, answer + padding)])


class ProbeOfAnAddressInUse(Neighbours):
    """A host that looks whether an address is free (RFC 5227) asks without one of its own, and is told it is taken."""

    def runTest(self) -> None:
        answer = arp(REPLY, (GATEWAY_MAC, GATEWAY), (ASKER, 0), dst=ASKER)
        self.equal("answer", self.ask(arp(REQUEST, (ASKER, 0), (0, GATEWAY))), [Output(0, answer)])


class TaggedRequestIsAnsweredInItsVlan(Neighbours):
    def runTest(self) -> None:
        tag = ETHERTYPE_VLAN.to_bytes(2) + (3 << 13 | 42).to_bytes(2)
        request = arp(REQUEST, (ASKER, ASKER_IP), (0, GATEWAY))
        answer = arp(REPLY, (GATEWAY_MAC, GATEWAY), (ASKER, ASKER_IP), dst=ASKER)
        outputs = self.ask(request[:12] + tag + request[12:])
        self.equal("answer", outputs, [Output(0, answer[:12] + tag + answer[12:])])


class OthersAnswerForThemselves(Neighbours):
    """Addresses of hosts, replies, announcements, other protocols, and a frame that ends too soon."""

    def runTest(self) -> None:
        host = (ASKER, ASKER_IP)
        frames = [
            arp(REQUEST, host, (0, self.group.edges[0].remote.ip)),
            arp(REQUEST, host, (0, ASKER_IP)),
            arp(REPLY, host, (GATEWAY_MAC, GATEWAY), dst=GATEWAY_MAC),
            arp(3, host, (0, GATEWAY)),
            arp(REQUEST, host, (0, GATEWAY), form=(6, 0x0800, 6, 4)),
            arp(REQUEST, host, (0, GATEWAY), form=(1, 0x86DD, 6, 16)),
        ]
        for frame in frames:
            drops = self.all_drops()
            self.equal("answers", self.ask(frame), [])
            self.equal("dropped", self.all_drops() - drops, Counter({"AnswerArp.not_ours": 1}))
        drops = self.all_drops()
        self.equal("answers to a short frame", self.ask(arp(REQUEST, host, (0, GATEWAY))[:-1]), [])
        self.equal("dropped", self.all_drops() - drops, Counter({"Forward.not_ipv4": 1}))
