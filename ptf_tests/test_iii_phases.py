"""The transition from one collective to the next: announcements, lost ACKs, and repeated packets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from inc import allreduce, broadcast_from, reduce_to
from mode_iii import DOWN, ROOT, Flow, ModeIIITest, Role, ack_of, again, control_of, flow_at, invalid_of, nak_of, to
from test_iii_range import RangeTest

from p4gen.groups.group import GroupContext
from p4gen.vocabulary import Reliability
from p4gen.vocabulary.message import Collective

EVERY = tuple(Reliability)


class PhasesTest(ModeIIITest):
    """Set-ups of two collectives that follow each other."""

    reliability = EVERY

    def after_a_reduce(self, packets: int, unacknowledged: int = 1) -> tuple[Flow, Flow]:
        """A node with a parent that has not acknowledged the last packets of a Reduce. Returns AllReduce's flows up and
        down."""
        group = self.node(allreduce(3), reduce_to(0, 3))
        self.serve(group)
        reduction = flow_at(group, Collective.REDUCE)
        self.begin(reduction, packets)
        acknowledged = packets - unacknowledged
        self.rounds(reduction, 1, acknowledged)
        self.rounds(reduction, 1 + acknowledged, unacknowledged, acked=False)
        return self.both_ways(group)

    def both_ways(self, group: GroupContext) -> tuple[Flow, Flow]:
        """AllReduce's flows up and down."""
        return flow_at(group, Collective.ALLREDUCE), flow_at(group, Collective.ALLREDUCE, down=True)

    def follow(self, flows: Sequence[Flow]) -> None:
        """After a collective of two packets, another one of two packets runs as if nothing had been lost."""
        for flow in flows:
            self.begin(flow, 2, psn=self.psn(3))
        for flow in flows:
            self.rounds(flow, 4, 2)

    def before_a_reduce(self) -> tuple[Flow, Flow]:
        """At the root, after an AllReduce of one packet: AllReduce, and the Reduce to rank 0 that comes next."""
        group = self.node(allreduce(), reduce_to(0, 0), parent=False)
        self.serve(group)
        everybody, reduction = flow_at(group, Collective.ALLREDUCE), flow_at(group, Collective.REDUCE)
        self.begin(everybody, 1)
        self.round(everybody, self.psn(1))
        return everybody, reduction

    def far_ahead(self) -> tuple[Flow, str, list[tuple[int, int]]]:
        """Rank 0 has announced a Barrier and an AllReduce, while rank 3 misses the packet of the Broadcast before: the
        AllReduce, that packet, and both announcements."""
        group = self.node(allreduce(), broadcast_from(1, 1), parent=False)
        self.serve(group)
        broadcast = flow_at(group, Collective.BROADCAST, 1, down=True)
        self.begin(broadcast, 1)
        result = self.round(broadcast, self.psn(1), acked=False)
        self.ack(group, [0, 2], self.psn(1))
        barrier, everybody = self.call(Collective.BARRIER, 0).encode(), flow_at(group, Collective.ALLREDUCE)
        announcements = [(self.psn(2), barrier), (self.psn(3), self.immediate(everybody, 2))]
        for psn, value in announcements:
            self.announce(group, [0], psn, value)
            self.check(group, {0: [ack_of(psn)]})
        return everybody, result, announcements


class BroadcastAfterALongReduce(PhasesTest):
    """Nothing has been sent to the children in a Reduce that has taken a whole range. The Broadcast that follows finds
    its range as far on as the Reduce has come."""

    def runTest(self) -> None:
        group = self.node(reduce_to(0, 3), broadcast_from(0, 3))
        self.serve(group)
        self.begin(flow_at(group, Collective.REDUCE), self.window)
        self.rounds(flow_at(group, Collective.REDUCE), 1, self.window)
        broadcast = flow_at(group, Collective.BROADCAST, down=True)
        self.begin(broadcast, 1, psn=self.psn(self.window + 1))
        self.round(broadcast, self.psn(self.window + 2))


class LastAckOfAReduceIsLost(PhasesTest):
    """An ACK of the next collective shows that its sender has finished the one before: a parent that has acknowledged
    an announcement may announce next, although its last ACK of the Reduce was lost."""

    def runTest(self) -> None:
        self.follow(self.after_a_reduce(2))


