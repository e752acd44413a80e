"""Selective repeat at a switch: packets out of order are kept, and only missing ones are requested (section C).

With reliability sr, a NAK names the PSN expected, once; with sack, every gap is reported at once by a selective NAK.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import ClassVar

from mode_iii import (
    BURST,
    DOWN,
    ROOT,
    UP,
    Flow,
    ModeIIITest,
    ack_of,
    again,
    control_of,
    invalid_of,
    nak_of,
    selective_of,
    to,
)

from p4gen.rocev2.opcodes import Nak, NakCode, Opcode
from p4gen.vocabulary import Reliability

SR, SACK = Reliability.SR, Reliability.SACK
SELECTIVE = Nak(NakCode.SELECTIVE).syndrome
REORDERING = 128


class SelectiveTest(ModeIIITest):
    """One source sends out of order, after the others have sent all their packets in order."""

    reliability: ClassVar[tuple[Reliability, ...]] = (SR, SACK)
    role = ROOT

    def offsets(self, flow: Flow, order: list[int], source: int, answers: list[str]) -> None:
        """``source`` sends the packets of ``order`` and gets ``answers``; results complete in this order."""
        last = max(order)
        rounds = {offset: self.inputs(flow) for offset in range(1, last + 1)}
        others = [edge for edge in flow.sources if edge != source]
        for offset, values in rounds.items():
            self.push(flow, others, self.psn(offset), values)
        acked = [ack_of(self.psn(offset)) for offset in rounds]
        self.check(flow.group, to(others, *acked))
        for offset in order:
            self.push(flow, [source], self.psn(offset), rounds[offset])
        first = list(dict.fromkeys(order))
        results = [self.result(self.psn(offset), rounds[offset]) for offset in first]
        self.check(flow.group, to([source], *answers), to(flow.outputs, *results))


class OutOfOrderIsKept(SelectiveTest):
    """One NAK of the missing packet; when it arrives, all are acknowledged at once."""

    reliability = (SR,)

    def runTest(self) -> None:
        flow = self.begun(self.role)
        answers = [nak_of(self.psn(1)), ack_of(self.psn(0)), ack_of(self.psn(3))]
        self.offsets(flow, [2, 3, 1], flow.sources[0], answers)
        self.equal("losses", dict(self.losses()), {})


class OutOfOrderTowardTheParentIsKept(OutOfOrderIsKept):
    role = UP


class OutOfOrderFromTheParentIsKept(OutOfOrderIsKept):
    role = DOWN


class OutOfOrderAcrossTheWrapIsKept(OutOfOrderIsKept):
    wraps = True


class NakOncePerExpectedPsn(SelectiveTest):
    """While 1 is missing there is one NAK; when 1 comes and 3 is missing, another one, which acknowledges 1 and 2."""

    reliability = (SR,)

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        answers = [
            *(nak_of(self.psn(1)), ack_of(self.psn(0)), ack_of(self.psn(0))),
            *(nak_of(self.psn(3)), ack_of(self.psn(2)), ack_of(self.psn(6))),
        ]
        self.offsets(flow, [2, 4, 5, 1, 6, 3], 0, answers)


class LaterGapThatClosesFirst(SelectiveTest):
    """3 arrives before 1: the expected PSN is the same, and has been requested."""

    reliability = (SR,)

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        answers = [nak_of(self.psn(1)), *[ack_of(self.psn(0))] * 2, ack_of(self.psn(4))]
        self.offsets(flow, [2, 4, 3, 1], 0, answers)


class EveryGapIsReportedAtOnce(SelectiveTest):
    """By its first PSN and its size; it acknowledges nothing."""

    reliability = (SACK,)

    def runTest(self) -> None:
        flow = self.begun(self.role)
        answers = [
            *(selective_of(self.psn(1), 1), selective_of(self.psn(3), 2), ack_of(self.psn(0))),
            *(ack_of(self.psn(0)), ack_of(self.psn(3)), ack_of(self.psn(6))),
        ]
        self.offsets(flow, [2, 5, 6, 3, 1, 4], flow.sources[0], answers)
        self.equal("losses", dict(self.losses()), {})


class EveryGapTowardTheParentIsReportedAtOnce(EveryGapIsReportedAtOnce):
    role = UP


class EveryGapFromTheParentIsReportedAtOnce(EveryGapIsReportedAtOnce):
    role = DOWN


class EveryGapAcrossTheWrapIsReportedAtOnce(EveryGapIsReportedAtOnce):
    wraps = True


class GapClosesWithAnAck(SelectiveTest):
    """A packet that closes a gap is acknowledged even if it does not ask for it: its sender is waiting for an ACK."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        values = self.inputs(flow)
        self.push(flow, [0], self.psn(2), values)
        self.push(flow, [0], self.psn(1), values, asks=False)
        first = selective_of(self.psn(1), 1) if self.spec.loss_recovery.selective_naks else nak_of(self.psn(1))
        self.check(flow.group, to([0], first, ack_of(self.psn(2))))


