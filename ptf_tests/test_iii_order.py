"""Contributions in and out of order, and the answers to their senders (Algorithm 2, lines 33-38; Algorithm 3; H.4).

A switch answers like a RoCE responder: with an ACK to a packet that asks for one, again to a repeated one, and with one
NAK per gap that names the expected PSN.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from inc import FRAGMENTS_AND_OPTIONS
from mode_iii import (
    BROADCAST_FROM_CHILD,
    BROADCAST_FROM_PARENT,
    CNP,
    DOWN,
    REDUCE_TO_CHILD,
    REDUCE_TO_PARENT,
    ROOT,
    UP,
    Flow,
    ModeIIITest,
    ack_of,
    again,
    control_of,
    invalid_of,
    nak_of,
    to,
)

from p4gen.papers.epic.spec import Mode
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import IPv4
from p4gen.rocev2.opcodes import Opcode
from p4gen.vocabulary import Reliability
from p4gen.vocabulary.message import Collective

EVERY = tuple(Reliability)


class Contributions(ModeIIITest):
    """Each is acknowledged at once, to its sender alone; the last one brings the result, too."""

    role = ROOT
    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(self.role)
        for offset in (1, 2, 3):
            psn, values = self.psn(offset), self.inputs(flow)
            *early, last = self.random.sample(flow.sources, len(flow.sources))
            for edge in early:
                self.push(flow, [edge], psn, values)
                self.check(flow.group, to([edge], ack_of(psn)))
            self.push(flow, [last], psn, values)
            self.check(flow.group, to([last], ack_of(psn)), to(flow.outputs, self.result(psn, values)))


class ContributionsToTheParent(Contributions):
    role = UP


class ResultsFromTheParent(Contributions):
    role = DOWN


class ReduceTowardAChild(Contributions):
    role = REDUCE_TO_CHILD


class ReduceTowardTheParent(Contributions):
    role = REDUCE_TO_PARENT


class BroadcastFromAChild(Contributions):
    role = BROADCAST_FROM_CHILD


class BroadcastFromTheParent(Contributions):
    role = BROADCAST_FROM_PARENT


class ContributionsAcrossTheWrap(Contributions):
    wraps = True


class AcksOnlyForThoseWhoAsk(ModeIIITest):
    """A message's first and middle packets need no ACK of their own; a result asks for one if any source did."""

    modes = (Mode.III,)
    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT, edges=3)
        for offset, (opcode, asking) in enumerate(
            [
                (Opcode.SEND_FIRST, ()),
                (Opcode.SEND_MIDDLE, (1,)),
                (Opcode.SEND_MIDDLE, (2,)),
                (Opcode.SEND_LAST, (0, 2)),
            ],
            start=1,
        ):
            psn, values = self.psn(offset), self.inputs(flow)
            for edge in flow.sources:
                self.push(flow, [edge], psn, values, opcode, asks=edge in asking)
            result = self.result(psn, values, opcode, asks=bool(asking))
            self.check(flow.group, to(asking, ack_of(psn)), to(flow.outputs, result))
        self.equal("losses", self.losses(), Counter())


class DuplicateIsAcknowledgedAgain(ModeIIITest):
    """Whoever lost an ACK repeats itself: the newest PSN is acknowledged, nothing is added, nobody else hears of it."""

    role = ROOT
    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(self.role)
        source = flow.sources[0]
        psn, values = self.psn(1), self.inputs(flow)
        others = [edge for edge in flow.sources if edge != source]
        self.push(flow, [source], psn, values)
        done = {} if others else to(flow.outputs, self.result(psn, values))
        self.check(flow.group, to([source], ack_of(psn)), done)
        # Before the result and after it, whatever the repeated packet holds, and whether it asks or not.
        self.push(flow, [source, source], psn, self.inputs(flow))
        self.push(flow, [source], psn, values, asks=False)
        self.check(flow.group, to([source], *[ack_of(psn)] * 3))
        if others:
            self.push(flow, others, psn, values)
            self.check(flow.group, to(others, ack_of(psn)), to(flow.outputs, self.result(psn, values)))
        self.push(flow, [source], psn, self.inputs(flow))
        self.check(flow.group, to([source], ack_of(psn)))
        # An older one is acknowledged with the newest, too: ACKs are cumulative.
        self.round(flow, self.psn(2))
        self.push(flow, [source], psn, values)
        self.announce(flow.group, [source], self.psn(0), self.immediate(flow, 1 << 12))
        self.check(flow.group, to([source], *[ack_of(self.psn(2))] * 2))
        self.equal("losses", self.losses(), Counter({"CheckOrder.duplicate": 6}))