class LastAcksOfAReduceAreLost(PhasesTest):
    """The children stood still in the Reduce, and so did what they have acknowledged: the parent's ACK of the next
    collective takes it to where that begins, and the children's pipe has its whole range from there."""

    def runTest(self) -> None:
        up, down = self.after_a_reduce(3, unacknowledged=3)
        self.begin(up, 1 << 12, psn=self.psn(4))
        self.begin(down, 1 << 12, psn=self.psn(4), acked=False)
        self.ack(down.group, down.outputs[:1], self.psn(4))
        self.rounds(down, 5, min(self.window - 1, 16), acked=False)


class LastAckOfABroadcastIsLost(PhasesTest):
    """The same with a child as the source: the others' last ACKs are lost; they take part in the next collective."""

    def runTest(self) -> None:
        group = self.node(allreduce(3), broadcast_from(0, 3))
        self.serve(group)
        broadcast = flow_at(group, Collective.BROADCAST, down=True)
        self.begin(broadcast, 2)
        self.round(broadcast, self.psn(1))
        results = [self.round(broadcast, self.psn(2), acked=False)]
        # Children have not received these packets, so they have not moved on: the timer sends them again.
        self.tick(group, *broadcast.outputs)
        self.tick(group, *broadcast.outputs)
        self.check(group, {}, to(broadcast.outputs, *results))
        self.ack(group, broadcast.outputs, self.psn(2))
        self.follow(self.both_ways(group))


class NoAckPassesWhatItsSenderHasSent(PhasesTest):
    """The rank that receives a Reduce has sent nothing in it. When it repeats an older packet, the ACK names the last
    PSN that it has sent, not the group's position: a requester would take a higher one as an ACK of future packets."""

    def runTest(self) -> None:
        everybody, reduction = self.before_a_reduce()
        group = everybody.group
        self.begin(reduction, 2, psn=self.psn(2))
        self.rounds(reduction, 3, 2)
        for psn in (self.psn(0), self.psn(1)):
            if psn == self.psn(0):
                self.announce(group, [0], psn, self.immediate(everybody, 1))
            else:
                self.push(everybody, [0], psn, self.inputs(everybody))
            self.check(group, {0: [ack_of(self.psn(1))]})
        self.push(reduction, [1], self.psn(3), self.inputs(reduction))
        self.check(group, {1: [ack_of(self.psn(4))]})


class TicksAcknowledgeNothing(ModeIIITest):
    """A tick's PSN is 0, which may be larger than every outstanding PSN."""

    reliability = EVERY
    role: Role = ROOT

    def runTest(self) -> None:
        self.first_psn = (1 << 24) - 100
        flow = self.begun(self.role, 2)
        outstanding = self.rounds(flow, 1, 2, acked=False)
        self.ack(flow.group, flow.outputs[:-1], self.psn(2))
        following, value = self.psn(3), self.immediate(flow, 2)
        self.announce(flow.group, flow.sources[:1], following, value)
        announced = [control_of(following, value)] if len(flow.sources) == 1 else []
        self.check(flow.group, to(flow.sources[:1], ack_of(following)), to(flow.outputs, *announced))
        last = flow.outputs[-1:]
        self.tick(flow.group, *last)
        self.expect_nothing()
        self.tick(flow.group, *last)
        self.check(flow.group, {}, to(last, *map(again, outstanding), *announced))


class TicksOfChildrenAcknowledgeNothing(TicksAcknowledgeNothing):
    role = DOWN


class OldestOfThreeAnnouncements(PhasesTest):
    """A rank has finished a Broadcast and a Barrier and has announced the next collective, while another one still
    misses the Broadcast's last packet: the oldest of three announcements applies to its NAK."""

    def runTest(self) -> None:
        everybody, result, announcements = self.far_ahead()
        group = everybody.group
        # Repeated packets change nothing.
        for _ in range(3):
            for psn, value in announcements:
                state = self.state()
                self.announce(group, [0], psn, value)
                self.check(group, {0: [ack_of(self.psn(3))]})
                self.equal("registers", self.state(), state)
        self.announce(group, [1, 2], *announcements[0])
        self.check(group, to([1, 2], ack_of(self.psn(2))))
        self.nak(group, 3, self.psn(1))
        self.check(group, {}, {3: [again(result)]})
        self.ack(group, [3], self.psn(1))
        self.announce(group, [3], *announcements[0])
        self.check(group, {3: [ack_of(self.psn(2))]}, to(everybody.outputs, control_of(*announcements[0])))
        self.ack(group, everybody.outputs, self.psn(2))
        self.announce(group, [1, 2, 3], *announcements[1])
        self.check(group, to([1, 2, 3], ack_of(self.psn(3))), to(everybody.outputs, control_of(*announcements[1])))
        self.ack(group, everybody.outputs, self.psn(3))
        self.rounds(everybody, 4, 2)