class RepeatedOutOfOrder(SelectiveTest):
    """A packet that was kept out of order is a duplicate when it is repeated, before the gap closes and after it."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        first = selective_of(self.psn(1), 1) if self.spec.loss_recovery.selective_naks else nak_of(self.psn(1))
        answers = [first, ack_of(self.psn(0)), ack_of(self.psn(2)), *[ack_of(self.psn(2))] * 2]
        self.offsets(flow, [2, 2, 1, 2, 1], 0, answers)
        self.equal("losses", self.losses(), Counter({"CheckOrder.duplicate": 3}))


class AnnouncementsAreTakenInOrder(SelectiveTest):
    """A control message out of order is not kept, since it announces the data that may follow; the gap is reported."""

    def runTest(self) -> None:
        flow = self.begun(ROOT, 1)
        values, value = self.inputs(flow), self.immediate(flow, 3)
        self.announce(flow.group, [0], self.psn(2), value)
        self.check(flow.group, to([0], nak_of(self.psn(1))))
        self.push(flow, flow.sources, self.psn(1), values)
        self.check(
            flow.group, to(flow.sources, ack_of(self.psn(1))), to(flow.outputs, self.result(self.psn(1), values))
        )
        self.ack(flow.group, flow.outputs, self.psn(1))
        self.begin(flow, 3, psn=self.psn(2))
        # The limiter has been reset: the next gap is reported, too.
        self.push(flow, [0], self.psn(4), values)
        wanted = selective_of(self.psn(3), 1) if self.spec.loss_recovery.selective_naks else nak_of(self.psn(3))
        self.check(flow.group, to([0], wanted))


class DataBehindAMissingAnnouncement(SelectiveTest):
    """The data is not announced yet, so it is not kept; a NAK requests the control message."""

    def runTest(self) -> None:
        flow = self.begun(ROOT, 1)
        self.round(flow, self.psn(1))
        values = self.inputs(flow)
        self.push(flow, [0, 0], self.psn(3), values)
        self.check(flow.group, to([0], nak_of(self.psn(2))))
        self.begin(flow, 3, psn=self.psn(2))
        self.round(flow, self.psn(3))


class OutOfOrderBeyondTheRange(SelectiveTest):
    """There is no slot for the packet: the range limits packets out of order, too."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        self.ack(flow.group, flow.outputs, self.psn(0))
        beyond = self.window + 1
        if beyond > REORDERING - 4:
            self.skipTest("the reorder window ends before the range does")
        values = self.inputs(flow)
        drops = self.drops()["CheckOrder.ahead"]
        self.push(flow, [0], self.psn(beyond), values)
        self.equal("something is answered", bool(self.outputs()), True)
        self.equal("refused", self.drops()["CheckOrder.ahead"] - drops, 1)
        self.rounds(flow, 1, 2, acked=True)


class ReorderingHasALimit(SelectiveTest):
    """The window: packets 100 ahead of the expected one are kept, those 128 ahead are not."""

    edges = 2

    def unfit(self) -> str | None:
        fits = self.window > REORDERING + 2
        return super().unfit() or (None if fits else f"its range ends at {self.window} packets, before the limit")

    def runTest(self) -> None:
        flow = self.begun(ROOT, edges=2)
        values, sr = self.inputs(flow), not self.spec.loss_recovery.selective_naks
        self.push(flow, [0], self.psn(101), values)
        first = nak_of(self.psn(1)) if sr else selective_of(self.psn(1), 100)
        self.check(flow.group, to([0], first))
        self.push(flow, [1], self.psn(1 + REORDERING), values)
        self.check(flow.group, to([1], nak_of(self.psn(1))))
        # 1 would fall out of the window's end: nothing moves before it has come.
        self.push(flow, [0], self.psn(1 + REORDERING), values)
        self.check(flow.group, {} if sr else to([0], nak_of(self.psn(1))))
        self.equal("losses", self.losses(), Counter({"CheckOrder.gap": 2}))
        for offset in range(1, 101):
            self.push(flow, [0], self.psn(offset), values, asks=False)
        (results,) = self.received_by(flow.group)
        last = results.of_rank[0][-1]
        self.equal("acknowledged in the end", (last.bth.psn, last.aeth and last.aeth.syndrome), (self.psn(101), 31))


