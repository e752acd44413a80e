"""Packets that are not as they should be: dropped with a reason before any state is touched. What differs from others
in nothing that counts is taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from malformed import OTHER_LENGTHS, malformed
from writes import Write, WriteTest

from p4gen.papers.multiwrite.control import WriteContext, configuration
from p4gen.rocev2.headers import AETH, BTH
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket
from p4gen.vocabulary import ticks

TAG = 5 << 13 | 100
FOREIGN = (0x04, 0x06, 0x10, 0x12, 0x64, 0xC1)
"""Opcodes of other connections and services, of other packets of this one, and that of the switch's own cursors."""


class KindsTest(WriteTest):
    """Packets of each kind, as their senders send them."""

    def kinds(self, context: WriteContext) -> Iterator[tuple[int, RocePacket]]:
        """One packet of each kind, and the port by which it comes in."""
        yield self.ports[context.source], self.write(context, 1, self.bits([2])).packet
        yield self.ports[2], self.answer(context, 2, 0)
        yield self.ports[2], self.notification(context, 2)

    def ticks(self, context: WriteContext) -> Iterator[tuple[int, RocePacket]]:
        """One from the agent, where there are ticks."""
        if self.spec.holds:
            yield self.spec.architecture.cpu_port, self._from(context, 2, BTH(ticks.OPCODE, 0, 0), AETH(0, 2))


class MalformedPacketsTouchNothing(KindsTest):
    """A packet of each kind: cut off, with a wrong checksum, version, partition, length or padding, and in other kinds'
    lengths."""

    def runTest(self) -> None:
        context = self.served()
        self.posts(self.write(context, 0, self.bits([2])), {2: 0})
        for port, packet in self.kinds(context):
            for frame, reason in malformed(packet, "bad_length"):
                self.refused(port, frame, f"ValidatePacket.{reason}")
            length = packet.ip.total_length
            assert length is not None
            more = packet.sealed(total_length=length + 4).to_bytes() + bytes(4)  # with a datagram that ends before
            self.refused(port, more, "ValidatePacket.bad_length")
        self.posts(self.write(context, 1, self.bits([2])), {2: 1})


class OnlyRoceIsOurs(KindsTest):
    """Datagrams for the switch's own addresses that are no RoCEv2: of another UDP port, another protocol, with options,
    fragments. They are ordinary, and no route leads to them."""

    over_ipv6 = False

    def runTest(self) -> None:
        context = self.served()
        for port, packet in self.kinds(context):
            ip = packet.ipv4
            for other in (
                replace(packet, udp=replace(packet.udp, dst_port=packet.udp.dst_port + 1)).sealed(),
                replace(packet, ip=replace(ip, protocol=6)).sealed(),
                replace(packet, ip=replace(ip, options=bytes((1, 1, 1, 0)))).sealed(),
                replace(packet, ip=replace(ip, flags=1)).sealed(),
                replace(packet, ip=replace(ip, fragment_offset=5)).sealed(),
                replace(packet, ip=replace(ip, version=6)),
            ):
                self.refused(port, other.to_bytes(), "Forward.no_route")


class TagsCountInLengths(KindsTest):
    """A frame with a VLAN tag is as long as it should be with one."""

    def runTest(self) -> None:
        context = self.served()
        self.posts(self.write(context, 0, self.bits([2])), {2: 0})
        for port, packet in (*self.kinds(context), *self.ticks(context)):
            frame = replace(packet, vlan=TAG).to_bytes()
            self.refused(port, frame[:-1], "ValidatePacket.truncated")
            self.refused(port, frame + bytes(1), "ValidatePacket.bad_length")


