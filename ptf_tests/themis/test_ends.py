"""Whose packets count as evidence, or are NACKs to be judged: those of a connection's two ends, sound, and no more."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

from leaf import ACK, FIRST_SPINE, RNR, DestinationTest, Flow

from p4gen.groups import Route
from p4gen.groups.addresses import MAPPED, prefix
from p4gen.groups.config import routing
from p4gen.ptf.icrcs import with_icrc
from p4gen.ptf.scenario import Output
from p4gen.rocev2.codes import ETHERTYPE_IPV6
from p4gen.rocev2.headers import IPv4, IPv6
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket, parse


class QpnsAreTheirRequesters(DestinationTest):
    """A requester elsewhere may have the same QPN as one whose connection is registered: its NACKs pass."""

    def runTest(self) -> None:
        connection = self.flow.connection
        other = replace(connection, requester=replace(connection.requester, ip=self.away + 1))
        self.arrive(0, 1, 3, 2)
        self.passes(Flow(other).answer(2))
        self.blocked(2)


class QpnsAreTheirResponders(DestinationTest):
    """Nor is a request recorded that goes to the same QPN of another host."""

    def runTest(self) -> None:
        connection = self.flow.connection
        other = replace(connection, responder=replace(connection.responder, ip=self.hosts[1]))
        self.arrive(0, 1, 3)
        self.arrive(4, flow=Flow(other))
        self.blocked(2)
        self.equal("UNKNOWN", self.verdicts()["UNKNOWN"], 1)


class OnlyWritesAreRecorded(DestinationTest):
    """Of a connection whose WRITEs alone are sprayed, the rest has another path, and is no evidence."""

    def runTest(self) -> None:
        self.unregister(self.flow)
        self.register(replace(self.flow, connection=replace(self.flow.connection, writes_only=True)), epoch=2)
        for psn, opcode in ((0, 0x07), (1, 0x07), (3, 0x07), (4, 0x01)):
            packet = self.flow.request(psn, opcode)
            self.send(FIRST_SPINE, packet.to_bytes())
            self.expect([Output(0, self.routed(packet, 0))])
        self.blocked(2)
        self.equal("UNKNOWN", self.verdicts()["UNKNOWN"], 1)


class NobodyIsNoPeer(DestinationTest):
    """What no entry knows is ordinary, even with the address 0.0.0.0 or ::, and whatever path set 0 says of PSN 0."""

    def runTest(self) -> None:
        request, other = self.outgoing().request(0), self.incoming(1)
        ip = replace(request.ip, protocol=44) if self.ipv6 else replace(request.ipv4, flags=1)
        fragment = replace(request, ip=ip).sealed()
        ports = self.ports_taken([fragment])
        self.path_set(0, 1, number=0)
        self.equal("port of a fragment", self.ports_taken([fragment]), ports)
        self.passes(other.answer(1))
        nobodys = replace(other.answer(1), ip=replace(other.answer(1).ip, src=0)).sealed()
        if self.ipv6:
            self.equal("frames from ::, which no router forwards", self.answered(nobodys), [])
        else:
            self.passes(nobodys)
        self.equal("verdicts of all connections", dict(self.counts("IncIngress.blocked_nack.verdicts")), {})


class HostWithTwoLinks(DestinationTest):
    """A host may have two ports. ECMP chooses between them, for sound requests and for spoilt ones, whatever their
    PSNs."""

    def runTest(self) -> None:
        self.control.delete(*routing([Route(prefix(self.hosts[0], 0), 0)], ()))
        self.control.insert(*routing([Route(prefix(self.hosts[0], 0), 0, 2)], ()))
        sound = [self.flow.request(psn) for psn in range(4)]
        spoilt = [replace(packet, icrc=bytes(4)) for packet in sound]
        self.equal("number of ports", len(set(self.ports_taken([*sound, *spoilt], FIRST_SPINE))), 1)


class OnlySequenceNaksAreFiltered(DestinationTest):
    """ACKs, RNR NAKs and the NAKs that end a connection pass whole, whatever the queue holds."""

    def runTest(self) -> None:
        self.arrive(1, 2, 4, 3)
        for syndrome in (ACK, 0x00, RNR, 0x61, 0x62, 0x63, 0x64):
            self.passes(self.flow.answer(3, syndrome))


class ForgedNackTouchesNothing(DestinationTest):
    """A NACK from another port, or with a wrong ICRC, passes unchanged, and neither arms nor disarms."""

    def runTest(self) -> None:
        self.arrive(1, 2, 4)
        spoilt = self.flow.answer(3)
        self.passes(self.flow.answer(3, src=self.hosts[1]), port=1)
        self.passes(self.flow.answer(3), port=1)
        if self.spec.icrc.checked:
            self.passes(replace(spoilt, icrc=bytes(4)))
        self.arrive(5)
        self.equal("verdicts", self.verdicts(), {})
        self.forwarded(3)


class IcrcOfAllOnes(DestinationTest):
    """An ICRC may have any value: NACKs with one of all ones, or of all zeros, are judged like others."""

    over_ipv6 = False  # an IPv4 header has 16 bits of any value

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 2)
        for icrc in (bytes(4), b"\xff" * 4):
            nack = with_icrc(self.flow.answer(2), icrc)
            outputs = self.answered(nack)
            self.equal("NACKs", [o for o in outputs if parse(o.frame).aeth == nack.aeth], [])
        self.equal("LATE", self.verdicts()["LATE"], 2)


class ForgedAckDisarmsNothing(DestinationTest):
    """An ACK with a wrong ICRC does not make the switch forget what it blocked."""

    def unfit(self) -> str | None:
        return None if self.spec.icrc.checked else "the program does not check the ICRC"

    def runTest(self) -> None:
        self.arrive(0, 1, 3)
        self.blocked(2)
        self.passes(replace(self.flow.answer(2, ACK), icrc=bytes(4)))
        self.send(2, self.flow.request(4).to_bytes())
        self.equal("frames for PSN 4", len(self.outputs()), 2)


class NotificationDisarmsNothing(DestinationTest):
    """A congestion notification of the host passes, and is no ACK of anything."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3)
        self.blocked(2)
        sound = self.flow.answer(2, ACK)
        cnp = replace(sound, bth=replace(sound.bth, opcode=Opcode.CNP), aeth=None, payload=bytes(16))
        self.passes(cnp.sealed())
        self.send(2, self.flow.request(4).to_bytes())
        self.equal("frames for PSN 4", len(self.outputs()), 2)


