"""Collectives one after the other and beside each other: announcements, the synchronisation of the two directions of
an edge, congestion notifications, several contexts (sections 3.3.2, 4.4 and A)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from elements import Numbers
from inc import allreduce, broadcast_from, reduce_to
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
    Role,
    ack_of,
    control_of,
    data_of,
    flow_at,
    nak_of,
    rnr_of,
    to,
)

from p4gen.groups.group import GroupContext
from p4gen.host.collectives.control import Control
from p4gen.papers.epic.conformance.needs import lacks
from p4gen.papers.epic.spec import Mode
from p4gen.rocev2 import psn as serial
from p4gen.vocabulary import Op, Reliability
from p4gen.vocabulary.message import Collective

EVERY = tuple(Reliability)


class DataBeforeItsAnnouncement(ModeIIITest):
    """It is out of order: what is expected first is the control message."""

    def runTest(self) -> None:
        flow = self.served(ROOT)
        values = self.inputs(flow)
        self.push(flow, [0, 0, 1], self.psn(1), values)
        self.check(flow.group, to([0, 1], nak_of(self.psn(0))))
        self.begin(flow)
        self.round(flow, self.psn(1))


class DataInPlaceOfAnAnnouncement(ModeIIITest):
    """In order, but nothing has announced it: refused, and the control message may still come."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.served(ROOT)
        self.push(flow, flow.sources, self.psn(0), self.inputs(flow))
        self.expect_nothing()
        self.equal("losses", self.losses(), Counter({"CheckOrder.not_announced": len(flow.sources)}))
        self.begin(flow)


class DataBeyondTheAnnounced(ModeIIITest):
    """A source may send as many packets as it has announced, and then has to announce again."""

    role = ROOT
    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(self.role, 2)
        self.rounds(flow, 1, 2)
        self.push(flow, flow.sources, self.psn(3), self.inputs(flow))
        self.expect_nothing()
        self.equal("losses", self.losses(), Counter({"CheckOrder.not_announced": len(flow.sources)}))
        self.begin(flow, 1, psn=self.psn(3))
        self.round(flow, self.psn(4))


class DataBeyondTheAnnouncedByTheParent(DataBeyondTheAnnounced):
    role = DOWN


class DataBeyondTheAnnouncedAcrossTheWrap(DataBeyondTheAnnounced):
    wraps = True


class EachEdgeIsHeldToItsOwnAnnouncement(ModeIIITest):
    """One source has announced; another one that has not may not send yet."""

    def runTest(self) -> None:
        flow = self.served(ROOT)
        value, values = self.immediate(flow, 5), self.inputs(flow)
        self.announce(flow.group, [0], self.psn(0), value)
        self.push(flow, [0, 1], self.psn(1), values)
        self.check(flow.group, {0: [ack_of(self.psn(0)), ack_of(self.psn(1))], 1: [nak_of(self.psn(0))]})


class AnnouncementOfOtherNumbers(ModeIIITest):
    """A program that cannot compute what is announced says so by silence, before any state is touched."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.served(ROOT)
        supported = [numbers.code for numbers in self.spec.choices]
        for code in (0x00, 0x01, 0x02, 0x07, 0x08, 0x11, 0x12, 0x18, 0x19, 0x1F):
            if code not in supported:
                value = self.immediates.replaced(self.immediate(flow, 3), numbers=code)
                message = self.announcement(flow.group, 0, self.psn(0), value)
                self.refused(flow.group, 0, message, "FindContext.unsupported")
        self.begin(flow)


class AnnouncementOfAnotherCollective(ModeIIITest):
    """A context serves the patterns that it has been given; others are refused."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.served(REDUCE_TO_PARENT)
        named = ((Collective.ALLREDUCE, 0), (Collective.REDUCE, 1), (Collective.BROADCAST, 0))
        calls = [Control(collective, 3, root, roots=self.spec.roots) for collective, root in named]
        for call in calls:
            value = replace(call, op=self.numbers.op, dtype=self.numbers.dtype).encode()
            self.announce(flow.group, [0], self.psn(0), value)
            self.expect_nothing()
        self.equal("losses", self.losses(), Counter({self.reason("ClassifyTraffic.no_pattern"): 3}))


