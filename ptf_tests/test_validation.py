"""Packets that a NIC would refuse, or from strangers: dropped, counted by reason, state unchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from inc import FRAGMENTS_AND_OPTIONS, reduce_to
from mode_ii import ModeIITest

from p4gen.groups.group import GroupContext
from p4gen.papers.epic.conformance.needs import lacks
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import RETH, ImmDt, IPv4, ipv4
from p4gen.rocev2.opcodes import Extension, Nak, Opcode, RnrNak, extensions
from p4gen.rocev2.packet import RocePacket

Spoil = Callable[[RocePacket], RocePacket]
WRONG_PORT = "LookupTable.wrong_port"


class Refusal(ModeIITest):
    """A round in progress that receives corrupted packets; the round then ends as without them."""

    ranks = 3

    def setUp(self) -> None:
        super().setUp()
        self.group: GroupContext = self.group_of(self.ranks)
        self.round_psn = self.random_psn()
        self.values = self.random_values(self.ranks)
        # One rank is in its slot already, so that there is state to be harmed.
        self.contribute(self.group, [0], self.round_psn, self.values)
        self.expect_nothing()

    def sound(self, rank: int = 1) -> RocePacket:
        """The contribution of ``rank``, before it is spoilt."""
        return self.contribution(self.group, rank, self.round_psn, self.values[rank])

    def sound_ack(self, rank: int = 1) -> RocePacket:
        return self.acknowledgement(self.group, rank, self.round_psn)

    def refuse(self, reason: str, *frames: RocePacket | bytes, rank: int = 1) -> None:
        """Each frame, sent by ``rank``, is dropped for ``reason``; then the round can be completed."""
        for frame in frames:
            self.refused(self.group, rank, frame, reason)
        self.contribute(self.group, range(1, self.ranks), self.round_psn, self.values)
        self.expect_results(self.group, [(self.round_psn, self.reduced(self.values))])
        self.send_from(self.group, 1, self.sound_ack())
        self.equal("sound ACKs reflected", self.received(self.group).total, 1)


class WrongQp(Refusal):
    """The switch's address, but no endpoint's QP: one of a rank's own, 0, the management QP, a neighbour's bit off."""

    def runTest(self) -> None:
        right = self.group.edges[1].local.qp
        qps = [self.group.edges[1].remote.qp, 0, 1, right | 1 << 23, right + 0x80, 0xFFFFFF]
        spoilt = [
            replace(packet, bth=replace(packet.bth, dst_qp=qp)).sealed()
            for qp in qps
            for packet in (self.sound(), self.sound_ack())
        ]
        self.refuse("LookupTable.unknown_qp", *spoilt)


class UnknownSource(Refusal):
    """A right QP, but not from the endpoint's peer: a stranger, or another member of the group."""

    def runTest(self) -> None:
        addresses = [ipv4("192.0.2.1"), self.group.edges[0].remote.ip, self.group.edges[2].remote.ip, 0]
        spoilt = [
            replace(packet, ip=replace(packet.ip, src=address)).sealed()
            for address in addresses
            for packet in (self.sound(), self.sound_ack())
        ]
        self.refuse("LookupTable.unknown_source", *spoilt)


class AnotherHostsPort(Refusal):
    """Packets of every kind that are a rank's in all but the port they come in by: another rank's port, one that no
    endpoint has."""

    def runTest(self) -> None:
        naks = [self.acknowledgement(self.group, 1, self.round_psn, nak.syndrome) for nak in (Nak(), RnrNak(1))]
        sent = [
            self.sound(),
            self.announcement(self.group, 1, serial.add(self.round_psn, 1), self.call()),
            self.sound_ack(),
            *naks,
            self.notification(self.group, 1),
        ]
        own = {edge.port for edge in self.group.edges}
        others = [port for port in self.front if port not in own]
        for port in {self.group.edges[0].port, self.group.edges[2].port, *others[:1], *others[-1:]}:
            for packet in sent:
                self.refused_at(port, packet, WRONG_PORT)
        self.refuse(WRONG_PORT)