class RequestOfAnyoneIsNoEvidence(DestinationTest):
    """A request that does not come from the connection's requester is delivered, and not recorded."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3)
        forged = self.flow.request(2, src=self.hosts[1])
        self.send(2, forged.to_bytes())
        self.expect([Output(0, self.routed(forged, 0))])
        self.arrive(4)
        self.forwarded(2)


class SpoiltRequestIsNoEvidence(DestinationTest):
    """A request that the NIC discards, with a wrong ICRC, neither disarms a NACK nor is recorded."""

    over_ipv6 = False

    def unfit(self) -> str | None:
        if self.spec.narrow:
            return "a parser of Tofino reads no payload, so the ICRC of requests is not checked"
        return None if self.spec.icrc.checked else "the program does not check the ICRC"

    def runTest(self) -> None:
        sizes = (4, 8, getattr(self.program, "payload_bytes", 8))  # beside EPIC, its own are parsed
        for number, size in enumerate(sizes):
            psn = 100 * number
            self.arrive(psn, psn + 1, psn + 3)
            self.blocked(psn + 2)
            sound = self.flow.request(psn + 2, payload=bytes(size))
            self.send(FIRST_SPINE, replace(sound, payload=b"\1" + bytes(size - 1)).to_bytes())
            self.equal("frames for a spoilt request", len(self.outputs()), 1)
            self.send(FIRST_SPINE, self.flow.request(psn + 4).to_bytes())
            self.equal("frames for the next of its path", len(self.outputs()), 2)
            self.forwarded(psn + 2)  # nothing says that it has arrived


class SpoiltRequestIsNoEvidenceOverIpv6(SpoiltRequestIsNoEvidence):
    over_ipv6 = True


class WrongChecksumShowsNothing(DestinationTest):
    """Nor does a request or a NACK with a wrong IPv4 checksum: it is routed with the checksum as wrong as before."""

    over_ipv6 = False

    def runTest(self) -> None:
        self.arrive(0, 1, 3)
        nack = self.flow.answer(2)
        output = self.only(self.answered(nack.sealed(checksum=1)))
        self.equal("port of a NACK", output.port, self.hashed(nack))
        self.blocked(2)
        self.equal("NACKs judged", self.verdicts()["UNKNOWN"], 1)
        self.send(FIRST_SPINE, self.flow.request(2).sealed(checksum=1).to_bytes())
        self.equal("frames for a spoilt request", len(self.outputs()), 1)
        self.send(FIRST_SPINE, self.flow.request(4).to_bytes())
        self.equal("frames for the next of its path", len(self.outputs()), 2)
        self.forwarded(2)  # nothing says that it has arrived


class SpoiltFieldsAreNoEvidence(DestinationTest):
    """The ICRC covers each of these fields: a request that has lost one of their bits is not recorded."""

    over_ipv6 = False

    def unfit(self) -> str | None:
        if self.spec.narrow:
            return "a parser of Tofino reads no payload, so the ICRC of requests is not checked"
        return None if self.spec.icrc.checked else "the program does not check the ICRC"

    def runTest(self) -> None:
        self.arrive(0, 1, 3)
        self.blocked(2)
        sound = self.flow.request(2)
        for what in (
            {"solicited": not sound.bth.solicited},
            {"mig_request": not sound.bth.mig_request},
            {"pad_count": 1},
            {"version": 1},
            {"pkey": 0x7FFF},
            {"ack_request": not sound.bth.ack_request},
            {"reserved7": 1},
        ):
            self.delivered(replace(sound, bth=replace(sound.bth, **what)))
        if isinstance(sound.ip, IPv4):
            for ip in (replace(sound.ip, identification=1), replace(sound.ip, flags=0)):
                self.delivered(replace(sound, ip=replace(ip, checksum=ip.right_checksum())))
        self.delivered(replace(sound, udp=replace(sound.udp, src_port=sound.udp.src_port ^ 1)))
        self.send(FIRST_SPINE, self.flow.request(4).to_bytes())
        self.equal("frames for the next of its path", len(self.outputs()), 2)

    def delivered(self, packet: RocePacket) -> None:
        """A packet reaches the host as it is."""
        self.send(FIRST_SPINE, packet.to_bytes())
        self.expect([Output(0, self.routed(packet, 0))])


class SpoiltFieldsAreNoEvidenceOverIpv6(SpoiltFieldsAreNoEvidence):
    over_ipv6 = True


class OtherIpv4IsNoRoce(DestinationTest):
    """What has the bytes of a request or a NACK, but is a fragment, has options, or is no UDP or no RoCEv2, is routed
    like anything else, whatever its checksums are."""

    CASES: tuple[dict[str, Any], ...] = (
        {"version": 5},
        {"ihl": 6},
        {"flags": 0b011},
        {"fragment_offset": 1},
        {"protocol": 253},
        {},
    )
    over_ipv6 = False

    def runTest(self) -> None:
        self.arrive(0, 1, 3)
        for fields in self.CASES:
            for packet, port in ((self.flow.request(4), FIRST_SPINE), (self.flow.answer(2), 0)):
                ip = replace(packet.ipv4, **fields)
                udp = packet.udp if fields else replace(packet.udp, dst_port=4790)
                other = replace(packet, ip=replace(ip, checksum=ip.right_checksum()), udp=udp)
                other = replace(other, icrc=self.icrc(other))
                output = self.only(self.answered(other, port=port))
                self.equal("frame", output.frame.hex(), self.routed(other, output.port).hex())
        self.equal("verdicts", self.verdicts(), {})
        self.blocked(2)
        self.equal("UNKNOWN", self.verdicts()["UNKNOWN"], 1)

    @staticmethod
    def icrc(packet: RocePacket) -> bytes:
        """The ICRC, if a packet's bytes were an IPv4 header of 20, a UDP header and a BTH."""
        covered = bytearray(packet.ip_packet())
        for variant in (1, 8, 10, 11, 26, 27, 32):  # type of service, TTL, checksums, resv8a
            covered[variant] = 0xFF
        return zlib.crc32(covered, zlib.crc32(b"\xff" * 8)).to_bytes(4, "little")


