"""When unacknowledged packets are sent again: with growing delays, not before an RNR timer expires, and not for ever
(Algorithm 3, line 3; InfiniBand 9.7.5.2.8)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from mode_iii import (
    BROADCAST_FROM_PARENT,
    DOWN,
    REDUCE_TO_CHILD,
    ROOT,
    TICK_UNITS,
    UP,
    Flow,
    ModeIIITest,
    again,
    control_of,
    describe,
)

from p4gen.papers.epic.conformance.needs import lacks
from p4gen.rocev2.opcodes import RnrNak
from p4gen.vocabulary import Reliability
from p4gen.vocabulary.message import Collective

EVERY = tuple(Reliability)
GIVEN_UP = 1 << 20
"""Units of 10 us without an ACK after which an edge is given up."""
LONG = GIVEN_UP // 8
"""Units of each tick in scenarios that take ten seconds."""


class TimerTest(ModeIIITest):
    """Some results have been sent, and no edge has acknowledged any."""

    reliability = EVERY
    role = ROOT
    outstanding = 3

    def under_way(self) -> tuple[Flow, int, list[str]]:
        """A flow, one of its outputs, and the packets sent to it."""
        flow = self.begun(self.role, acked=False)
        sent = [control_of(self.psn(0), self.immediate(flow, 1 << 12))]
        sent += self.rounds(flow, 1, min(self.outstanding, self.window - 1), acked=False)
        return flow, flow.outputs[-1], [again(result) for result in sent]

    def bursts(self, flow: Flow, edge: int, sent: list[str], ticks: int, units: int = TICK_UNITS) -> list[int]:
        """The next ticks of an edge that bring all packets sent to it so far; the others must bring nothing."""
        found = []
        for number in range(ticks):
            self.tick(flow.group, edge, units=units)
            if self.brought(flow, edge, sent):
                found.append(number)
        return found

    def brought(self, flow: Flow, edge: int, sent: list[str]) -> bool:
        """Whether an edge has received all its packets again since the last check; other edges must receive nothing."""
        received = self.received(flow.group)
        for index, packets in enumerate(received.of_rank):
            wanted = sent if index == edge and packets else []
            self.equal(f"edge {index}", [describe(packet) for packet in packets], wanted)
        return bool(received.total)

    def later_epoch(self, flow: Flow) -> Flow:
        """The flow of a group that is set up again."""
        group = replace(flow.group, epoch=flow.group.epoch + 1)
        self.reconfigure(group)
        return replace(flow, group=group)

    def given_up(self, flow: Flow, edge: int) -> int:
        """How many ticks have found an edge given up, if the program counts them."""
        if lacks(self.spec, "timers"):
            return 0
        index = flow.group.edges[edge].edge_id
        return self.counts("IncIngress.resend_timer.given_up").get(index, 0)


class BackOffDoubles(TimerTest):
    """The link is down: bursts follow after one tick, two, four, eight and so on, so 64 ticks bring seven bursts."""

    def runTest(self) -> None:
        flow, edge, sent = self.under_way()
        self.equal("bursts", self.bursts(flow, edge, sent, 64), [1, 2, 3, 5, 9, 17, 33])


class BackOffDoublesTowardTheParent(BackOffDoubles):
    role = UP


class BackOffDoublesFromTheParent(BackOffDoubles):
    role = DOWN


class BackOffDoublesInABroadcast(BackOffDoubles):
    role = BROADCAST_FROM_PARENT


class BackOffDoublesAcrossTheWrap(BackOffDoubles):
    wraps = True


class ProgressEndsBackOff(TimerTest):
    """An ACK of a new packet resets the backoff: the next two ticks act like the first two."""

    def runTest(self) -> None:
        flow, edge, sent = self.under_way()
        self.equal("bursts", self.bursts(flow, edge, sent, 12), [1, 2, 3, 5, 9])
        self.ack(flow.group, [edge], self.psn(0))
        self.equal("bursts after progress", self.bursts(flow, edge, sent[1:], 12), [1, 2, 3, 5, 9])
        self.ack(flow.group, [edge], self.psn(0))  # says nothing new
        self.equal("bursts without progress", self.bursts(flow, edge, sent[1:], 4), [])


class OldAcksHoldTheTimer(TimerTest):
    """ACKs that say nothing new answer what was sent twice: others are on their way behind them, and ticks behind them
    do not count. Without them, back-off goes on where it was."""

    def runTest(self) -> None:
        flow, edge, sent = self.under_way()
        self.ack(flow.group, [edge], self.psn(0))
        self.equal("bursts", self.bursts(flow, edge, sent[1:], 3), [1, 2])
        for _ in range(4):
            self.ack(flow.group, [edge], self.psn(0))
            self.ack(flow.group, [edge], self.psn(0))
            self.equal("bursts after old ACKs", self.bursts(flow, edge, sent[1:], 1), [])
        self.equal("bursts after silence", self.bursts(flow, edge, sent[1:], 7), [0, 2, 6])
        self.ack(flow.group, [edge], self.psn(1))
        self.equal("bursts after progress", self.bursts(flow, edge, sent[2:], 4), [1, 2, 3])


class ProgressIsNoOldAck(TimerTest):
    """ACKs that come with progress do not tell that a burst was for nothing: the next wait has bursts as the first."""

    def runTest(self) -> None:
        flow, edge, sent = self.under_way()
        self.equal("bursts", self.bursts(flow, edge, sent, 12), [1, 2, 3, 5, 9])
        for number in (0, 1):
            self.ack(flow.group, [edge], self.psn(number))
            self.equal("bursts after progress", self.bursts(flow, edge, sent[number + 1 :], 1), [])
        self.equal("bursts", self.bursts(flow, edge, sent[2:], 6), [0, 1, 2, 4])


class LongRoundTripsAreLearned(TimerTest):
    """Bursts were for nothing if ACKs come later that say nothing new. In a wait no longer than that one, the edge is
    sent its oldest packet only, and in a longer one the bursts that are still to come. Waits without such ACKs halve
    the time that was learned; a new epoch knows nothing of it, nor of the last waits before it."""

    def runTest(self) -> None:
        flow, edge, sent = self.learned()
        self.probed(flow, edge, sent[1:], [15, 31])
        self.ack(flow.group, flow.outputs, self.psn(len(sent) - 1))
        for number in range(len(sent), len(sent) + 32):
            result = again(self.round(flow, self.psn(number), acked=False))
            self.ack(flow.group, [output for output in flow.outputs if output != edge], self.psn(number))
            self.bursts(flow, edge, [result], 2)
            self.progress(flow, edge, self.psn(number), [])
        first = len(sent) + 32
        sent = [
            again(result) for result in self.rounds(flow, first, min(self.outstanding, self.window - 1), acked=False)
        ]
        self.ack(flow.group, [edge], self.psn(first - 1))  # behind a short wait: what is known of longer ones stays
        self.bursts(flow, edge, sent, 1)
        self.probed(flow, edge, sent, [3, 7, 15, 31])
        later = self.later_epoch(flow)
        self.begin(later, acked=False)
        sent = [control_of(later.group.first_psn, self.immediate(later, 1 << 12))]
        sent += [again(result) for result in self.rounds(later, 1, min(self.outstanding, self.window - 1), acked=False)]
        self.equal("bursts of a new epoch", self.bursts(later, edge, sent, 1), [])
        self.ack(later.group, [edge], self.psn(-1))
        self.equal("bursts behind an old ACK of it", self.bursts(later, edge, sent, 1), [])
        self.equal("bursts of a new epoch", self.bursts(later, edge, sent, 5), [0, 1, 2, 4])

    def learned(self) -> tuple[Flow, int, list[str]]:
        """As ``under_way``, behind a wait whose bursts were for nothing; the first packet is acknowledged."""
        flow, edge, sent = self.under_way()
        self.equal("bursts", self.bursts(flow, edge, sent, 10), [1, 2, 3, 5, 9])
        self.progress(flow, edge, self.psn(0), sent[1:])
        self.ack(flow.group, [edge], self.psn(0))
        self.equal("bursts behind an old ACK", self.bursts(flow, edge, sent[1:], 1), [])
        return flow, edge, sent

    def progress(self, flow: Flow, edge: int, psn: int, rest: list[str]) -> None:
        """An edge acknowledges, and a tick sees it."""
        self.ack(flow.group, [edge], psn)
        self.equal("bursts after progress", self.bursts(flow, edge, rest, 1), [])

    def probed(self, flow: Flow, edge: int, sent: list[str], bursts: list[int]) -> None:
        """The first tick without progress brings one packet, and of 40 behind it these ones all."""
        found = next((tick for tick in range(4) if self.bursts(flow, edge, sent[:1], 1)), None)
        self.equal("a probe comes", found is not None, True)
        self.equal("bursts behind a probe", self.bursts(flow, edge, sent, 40), bursts)


class ProgressWithoutAWaitSaysNothing(LongRoundTripsAreLearned):
    """What was learned of round trips stays while an edge acknowledges before any tick has found it waiting."""

    def runTest(self) -> None:
        flow, edge, sent = self.learned()
        self.ack(flow.group, flow.outputs, self.psn(len(sent) - 1))
        first = len(sent) + 40
        for number in range(len(sent), first):
            self.round(flow, self.psn(number))
            self.equal("bursts after progress", self.bursts(flow, edge, [], 1), [])
        results = self.rounds(flow, first, min(self.outstanding, self.window - 1), acked=False)
        self.probed(flow, edge, [again(result) for result in results], [15, 31])


class BackOffIsEachEdgesOwn(TimerTest):
    """Missing ACKs of one edge do not delay retransmissions to another."""

    def runTest(self) -> None:
        flow, edge, sent = self.under_way()
        other = flow.outputs[0]
        self.equal("bursts", self.bursts(flow, edge, sent, 8), [1, 2, 3, 5])
        self.equal("bursts of another", self.bursts(flow, other, sent, 8), [1, 2, 3, 5])


class IdleEdgesDoNotBackOff(TimerTest):
    """Ticks without outstanding packets neither lengthen a later delay nor cause an edge to be given up."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        edge = flow.outputs[0]
        for _ in range(12):
            self.tick(flow.group, edge, units=LONG)
        self.expect_nothing()
        self.equal("ticks of an edge given up", self.given_up(flow, edge), 0)
        sent = [again(self.round(flow, self.psn(1), acked=False))]
        self.ack(flow.group, [output for output in flow.outputs if output != edge], self.psn(1))
        self.equal("bursts", self.bursts(flow, edge, sent, 8), [0, 1, 2, 4])