class SeveralEntrances(ModeIITest):
    """A rank that several paths lead from: its packets count from each of its ports, and from no other. What is sent to
    it leaves by one."""

    def unfit(self) -> str | None:
        return None if len(self.front) // self.spec.pipelines > 4 else "the program has too few ports"

    def runTest(self) -> None:
        group = self.make_group(3)
        first, second, third = (edge.port for edge in group.edges)
        own, foreign = self.front[3], self.front[4]
        edges = (group.edges[0], replace(group.edges[1], more_ports=(own,)), group.edges[2])
        group = replace(group, edges=edges)
        self.ready(group)
        psn = self.random_psn()
        for port in (own, second, own):
            values = self.random_values(3)
            packet = self.contribution(group, 1, psn, values[1])
            for wrong in (first, third, foreign):
                self.refused_at(wrong, packet, WRONG_PORT)
            self.send(port, packet.to_bytes())
            self.contribute(group, (0, 2), psn, values)
            self.expect_results(group, [(psn, self.reduced(values))])
            psn = serial.add(psn, 1)
        self.refused_at(own, self.contribution(group, 0, psn, self.random_values(3)[0]), WRONG_PORT)


class AnotherGroupsRank(Refusal):
    """A member of one group that uses the address of another group's endpoint."""

    def unfit(self) -> str | None:
        return None if self.spec.groups > 1 else "the program serves one group"

    def runTest(self) -> None:
        other = self.make_group(3, context=1)
        self.ready(other)
        packet = self.contribution(other, 1, self.round_psn, self.values[1])
        stray = replace(packet, ip=replace(packet.ip, dst=self.group.edges[1].local.ip)).sealed()
        self.refuse("LookupTable.unknown_source", stray)


class TruncatedPayload(Refusal):
    """The frame ends before its lengths say, by a byte or by everything past the BTH."""

    def runTest(self) -> None:
        frame, ack = self.sound().to_bytes(), self.sound_ack().to_bytes()
        bth_end = 14 + self.sound().ip.size + 8 + 12
        cuts = [frame[:-1], frame[:-4], frame[: bth_end + 7], frame[:bth_end], ack[:-1], ack[:bth_end]]
        # All headers are there, and their ICRC is right, but the IP header announces more.
        longer = [packet.sealed(total_length=packet.ip.total_length + 4) for packet in (self.sound(), self.sound_ack())]
        for packet in longer:
            told = "bad_length" if lacks(self.spec, "padding") else "truncated"
            self.refused(self.group, 1, packet, f"ValidatePacket.{told}")
        self.refuse("ValidatePacket.truncated", *cuts)


class TrailingBytes(Refusal):
    """The frame goes on after its datagram; no contribution is short enough to be padded."""

    def runTest(self) -> None:
        frame = self.sound().to_bytes()
        self.refuse("ValidatePacket.bad_length", frame + b"\0", frame + bytes(4), frame + frame)