class OtherIpv6IsNoRoce(DestinationTest):
    """So is what has an extension header between the IPv6 header and what looks like UDP, or another version."""

    over_ipv6 = True

    def runTest(self) -> None:
        self.arrive(0, 1, 3)
        cases: tuple[dict[str, Any], ...] = (*({"protocol": each} for each in (0, 43, 44, 60, 253)), {"version": 5}, {})
        for fields in cases:
            for packet, port in ((self.flow.request(4), FIRST_SPINE), (self.flow.answer(2), 0)):
                udp = packet.udp if fields else replace(packet.udp, dst_port=4790)
                other = replace(packet, ip=replace(packet.ip, **fields), udp=udp)
                other = replace(other, icrc=self.icrc(other))
                output = self.only(self.answered(other, port=port))
                self.equal("frame", output.frame.hex(), self.routed(other, output.port).hex())
        self.equal("verdicts", self.verdicts(), {})
        self.blocked(2)
        self.equal("UNKNOWN", self.verdicts()["UNKNOWN"], 1)

    @staticmethod
    def icrc(packet: RocePacket) -> bytes:
        """The ICRC, if a packet's bytes were an IPv6 header, a UDP header and a BTH."""
        covered = bytearray(packet.ip_packet())
        covered[0] |= 0x0F
        for variant in (1, 2, 3, 7, 46, 47, 52):  # traffic class, flow label, hop limit, UDP checksum, resv8a
            covered[variant] = 0xFF
        return zlib.crc32(covered, zlib.crc32(b"\xff" * 8)).to_bytes(4, "little")


