"""Answers that come late, twice, or to nothing: what they may move, and what they must not (section 4.4; Algorithm 2,
lines 15 and 24-28; InfiniBand 9.7.5.1.1)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from inc import allreduce, broadcast_from, reduce_to
from mode_iii import DOWN, ROOT, UP, Flow, Role, ack_of, again, control_of, flow_at, nak_of, to
from test_iii_range import RangeTest

from p4gen.rocev2 import psn as serial
from p4gen.rocev2.opcodes import Ack, Nak, RnrNak
from p4gen.vocabulary import Reliability
from p4gen.vocabulary.message import Collective

NEVER_SENT = "TrackSent.never_sent"
REMEMBERED = (1 << 21) - 1
"""How much older than the newest result an answer may be."""


class OldAckAfterABroadcast(RangeTest):
    """Broadcast from 1, Barrier, Broadcast from 0, then an ACK of the first once more. It says nothing of rank 1, to
    whom nothing was sent then; what rank 1 has not acknowledged of the second one keeps its slots."""

    before, after = (Collective.BROADCAST, 1), (Collective.BROADCAST, 0)
    slow = 1

    def runTest(self) -> None:
        group = self.node(allreduce(), broadcast_from(1, 1), broadcast_from(0, 0), reduce_to(0, 0), parent=False)
        self.serve(group)
        old, now = (flow_at(group, c, r, down=c is Collective.BROADCAST) for c, r in (self.before, self.after))
        self.begin(old, 1)
        self.round(old, self.psn(1))
        barrier, value = flow_at(group, Collective.ALLREDUCE), self.call(Collective.BARRIER, 0).encode()
        self.announce(group, barrier.sources, self.psn(2), value)
        wanted = to(barrier.outputs, control_of(self.psn(2), value))
        self.check(group, to(barrier.sources, ack_of(self.psn(2))), wanted)
        self.ack(group, barrier.outputs, self.psn(2))
        self.expect_nothing()
        self.begin(now, psn=self.psn(3), acked=False)
        self.rounds(now, 4, self.window - 1, acked=False)
        fast = [edge for edge in now.outputs if edge != self.slow]
        self.ack(group, fast, self.psn(self.window + 2))
        for late in set(fast) & set(old.outputs):
            self.answer(group, late, self.psn(1), Ack().syndrome)
            self.answer(group, late, self.psn(2), RnrNak(0).syndrome)
            self.nak(group, late, self.psn(1))
        self.expect_nothing()
        self.refuse(now, self.psn(self.window + 3))
        self.ack(group, [self.slow], self.psn(self.window + 2))
        self.round(now, self.psn(self.window + 3))


class OldAckAfterAReduce(OldAckAfterABroadcast):
    """A Reduce is sent to one rank; its late ACK must not count for all outputs of the AllReduce that follows."""

    before, after = (Collective.REDUCE, 0), (Collective.ALLREDUCE, 0)


class OldAckAfterABroadcastAcrossTheWrap(OldAckAfterABroadcast):
    wraps = True


class OldAckReachesToTheEnd(RangeTest):
    """Broadcast from 1, then from 0: an ACK of the first once more moves the range to its end at most, and not by one
    beyond it, however far its edge has acknowledged the second one."""

    def runTest(self) -> None:
        group = self.node(allreduce(), broadcast_from(1, 1), broadcast_from(0, 0), parent=False)
        self.serve(group)
        old, now = (flow_at(group, Collective.BROADCAST, root, down=True) for root in (1, 0))
        self.begin(old, 1)
        self.round(old, self.psn(1))
        self.begin(now, psn=self.psn(2), acked=False)
        self.rounds(now, 3, self.window - 1, acked=False)
        beyond = self.psn(self.window + 2)
        for acked in (self.psn(2), self.psn(self.window + 1)):
            self.ack(group, [2, 3], acked)
            self.answer(group, 2, self.psn(1), Ack().syndrome)
            self.expect_nothing()
            self.refuse(now, beyond, again=acked != self.psn(2))
        self.ack(group, [1], self.psn(self.window + 1))
        self.round(now, beyond)


class OldAcksTakeNothingBack(RangeTest):
    """An ACK of the last Broadcast but one, which ended long ago: the range does not move back."""

    def runTest(self) -> None:
        group = self.node(allreduce(), broadcast_from(1, 1), parent=False)
        self.serve(group)
        old, now = flow_at(group, Collective.BROADCAST, 1, down=True), flow_at(group, Collective.ALLREDUCE)
        self.begin(old, 1)
        self.round(old, self.psn(1))
        self.begin(now, psn=self.psn(2))
        self.ack(group, [0], self.psn(1))
        self.expect_nothing()
        self.rounds(now, 3, self.window, acked=False)
        self.refuse(now, self.psn(3 + self.window))


class AnswersToWhatWasNeverSent(RangeTest):
    """They acknowledge nothing and end no repair, however far ahead they are: no register changes."""

    role: Role = ROOT

    def runTest(self) -> None:
        flow = self.begun(self.role, acked=False)
        count = min(self.window - 1, 3)
        sent = [control_of(self.psn(0), self.immediate(flow, 1 << 12)), *self.rounds(flow, 1, count, acked=False)]
        # One source is ahead: what waits for the others has not been sent either.
        if len(flow.sources) > 1 and count + 1 < self.window:
            self.push(flow, flow.sources[:1], self.psn(count + 1), self.inputs(flow))
            self.check(flow.group, to(flow.sources[:1], ack_of(self.psn(count + 1))))
        beyond = (
            (count + 1, Nak()),
            (count + 1, RnrNak(0)),
            (self.window, Ack()),
            (1 << 12, Nak()),
            ((1 << 12) + 1, Ack()),
        )
        for offset, syndrome in ((count + 1, Ack()), *beyond, (serial.HALF - 1, Ack()), (serial.HALF + 5, Ack())):
            edge = self.random.choice(flow.outputs)
            answer = self.acknowledgement(flow.group, edge, self.psn(offset), syndrome.syndrome)
            self.refused(flow.group, edge, answer, NEVER_SENT)
        # As far back as three announcements reach, and further: an answer that is this old says nothing.
        for behind, reasons in ((REMEMBERED, []), (REMEMBERED + 1, [self.reason(NEVER_SENT)])):
            before = self.all_drops()
            self.ack(flow.group, flow.outputs[:1], self.psn(count - behind))
            self.expect_nothing()
            self.equal("refused", [r for r in self.all_drops() - before if r == self.reason(NEVER_SENT)], reasons)
        edge = flow.outputs[0]
        self.tick(flow.group, edge, edge)
        burst = sent if self.spec.loss_recovery is Reliability.GBN else sent[:8]
        self.check(flow.group, {}, {edge: [again(packet) for packet in burst]})
        self.ack(flow.group, flow.outputs, self.psn(count))
        self.expect_nothing()


class AnswersToTheParentsNothing(AnswersToWhatWasNeverSent):
    role = DOWN


class AnswersFromTheParentToNothing(AnswersToWhatWasNeverSent):
    role = UP


class AnswersToNothingAcrossTheWrap(AnswersToWhatWasNeverSent):
    wraps = True


class AnswersBeforeAnythingIsSent(RangeTest):
    """A context that has sent nothing yet waits for no answer, not even to what it sent a generation ago; but that all
    before its first PSN has arrived is true."""

    wraps = True

    def runTest(self) -> None:
        flow = self.served(ROOT)
        self.answers(flow)
        self.begin(flow)
        self.rounds(flow, 1, 3)
        later = replace(flow, group=replace(flow.group, epoch=flow.group.epoch + 1))
        self.reconfigure(later.group)
        self.answers(later)
        self.begin(later)
        self.rounds(later, 1, 2)

    def answers(self, flow: Flow) -> None:
        for psn in (self.psn(0), self.psn(1)):
            self.refused(flow.group, 0, self.acknowledgement(flow.group, 0, psn), NEVER_SENT)
        before = self.all_drops()
        self.ack(flow.group, [0], self.psn(-1))
        self.expect_nothing()
        self.equal("dropped", self.all_drops() - before, Counter({"StartCursor.not_needed": 1}))


class WhatIsSentLastMayBeTheOldest(RangeTest):
    """The oldest packet of a full range comes last, and so does its result; all others have been sent nevertheless."""

    reliability = (Reliability.SR, Reliability.SACK)

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.window <= 32 else "so much may not be missing at a time")

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        values = self.inputs(flow)
        for offset in (*range(2, self.window + 1), 1):
            self.push(flow, flow.sources, self.psn(offset), values)
        self.outputs()
        self.ack(flow.group, flow.outputs, self.psn(self.window))
        self.expect_nothing()
        self.round(flow, self.psn(self.window + 1))


class WhatWentUpHasNotGoneDown(RangeTest):
    """Below the root an AllReduce has two pipes: a child acknowledges results only, however far contributions are."""

    def runTest(self) -> None:
        group = self.node(allreduce(3))
        self.serve(group)
        up, down = flow_at(group, Collective.ALLREDUCE), flow_at(group, Collective.ALLREDUCE, down=True)
        self.begin(up)
        self.round(up, self.psn(1))
        for psn in (self.psn(0), self.psn(1)):
            self.refused(group, 0, self.acknowledgement(group, 0, psn), NEVER_SENT)
        self.begin(down)
        self.refused(group, 0, self.acknowledgement(group, 0, self.psn(1)), NEVER_SENT)
        self.round(down, self.psn(1))


class NotReadyIsSaidOnce(RangeTest):
    """Who is told to wait sends the refused packet again by itself: what follows it is no gap, and gets no NAK
    (InfiniBand 9.7.5.2.8); a gap behind it, later, does."""

    role: Role = ROOT

    def unfit(self) -> str | None:
        told = self.spec.notifies or self.role is DOWN
        return super().unfit() or (None if told else "no rank is told to wait")

    def runTest(self) -> None:
        flow = self.begun(self.role, self.window, acked=False)
        edge = flow.sources[0]
        self.rounds(flow, 1, self.window - 1, acked=False)
        ahead, values = self.psn(self.window), self.inputs(flow)
        self.push(flow, [edge], ahead, values)
        self.check(flow.group, {edge: self.refusal(flow, edge, ahead)})
        following, value = serial.add(ahead, 1), self.immediate(flow, 9)
        self.announce(flow.group, [edge, edge], following, value)
        self.expect_nothing()
        self.ack(flow.group, flow.outputs, self.psn(self.window - 1))
        self.push(flow, flow.sources, ahead, values)
        self.check(flow.group, to(flow.sources, ack_of(ahead)), to(flow.outputs, self.result(ahead, values)))
        self.announce(flow.group, [edge], serial.add(following, 5), value)
        self.check(flow.group, to([edge], nak_of(following)))


class NotReadyIsSaidOnceToASwitch(NotReadyIsSaidOnce):
    role = DOWN


class RefusedAnnouncementsAreNotKept(RangeTest):
    """Control messages ahead of their turn, and beyond the range: the collective that runs keeps its announcement."""

    def runTest(self) -> None:
        group = self.node(allreduce(), broadcast_from(0, 0), parent=False)
        self.serve(group)
        flow, other = flow_at(group, Collective.ALLREDUCE), flow_at(group, Collective.BROADCAST, down=True)
        self.begin(flow, self.window - 1)
        before = self.announcements()
        for ahead in (1, 2, 3):
            self.announce(group, [0], self.psn(ahead * (1 << 12)), self.immediate(other, 7))
        self.check(group, to([0], nak_of(self.psn(1))))
        self.equal("announcements", self.announcements(), before)
        self.rounds(flow, 1, self.window - 1)
        for offset in range(self.window, 2 * self.window):  # in turn, but nothing of it is acknowledged
            self.announce(group, [0], self.psn(offset), self.immediate(other, 0))
            wanted = to(other.outputs, control_of(self.psn(offset), self.immediate(other, 0)))
            self.check(group, to([0], ack_of(self.psn(offset))), wanted)
        before = self.announcements()
        self.announce(group, [0], self.psn(2 * self.window), self.immediate(other, 0))
        self.check(group, {0: self.refusal(other, 0, self.psn(2 * self.window))})
        self.equal("announcements", self.announcements(), before)

    def announcements(self) -> dict[str, list[int]]:
        return {name: words for name, words in self.state().items() if name.endswith(".announcement")}


class AnnouncementInPlaceOfAnother(RangeTest):
    """Two ranks that disagree on the collective, whose packets would go to different slots: invalid request."""

    def runTest(self) -> None:
        group = self.node(allreduce(), broadcast_from(1, 1), parent=False)
        self.serve(group)
        flow, other = flow_at(group, Collective.ALLREDUCE), flow_at(group, Collective.BROADCAST, 1, down=True)
        self.announce(group, [0], self.psn(0), self.immediate(flow, 5))
        self.announce(group, [1], self.psn(0), self.immediate(other, 5))
        self.check(group, {0: [ack_of(self.psn(0))], 1: [f"NAK invalid request {self.psn(0)}"]})
        self.equal("losses", dict(self.losses()), {"TrackInvocation.mixed_control": 1})