class ContributionFromTheReceiver(ModeIIITest):
    """Whoever gets a Reduce, and whoever is sent a Broadcast, has nothing to send in it."""

    reliability = EVERY
    role = REDUCE_TO_CHILD

    def runTest(self) -> None:
        flow = self.begun(self.role)
        edge = flow.outputs[-1]
        values = {edge: self.random_values(1)[0]}
        self.push(flow, [edge], self.psn(1), values)
        self.expect_nothing()
        self.equal("losses", self.losses(), Counter({"ClassifyTraffic.no_flow": 1}))
        self.round(flow, self.psn(1))


class ContributionFromAReceiverOfABroadcast(ContributionFromTheReceiver):
    role = BROADCAST_FROM_PARENT


class UpAndDownAreIndependent(ModeIIITest):
    """A node's two pipes have their own order, range and slots, under the same PSNs."""

    reliability = EVERY

    def runTest(self) -> None:
        up = self.served(UP)
        down = flow_at(up.group, Collective.ALLREDUCE, down=True)
        for flow in (up, down):
            self.begin(flow, acked=False)
        for flow in (up, down):
            self.rounds(flow, 1, self.window - 1, acked=False)
        # Both ranges are used up; the parent's ACKs move the one, the children's the other.
        beyond = self.psn(self.window)
        self.ack(up.group, up.outputs, self.psn(0))
        self.round(up, beyond, acked=False)
        self.push(down, down.sources, beyond, self.inputs(down))
        self.check(up.group, to(down.sources, rnr_of(beyond)))
        self.ack(up.group, down.outputs, self.psn(1))
        self.round(down, beyond, acked=False)
        self.rounds(down, self.window + 1, 1, acked=False)


class NextCollectiveWhileOthersRepeat(ModeIIITest):
    """Whoever is through with one collective announces the next; who is not may repeat packets of the one before."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT, 1)
        last = self.psn(1)
        values = self.inputs(flow)
        self.push(flow, flow.sources, last, values)
        self.outputs()
        following, value = self.psn(2), self.immediate(flow, 3)
        self.announce(flow.group, [0], following, value)
        self.push(flow, [1], last, values)
        self.tick(flow.group, 1, 1)
        wanted = self.result(last, values)
        self.check(flow.group, {0: [ack_of(following)], 1: [ack_of(last)]}, to([1], wanted))
        self.ack(flow.group, flow.outputs, last)
        self.announce(flow.group, flow.sources[1:], following, value)
        self.check(flow.group, to(flow.sources[1:], ack_of(following)), to(flow.outputs, control_of(following, value)))
        self.round(flow, self.psn(3))


class PhasesInOneNumberSpace(ModeIIITest):
    """Patterns follow each other in one PSN space, a Barrier after each: what stood still is where the group is."""

    reliability = EVERY
    parent: int | None = None

    def runTest(self) -> None:
        patterns = [allreduce(self.parent), reduce_to(0, 0), broadcast_from(1, 1)]
        group = self.node(*patterns, parent=self.parent is not None)
        self.serve(group)
        at = self.phase(group, self.psn(0), Collective.ALLREDUCE, 0)
        for collective, root in ((Collective.REDUCE, 0), (Collective.BROADCAST, 1)) * 2:
            at = self.phase(group, at, collective, root)
            at = self.barrier(group, at)
            at = self.phase(group, at, Collective.ALLREDUCE, 0)
        self.equal("losses", dict(self.losses()), {})

    def phase(self, group: GroupContext, psn: int, collective: Collective, root: int) -> int:
        """A collective that goes both ways, or one; where the range is small, all of it and more."""
        packets = min(self.window, 16) + 1
        flows = self.flows(group, collective, root)
        for flow in flows:
            self.begin(flow, packets, psn=psn)
        for flow in flows:
            self.rounds(flow, serial.diff(psn, self.first_psn) + 1, packets)
        return serial.add(psn, 1 + packets)

    def barrier(self, group: GroupContext, psn: int) -> int:
        flows = self.flows(group, Collective.ALLREDUCE, 0)
        value = self.call(Collective.BARRIER, 0).encode()
        for flow in flows:
            self.announce(group, flow.sources, psn, value)
            wanted = to(flow.outputs, control_of(psn, value))
            self.check(group, to(flow.sources, ack_of(psn)), wanted)
            self.ack(group, flow.outputs, psn)
        return serial.add(psn, 1)

    def flows(self, group: GroupContext, collective: Collective, root: int) -> list[Flow]:
        if collective is Collective.ALLREDUCE:
            if self.parent is None:
                return [flow_at(group, collective)]
            return [flow_at(group, collective), flow_at(group, collective, down=True)]
        return [flow_at(group, collective, root, down=collective is Collective.BROADCAST)]


class PhasesInOneNumberSpaceBelowAParent(PhasesInOneNumberSpace):
    parent = 3


class PhasesInOneNumberSpaceAcrossTheWrap(PhasesInOneNumberSpace):
    wraps = True


class OppositePhases(ModeIIITest):
    """Reduce to a rank and Broadcast from it alternate on the same edges: each idle direction jumps over the other's
    packets, and a lost result is still sent again by its own PSN."""

    def runTest(self) -> None:
        group = self.node(reduce_to(0, 0), broadcast_from(0, 0), parent=False)
        self.serve(group)
        at = self.psn(0)
        for collective in (Collective.REDUCE, Collective.BROADCAST) * 2:
            flow = flow_at(group, collective, down=collective is Collective.BROADCAST)
            self.begin(flow, 2, psn=at)
            first = self.round(flow, serial.add(at, 1), acked=False)
            second = self.round(flow, serial.add(at, 2), acked=False)
            self.nak(group, flow.outputs[0], serial.add(at, 1))
            self.check(group, {}, {flow.outputs[0]: [first, second]})
            self.ack(group, flow.outputs, serial.add(at, 2))
            at = serial.add(at, 3)


class NotificationComesBackToItsSender(ModeIIITest):
    """AllReduce: a rank that got a marked result is among those whose contributions crowd the path."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        state = self.state()
        for edge in flow.outputs:
            self.send_from(flow.group, edge, self.notification(flow.group, edge))
            self.check(flow.group, to([edge], CNP))
        self.equal("registers", self.state() == state, True)
        self.refused(flow.group, 0, self.notification(flow.group, 0, room=12), "ValidatePacket.bad_length")


