"""The permissible range of a pipe, [psnStart, psnStart + N), and what moves it (section 4.4; Algorithm 2, lines 26-31).

N slots take N packets that their outputs have not all acknowledged, and not one more.
"""

from __future__ import annotations

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
    flow_at,
    nak_of,
    rnr_of,
    to,
)

from p4gen.rocev2.opcodes import Ack, Nak, NakCode, RnrNak
from p4gen.vocabulary import Reliability
from p4gen.vocabulary.message import Collective

EVERY = tuple(Reliability)


class RangeTest(ModeIIITest):
    """The slots are filled by the announcement and what follows it; N packets from the first PSN on."""

    reliability = EVERY

    def setUp(self) -> None:
        super().setUp()
        self.notified: set[int] = set()
        """Edges that have had a CNP; no time passes, so they get no other."""

    def refusal(self, flow: Flow, edge: int, psn: int) -> list[str]:
        """The answers to an edge whose packet is beyond the range."""
        if not flow.group.edges[edge].first_hop or (self.spec.mode.stores and not self.spec.notifies):
            return [rnr_of(psn)]
        if not self.spec.notifies:
            return [nak_of(psn)]
        answers = [rnr_of(psn)] if edge in self.notified else [CNP, rnr_of(psn)]
        self.notified.add(edge)
        return answers

    def refuse(self, flow: Flow, psn: int, *, again: bool = False) -> None:
        """Every source's packet is beyond the range; without notifications, ranks are told only the first time."""
        values, before = self.inputs(flow), self.drops()["CheckOrder.ahead"]
        self.push(flow, flow.sources, psn, values)
        silent = again and not self.spec.notifies and not self.spec.mode.stores
        ranks = [edge for edge in flow.sources if flow.group.edges[edge].first_hop]
        received = {edge: [] if silent and edge in ranks else self.refusal(flow, edge, psn) for edge in flow.sources}
        self.check(flow.group, received)
        self.equal("refused", self.drops()["CheckOrder.ahead"] - before, len(flow.sources))


class RangeIsExactlyN(RangeTest):
    """The first PSN of the range and the last one are taken, and the next one only when the first is free."""

    role = ROOT

    def runTest(self) -> None:
        flow = self.begun(self.role, acked=False)
        self.rounds(flow, 1, self.window - 1, acked=False)
        self.refuse(flow, self.psn(self.window))
        self.ack(flow.group, flow.outputs, self.psn(0))
        self.expect_nothing()
        self.round(flow, self.psn(self.window), acked=False)
        beyond = self.psn(self.window + 1)
        if self.spec.notifies:  # otherwise that one has been reported already
            self.refuse(flow, beyond)
        self.ack(flow.group, flow.outputs, self.psn(self.window))
        self.rounds(flow, self.window + 1, self.window, acked=False)
        self.refuse(flow, self.psn(2 * self.window + 1))


class RangeTowardTheParent(RangeIsExactlyN):
    role = UP


class RangeFromTheParent(RangeIsExactlyN):
    """Another switch has no rate that it could lower: it is told to wait, and gets no CNP."""

    role = DOWN


class RangeOfAReduceToAChild(RangeIsExactlyN):
    role = REDUCE_TO_CHILD


class RangeOfAReduceToTheParent(RangeIsExactlyN):
    role = REDUCE_TO_PARENT


class RangeOfABroadcastFromAChild(RangeIsExactlyN):
    role = BROADCAST_FROM_CHILD


class RangeOfABroadcastFromTheParent(RangeIsExactlyN):
    role = BROADCAST_FROM_PARENT


class RangeAcrossTheWrap(RangeIsExactlyN):
    wraps = True


class RangeFromTheParentAcrossTheWrap(RangeIsExactlyN):
    wraps = True
    role = DOWN


class SlowestOutputDecides(RangeTest):
    """psnStart is the minimum of lastAcked over the outputs, plus one; the slowest output holds all back."""

    role = ROOT

    def runTest(self) -> None:
        flow = self.begun(self.role, acked=False)
        self.rounds(flow, 1, self.window - 1, acked=False)
        *fast, slow = self.random.sample(flow.outputs, len(flow.outputs))
        ahead = self.psn(self.window)
        self.ack(flow.group, fast, self.psn(self.window - 1))
        self.expect_nothing()
        self.refuse(flow, ahead)
        self.ack(flow.group, [slow], self.psn(0))
        self.round(flow, ahead, acked=False)
        # Now another one is the slowest.
        self.ack(flow.group, [slow], ahead)
        self.rounds(flow, self.window + 1, self.window - 1, acked=False)
        self.refuse(flow, self.psn(2 * self.window))


class SlowestChildDecides(SlowestOutputDecides):
    role = DOWN


class SlowestReceiverOfABroadcastDecides(SlowestOutputDecides):
    role = BROADCAST_FROM_CHILD


class SlowestOutputDecidesAcrossTheWrap(SlowestOutputDecides):
    wraps = True


class PipesMoveByTheirOwnAnswers(RangeTest):
    """Below the root, children's ACKs free slots of the broadcast pipe, the parent's those of the aggregation pipe."""

    def runTest(self) -> None:
        up = self.served(UP)
        down = flow_at(up.group, up.collective, down=True)
        for flow in (up, down):
            self.begin(flow, acked=False)
            self.rounds(flow, 1, self.window - 1, acked=False)
        self.ack(up.group, down.outputs, self.psn(0))
        self.refuse(up, self.psn(self.window))
        self.ack(up.group, up.outputs, self.psn(1))
        self.rounds(up, self.window, 2, acked=False)
        self.round(down, self.psn(self.window), acked=False)
        self.refuse(down, self.psn(self.window + 1))


