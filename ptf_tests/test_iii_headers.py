"""IP headers of what comes in and goes out, in Mode III."""

from __future__ import annotations

from dataclasses import replace

from mode_iii import CNP, ROOT, ModeIIITest, ack_of, control_of, is_answer, to

from p4gen.groups.config import configure
from p4gen.model.entries import Exact
from p4gen.ptf.icrcs import with_icrc
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import IPv4
from p4gen.rocev2.opcodes import Nak, Opcode
from p4gen.rocev2.packet import RocePacket
from p4gen.vocabulary import Reliability

EVERY = tuple(Reliability)


class FragmentsAndOptionsAreNotForTheEngine(ModeIIITest):
    """RoCEv2 datagrams are IPv4's version 4, without options, whole and UDP (annex A17.3.1), or IPv6's without
    extension headers; whatever else goes to an endpoint's address is ordinary traffic, to which there is no route here,
    and touches no state."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        sound = self.packet_of(flow.group, 0, self.psn(1), self.lanes(1))
        headers = [replace(sound.ip, protocol=protocol) for protocol in (0, 6, 43, 44, 60)]
        if isinstance(sound.ip, IPv4):
            # The last of these options read like a UDP header and a BTH for the switch.
            ack = self.acknowledgement(flow.group, 0, self.psn(0))
            headers += [replace(sound.ip, options=bytes(4)), replace(sound.ip, flags=0b001)]
            headers += [replace(sound.ip, flags=0, fragment_offset=offset) for offset in (1, 8)]
            headers.append(replace(ack.ipv4, options=ack.udp.pack() + ack.transport() + ack.icrc))
        for ip in headers:
            self.refused(flow.group, 0, replace(sound, ip=ip).sealed(), "Forward.no_route")
        port = replace(sound, udp=replace(sound.udp, dst_port=4792)).sealed()
        self.refused(flow.group, 0, port, "Forward.no_route")
        other = replace(sound, ip=replace(sound.ip, version=5))
        self.refused(flow.group, 0, other.sealed(icrc=sound.icrc), "Forward.no_route")
        self.round(flow, self.psn(1))


class IcrcAtTheLimits(ModeIIITest):
    """A right ICRC of all ones, or of zeros, is right, whatever the packet carries. Of IPv4, whose header has bits that
    may be anything."""

    over_ipv6 = False

    reliability = EVERY

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.spec.icrc.checked else "the program does not check the ICRC")

    def runTest(self) -> None:
        flow = self.served(ROOT)
        group, psn = flow.group, self.psn(0)
        for wanted in (b"\xff" * 4, bytes(4)):
            value, values = self.immediate(flow, 1), self.inputs(flow)
            for edge in flow.sources:
                self.send_from(group, edge, with_icrc(self.announcement(group, edge, psn, value), wanted))
            self.check(group, to(flow.sources, ack_of(psn)), to(flow.outputs, control_of(psn, value)))
            psn = serial.add(psn, 1)
            for edge in flow.sources:
                self.send_from(group, edge, with_icrc(self.packet_of(group, edge, psn, values[edge]), wanted))
            self.check(group, to(flow.sources, ack_of(psn)), to(flow.outputs, self.result(psn, values)))
            for edge in flow.outputs:
                self.send_from(group, edge, with_icrc(self.acknowledgement(group, edge, psn), wanted))
            self.expect_nothing()
            self.send_from(group, 1, with_icrc(self.notification(group, 1), wanted))
            self.check(group, to([1], CNP))
            psn = serial.add(psn, 1)
        self.equal("losses", dict(self.losses()), {})


class FirstFaultIsTheReason(ModeIIITest):
    """What is wrong with a packet itself comes before what its content would be refused for, and leaves no trace."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        psn, value = self.psn(1), self.immediate(flow, 2)
        packets = [
            self.announcement(flow.group, 0, psn, value ^ self.immediates.mask("op")),
            self.announcement(flow.group, 0, psn, self.immediates.replaced(value, collective=0)),
            replace(self.packet_of(flow.group, 0, psn, self.lanes(1)), vlan=3 << 13 | 5),
            self.acknowledgement(flow.group, 0, self.psn(3)),
        ]
        for packet in packets:
            spoilt = replace(packet, bth=replace(packet.bth, version=1)).sealed()
            self.refused(flow.group, 0, spoilt, "ValidatePacket.bad_version")
        unknown = self.announcement(flow.group, 0, psn, value & (1 << 27) - 1 | 3 << 27)
        self.refused(flow.group, 0, unknown, "FindContext.unsupported")
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