class AnnouncementInPlaceOfTheOldestsData(PhasesTest):
    """The same, but a receiver announces under the PSN of the Broadcast's packet; the oldest announcement applies."""

    def runTest(self) -> None:
        everybody, _, [(_, barrier), _] = self.far_ahead()
        self.announce(everybody.group, [3], self.psn(1), barrier)
        self.check(everybody.group, {3: [invalid_of(self.psn(1))]})


class NakOfAnAnnouncementMovesNobody(PhasesTest):
    """A NAK of an announcement acknowledges nothing of the collective that it announces. So the parent's position in a
    Reduce stays the same, and answers say so, until it acknowledges the announcement."""

    def runTest(self) -> None:
        up, down = self.after_a_reduce(2)
        group = up.group
        self.begin(up, 2, psn=self.psn(3), acked=False)
        value = self.immediate(up, 2)
        self.nak(group, 3, self.psn(3))
        self.check(group, {}, {3: [control_of(self.psn(3), value)]})
        self.announce(group, [3], self.psn(3), value)
        self.check(group, {3: [nak_of(self.psn(2))]})
        self.ack(group, [3], self.psn(3))
        self.begin(down, 2, psn=self.psn(3))


class TicksOfWhoStoodStill(ModeIIITest):
    """Rank 1 was the source of a Broadcast, and received nothing. Packets of the next Broadcast that it misses are sent
    again from that one's start on, not from the last packet that it had received."""

    reliability = EVERY

    def runTest(self) -> None:
        group = self.node(broadcast_from(1, 1), broadcast_from(0, 0), parent=False)
        self.serve(group)
        first, second = (flow_at(group, Collective.BROADCAST, root, down=True) for root in (1, 0))
        self.begin(first, 1)
        self.round(first, self.psn(1))
        self.begin(second, 1, psn=self.psn(2), acked=False)
        result = self.round(second, self.psn(3), acked=False)
        self.tick(group, 1)
        self.expect_nothing()
        self.tick(group, 1)
        self.check(group, {}, {1: [control_of(self.psn(2), self.immediate(second, 1)), again(result)]})


class AcksFromBeforeTheFirstPsn(ModeIIITest):
    """No announcement is kept for their PSNs: they acknowledge nothing new, are not counted as answers to packets never
    sent, and do not affect the current collective."""

    reliability = EVERY

    def runTest(self) -> None:
        group = self.node(allreduce(), broadcast_from(1, 1), parent=False)
        self.serve(group)
        flow = flow_at(group, Collective.ALLREDUCE)
        self.begin(flow, acked=False)
        for psn in (self.psn(-1), self.psn(-5)):
            before = self.all_drops()
            self.ack(group, [0], psn)
            self.expect_nothing()
            self.equal("dropped", self.all_drops() - before, Counter({"StartCursor.not_needed": 1}))
        self.ack(group, flow.outputs, self.psn(0))
        self.round(flow, self.psn(1))


class NobodyAcknowledgesForAnother(RangeTest):
    """Two of three receivers acknowledge a Broadcast; the third has not even acknowledged what was before it."""

    def runTest(self) -> None:
        group = self.node(allreduce(), broadcast_from(0, 0), parent=False)
        self.serve(group)
        everybody, broadcast = flow_at(group, Collective.ALLREDUCE), flow_at(group, Collective.BROADCAST, down=True)
        self.begin(everybody, 1)
        self.round(everybody, self.psn(1), acked=False)
        self.ack(group, [0, 1, 3], self.psn(1))
        self.begin(broadcast, 1 << 12, psn=self.psn(2), acked=False)
        self.ack(group, [1, 3], self.psn(2))
        self.rounds(broadcast, 3, self.window - 2, acked=False)
        self.refuse(broadcast, self.psn(self.window + 1))
        self.ack(group, [2], self.psn(2))
        self.round(broadcast, self.psn(self.window + 1), acked=False)