class FastContributionsAreSafe(RangeTest):
    """The pitfall of section 5.1: one source is a whole range ahead of the others; none of its packets is lost."""

    role = ROOT

    def runTest(self) -> None:
        flow = self.begun(self.role)
        fast, *others = flow.sources
        last = self.window
        rounds = {offset: self.inputs(flow) for offset in range(1, last + 1)}
        for offset, values in rounds.items():
            self.push(flow, [fast], self.psn(offset), values)
        self.check(flow.group, to([fast], *[ack_of(self.psn(offset)) for offset in rounds]))
        self.push(flow, [fast], self.psn(last + 1), rounds[1])
        self.check(flow.group, {fast: self.refusal(flow, fast, self.psn(last + 1))})
        for offset, values in rounds.items():
            self.push(flow, others, self.psn(offset), values)
        results = [self.result(self.psn(offset), values) for offset, values in rounds.items()]
        wanted = to(others, *[ack_of(self.psn(offset)) for offset in rounds])
        self.check(flow.group, wanted, to(flow.outputs, *results))


class FastContributionsToTheParentAreSafe(FastContributionsAreSafe):
    role = UP


class FastContributionsOfAReduceAreSafe(FastContributionsAreSafe):
    role = REDUCE_TO_PARENT


class SlotsAreUsedAgain(RangeTest):
    """Streams far longer than the buffer, acknowledged now and then."""

    role = ROOT

    def runTest(self) -> None:
        flow = self.begun(self.role)
        rounds, step = 2 * self.window + 3, max(1, self.window // 3)
        offset = 1
        while offset < rounds:
            self.rounds(flow, offset, step, acked=False)
            offset += step
            self.ack(flow.group, flow.outputs, self.psn(offset - 1))
        self.expect_nothing()
        self.equal("losses", dict(self.losses()), {})


class SlotsAreUsedAgainTowardTheParent(SlotsAreUsedAgain):
    role = UP


class SlotsAreUsedAgainFromTheParent(SlotsAreUsedAgain):
    role = DOWN


class SlotsAreUsedAgainAcrossTheWrap(SlotsAreUsedAgain):
    wraps = True


class OldAckChangesNothing(RangeTest):
    """ACKs may overtake each other: lastAcked is their maximum."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        self.rounds(flow, 1, self.window, acked=False)
        self.ack(flow.group, flow.outputs, self.psn(2))
        for old in (self.psn(1), self.psn(-5), self.psn(0)):
            self.ack(flow.group, flow.outputs, old)
        self.expect_nothing()
        self.rounds(flow, self.window + 1, 2, acked=False)
        self.refuse(flow, self.psn(self.window + 3))


class OldAckChangesNothingAcrossTheWrap(OldAckChangesNothing):
    wraps = True


class AnswersThatAcknowledge(RangeTest):
    """An ACK's credits do not matter; every NAK acknowledges the PSNs before its own, and most have no other effect."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        self.rounds(flow, 1, self.window, acked=False)
        group = flow.group
        syndromes = (Ack(0), Ack(17), RnrNak(0), RnrNak(31), Nak(NakCode.REMOTE_OPERATIONAL_ERROR))
        for taken, syndrome in enumerate(syndromes[: self.window - 1], start=1):
            psn = self.psn(taken if isinstance(syndrome, Ack) else taken + 1)
            for edge in flow.outputs:
                self.answer(group, edge, psn, syndrome.syndrome)
            self.expect_nothing()
            self.round(flow, self.psn(self.window + taken), acked=False)
            if self.spec.notifies:
                self.refuse(flow, self.psn(self.window + taken + 1))


class OutOfOrderBeyondTheRangeIsAGap(RangeTest):
    """A gap is reported first, whatever else is wrong with a packet."""

    reliability = (Reliability.GBN,)

    def runTest(self) -> None:
        flow = self.begun(ROOT, acked=False)
        self.push(flow, [0], self.psn(self.window + 1), self.inputs(flow))
        self.check(flow.group, to([0], nak_of(self.psn(1))))


class RefusedOnceAcceptedLater(RangeTest):
    """After the wait that an RNR NAK asks for, the same packet is sent again; nothing of the first time is left."""

    def runTest(self) -> None:
        flow = self.begun(ROOT, acked=False)
        self.rounds(flow, 1, self.window - 1, acked=False)
        ahead, values = self.psn(self.window), self.inputs(flow)
        self.push(flow, [1], ahead, values)
        self.check(flow.group, {1: self.refusal(flow, 1, ahead)})
        self.ack(flow.group, flow.outputs, self.psn(1))
        self.push(flow, flow.sources, ahead, values)
        self.check(flow.group, to(flow.sources, ack_of(ahead)), to(flow.outputs, self.result(ahead, values)))


class AnnouncementsStayInTheRange(RangeTest):
    """Control messages take slots like data."""

    def runTest(self) -> None:
        flow = self.served(ROOT)
        value = self.call(Collective.BARRIER, 0).encode()
        for offset in range(self.window):
            self.announce(flow.group, flow.sources, self.psn(offset), value)
        self.outputs()
        self.announce(flow.group, [0], self.psn(self.window), value)
        self.check(flow.group, {0: self.refusal(flow, 0, self.psn(self.window))})
        self.ack(flow.group, flow.outputs, self.psn(0))
        self.announce(flow.group, [0], self.psn(self.window), value)
        self.check(flow.group, to([0], ack_of(self.psn(self.window))))