class TickBringsEightPackets(ModeIIITest):
    """Ticks without a NAK: the first packets are sent again; their answers report further gaps."""

    reliability = (Reliability.SR, Reliability.SACK)

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.window > 12 else f"its range ends at {self.window} packets")

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        sent = self.rounds(flow, 1, 12, acked=False)
        edge = flow.outputs[1]
        self.tick(flow.group, edge, edge)
        self.check(flow.group, {}, {edge: [again(result) for result in sent[:8]]})


class DisagreementOutOfOrder(ModeIIITest):
    """A packet that is not the one expected, and no part of the same message as the others': it is the one named."""

    reliability = (Reliability.SR, Reliability.SACK)

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        values = self.inputs(flow)
        for offset in (1, 2, 3):
            self.push(flow, [0], self.psn(offset), values)
        self.outputs()
        self.push(flow, [1], self.psn(3), values, Opcode.SEND_FIRST)
        self.check(flow.group, {1: [invalid_of(self.psn(3))]})


class NakBringsOnePacket(SelectiveTest):
    """Only the packet that a NAK names is sent again, since packets after it may have arrived."""

    def runTest(self) -> None:
        flow = self.begun(self.role, acked=False)
        sent = self.rounds(flow, 1, 4, acked=False)
        for edge in (flow.outputs[0], flow.outputs[-1]):
            self.nak(flow.group, edge, self.psn(2))
            self.check(flow.group, {}, {edge: [sent[1]]})
        self.nak(flow.group, flow.outputs[0], self.psn(5))
        self.expect_nothing()


class ResultsOutOfTurnAreSentAgain(SelectiveTest):
    """Results go out in the order in which they become complete; each is sent again when a NAK names it."""

    def runTest(self) -> None:
        flow = self.begun(self.role, acked=False)
        rounds = {offset: self.inputs(flow) for offset in (1, 2, 3, 4)}
        last, *others = flow.sources
        for offset, values in rounds.items():
            self.push(flow, others, self.psn(offset), values)
        for offset in (4, 2, 1, 3):
            self.push(flow, [last], self.psn(offset), rounds[offset])
        self.received(flow.group)
        edge = flow.outputs[0]
        for offset, values in rounds.items():
            self.nak(flow.group, edge, self.psn(offset))
            self.check(flow.group, {}, {edge: [again(self.result(self.psn(offset), values))]})


class NakFromTheParentBringsOnePacket(NakBringsOnePacket):
    role = UP


class NakFromAChildBringsOnePacket(NakBringsOnePacket):
    role = DOWN


class NextHoleFollowsTheOldest(SelectiveTest):
    """What an edge acknowledges when the packet of its NAK has come ends at the next hole, which is sent again at once,
    and so on up to what had been sent when the NAK came. An ACK that says nothing new brings nothing."""

    reliability = (SR,)

    def runTest(self) -> None:
        flow = self.begun(self.role, acked=False)
        group, edge, other = flow.group, flow.outputs[0], flow.outputs[-1]
        sent = self.rounds(flow, 1, 3, acked=False)
        self.acks(flow, edge, 0, [])  # nothing is known to be missing
        self.nak(group, edge, self.psn(1))
        self.check(group, {}, {edge: [sent[0]]})
        sent += self.rounds(flow, 4, 1, acked=False)
        self.acks(flow, edge, 0, [])  # the hole is there still
        self.acks(flow, edge, 1, [sent[1]])
        self.acks(flow, edge, 1, [])
        self.acks(flow, edge, 2, [sent[2]])
        if other != edge:
            self.acks(flow, other, 1, [])
        self.acks(flow, edge, 3, [])  # what was sent behind the NAK may be on its way
        self.nak(group, edge, self.psn(4))
        self.check(group, {}, {edge: [sent[3]]})
        self.acks(flow, edge, 4, [])

    def acks(self, flow: Flow, edge: int, offset: int, brings: list[str]) -> None:
        """An edge has everything up to a packet, and is sent these again."""
        self.ack(flow.group, [edge], self.psn(offset))
        self.check(flow.group, {}, {edge: brings})


