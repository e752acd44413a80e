"""IPv4 headers of what goes out, in Mode II."""

from __future__ import annotations

from dataclasses import replace

from mode_ii import ModeIITest

from p4gen.rocev2 import psn as serial


class DscpIsKept(ModeIITest):
    """Results travel in the class of service that their collective's packets came in, and so do the ranks' ACKs."""

    def runTest(self) -> None:
        group = self.group_of(3)
        first = self.first_psn
        for offset, dscp in ((1, 26), (2, 46)):
            psn, values = serial.add(first, offset), self.random_values(3)
            for rank in range(3):
                packet = self.contribution(group, rank, psn, values[rank])
                self.send_from(group, rank, replace(packet, ip=replace(packet.ip, tos=dscp << 2)).sealed())
            results = self.received(group)
            self.check_results(group, results, [(psn, self.reduced(values))])
            for rank, packets in enumerate(results.of_rank):
                self.equal(f"rank {rank}: DSCP", {packet.ip.tos >> 2 for packet in packets}, {dscp})
            ack = self.acknowledgement(group, 1, psn)
            self.send_from(group, 1, replace(ack, ip=replace(ack.ip, tos=dscp << 2)).sealed())
            self.equal(
                "DSCP of answers", {p.ip.tos >> 2 for rank in self.received(group).of_rank for p in rank}, {dscp}
            )


class AnotherVersionIsNotForTheEngine(ModeIITest):
    """A header that says it is no IPv4, behind an EtherType that says it is: not parsed any further."""

    def runTest(self) -> None:
        group = self.group_of(2)
        packet = self.contribution(group, 0, self.random_psn(), self.random_values(2)[0])
        other = replace(packet, ip=replace(packet.ip, version=5))
        self.refused(group, 0, other.sealed(icrc=packet.icrc), "Forward.no_route")
