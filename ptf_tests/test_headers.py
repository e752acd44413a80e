"""Headers and ICRCs at the limits of what they may be, and the IP headers of what goes out, in Mode II."""

from __future__ import annotations

from dataclasses import replace

from mode_ii import ModeIITest
from test_validation import Refusal

from p4gen.ptf.icrcs import with_icrc
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket


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
    """A header of another IP version after the EtherType of IPv4, or of IPv6, is not parsed further."""

    def runTest(self) -> None:
        group = self.group_of(2)
        packet = self.contribution(group, 0, self.random_psn(), self.random_values(2)[0])
        other = replace(packet, ip=replace(packet.ip, version=5))
        self.refused(group, 0, other.sealed(icrc=packet.icrc), "Forward.no_route")


class IcrcAtTheLimits(ModeIITest):
    """A right ICRC of all ones, or of zeros, is right, whatever the packet carries. Of IPv4, whose header has bits that
    may be anything."""

    over_ipv6 = False

    def unfit(self) -> str | None:
        return None if self.spec.icrc.checked else "the program does not check the ICRC"

    def runTest(self) -> None:
        group = self.make_group(2)
        self.serve(group)
        psn = self.first_psn
        for wanted in (b"\xff" * 4, bytes(4)):
            call = self.call(packets=1)
            for rank in (0, 1):
                self.send_from(group, rank, with_icrc(self.announcement(group, rank, psn, call), wanted))
            self.expect_announced(group, (psn, call))
            psn, values = serial.add(psn, 1), self.random_values(2)
            for rank in (0, 1):
                self.send_from(group, rank, with_icrc(self.contribution(group, rank, psn, values[rank]), wanted))
            self.expect_results(group, [(psn, self.reduced(values))])
            for answer in (self.acknowledgement(group, 1, psn), self.notification(group, 1)):
                self.send_from(group, 1, with_icrc(answer, wanted))
                reflected = self.received(group)
                self.equal("packets reflected", [len(packets) for packets in reflected.of_rank], [0, 1])
            psn = serial.add(psn, 1)
        self.equal("drops that lose something", self.losses(), {})


class EveryKind(Refusal):
    """One valid packet of each kind that a rank may send."""

    def kinds(self) -> list[RocePacket]:
        opcodes = (Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY)
        data = [self.contribution(self.group, 1, self.round_psn, self.values[1], opcode) for opcode in opcodes]
        announcement = self.announcement(self.group, 1, self.round_psn, self.call(packets=1))
        return [*data, announcement, self.sound_ack(), self.notification(self.group, 1)]


class KindsOfOtherLengths(EveryKind):
    """Each opcode in a datagram that is as long as another kind's, or longer by a lane; all lengths agree."""

    def runTest(self) -> None:
        spoilt = []
        for packet in self.kinds():
            bare = replace(packet, aeth=None, immdt=None, payload=b"")
            right = len(packet.transport())
            for size in (4, 16, self.spec.payload_bytes, self.spec.payload_bytes + 4, 2 * self.spec.payload_bytes + 4):
                longer = replace(bare, payload=self.random.randbytes(size)).sealed()
                if len(longer.transport()) != right:
                    spoilt.append(longer)
        self.refuse("ValidatePacket.bad_length", *spoilt)


class OpcodesOfOtherKindsLengths(EveryKind):
    """Opcodes without a meaning here, in datagrams of the same lengths as valid ones."""

    def runTest(self) -> None:
        others = (Opcode.READ_RESPONSE_ONLY, Opcode.WRITE_ONLY, 0x25, 0x80, 0x91, 0xFF)
        spoilt = [
            replace(packet, bth=replace(packet.bth, opcode=int(opcode))).sealed()
            for packet in self.kinds()[3:]
            for opcode in others
        ]
        self.refuse("ValidatePacket.bad_opcode", *spoilt)


class DatagramsThatClaimMore(EveryKind):
    """The UDP header announces what neither the IP header nor the frame has: cut short, whatever else is wrong."""

    def runTest(self) -> None:
        spoilt = []
        for packet in self.kinds():
            bare = replace(packet, aeth=None, immdt=None, payload=b"")
            spoilt.append(bare.sealed(udp_length=packet.udp.length))
        self.refuse("ValidatePacket.truncated", *spoilt)


class DatagramsInOptions(EveryKind):
    """IPv4 options that read like a UDP header and a BTH for the switch, before those that it really has."""

    over_ipv6 = False

    def runTest(self) -> None:
        spoilt = []
        for packet in self.kinds():
            hidden = (packet.udp.pack() + packet.transport() + packet.icrc)[:40]
            options = hidden.ljust(-(-len(hidden) // 4) * 4, b"\0")
            spoilt.append(replace(packet, ip=replace(packet.ipv4, options=options)).sealed())
        # There is no route to the switch's own address here.
        self.refuse("Forward.no_route", *spoilt)


class OtherProtocolsAreNotForTheEngine(EveryKind):
    """Bytes that look like a UDP header and a BTH for the switch are ignored if the IP header says that another
    protocol follows, or an extension header."""

    def runTest(self) -> None:
        spoilt = [
            replace(packet, ip=replace(packet.ip, protocol=protocol)).sealed()
            for packet in self.kinds()
            for protocol in (0, 6, 16, 18, 43, 44, 60, 136)
        ]
        self.refuse("Forward.no_route", *spoilt)
