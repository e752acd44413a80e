"""Marks of congestion (RFC 3168): each connection ends at the switch, which tells a rank whose packets arrive marked,
and marks what it makes of them (section 4.4, congestion control)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from elements import Values
from mode_iii import (
    BROADCAST_FROM_PARENT,
    CNP,
    DOWN,
    ROOT,
    UP,
    Flow,
    ModeIIITest,
    Seen,
    ack_of,
    again,
    describe,
    is_answer,
    nak_of,
    rnr_of,
    to,
)

from p4gen.rocev2.opcodes import Nak, Opcode
from p4gen.vocabulary import Reliability

NOT_ECT, ECT1, ECT0, CE = range(4)
DSCP = 26
EVERY = tuple(Reliability)


class CongestionTest(ModeIIITest):
    """Packets of a traffic class, marked or not."""

    reliability = EVERY
    role = ROOT

    def offer(self, flow: Flow, edge: int, psn: int, values: Values, ecn: int, *, asks: bool = True) -> None:
        """A contribution as it arrives."""
        packet = self.packet_of(flow.group, edge, psn, values, asks=asks)
        self.send_from(flow.group, edge, replace(packet, ip=replace(packet.ip, tos=DSCP << 2 | ecn)).sealed())

    def offer_all(self, flow: Flow, psn: int, marked: Iterable[int], ecn: int = ECT0) -> tuple[dict[int, Values], str]:
        """A round in which the contributions of some edges arrive marked, and its result."""
        values, crossed = self.inputs(flow), set(marked)
        for edge in self.random.sample(flow.sources, len(flow.sources)):
            self.offer(flow, edge, psn, values[edge], CE if edge in crossed else ecn)
        return values, self.result(psn, values)

    def told(self, flow: Flow, marked: Iterable[int]) -> list[int]:
        """Those of some edges that get a CNP."""
        return [edge for edge in marked if flow.group.edges[edge].first_hop and self.spec.notifies]

    def check_marks(self, flow: Flow, answers: Seen, data: Seen, ecn: int, answers_ecn: int = ECT0) -> None:
        """Edges have got these answers, which are not marked, and this data, all with ``ecn``; each of the traffic
        class of what it answers or is made of."""
        received = self.received(flow.group)
        for edge, packets in enumerate(received.of_rank):
            got = [describe(packet) for packet in packets if is_answer(packet)]
            self.equal(f"edge {edge}: answers", sorted(got), sorted(answers.get(edge, ())))
            self.equal(
                f"edge {edge}: data", [describe(p) for p in packets if not is_answer(p)], list(data.get(edge, ()))
            )
            for packet in packets:
                wanted = answers_ecn if is_answer(packet) else ecn
                self.equal(f"edge {edge}: ECN of {describe(packet)}", packet.ip.tos & 3, wanted)
                self.equal(f"edge {edge}: DSCP of {describe(packet)}", packet.ip.tos >> 2, DSCP)


class MarksOfAnyMarkTheResult(CongestionTest):
    """Whichever source's contribution is marked, first, last or between: the result is, and a rank gets a CNP beside
    its ACK. Without a mark nobody gets one."""

    def runTest(self) -> None:
        flow = self.begun(self.role)
        cases = [(), *((edge,) for edge in flow.sources), tuple(flow.sources)]
        for offset, marked in enumerate(cases, start=1):
            _, result = self.offer_all(flow, self.psn(offset), marked)
            told = self.told(flow, marked)
            answers = {
                edge: [ack_of(self.psn(offset)), CNP] if edge in told else [ack_of(self.psn(offset))]
                for edge in flow.sources
            }
            self.check_marks(flow, answers, to(flow.outputs, result), CE if marked else ECT0)
            self.ack(flow.group, flow.outputs, self.psn(offset))
            self.tick(flow.group, *flow.sources)
            self.expect_nothing()


class MarksTowardTheParentMarkTheResult(MarksOfAnyMarkTheResult):
    role = UP


class MarksFromTheParentMarkTheResult(MarksOfAnyMarkTheResult):
    """Another switch has no rate that it could lower, so it gets no CNP: the mark goes on to those who have one."""

    role = DOWN


class MarksOfABroadcastMarkTheResult(MarksOfAnyMarkTheResult):
    role = BROADCAST_FROM_PARENT


class WhatIsNotCapableStaysSo(CongestionTest):
    """Neither results nor answers claim that their receivers understand marks, if contributions do not."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        for offset, ecn in enumerate((NOT_ECT, ECT1), start=1):
            _, result = self.offer_all(flow, self.psn(offset), (), ecn)
            self.check_marks(flow, to(flow.sources, ack_of(self.psn(offset))), to(flow.outputs, result), ecn, ecn)