class MappedAddressIsNobodys(DestinationTest):
    """An IPv6 header with an IPv4 address in its addresses speaks for no connection over IPv4."""

    over_ipv6 = False

    def unfit(self) -> str | None:
        """Needs a program that knows both kinds."""
        return None if self.spec.roce_ipv6 else "the program does not take RoCEv2 over IPv6"

    def runTest(self) -> None:
        self.arrive(0, 1, 3)
        for packet, port in ((self.flow.request(4), FIRST_SPINE), (self.flow.answer(2), 0)):
            ip = IPv6(MAPPED << 32 | packet.ip.src, MAPPED << 32 | packet.ip.dst)
            eth = replace(packet.eth, ethertype=ETHERTYPE_IPV6)
            self.equal("frames", self.answered(replace(packet, eth=eth, ip=ip).sealed(), port=port), [])
        self.equal("verdicts", self.verdicts(), {})
        self.blocked(2)
        self.equal("UNKNOWN", self.verdicts()["UNKNOWN"], 1)


class OnlyAcksAreAnswers(DestinationTest):
    """READ responses and answers to atomic operations show nothing, even as long as an ACK; nor does an ACK with more
    behind it."""

    def runTest(self) -> None:
        self.arrive(1, 2, 4)
        self.blocked(3)
        before = self.verdicts()
        for answer in (self.flow.answer(3), self.flow.answer(3, ACK)):
            for opcode in (0x0D, 0x0E, 0x0F, 0x10, 0x12):
                self.passes(replace(answer, bth=replace(answer.bth, opcode=opcode)).sealed())
            length, size = answer.ip.total_length + 4, answer.udp.length + 4
            within = answer.sealed(total_length=length, udp_length=size).icrc
            self.passes(replace(answer, payload=within).sealed())
        self.equal("verdicts", self.verdicts(), before)
        self.send(FIRST_SPINE, self.flow.request(5).to_bytes())
        self.equal("frames for PSN 5", len(self.outputs()), 2)


class NacksHaveOnePath(DestinationTest):
    """A NACK that passes takes ECMP's path, whatever its PSN."""

    n = 4

    def runTest(self) -> None:
        ports = {self.passes(self.flow.answer(psn)) for psn in range(8)}
        self.equal("number of ports", len(ports), 1)


class NoPathSetNoFilter(DestinationTest):
    """A connection without its path set is not filtered, since its paths are unknown."""

    def runTest(self) -> None:
        other = self.incoming(1)
        self.register(other, index=1, path_set=2)
        self.arrive(0, 1, 3, 2, flow=other)
        self.forwarded(2, other)


class NackOfUnregisteredQpPasses(DestinationTest):
    """Every NACK of an unregistered connection passes."""

    def runTest(self) -> None:
        other = self.incoming(7)
        self.arrive(0, 1, 3, 2, flow=other)
        self.passes(other.answer(2))