class NotificationGoesOnToTheSenders(ModeIIITest):
    """Reduce and Broadcast: whoever gets the data tells those who send it."""

    role: Role = REDUCE_TO_CHILD
    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(self.role)
        for edge in flow.outputs:
            self.send_from(flow.group, edge, self.notification(flow.group, edge))
            self.check(flow.group, to(flow.sources, CNP))


class NotificationOfAReduceFromTheParent(NotificationGoesOnToTheSenders):
    role = REDUCE_TO_PARENT


class NotificationOfABroadcastFromAChild(NotificationGoesOnToTheSenders):
    role = BROADCAST_FROM_CHILD


class NotificationOfABroadcastFromTheParent(NotificationGoesOnToTheSenders):
    role = BROADCAST_FROM_PARENT


class TwoContextsShareNothing(ModeIIITest):
    """Two groups on the same ports, with the same QPs and PSNs, in turn."""

    reliability = EVERY

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.spec.groups > 1 else "the program serves one group")

    def runTest(self) -> None:
        one = self.make_flow(ROOT)
        other = self.make_flow(DOWN, context=self.spec.groups - 1, first_port=1)
        self.serve(one.group, other.group)
        value, packets = self.immediate(one, 9), [(f, self.psn(1), self.inputs(f)) for f in (one, other)]
        for flow in (one, other):
            self.announce(flow.group, flow.sources, self.psn(0), value)
        announced = [
            (f.group, to(f.sources, ack_of(self.psn(0))), to(f.outputs, control_of(self.psn(0), value)))
            for f in (one, other)
        ]
        self.check_all(*announced)
        for flow, psn, values in packets:
            self.push(flow, flow.sources, psn, values)
        self.check_all(
            *(
                (flow.group, to(flow.sources, ack_of(psn)), to(flow.outputs, self.result(psn, values)))
                for flow, psn, values in packets
            )
        )
        self.ack(one.group, one.outputs, self.psn(1))
        self.nak(other.group, 1, self.psn(1))
        again = self.result(self.psn(1), packets[1][2])
        self.check_all((one.group, {}, {}), (other.group, {}, {1: [again]}))