class DuplicateToTheParentIsAcknowledgedAgain(DuplicateIsAcknowledgedAgain):
    role = UP


class DuplicateFromTheParentIsAcknowledgedAgain(DuplicateIsAcknowledgedAgain):
    role = DOWN


class DuplicateInABroadcastIsAcknowledgedAgain(DuplicateIsAcknowledgedAgain):
    role = BROADCAST_FROM_CHILD


class DuplicateAcrossTheWrapIsAcknowledgedAgain(DuplicateIsAcknowledgedAgain):
    wraps = True


class DuplicateOfWhatLeftItsSlot(ModeIIITest):
    """A packet so late that its slot serves another PSN is acknowledged, and harms nothing."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT, edges=2)
        old = self.inputs(flow)
        self.rounds(flow, 1, self.window)
        newer = self.psn(self.window + 1)
        values = self.inputs(flow)
        self.push(flow, [0], newer, values)
        self.push(flow, [0, 1], self.psn(1), old)
        self.push(flow, [1], newer, values)
        before = self.psn(self.window)
        self.check(
            flow.group,
            {0: [ack_of(newer), ack_of(newer)], 1: [ack_of(before), ack_of(newer)]},
            to(flow.outputs, self.result(newer, values)),
        )


class GapIsReportedOnce(ModeIIITest):
    """Out of order: one NAK with the PSN expected, then silence until it comes; then the next gap is another (H.4)."""

    role = ROOT

    def runTest(self) -> None:
        flow = self.begun(self.role)
        source, *others = flow.sources
        for first in (1, 3):  # twice, so that the limiter is seen to be reset
            numbers = [self.psn(first + index) for index in range(4)]
            rounds = [self.inputs(flow) for _ in numbers]
            for psn, values in zip(numbers[1:], rounds[1:], strict=True):
                self.push(flow, [source], psn, values)
            self.check(flow.group, to([source], nak_of(numbers[0])))
            results = [self.result(psn, values) for psn, values in zip(numbers[:2], rounds[:2], strict=True)]
            # Nothing of what was out of order has been kept.
            for psn, values in zip(numbers[:2], rounds[:2], strict=True):
                self.push(flow, others, psn, values)
            self.check(flow.group, to(others, *map(ack_of, numbers[:2])))
            for psn, values in zip(numbers[:2], rounds[:2], strict=True):
                self.push(flow, [source], psn, values)
            self.check(flow.group, to([source], *map(ack_of, numbers[:2])), to(flow.outputs, *results))
            self.ack(flow.group, flow.outputs, numbers[1])
        self.equal("losses", self.losses(), Counter({"CheckOrder.gap": 6}))


class GapTowardTheParentIsReportedOnce(GapIsReportedOnce):
    role = UP


class GapInAReduceIsReportedOnce(GapIsReportedOnce):
    role = REDUCE_TO_CHILD


class GapAcrossTheWrapIsReportedOnce(GapIsReportedOnce):
    wraps = True


class GapFromTheParentIsReportedOnce(ModeIIITest):
    """With a single source, what is out of order has nowhere to wait either."""

    role = DOWN

    def runTest(self) -> None:
        flow = self.begun(self.role)
        (source,) = flow.sources
        rounds = {offset: self.inputs(flow) for offset in range(1, 5)}
        for offset in (2, 3, 4):
            self.push(flow, [source], self.psn(offset), rounds[offset])
        self.check(flow.group, to([source], nak_of(self.psn(1))))
        for offset in (1, 3, 4, 2):
            self.push(flow, [source], self.psn(offset), rounds[offset])
        results = [self.result(self.psn(offset), rounds[offset]) for offset in (1, 2)]
        answers = [ack_of(self.psn(1)), nak_of(self.psn(2)), ack_of(self.psn(2))]
        self.check(flow.group, to([source], *answers), to(flow.outputs, *results))


class GapInABroadcastIsReportedOnce(GapFromTheParentIsReportedOnce):
    role = BROADCAST_FROM_CHILD


class GapsOfTwoEdgesAreTwo(ModeIIITest):
    """Each edge has its own expectation, and its own limiter."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        values = self.inputs(flow)
        self.push(flow, [0, 1, 0, 1], self.psn(2), values)
        self.check(flow.group, to([0, 1], nak_of(self.psn(1))))
        self.push(flow, [0], self.psn(1), values)
        self.push(flow, [0, 1], self.psn(3), values)
        self.check(flow.group, {0: [ack_of(self.psn(1)), nak_of(self.psn(2))]})