class NaksDoNotStartTheTimer(TimerTest):
    """A NAK is served at once, and the first tick without progress afterwards sends again as without the NAK."""

    def runTest(self) -> None:
        flow, edge, sent = self.under_way()
        self.tick(flow.group, edge)
        self.nak(flow.group, edge, self.psn(0))
        self.check(flow.group, {}, {edge: self.resent(sent)})
        self.equal("bursts", self.bursts(flow, edge, sent, 8), [0, 1, 2, 4])


class EdgesAreGivenUp(TimerTest):
    """After ten seconds without an ACK there is silence, and each tick is counted, until there is progress."""

    def runTest(self) -> None:
        flow, edge, sent = self.under_way()
        self.equal("bursts", self.bursts(flow, edge, sent, 9, LONG), [1, 2, 3, 5])
        self.equal("ticks of an edge given up", self.given_up(flow, edge), 0)
        self.equal("bursts of an edge given up", self.bursts(flow, edge, sent, 12, LONG), [])
        self.equal("ticks of an edge given up", self.given_up(flow, edge), 12)
        for other in flow.outputs:
            if other != edge:
                self.equal(f"ticks of edge {other} given up", self.given_up(flow, other), 0)
        self.ack(flow.group, [edge], self.psn(0))
        self.equal("bursts of an edge that is back", self.bursts(flow, edge, sent[1:], 6), [1, 2, 3, 5])
        self.equal("ticks of an edge given up", self.given_up(flow, edge), 12)