class ThirtyTwoEdges(ModeIIITest):
    """The largest fan-in: every edge has its own bit, answer, copy and lastAcked."""

    reliability = EVERY
    edges = 32

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        self.round(flow, self.psn(1))
        outstanding = self.rounds(flow, 2, min(self.window - 1, 2), acked=False)
        self.nak(flow.group, 31, self.psn(2))
        self.check(flow.group, {}, {31: self.resent(outstanding)})


class ChildrenOfALargeNode(ModeIIITest):
    reliability = EVERY
    edges = 32

    def runTest(self) -> None:
        flow = self.begun(DOWN)
        self.round(flow, self.psn(1))
        self.round(flow, self.psn(2))


class OneEdgeAlone(ModeIIITest):
    """A group of one rank gets back what it sends."""

    reliability = EVERY
    edges = 1

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        self.rounds(flow, 1, 3)


class FreshGeneration(ModeIIITest):
    """Another epoch and another first PSN: all that was is forgotten, in every register."""

    role: Role = ROOT
    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(self.role)
        self.rounds(flow, 1, 3, acked=False)
        self.push(flow, flow.sources[:1], self.psn(4), self.inputs(flow))
        self.outputs()
        self.tick(flow.group, *flow.outputs)
        for epoch, jump in ((2, -5), (3, 1 << 23), (4, 0)):
            self.first_psn = self.psn(jump)
            fresh = replace(flow.group, epoch=epoch, first_psn=self.first_psn)
            self.renew(fresh)
            flow = replace(flow, group=fresh)
            self.tick(fresh, *flow.outputs)
            self.expect_nothing()
            self.begin(flow, acked=False)
            last = min(self.window - 1, 15)
            self.rounds(flow, 1, last, acked=False)
            self.push(flow, flow.sources[:1], self.psn(0), self.inputs(flow))
            self.check(fresh, to(flow.sources[:1], ack_of(self.psn(last))))


class FreshGenerationBelowAParent(FreshGeneration):
    role = DOWN


class FreshGenerationTowardAParent(FreshGeneration):
    role = UP


class SumsSaturateOrWrap(ModeIIITest):
    """Elements at the ends of their range, in a Mode III pipe; packets that saturate are counted by context."""

    reliability = EVERY

    def unfit(self) -> str | None:
        fits = self.spec.op is Op.SUM and self.spec.dtype.number_format.integer
        return super().unfit() or (None if fits else f"the program computes a {self.spec.op} of {self.spec.dtype}")

    def runTest(self) -> None:
        context = self.spec.groups - 1
        flow, overflows = self.served(ROOT, edges=2, context=context), 0
        self.begin(flow)
        low, high = self.limits
        ends = [(high, low), (high, 1), (low, -1 if low else high), (high, low)]
        for offset, (one, other) in enumerate(ends, start=1):
            total = one + other
            saturated, wrapped = min(max(total, low), high), (total - low) % (high + 1 - low) + low
            expected = saturated if self.spec.saturating else wrapped
            self.push(flow, [0], self.psn(offset), {0: self.lanes(one)})
            self.push(flow, [1], self.psn(offset), {1: self.lanes(other)})
            wanted = data_of(self.psn(offset), self.encode(self.lanes(expected)))
            self.check(flow.group, to([0, 1], ack_of(self.psn(offset))), to([0, 1], wanted))
            self.ack(flow.group, [0, 1], self.psn(offset))
            if self.spec.saturating and not lacks(self.spec, "overflows"):
                overflows += saturated != total
                counted = {context: overflows} if overflows else {}
                self.equal("overflows counted", self.counts("overflows"), counted)


class NumbersByAnnouncement(ModeIIITest):
    """Op and dtype are those announced, and change from one collective to the next, also for what is sent again."""

    modes = (Mode.III,)
    reliability = EVERY

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.spec.op is Op.DYNAMIC else "the program has one op")

    def runTest(self) -> None:
        flow, at = self.served(ROOT), self.psn(0)
        for numbers in self.spec.choices:
            self.numbers = Numbers(numbers.op, numbers.dtype)
            self.begin(flow, 2, psn=at)
            first = self.round(flow, serial.add(at, 1), acked=False)
            second = self.round(flow, serial.add(at, 2), acked=False)
            self.nak(flow.group, 2, serial.add(at, 1))
            self.check(flow.group, {}, {2: self.resent([first, second])})
            self.ack(flow.group, flow.outputs, serial.add(at, 2))
            at = serial.add(at, 3)