class EveryKindHasItsLength(ModeIIITest):
    """A word more or less, or none of what an opcode calls for: refused before any state is touched."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        group, word = flow.group, bytes(4)
        data = self.packet_of(group, 0, self.psn(1), self.lanes(1))
        control = self.announcement(group, 0, self.psn(1), self.immediate(flow, 2))
        ack, cnp = self.acknowledgement(group, 0, self.psn(0)), self.notification(group, 0)
        for opcode in (Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY):
            for payload in (data.payload + word, data.payload[:-4], b""):
                spoilt = replace(data, bth=replace(data.bth, opcode=opcode), payload=payload)
                self.refused(group, 0, spoilt.sealed(), "ValidatePacket.bad_length")
        for spoilt in (
            replace(control, payload=word),
            replace(control, immdt=None),
            replace(ack, payload=word),
            replace(ack, aeth=None),
            replace(cnp, payload=cnp.payload + word),
            replace(cnp, payload=cnp.payload[:-4]),
        ):
            self.refused(group, 0, spoilt.sealed(), "ValidatePacket.bad_length")
        tick = self.tick_of(group, 0)
        for spoilt in (replace(tick, payload=word), replace(tick, aeth=None)):
            self.refused_at(self.agent_port, spoilt.sealed(), "LookupTable.wrong_port")
        # Frames that are not as long as their headers say; the last one's opcode is none of ours.
        shorter = replace(data, payload=data.payload[:-4]).sealed(udp_length=data.udp.length)
        self.refused(group, 0, shorter, "ValidatePacket.truncated")
        self.refused(group, 0, data.to_bytes() + word, "ValidatePacket.bad_length")
        foreign = replace(data, bth=replace(data.bth, opcode=Opcode.WRITE_ONLY)).sealed()
        self.refused(group, 0, foreign.to_bytes()[:-4], "ValidatePacket.truncated")
        self.round(flow, self.psn(1))


class HalfAConfiguration(ModeIIITest):
    """While a group is being set up: without its context's entry nothing is served, and a copy for an edge without an
    entry is counted and not sent."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.make_flow(ROOT)
        config = configure(self.spec, [flow.group])
        context = [entry for entry in config.entries if entry.table == self.keeps_epochs[0]]
        missing = flow.group.edges[2].edge_id
        edge = [e for e in config.entries if e.table == "edges" and e.match["edge"] == Exact(missing)]
        self.equal("entries left out", (bool(context), len(edge)), (True, 1))
        entries = tuple(entry for entry in config.entries if entry not in (*context, *edge))
        self.install(replace(config, entries=entries))
        value = self.immediate(flow, 1)
        self.refused(flow.group, 0, self.announcement(flow.group, 0, self.psn(0), value), "FindContext.not_served")
        self.control.insert(*context)
        before = self.all_drops()
        self.announce(flow.group, flow.sources, self.psn(0), value)
        others = [output for output in flow.outputs if output != 2]
        self.check(flow.group, to(others, ack_of(self.psn(0))), to(others, control_of(self.psn(0), value)))
        dropped = self.all_drops() - before
        self.equal("without an edge's entry", dropped["TranslateHeader.unknown_edge"], 2)
        self.control.insert(*edge)
        self.tick(flow.group, 2, 2)
        self.check(flow.group, {}, {2: [control_of(self.psn(0), value)]})


class AnswersSolicitNothing(ModeIIITest):
    """The bits that a sender sets for its message are not an answer's; the base class looks at those that come out."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        packet = self.packet_of(flow.group, 0, self.psn(1), self.lanes(1))
        self.send_from(flow.group, 0, replace(packet, bth=replace(packet.bth, solicited=True)).sealed())
        self.check(flow.group, {0: [ack_of(self.psn(1))]})


class ReservedFlagsDoNoHarm(ModeIIITest):
    """Don't Fragment may be set or not, and the reserved flag is nobody's business."""

    over_ipv6 = False

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        for offset, flags in ((1, 0b000), (2, 0b010), (3, 0b110)):
            values, psn = self.inputs(flow), self.psn(offset)
            for edge in flow.sources:
                packet = self.packet_of(flow.group, edge, psn, values[edge])
                self.send_from(flow.group, edge, replace(packet, ip=replace(packet.ipv4, flags=flags)).sealed())
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


class MarksStayWithThePacketThatHasThem(ModeIIITest):
    """Neither an answer nor what a NAK has sent again has the FECN and the BECN of the packet that it is made of."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        psn, values = self.psn(1), self.inputs(flow)
        for edge in flow.sources:
            self.send_from(flow.group, edge, self.marked(self.packet_of(flow.group, edge, psn, values[edge])))
        answers = [p for packets in self.received(flow.group).of_rank for p in packets if is_answer(p)]
        self.send_from(flow.group, 1, self.marked(self.acknowledgement(flow.group, 1, psn, Nak().syndrome)))
        again = [p for packets in self.received(flow.group).of_rank for p in packets]
        self.equal("answers, results that are sent again", (len(answers), len(again)), (len(flow.sources), 1))
        self.equal("FECN and BECN", {(p.bth.fecn, p.bth.becn) for p in (*answers, *again)}, {(False, False)})

    def marked(self, packet: RocePacket) -> RocePacket:
        """A packet with both marks, which its ICRC does not cover."""
        return replace(packet, bth=replace(packet.bth, fecn=True, becn=True))
