"""IPv4 headers of what comes in and goes out, in Mode III."""

from __future__ import annotations

from dataclasses import replace

from mode_iii import ROOT, ModeIIITest, ack_of, is_answer, to

from p4gen.spec import Reliability

EVERY = tuple(Reliability)


class FragmentsAndOptionsAreNotForTheEngine(ModeIIITest):
    """RoCEv2 datagrams are IPv4's version 4, without options, whole and UDP (annex A17.3.1); whatever else goes to an
    endpoint's address is ordinary traffic, to which there is no route here, and touches no state."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        sound = self.packet_of(flow.group, 0, self.psn(1), self.lanes(1))
        for ip in (
            replace(sound.ip, options=bytes(4)),
            replace(sound.ip, flags=0b001),
            replace(sound.ip, flags=0, fragment_offset=1),
            replace(sound.ip, flags=0, fragment_offset=8),
            replace(sound.ip, protocol=6),
        ):
            self.refused(flow.group, 0, replace(sound, ip=ip).sealed(), "Forward.no_route")
        port = replace(sound, udp=replace(sound.udp, dst_port=4792)).sealed()
        self.refused(flow.group, 0, port, "Forward.no_route")
        other = replace(sound, ip=replace(sound.ip, version=5))
        self.refused(flow.group, 0, other.sealed(icrc=sound.icrc), "Forward.no_route")
        self.round(flow, self.psn(1))


class FirstFaultIsTheReason(ModeIIITest):
    """What is wrong with a packet itself comes before what its content would be refused for, and leaves no trace."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        psn, value = self.psn(1), self.immediate(flow, 2)
        packets = [
            self.announcement(flow.group, 0, psn, value ^ 1 << 28),
            self.announcement(flow.group, 0, psn, value & (1 << 29) - 1),
            replace(self.packet_of(flow.group, 0, psn, self.lanes(1)), vlan=3 << 13 | 5),
            self.acknowledgement(flow.group, 0, self.psn(3)),
        ]
        for packet in packets:
            spoilt = replace(packet, bth=replace(packet.bth, version=1)).sealed()
            self.refused(flow.group, 0, spoilt, "ValidatePacket.bad_version")
        unknown = self.announcement(flow.group, 0, psn, value & (1 << 27) - 1 | 3 << 27)
        self.refused(flow.group, 0, unknown, "TrackInvocation.unsupported")
        self.round(flow, psn)


class CnpsOfOtherOpcodes(ModeIIITest):
    """As long as a notification, but of another opcode: not one."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        sound = self.notification(flow.group, 1)
        for opcode in (0x80, 0x82, 0xC3, 0x1F):
            spoilt = replace(sound, bth=replace(sound.bth, opcode=opcode)).sealed()
            self.refused(flow.group, 1, spoilt, "ValidatePacket.bad_opcode")


class ReservedFlagsDoNoHarm(ModeIIITest):
    """Don't Fragment may be set or not, and the reserved flag is nobody's business."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        for offset, flags in ((1, 0b000), (2, 0b010), (3, 0b110)):
            values, psn = self.inputs(flow), self.psn(offset)
            for edge in flow.sources:
                packet = self.packet_of(flow.group, edge, psn, values[edge])
                self.send_from(flow.group, edge, replace(packet, ip=replace(packet.ip, flags=flags)).sealed())
            self.check(flow.group, to(flow.sources, ack_of(psn)), to(flow.outputs, self.result(psn, values)))
            self.ack(flow.group, flow.outputs, psn)


class DscpIsKept(ModeIIITest):
    """Results and answers travel in the class of service that their collective's packets came in."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        for offset, dscp in ((1, 26), (2, 46)):
            values = self.inputs(flow)
            for edge in flow.sources:
                packet = self.packet_of(flow.group, edge, self.psn(offset), values[edge])
                self.send_from(flow.group, edge, replace(packet, ip=replace(packet.ip, tos=dscp << 2)).sealed())
            for edge, packets in enumerate(self.received(flow.group).of_rank):
                self.equal(f"edge {edge}: answers and results", [is_answer(p) for p in packets].count(True), 1)
                self.equal(f"edge {edge}: packets", len(packets), 2)
                self.equal(f"edge {edge}: DSCP", {packet.ip.tos >> 2 for packet in packets}, {dscp})