class DuplicateDoesNotEndAGap(ModeIIITest):
    """A repeated packet is acknowledged while a gap is open, and lets no second NAK through."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        values = self.inputs(flow)
        self.push(flow, [0], self.psn(1), values)
        self.push(flow, [0], self.psn(3), values)
        self.push(flow, [0], self.psn(1), values)
        self.push(flow, [0], self.psn(4), values)
        self.check(flow.group, to([0], ack_of(self.psn(1)), nak_of(self.psn(2)), ack_of(self.psn(1))))


class HalfTheNumberSpaceDividesNewFromOld(ModeIIITest):
    """PSN + 2^23 is old, and acknowledged; one less is new, and shows a gap."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        values = self.inputs(flow)
        self.push(flow, [0], self.psn(1 + serial.HALF), values)
        self.check(flow.group, to([0], ack_of(self.psn(0))))
        self.push(flow, [0], self.psn(serial.HALF), values)
        self.check(flow.group, to([0], nak_of(self.psn(1))))
        self.round(flow, self.psn(1))


class MixedOpcodesBreakAQueuePair(ModeIIITest):
    """Sources that disagree where messages begin and end must not be reduced into one packet: invalid request."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT, edges=3)
        psn, values = self.psn(1), self.inputs(flow)
        self.push(flow, [0], psn, values, Opcode.SEND_ONLY)
        self.push(flow, [1], psn, values, Opcode.SEND_FIRST)
        self.push(flow, [2], psn, values, Opcode.SEND_LAST)
        self.check(flow.group, {0: [ack_of(psn)]} | to([1, 2], invalid_of(psn)))
        self.equal("losses", self.losses(), Counter({"CheckDuplicate.mixed_opcode": 2}))


class RanksThatCallDifferentCollectives(ModeIIITest):
    """A source that announces something else is told: invalid request."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.served(ROOT, edges=3)
        psn, value = self.psn(0), self.immediate(flow, 9)
        self.announce(flow.group, [0], psn, value)
        slots = self.control.registers("IncIngress.check_duplicate.slots")
        self.announce(flow.group, [1], psn, value ^ 1)
        self.check(flow.group, {0: [ack_of(psn)], 1: [invalid_of(psn)]})
        self.equal("losses", self.losses(), Counter({"CheckDuplicate.mixed_control": 1}))
        self.equal("slots", self.control.registers("IncIngress.check_duplicate.slots"), slots)
        # Its announcement does not stand for the right one.
        self.announce(flow.group, [2], psn, value)
        self.check(flow.group, {2: [ack_of(psn)]})


class AnnouncementWhereOthersSendData(ModeIIITest):
    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT, edges=3)
        self.push(flow, [0], self.psn(1), self.inputs(flow))
        self.announce(flow.group, [1], self.psn(1), self.immediate(flow, 9))
        self.check(flow.group, {0: [ack_of(self.psn(1))], 1: [invalid_of(self.psn(1))]})
        self.equal("losses", self.losses(), Counter({"CheckDuplicate.mixed_opcode": 1}))


class UdpChecksumsOfSendersAreNotPassedOn(ModeIIITest):
    """A sender may use UDP checksums; a result or an answer that kept one would be dropped by every receiver."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        psn, values = self.psn(1), self.inputs(flow)
        for edge in flow.sources:
            self.send_from(flow.group, edge, self.packet_of(flow.group, edge, psn, values[edge]).with_udp_checksum())
        self.check(flow.group, to(flow.sources, ack_of(psn)), to(flow.outputs, self.result(psn, values)))


class CongestionMarksOfASenderDoNoHarm(ModeIIITest):
    """ECN bits, other traffic classes and FECN change on the way and are no part of the ICRC; a mark brings a CNP."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        psn, values = self.psn(1), self.inputs(flow)
        for edge in flow.sources:
            packet = self.packet_of(flow.group, edge, psn, values[edge])
            marked = replace(packet, ip=replace(packet.ip, tos=0x6B, ttl=3), bth=replace(packet.bth, fecn=True))
            self.send_from(flow.group, edge, marked.sealed())
        answers = [ack_of(psn), CNP] if self.spec.notifies else [ack_of(psn)]
        self.check(flow.group, to(flow.sources, *answers), to(flow.outputs, self.result(psn, values)))