class OneCnpFromTickToTick(CongestionTest):
    """However many marked packets come; each edge has a limit of its own. CNPs for packets beyond the range count."""

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.spec.notifies else "it sends no CNPs")

    def runTest(self) -> None:
        flow = self.begun(ROOT, acked=False)
        one, other = flow.sources[:2]
        values, psn = self.inputs(flow), self.psn
        for offset in (1, 2):
            self.offer(flow, one, psn(offset), values[one], CE, asks=False)
        self.check_marks(flow, {one: [CNP]}, {}, ECT0)
        self.offer(flow, other, psn(1), values[other], CE)
        self.check_marks(flow, {other: [CNP, ack_of(psn(1))]}, {}, ECT0)
        self.tick(flow.group, one)
        self.offer(flow, one, psn(3), values[one], CE)
        self.offer(flow, other, psn(2), values[other], CE)
        self.check_marks(flow, {one: [CNP, ack_of(psn(3))], other: [ack_of(psn(2))]}, {}, ECT0)
        for offset in range(4, self.window):
            self.offer(flow, one, psn(offset), values[one], ECT0, asks=False)
        beyond = psn(self.window)
        for answers in ([rnr_of(beyond)], [CNP, rnr_of(beyond)]):
            self.offer(flow, one, beyond, values[one], ECT0)
            self.check_marks(flow, {one: answers}, {}, ECT0)
            self.tick(flow.group, one)
            self.outputs()  # the announcement again, for it is not acknowledged


class AnswersAreNotMarked(CongestionTest):
    """A duplicate's ACK and a gap's NAK go the other way: nothing is crowded there. The mark counts all the same."""

    reliability = (Reliability.GBN,)

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        one, other = flow.sources[:2]
        values = self.inputs(flow)
        cnp = [CNP] if self.spec.notifies else []
        self.offer(flow, one, self.psn(1), values[one], ECT0)
        self.check_marks(flow, {one: [ack_of(self.psn(1))]}, {}, ECT0)
        self.offer(flow, one, self.psn(1), values[one], CE)
        self.check_marks(flow, {one: [ack_of(self.psn(1)), *cnp]}, {}, ECT0)
        self.offer(flow, other, self.psn(3), values[other], CE)
        self.check_marks(flow, {other: [nak_of(self.psn(1)), *cnp]}, {}, ECT0)


class WhatIsNoContributionBringsNoCnp(CongestionTest):
    """Marked answers say nothing of what ranks send; and what is corrupt says nothing at all."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        self.round(flow, self.psn(1), acked=False)
        for edge in flow.outputs:
            ack = self.acknowledgement(flow.group, edge, self.psn(1))
            self.send_from(flow.group, edge, replace(ack, ip=replace(ack.ip, tos=DSCP << 2 | CE)).sealed())
        self.expect_nothing()
        sound = self.packet_of(flow.group, 0, self.psn(2), self.lanes(1))
        marked = replace(sound, ip=replace(sound.ip, tos=CE))
        spoilt = replace(marked, bth=replace(sound.bth, version=1)).sealed()
        self.refused(flow.group, 0, spoilt, "ValidatePacket.bad_version")


class SlotsForgetTheirMarks(CongestionTest):
    """Neither a mark nor a request for an ACK stays in a slot for the PSN that comes next there."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        self.offer_all(flow, self.psn(1), flow.sources)
        self.outputs()
        self.ack(flow.group, flow.outputs, self.psn(1))
        self.rounds(flow, 2, self.window - 1)
        psn, values = self.psn(self.window + 1), self.inputs(flow)
        for edge in flow.sources:
            self.offer(flow, edge, psn, values[edge], ECT0, asks=False)
        self.check_marks(flow, {}, to(flow.outputs, self.result(psn, values, asks=False)), ECT0)


class ResultsAreSentAgainWithTheirMarks(CongestionTest):
    """A mark that was lost with its result still counts; and a marked NAK or tick marks nothing."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        edge = flow.outputs[0]
        for offset, (marked, ecn) in enumerate(((flow.sources[-1:], CE), ((), ECT0)), start=1):
            psn = self.psn(offset)
            _, result = self.offer_all(flow, psn, marked)
            self.outputs()
            nak = self.acknowledgement(flow.group, edge, psn, Nak().syndrome)
            self.send_from(flow.group, edge, replace(nak, ip=replace(nak.ip, tos=DSCP << 2 | CE)).sealed())
            self.check_marks(flow, {}, {edge: [again(result)]}, ecn)
            self.ack(flow.group, flow.outputs, psn)


class MarkedControlMessages(CongestionTest):
    """An announcement is a contribution like any other."""

    def runTest(self) -> None:
        flow = self.served(ROOT)
        value = self.immediate(flow, 1 << 12)
        for edge in flow.sources:
            packet = self.announcement(flow.group, edge, self.psn(0), value)
            ecn = CE if edge == flow.sources[1] else ECT0
            self.send_from(flow.group, edge, replace(packet, ip=replace(packet.ip, tos=DSCP << 2 | ecn)).sealed())
        received = self.received(flow.group)
        for edge, packets in enumerate(received.of_rank):
            marks = [packet.ip.tos & 3 for packet in packets if packet.bth.opcode == Opcode.SEND_ONLY_IMM]
            self.equal(f"edge {edge}: the announcement's ECN", marks, [CE])
            notified = sum(packet.bth.opcode == Opcode.CNP for packet in packets)
            self.equal(f"edge {edge}: CNPs", notified, len(self.told(flow, {flow.sources[1]} & {edge})))