class RepeatedPacketsChangeNothing(ModeIIITest):
    """Repeated control messages, data and ACKs leave every register unchanged."""

    reliability = EVERY
    role: Role = ROOT
    epoch = 1

    def runTest(self) -> None:
        flow = self.make_flow(self.role)
        flow = replace(flow, group=replace(flow.group, epoch=self.epoch))
        self.serve(flow.group)
        self.begin(flow, 4)
        self.rounds(flow, 1, 4)
        self.begin(flow, 3, psn=self.psn(5))
        values = self.inputs(flow)
        self.push(flow, flow.sources[:-1], self.psn(6), values)
        self.outputs()
        for repeat in (self.announcement_again, self.data_again, self.data_before_again, self.acks_again):
            state = self.state()
            repeat(flow)
            self.equal(f"registers after {repeat.__name__}", self.state(), state)

    def announcement_again(self, flow: Flow) -> None:
        for offset, packets in ((0, 4), (5, 3)):
            self.announce(flow.group, flow.sources[:1], self.psn(offset), self.immediate(flow, packets))
            self.check(flow.group, to(flow.sources[:1], ack_of(self.psn(6 if len(flow.sources) > 1 else 5))))

    def data_again(self, flow: Flow) -> None:
        if len(flow.sources) > 1:
            self.push(flow, flow.sources[:1], self.psn(6), self.inputs(flow))
            self.check(flow.group, to(flow.sources[:1], ack_of(self.psn(6))))

    def data_before_again(self, flow: Flow) -> None:
        self.push(flow, flow.sources[-1:], self.psn(2), self.inputs(flow))
        self.check(flow.group, to(flow.sources[-1:], ack_of(self.psn(5))))

    def acks_again(self, flow: Flow) -> None:
        for offset in (0, 3, 5):
            self.ack(flow.group, flow.outputs, self.psn(offset))
        self.expect_nothing()


class RepeatedPacketsBelowAParentChangeNothing(RepeatedPacketsChangeNothing):
    role = DOWN


class RepeatedPacketsOfTheLastEpochChangeNothing(RepeatedPacketsChangeNothing):
    """Epochs have eight bits; the epoch of all ones is valid, too."""

    epoch = 255


class LateAckOfAnEarlierBarrier(PhasesTest):
    """After a Reduce whose last ACK was lost, children have announced several Barriers when the parent's ACK of the
    first one arrives: it moves the parent to the start of that Barrier, not to that of the newest one."""

    barriers = 2

    def runTest(self) -> None:
        up, down = self.after_a_reduce(1)
        group, value = up.group, self.call(Collective.BARRIER, 0).encode()
        numbers = [self.psn(2 + index) for index in range(self.barriers)]
        for psn in numbers:
            self.announce(group, up.sources, psn, value)
            self.check(group, to(up.sources, ack_of(psn)), to(up.outputs, control_of(psn, value)))
        self.ack(group, up.outputs, numbers[0])
        self.expect_nothing()
        for psn in numbers:
            self.announce(group, down.sources, psn, value)
            self.check(group, to(down.sources, ack_of(psn)), to(down.outputs, control_of(psn, value)))


class LateAckOfTheFirstOfThreeBarriers(LateAckOfAnEarlierBarrier):
    barriers = 3


class GapsAreReportedAgainWhereTheGroupIs(PhasesTest):
    """A gap was reported to a rank that then received a Reduce: after it, the rank's next gap is reported again."""

    def runTest(self) -> None:
        everybody, reduction = self.before_a_reduce()
        group = everybody.group
        self.push(everybody, [0], self.psn(3), self.inputs(everybody))
        self.check(group, {0: [nak_of(self.psn(2))]})
        self.begin(reduction, 1, psn=self.psn(2))
        self.round(reduction, self.psn(3))
        self.announce(group, [1, 2, 3], self.psn(4), self.immediate(everybody, 1))
        self.check(group, to([1, 2, 3], ack_of(self.psn(4))))
        self.push(everybody, [0], self.psn(5), self.inputs(everybody))
        self.check(group, {0: [nak_of(self.psn(4))]})