class CorruptPacketsLeaveNoTrace(ModeIIITest):
    """A wrong ICRC anywhere is refused before any state is touched; the sound packet is still expected after it."""

    reliability = EVERY

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.spec.icrc.checked else "the program does not check the ICRC")

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        group, psn, values = flow.group, self.psn(1), self.inputs(flow)
        sound = self.packet_of(group, 0, psn, values[0])
        spoilt = bytes([sound.payload[0] ^ 1]) + sound.payload[1:]
        self.refused(group, 0, replace(sound, payload=spoilt), "CheckIcrc.bad_icrc")
        announcement = self.announcement(group, 0, psn, self.immediate(flow, 9))
        self.refused(group, 0, replace(announcement, icrc=bytes(4)), "CheckIcrc.bad_icrc")
        ack = self.acknowledgement(group, 0, self.psn(0))
        self.refused(group, 0, replace(ack, bth=replace(ack.bth, psn=self.psn(5))), "CheckIcrc.bad_icrc")
        tick = self.tick_of(group, 0)
        self.refused_at(self.agent_port, replace(tick, icrc=bytes(4)), "CheckIcrc.bad_icrc")
        notification = self.notification(group, 0)
        for corrupt in (
            replace(notification, icrc=bytes(4)),
            replace(notification, payload=bytes(15) + b"\1"),
            replace(notification, bth=replace(notification.bth, psn=1)),
        ):
            self.refused(group, 0, corrupt, "CheckIcrc.bad_icrc")
        self.round(flow, psn)


class OthersMayNotSendForAnEdge(ModeIIITest):
    """Packets, answers and ticks with an unknown QP or from another address than the edge's other end."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        group, values = flow.group, self.inputs(flow)
        for sound, port in (
            (self.packet_of(group, 0, self.psn(1), values[0]), group.edges[0].port),
            (self.acknowledgement(group, 0, self.psn(0)), group.edges[0].port),
            (self.tick_of(group, 0), self.agent_port),
        ):
            forged = replace(sound, ip=replace(sound.ip, src=group.edges[1].remote.ip)).sealed()
            self.refused_at(port, forged, "LookupTable.unknown_source")
            astray = replace(sound, bth=replace(sound.bth, dst_qp=0xABCDE)).sealed()
            self.refused_at(port, astray, "LookupTable.unknown_qp")
        self.round(flow, self.psn(1))


class MalformedPacketsLeaveNoTrace(ModeIIITest):
    """What a NIC would refuse is refused: wrong lengths, checksums, versions, partitions, opcodes."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        group, values = flow.group, self.inputs(flow)
        sound = self.packet_of(group, 0, self.psn(1), values[0])
        bth = sound.bth
        if isinstance(sound.ip, IPv4):
            wrong = sound.sealed(checksum=sound.ip.checksum ^ 1)
            self.refused(group, 0, wrong, "ValidatePacket.bad_ip_checksum")
        for spoilt, reason in (
            (replace(sound, payload=sound.payload[:-4]).sealed(), "bad_length"),
            (replace(sound, bth=replace(bth, version=1)).sealed(), "bad_version"),
            (replace(sound, bth=replace(bth, pkey=0x1234)).sealed(), "bad_pkey"),
            (replace(sound, bth=replace(bth, opcode=Opcode.WRITE_ONLY)).sealed(), "bad_opcode"),
            (replace(sound, bth=replace(bth, pad_count=1)).sealed(), "bad_length"),
        ):
            self.refused(group, 0, spoilt, f"ValidatePacket.{reason}")
        self.refused(group, 0, sound.to_bytes()[:-9], "ValidatePacket.truncated")
        longer = sound.sealed(total_length=sound.ip.total_length + 4).to_bytes() + bytes(4)
        self.refused(group, 0, longer, "ValidatePacket.bad_length")
        self.round(flow, self.psn(1))


class FragmentsAndOptionsAreNotForTheEngine(ModeIIITest):
    """To an endpoint, of any kind: no state is touched. There is no route to the switch's own address here."""

    over_ipv6 = False
    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        group, psn, values = flow.group, self.psn(1), self.inputs(flow)
        kinds = (
            (self.packet_of(group, 0, psn, values[0]), group.edges[0].port),
            (self.announcement(group, 0, psn, self.immediate(flow, 1)), group.edges[0].port),
            (self.acknowledgement(group, 0, self.psn(0)), group.edges[0].port),
            (self.notification(group, 0), group.edges[0].port),
            (self.tick_of(group, 0), self.agent_port),
        )
        for sound, port in kinds:
            for fields in FRAGMENTS_AND_OPTIONS:
                self.refused_at(port, replace(sound, ip=replace(sound.ip, **fields)).sealed(), "Forward.no_route")
        self.round(flow, psn)


