"""Groups of IPv4 and of IPv6 at one switch, in Mode II."""

from __future__ import annotations

from dataclasses import replace

from inc import reduce_to
from kinds import EndpointsTest, KindsTest
from mode_ii import ModeIITest

from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import IPv6


class GroupsOfBothKinds(KindsTest, ModeIITest):
    """Two groups whose addresses have the same last 32 bits, with the same QPs and PSNs, in turn, on the same ports."""

    def runTest(self) -> None:
        groups = [self.make_group(3, context=i, switch=0, ipv6=bool(i)) for i in range(2)]
        self.ready(*groups)
        for psn in (serial.add(self.first_psn, 1 + i) for i in range(4)):
            values = [self.random_values(3) for _ in groups]
            for rank in range(3):
                for group, of_group in zip(groups, values, strict=True):
                    self.contribute(group, [rank], psn, of_group)
            for group, of_group, results in zip(groups, values, self.received_by(*groups), strict=True):
                self.check_results(group, results, [(psn, self.reduced(of_group))])
            for group in groups:
                self.send_from(group, 1, self.acknowledgement(group, 1, psn), self.notification(group, 1))
                self.equal("packets reflected", [len(p) for p in self.received(group).of_rank], [0, 2, 0])


class OtherKindsAddressesAreNobodys(KindsTest, ModeIITest):
    """An IPv6 header with the addresses that stand for a group's IPv4 addresses, and the reverse: no group's."""

    def runTest(self) -> None:
        groups = [self.make_group(3, context=i, switch=i, ipv6=bool(i)) for i in range(2)]
        self.ready(*groups)
        psn, values = self.random_psn(), self.random_values(3)
        for group in groups:
            data = self.contribution(group, 1, psn, values[1])
            control = self.announcement(group, 1, serial.add(psn, 1), self.call())
            answers = self.acknowledgement(group, 1, psn), self.notification(group, 1)
            self.refuse_other_kind(group, 1, data, control, *answers)
            self.contribute(group, range(3), psn, values)
            self.expect_results(group, [(psn, self.reduced(values))])


class MalformedPacketsOfEitherKind(KindsTest, ModeIITest):
    """Each kind of packet, over IPv4 and over IPv6, with each of its lengths wrong."""

    def runTest(self) -> None:
        groups = [self.make_group(3, context=i, switch=i, ipv6=bool(i)) for i in range(2)]
        self.ready(*groups)
        psn, values = self.random_psn(), self.random_values(3)
        for group in groups:
            self.refuse_malformed(group, 1, self.contribution(group, 1, psn, values[1]))
            self.refuse_malformed(group, 1, self.announcement(group, 1, serial.add(psn, 1), self.call()))
            self.refuse_malformed(group, 1, self.acknowledgement(group, 1, psn))
            self.refuse_malformed(group, 1, self.notification(group, 1))
            self.complete(group, psn)


class MarksAreOfEitherKind(KindsTest, ModeIITest):
    """A mark of any contribution marks the result, and its class of service is kept, in headers of both kinds."""

    def runTest(self) -> None:
        for context, patterns in ((0, None), (2, (reduce_to(0, 0),))):
            groups = [self.make_group(3, context=context + i, switch=context + i, ipv6=bool(i)) for i in range(2)]
            groups = [replace(group, patterns=patterns or group.patterns) for group in groups]
            self.ready(*groups)
            for group in groups:
                psn, values = serial.add(self.first_psn, 1), self.random_values(3)
                sources = range(3) if patterns is None else (1, 2)
                for rank in sources:
                    packet = self.contribution(group, rank, psn, values[rank])
                    tos = 26 << 2 | (0b11 if rank == 1 else 0b10)
                    self.send_from(group, rank, replace(packet, ip=replace(packet.ip, tos=tos)).sealed())
                taken = [packet.ip.tos for packets in self.received(group).of_rank for packet in packets]
                self.equal("classes of results", taken, [26 << 2 | 0b11] * (3 if patterns is None else 1))


class RoutersMayChangeLabels(ModeIITest):
    """The flow label, like the class of service and the hop limit, is no part of the ICRC, whatever it becomes."""

    over_ipv6 = True

    def runTest(self) -> None:
        group = self.group_of(2)
        psn, values = self.random_psn(), self.random_values(2)
        for rank in (0, 1):
            packet = self.contribution(group, rank, psn, values[rank])
            assert isinstance(packet.ip, IPv6)
            changed = replace(packet, ip=replace(packet.ip, flow_label=packet.ip.flow_label ^ 0xFFFFF, ttl=1, tos=0xFE))
            self.equal("the ICRC", changed.sealed().icrc, packet.icrc)
            self.send_from(group, rank, changed)
        self.expect_results(group, [(psn, self.reduced(values))])


class EndpointsAreResolved(EndpointsTest, ModeIITest):
    runTest = EndpointsTest.resolves