class EdgesTowardTheParentAreGivenUp(EdgesAreGivenUp):
    role = UP


class EdgesAreGivenUpAfterTenSeconds(TimerTest):
    """Exact to the unit: one unit earlier there is still a burst; at the limit there is none."""

    def runTest(self) -> None:
        flow, edge, sent = self.under_way()
        self.equal("bursts", self.bursts(flow, edge, sent, 2), [1])  # which starts the timer at 1
        self.equal("bursts", self.bursts(flow, edge, sent, 1, GIVEN_UP - 2), [0])
        self.equal("ticks of an edge given up", self.given_up(flow, edge), 0)
        self.equal("bursts of an edge given up", self.bursts(flow, edge, sent, 2, 1), [])
        self.equal("ticks of an edge given up", self.given_up(flow, edge), 2)
        self.equal("bursts of an edge given up", self.bursts(flow, edge, sent, 12, (1 << 24) - 1), [])
        self.equal("ticks of an edge given up", self.given_up(flow, edge), 14)


class QuietTicksAreCounted(TimerTest):
    """A tick without effect is dropped for one of two reasons: no delay has expired, or nothing is outstanding."""

    def runTest(self) -> None:
        flow = self.begun(REDUCE_TO_CHILD)
        idle, busy = flow.sources[0], flow.outputs[0]
        for edge in (idle, busy):
            for reason in ("StartCursor.not_needed", "Retransmission.done"):
                before = self.all_drops()
                self.tick(flow.group, edge)
                self.expect_nothing()
                self.equal(f"edge {edge}: dropped", self.all_drops() - before, Counter({reason: 1}))