class WrongLengths(Refusal):
    """UDP and IP lengths that disagree with each other or with the program's packet size; ICRCs are right."""

    def runTest(self) -> None:
        sound = self.sound()
        size = len(sound.payload)
        payloads = [sound.payload[: size // 2], sound.payload[:-4], sound.payload + bytes(4), sound.payload * 2, b""]
        spoilt = [replace(sound, payload=payload).sealed() for payload in payloads]
        # A datagram as long as a contribution's, in a longer IP packet, and one that claims less than it has.
        longer = replace(sound, payload=sound.payload + bytes(8))
        spoilt.append(longer.sealed(udp_length=sound.udp.length))
        spoilt.append(sound.sealed(udp_length=sound.udp.length - 4))
        spoilt.append(sound.sealed(total_length=sound.ip.total_length - 4))
        self.refuse("ValidatePacket.bad_length", *spoilt)


class WrongAckLengths(Refusal):
    """An ACK with data after it, and one without its AETH."""

    def runTest(self) -> None:
        ack = self.sound_ack()
        self.refuse(
            "ValidatePacket.bad_length",
            replace(ack, payload=bytes(4)).sealed(),
            replace(ack, aeth=None).sealed(),
            replace(ack, payload=bytes(self.spec.payload_bytes)).sealed(),
        )


class PaddedPayload(Refusal):
    """A pad count says that the last lane is not whole."""

    def runTest(self) -> None:
        sound, ack = self.sound(), self.sound_ack()
        spoilt = [replace(sound, bth=replace(sound.bth, pad_count=pad)).sealed() for pad in (1, 2, 3)]
        self.refuse("ValidatePacket.bad_length", *spoilt, replace(ack, bth=replace(ack.bth, pad_count=1)).sealed())


class WrongIcrc(Refusal):
    """A flipped bit in the ICRC or in what it covers; a switch that recomputes the ICRC would hide the corruption."""

    def unfit(self) -> str | None:
        return None if self.spec.icrc.checked else "the program does not check the ICRC"

    def runTest(self) -> None:
        sound, ack = self.sound(), self.sound_ack()
        spoilt = [sound.sealed(icrc=bytes(4)), sound.sealed(icrc=sound.icrc[::-1]), ack.sealed(icrc=bytes(4))]
        for packet in (sound, ack):
            frame, bth = packet.to_bytes(), 14 + packet.ip.size + 8
            # Payload or AETH, ICRC, AckReq bit and PSN, IPv4 identification (with the checksum made to fit).
            for offset in (bth + 12, len(frame) - 5, len(frame) - 1, bth + 8, bth + 11):
                flipped = bytearray(frame)
                flipped[offset] ^= 1 << self.random.randrange(7)
                spoilt.append(parse_back(packet, bytes(flipped)))
            if isinstance(packet.ip, IPv4):
                renamed = replace(packet.ip, identification=packet.ip.identification ^ 0x8001)
                spoilt.append(replace(packet, ip=replace(renamed, checksum=renamed.right_checksum())))
        self.refuse("CheckIcrc.bad_icrc", *spoilt)


def parse_back(packet: RocePacket, frame: bytes) -> RocePacket:
    """``packet``'s frame with other bytes, as a packet that ``to_bytes`` writes out unchanged."""
    start = 14 + packet.ip.size + 8 + 12
    tail = frame[start:]
    bth = type(packet.bth).unpack(frame, start - 12)
    return replace(packet, bth=bth, aeth=None, payload=tail[:-4], icrc=tail[-4:])


class IcrcIgnored(ModeIITest):
    """A program made with ``icrc: ignore`` or ``set`` accepts packets with any ICRC; with ``set``, results have a right
    one."""

    def unfit(self) -> str | None:
        return "the program checks the ICRC" if self.spec.icrc.checked else None

    def runTest(self) -> None:
        group = self.group_of(2)
        psn, values = self.random_psn(), self.random_values(2)
        for rank in (0, 1):
            packet = self.contribution(group, rank, psn, values[rank]).sealed(icrc=bytes((rank, 2, 3, 4)))
            self.send_from(group, rank, packet)
        self.expect_results(group, [(psn, self.reduced(values))])


class WrongVersion(Refusal):
    """Transport header versions other than 0 are for others to define."""

    def runTest(self) -> None:
        spoilt = [
            replace(packet, bth=replace(packet.bth, version=version)).sealed()
            for version in (1, 2, 8, 15)
            for packet in (self.sound(), self.sound_ack())
        ]
        self.refuse("ValidatePacket.bad_version", *spoilt)


class WrongPartition(Refusal):
    """P_Keys other than the default partition's; its limited membership (0x7FFF) is the same partition."""

    def runTest(self) -> None:
        sound = self.sound()
        spoilt = [replace(sound, bth=replace(sound.bth, pkey=pkey)).sealed() for pkey in (0, 0x8000, 0xFFFE, 0xBFFF)]
        self.refuse("ValidatePacket.bad_pkey", *spoilt)


class BadIpChecksum(Refusal):
    """The IPv4 header is not what was sent, though the ICRC (which reads the checksum as ones) is right."""

    over_ipv6 = False

    def runTest(self) -> None:
        sound, ack = self.sound(), self.sound_ack()
        spoilt = [
            packet.sealed(checksum=packet.ipv4.checksum ^ flip)
            for packet in (sound, ack)
            for flip in (1, 0x8000, 0x0180)
        ]
        self.refuse("ValidatePacket.bad_ip_checksum", *spoilt)


class OtherOpcodes(Refusal):
    """WRITE, READ, atomics, a LAST with immediate data, other transports' opcodes: not what this mode reduces."""

    def runTest(self) -> None:
        sound = self.sound()
        sends = {Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY, Opcode.SEND_ONLY_IMM}
        taken = sends | {Opcode.ACKNOWLEDGE, Opcode.CNP}
        numbers = [*(op for op in Opcode if op not in taken), 0x16, 0x1F, 0x24, 0x64, 0xC0, 0xFF]
        spoilt = []
        for number in numbers:
            packet = replace(sound, bth=replace(sound.bth, opcode=int(number)))
            if Extension.RETH in extensions(number):
                packet = replace(packet, reth=RETH(0x1000, 7, len(sound.payload)))
            if Extension.IMMDT in extensions(number):
                packet = replace(packet, immdt=ImmDt(5))
            spoilt.append(packet.sealed())
        self.refuse("ValidatePacket.bad_opcode", *spoilt)


class FragmentsAndOptionsAreNotForTheEngine(Refusal):
    """RoCEv2 forbids fragments and IPv4 options (annex A17.3.1): no state is touched, nothing is reduced."""

    over_ipv6 = False

    def runTest(self) -> None:
        control = self.announcement(self.group, 1, self.round_psn, self.call(packets=1))
        notification = self.notification(self.group, 1)
        spoilt = [
            replace(sound, ip=replace(sound.ip, **fields)).sealed()
            for sound in (self.sound(), self.sound_ack(), control, notification)
            for fields in FRAGMENTS_AND_OPTIONS
        ]
        # There is no route to the switch's own address here.
        other = replace(self.sound(), ip=replace(self.sound().ip, version=5))
        port = replace(self.sound(), udp=replace(self.sound().udp, dst_port=4792)).sealed()
        self.refuse("Forward.no_route", *spoilt, port, other.sealed(icrc=self.sound().icrc))


class FirstFaultIsTheReason(Refusal):
    """A malformed packet is dropped as such, even if its content would also be refused."""

    def runTest(self) -> None:
        value = self.call(packets=1).encode()
        early, late = serial.add(self.first_psn, -1), serial.add(self.first_psn, self.most_packets + 1)
        packets = [
            self.announcement(self.group, 1, late, value ^ self.immediates.mask("op")),
            self.announcement(self.group, 1, late, self.immediates.replaced(value, collective=0)),
            self.contribution(self.group, 1, late, self.values[1]),
            self.acknowledgement(self.group, 1, early),
        ]
        spoilt = [replace(packet, bth=replace(packet.bth, version=1)).sealed() for packet in packets]
        self.refuse("ValidatePacket.bad_version", *spoilt)


class UnsupportedNumbersInAnUnknownCollective(Refusal):
    """Numbers that the program does not add are refused as such, whatever they are announced for."""

    def runTest(self) -> None:
        value = self.call(packets=1).encode() & (1 << 27) - 1 | 3 << 27  # no op has the code 3
        announcement = self.announcement(self.group, 1, serial.add(self.first_psn, self.most_packets + 1), value)
        self.refuse("FindContext.unsupported", announcement)


class CnpsOfOtherOpcodes(Refusal):
    """As long as a notification, but of another opcode: not one."""

    def runTest(self) -> None:
        sound = self.notification(self.group, 1)
        spoilt = [replace(sound, bth=replace(sound.bth, opcode=opcode)).sealed() for opcode in (0x80, 0x82, 0xC1, 0x1F)]
        self.refuse("ValidatePacket.bad_opcode", *spoilt)


class CorruptNotification(Refusal):
    """A congestion notification with a wrong ICRC, in its padding, its BTH or itself, slows nobody down."""

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.spec.icrc.checked else "the program does not check the ICRC")

    def runTest(self) -> None:
        sound = self.notification(self.group, 1)
        padded = replace(sound, payload=bytes(15) + b"\1")
        queue_pair = replace(sound, bth=replace(sound.bth, psn=1))
        self.refuse("CheckIcrc.bad_icrc", padded, queue_pair, replace(sound, icrc=bytes(4)))


class NotServed(ModeIITest):
    """Endpoints without an invocation: the group is being set up, or taken down."""

    def runTest(self) -> None:
        group = self.group_of(2)
        psn, values = self.random_psn(), self.random_values(2)
        entries = [e for e in self.control.entries("contexts" if self.announces else "flows") if e.match]
        self.control.delete(*entries)
        announcement = self.announcement(group, 0, serial.add(psn, self.most_packets), self.call())
        for packet in (self.contribution(group, 0, psn, values[0]), self.acknowledgement(group, 0, psn), announcement):
            self.refused(group, 0, packet, "FindContext.not_served")
        self.control.insert(*entries)
        self.complete(group, psn)


class NotASource(ModeIITest):
    """The rank that a Reduce goes to gets its result but must not contribute."""

    def runTest(self) -> None:
        group = self.node_of(3, reduce_to(2, toward=2))
        self.open(group)
        psn, values = self.random_psn(), self.random_values(3)
        self.refused(group, 2, self.contribution(group, 2, psn, values[2]), "ClassifyTraffic.no_flow")
        self.contribute(group, [0, 1], psn, values)
        self.expect_at(group, [2], [(psn, self.reduced(values[:2]))])


class CopyForAnUnknownEdge(ModeIITest):
    """The multicast group names an edge that has no addresses: that copy is dropped and counted, the rest leave."""

    def runTest(self) -> None:
        group = self.group_of(3)
        (edge,) = [e for e in self.control.entries("edges") if e.action.args["dest_qp"] == group.edges[2].remote.qp]
        self.control.delete(edge)
        psn, values = self.random_psn(), self.random_values(3)
        self.contribute(group, range(3), psn, values)
        results = self.received(group)
        self.equal("packets received by each rank", [len(p) for p in results.of_rank], [1, 1, 0])
        self.equal("drops that lose something", self.losses(), {"TranslateHeader.unknown_edge": 1})