class MessagesKeepTheirShape(ModeIIITest):
    """Messages of several packets, all sources at their own pace: results come in order and are right."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        opcodes = [Opcode.SEND_FIRST, *[Opcode.SEND_MIDDLE] * 2, Opcode.SEND_LAST, Opcode.SEND_ONLY]
        opcodes = opcodes[: self.window - 1]
        opcodes[-1] = {Opcode.SEND_FIRST: Opcode.SEND_ONLY, Opcode.SEND_MIDDLE: Opcode.SEND_LAST}.get(
            opcodes[-1], opcodes[-1]
        )
        rounds = [self.inputs(flow) for _ in opcodes]
        for edge in self.random.sample(flow.sources, len(flow.sources)):
            for offset, (opcode, values) in enumerate(zip(opcodes, rounds, strict=True), start=1):
                self.push(flow, [edge], self.psn(offset), values, opcode)
        numbered = list(enumerate(zip(opcodes, rounds, strict=True), start=1))
        asked = [ack_of(self.psn(o)) for o, (opcode, _) in numbered if opcode in (Opcode.SEND_LAST, Opcode.SEND_ONLY)]
        results = [self.result(self.psn(o), values, opcode) for o, (opcode, values) in numbered]
        self.check(flow.group, to(flow.sources, *asked), to(flow.outputs, *results))
        # They are repeated with their own opcodes.
        self.tick(flow.group, 1, 1)
        self.check(flow.group, {}, to([1], *map(again, results)))


class BarrierPassesWithAnAnnouncementAlone(ModeIIITest):
    """A barrier is a control message of no packets; one follows the other."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.served(ROOT)
        value = self.call(Collective.BARRIER, 0).encode()
        for offset in range(self.window + 2):
            psn = self.psn(offset)
            *early, last = self.random.sample(flow.sources, len(flow.sources))
            self.announce(flow.group, early, psn, value)
            self.check(flow.group, to(early, ack_of(psn)))
            self.announce(flow.group, [last], psn, value)
            self.check(flow.group, to([last], ack_of(psn)), to(flow.outputs, control_of(psn, value)))
            self.ack(flow.group, flow.outputs, psn)


class AnswersCountMessages(ModeIIITest):
    """The MSN of an ACK or NAK: messages that its edge has sent whole, the announcement among them. Each edge has its
    own; duplicates and packets inside a message count nothing; a new epoch begins at 0."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.served(ROOT)
        one, other = flow.sources[:2]
        values, psn = self.inputs(flow), self.psn
        self.announce(flow.group, [one, other], psn(0), self.immediate(flow, 64))
        self.equal("MSNs after announcements", self.numbers_of(flow), {one: [1], other: [1]})
        self.push(flow, [one], psn(1), values, Opcode.SEND_FIRST, asks=True)
        self.push(flow, [one], psn(2), values, Opcode.SEND_MIDDLE, asks=True)
        self.equal("MSNs inside a message", self.numbers_of(flow), {one: [1, 1]})
        self.push(flow, [one], psn(3), values, Opcode.SEND_LAST, asks=True)
        self.push(flow, [one], psn(3), values, Opcode.SEND_LAST, asks=True)
        self.equal("MSNs at its end, and of a duplicate", self.numbers_of(flow), {one: [2, 2]})
        self.push(flow, [other], psn(1), values, Opcode.SEND_FIRST, asks=True)
        self.equal("MSNs of another edge", self.numbers_of(flow), {other: [1]})
        later = replace(flow, group=replace(flow.group, epoch=2))
        self.reconfigure(later.group)
        self.announce(later.group, [one], psn(0), self.immediate(later, 64))
        self.equal("MSNs in a new epoch", self.numbers_of(later), {one: [1]})

    def numbers_of(self, flow: Flow) -> dict[int, list[int]]:
        """The MSNs of the ACKs and NAKs that each edge has got."""
        received = self.received(flow.group).of_rank
        found = {edge: [packet.aeth.msn for packet in got if packet.aeth] for edge, got in enumerate(received)}
        return {edge: numbers for edge, numbers in found.items() if numbers}


class MessagesBehindAGapAreNotCounted(AnswersCountMessages):
    """While something is missing the MSN stays; when the gap closes it counts all."""

    reliability = (Reliability.SR,)

    def runTest(self) -> None:
        flow = self.served(ROOT)
        one = flow.sources[0]
        values, psn = self.inputs(flow), self.psn
        self.announce(flow.group, [one], psn(0), self.immediate(flow, 64))
        self.push(flow, [one], psn(2), values)
        self.push(flow, [one], psn(3), values)
        self.equal("MSNs with a gap", set(self.numbers_of(flow)[one]), {1})
        self.push(flow, [one], psn(1), values)
        self.equal("MSNs without", self.numbers_of(flow), {one: [4]})