class NewEpochsStartTheTimerAfresh(TimerTest):
    """A group that gets its edges again has given up none of them."""

    def runTest(self) -> None:
        flow, edge, sent = self.under_way()
        self.bursts(flow, edge, sent, 12, LONG)
        before = self.given_up(flow, edge)
        self.equal("it is given up", before > 0, True)
        later = self.later_epoch(flow)
        self.begin(later, acked=False)
        sent = [control_of(later.group.first_psn, self.immediate(later, 1 << 12))]
        self.equal("bursts", self.bursts(later, edge, sent, 6), [1, 2, 3, 5])
        self.equal("ticks of an edge given up", self.given_up(later, edge), before)


class RnrTimersAreWaitedFor(TimerTest):
    """An RNR NAK of each code: nothing for at least its delay, whatever a tick stands for; then all packets again."""

    def runTest(self) -> None:
        flow, edge, sent = self.under_way()
        self.bursts(flow, edge, sent, 6)
        for number, code in enumerate((1, 2, 3, 4, 7, 12, 19, 30, 31, 0)):
            psn = number % 2  # each is the first one for its PSN
            self.answer(flow.group, edge, self.psn(psn), RnrNak(code).syndrome)
            asked = round(RnrNak(code).delay_us / 10)
            period = max(1, self.period_of(asked))
            found = self.bursts(flow, edge, sent[psn:], 6, period)[:1]
            full = -(-asked // period)  # ticks; the first comes at once
            self.equal(f"first burst after RNR NAK {code} ({asked} units, ticks of {period})", found, [full])
            if psn == 1:
                flow, edge, sent = self.restarted(flow, edge)

    def period_of(self, asked: int) -> int:
        """The units that a tick stands for, if an edge asks for ``asked`` units."""
        return asked // 3

    def restarted(self, flow: Flow, edge: int) -> tuple[Flow, int, list[str]]:
        """The same, in a new epoch."""
        later = self.later_epoch(flow)
        self.begin(later, acked=False)
        sent = [control_of(later.group.first_psn, self.immediate(later, 1 << 12))]
        sent += self.rounds(later, 1, min(self.outstanding, self.window - 1), acked=False)
        return later, edge, [again(result) for result in sent]


class RnrTimersOfATick(RnrTimersAreWaitedFor):
    """A tick stands for exactly the requested delay."""

    def period_of(self, asked: int) -> int:
        return asked


class RnrTimersOfATickAndMore(RnrTimersAreWaitedFor):
    """One unit of the delay remains after the first tick."""

    def period_of(self, asked: int) -> int:
        return asked - 1


class LongRnrTimersBringNothing(TimerTest):
    """After an RNR NAK that asks for 491 ms, ten ticks of 20 ms bring no packet."""

    def runTest(self) -> None:
        flow, edge, sent = self.under_way()
        self.answer(flow.group, edge, self.psn(0), RnrNak(31).syndrome)
        self.equal("bursts", self.bursts(flow, edge, sent, 25, 2000), [])
        self.equal("bursts later", self.bursts(flow, edge, sent, 3, 2000), [0, 1, 2])


class RnrNaksBackOff(TimerTest):
    """An edge that is repeatedly not ready is tried less often, but at least every 41 ms, and is not given up. After
    progress it is the first time again."""

    asked = 2

    def runTest(self) -> None:
        flow, edge, sent = self.under_way()
        for number in range(18):
            self.wait(flow, edge, sent, self.psn(0), min(self.asked << number, 4096), number % 2)
        self.equal("ticks of an edge given up", self.given_up(flow, edge), 0)
        self.ack(flow.group, [edge], self.psn(0))
        self.tick(flow.group, edge)
        self.expect_nothing()
        self.wait(flow, edge, sent[1:], self.psn(1), self.asked, 0)

    def wait(self, flow: Flow, edge: int, sent: list[str], psn: int, units: int, less: int) -> None:
        """An edge is not ready for a PSN; the packets sent to it are sent again after ``units`` units of 10 us. A tick
        stands for all of these but ``less``."""
        self.answer(flow.group, edge, psn, RnrNak(self.asked).syndrome)  # codes 1 and 2 ask for 10 and 20 us
        period = max(1, units - less)
        found = self.bursts(flow, edge, sent, 4, period)
        self.equal(f"first burst after {units} units, ticks of {period}", found[:1], [-(-units // period)])


class ShortestRnrNaksBackOff(RnrNaksBackOff):
    asked = 1


class RepeatsAreOneRefusal(TimerTest):
    """An edge refuses each packet that is under way, with RNR NAKs of one PSN: before the delay has passed they neither
    prolong nor double it. What it refuses of what is sent again is the next refusal; of a later PSN, the first."""

    def runTest(self) -> None:
        flow, edge, sent = self.under_way()
        for units in (2, 4, 8):
            self.refuse(flow, edge, self.psn(0), 5)
            for left in range(units, 0, -1):
                self.equal(f"bursts, {left} units before the delay has passed", self.bursts(flow, edge, sent, 1, 1), [])
                self.refuse(flow, edge, self.psn(0), 2)
            self.equal(f"bursts after {units} units", self.bursts(flow, edge, sent, 1, 1), [0])
        self.refuse(flow, edge, self.psn(0), 1)
        self.refuse(flow, edge, self.psn(1), 2)
        self.equal("bursts after a refusal of a later PSN", self.bursts(flow, edge, sent[1:], 3, 1), [2])

    def refuse(self, flow: Flow, edge: int, psn: int, times: int) -> None:
        """As many RNR NAKs, which ask for 20 us."""
        for _ in range(times):
            self.answer(flow.group, edge, psn, RnrNak(2).syndrome)
        self.expect_nothing()


class RefusalsBehindProgressAreWaitedFor(TimerTest):
    """Progress ends a countdown: what an edge refuses behind it is waited for as that refusal asks."""

    def runTest(self) -> None:
        flow, edge, sent = self.under_way()
        self.equal("bursts", self.bursts(flow, edge, sent, 1), [])
        self.answer(flow.group, edge, self.psn(0), RnrNak(12).syndrome)
        self.equal("bursts while the edge is not ready", self.bursts(flow, edge, sent, 2, 1), [])
        self.ack(flow.group, [edge], self.psn(0))
        self.equal("bursts after progress", self.bursts(flow, edge, sent[1:], 1), [])
        self.answer(flow.group, edge, self.psn(1), RnrNak(3).syndrome)
        self.equal("bursts after a refusal that asks for 3 units", self.bursts(flow, edge, sent[1:], 4, 1), [3])


class BarriersAreWaitedForToo(TimerTest):
    """A single outstanding control message is sent again like data."""

    def runTest(self) -> None:
        flow = self.served(ROOT)
        value = self.call(Collective.BARRIER, 0).encode()
        self.announce(flow.group, flow.sources, self.psn(0), value)
        self.outputs()
        self.equal("bursts", self.bursts(flow, 0, [control_of(self.psn(0), value)], 8), [1, 2, 3, 5])