class OtherOpcodesAreRefused(KindsTest):
    """Each opcode in each length: those of other kinds have the wrong length, all others are not for us."""

    def runTest(self) -> None:
        context = self.served()
        self.posts(self.write(context, 0, self.bits([2])), {2: 0})
        kinds = list(self.kinds(context))
        known = {packet.bth.opcode for _, packet in (*kinds, *self.ticks(context))}
        for port, packet in kinds:
            for opcode in known - {packet.bth.opcode}:
                self.refused(port, self.coded(packet, opcode), "ValidatePacket.bad_length")
            for opcode in {*FOREIGN, Opcode.WRITE_ONLY, Opcode.WRITE_ONLY_IMM} - known:
                self.refused(port, self.coded(packet, opcode), "ValidatePacket.bad_opcode")
        self.posts(self.write(context, 1, self.bits([2])), {2: 1})

    def coded(self, packet: RocePacket, opcode: int) -> bytes:
        """The packet with another opcode."""
        return replace(packet, bth=replace(packet.bth, opcode=opcode)).sealed().to_bytes()


class OnlyTicksComeFromTheAgent(KindsTest):
    """Ticks of another length are none, and nothing else comes from the agent."""

    def unfit(self) -> str | None:
        return None if self.spec.holds else "there are no ticks"

    def runTest(self) -> None:
        context = self.served()
        for port, packet in self.ticks(context):
            for more in OTHER_LENGTHS:
                longer = replace(packet, payload=bytes(more)).sealed()
                self.refused(port, longer.to_bytes(), "LookupTable.wrong_port")
            for _, other in self.kinds(context):
                self.refused(port, other.to_bytes(), "LookupTable.wrong_port")


class TagsStay(WriteTest):
    """What is made of a tagged packet has its tag: copies, answers and notifications."""

    def runTest(self) -> None:
        context = self.served()
        write = self.write(context, 3, self.bits([2, 3]))
        early = replace(write, packet=replace(write.packet, vlan=TAG).sealed())
        self.post(early)
        self.expect([self.reply(context, early.packet, 0, 0x60)])
        write = self.write(context, 0, self.bits([2, 3]))
        self.posts(replace(write, packet=replace(write.packet, vlan=TAG).sealed()), {2: 0, 3: 0})
        self.says(context, 2, 0, None)
        answer = replace(self.answer(context, 3, 0), vlan=TAG + 1).sealed()
        self.send(self.ports[3], answer.to_bytes())
        self.expect([] if self.spec.holds else [self.reply(context, answer, 1)])


class OtherFieldsDoNotCount(WriteTest):
    """A UDP checksum, which nobody checks, and a limited member of the partition: packets with them are taken, and
    ICRCs are right."""

    def runTest(self) -> None:
        context = self.served()
        for psn in range(4):
            write = self.write(context, psn, self.bits([2, 3]))
            bth = replace(write.packet.bth, pkey=0x7FFF, ack_request=False)
            packet = replace(write.packet, bth=bth).sealed().with_udp_checksum()
            self.posts(replace(write, packet=packet), {2: psn, 3: psn})
            for edge in (2, 3):
                answer = self.answer(context, edge, psn).with_udp_checksum()
                self.send(self.ports[edge], answer.to_bytes())
                self.expect([self.reply(context, answer, psn + 1)] if edge == 3 and not self.spec.holds else [])
        notification = self.notification(context, 2).with_udp_checksum()
        self.send(self.ports[2], notification.to_bytes())
        self.equal("notifications", [output.port for output in self.outputs()], [self.ports[context.source]])


class ContextsThatAreNotServed(KindsTest):
    """A context whose entry is gone: what is right but for that is dropped for that, all else for the first reason."""

    def runTest(self) -> None:
        context = self.served()
        entries = configuration(self.spec, [context], self.ports).entries
        self.control.delete(*(entry for entry in entries if entry.table == "contexts"))
        write = self.write(context, 0, self.bits([2]))
        self.refused(self.ports[1], self._keyed(write).to_bytes(), "FindContext.not_served")
        for port, packet in (*self.kinds(context), *self.ticks(context)):
            self.refused(port, packet.to_bytes(), "FindContext.not_served")
            wrong = replace(packet, bth=replace(packet.bth, version=1)).sealed()
            self.refused(port, wrong.to_bytes(), "ValidatePacket.bad_version")

    def _keyed(self, write: Write) -> RocePacket:
        """The write with another key."""
        assert write.packet.reth is not None
        return replace(write.packet, reth=replace(write.packet.reth, rkey=1)).sealed()