class NextHoleOfTheParentFollows(NextHoleFollowsTheOldest):
    role = UP


class NextHoleOfAChildFollows(NextHoleFollowsTheOldest):
    role = DOWN


class NextHoleAcrossTheWrapFollows(NextHoleFollowsTheOldest):
    wraps = True


class HolesOfAnotherEpochAreForgotten(SelectiveTest):
    """A group that is set up again lacks nothing of what it had before."""

    reliability = (SR,)

    def runTest(self) -> None:
        flow = self.begun(self.role, acked=False)
        edge = flow.outputs[0]
        sent = self.rounds(flow, 1, 3, acked=False)
        self.nak(flow.group, edge, self.psn(1))
        self.check(flow.group, {}, {edge: [sent[0]]})
        later = replace(flow, group=replace(flow.group, epoch=flow.group.epoch + 1))
        self.reconfigure(later.group)
        self.begin(later, acked=False)
        self.rounds(later, 1, 3, acked=False)
        self.ack(later.group, [edge], self.psn(2))
        self.expect_nothing()


class SelectiveNakBringsExactlyThose(SelectiveTest):
    """As many packets as the NAK says, from its PSN on; it acknowledges nothing, so the range does not move."""

    reliability = (SACK,)

    def runTest(self) -> None:
        flow = self.begun(self.role, acked=False)
        count = min(self.window, 6)
        sent = [control_of(self.psn(0), self.immediate(flow, 1 << 12)), *self.rounds(flow, 1, count - 1, acked=False)]
        edge = flow.outputs[-1]
        for first, missing in ((2, 2), (1, 1), (0, count), (count - 1, 1)):
            self.answer(flow.group, edge, self.psn(first), SELECTIVE, missing)
            self.check(flow.group, {}, {edge: sent[first : first + missing]})
        self.answer(flow.group, edge, self.psn(1), SELECTIVE, 0)
        self.expect_nothing()
        self.answer(flow.group, edge, self.psn(count - 2), SELECTIVE, 1 << 23)  # more than there is
        self.check(flow.group, {}, {edge: sent[-2:]})
        # Nothing has been acknowledged: a timer begins at the first PSN.
        self.tick(flow.group, edge, edge)
        self.check(flow.group, {}, {edge: sent})


class SelectiveNakFromTheParentBringsExactlyThose(SelectiveNakBringsExactlyThose):
    role = UP


class SelectiveNakFromAChildBringsExactlyThose(SelectiveNakBringsExactlyThose):
    role = DOWN


class SelectiveNakAcrossTheWrapBringsExactlyThose(SelectiveNakBringsExactlyThose):
    wraps = True


class SelectiveNakBringsSixtyFourAtMost(SelectiveTest):
    reliability = (SACK,)
    edges = 2

    def unfit(self) -> str | None:
        return super().unfit() or (
            None if self.window > BURST + 2 else f"it has {self.window} slots, a burst fits none"
        )

    def runTest(self) -> None:
        flow = self.begun(ROOT, edges=2)
        sent = self.rounds(flow, 1, BURST + 2, acked=False)
        self.answer(flow.group, 0, self.psn(1), SELECTIVE, BURST + 2)
        self.check(flow.group, {}, {0: sent[:BURST]})


class TickResendsWhatIsOutstanding(SelectiveTest):
    """Two ticks without progress: a few packets from lastAcked + 1 on are sent; their answers report further gaps."""

    def runTest(self) -> None:
        flow = self.begun(self.role)
        sent = self.rounds(flow, 1, 4, acked=False)
        edge = flow.outputs[0]
        self.ack(flow.group, [edge], self.psn(1))
        self.tick(flow.group, edge)
        self.expect_nothing()
        self.tick(flow.group, edge)
        self.check(flow.group, {}, {edge: sent[1:]})


class TickFromTheParentResendsWhatIsOutstanding(TickResendsWhatIsOutstanding):
    role = DOWN
