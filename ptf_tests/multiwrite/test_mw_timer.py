"""When a switch sends again what a next hop has not acknowledged: with growing delays, not before an RNR timer expires,
and not for ever. Each tick brings nothing, the oldest packet, or all."""

from __future__ import annotations

from writes import HopTest, Write

from p4gen.papers.multiwrite.control import edge_index
from p4gen.rocev2.opcodes import RnrNak

GIVEN_UP = 1 << 20
"""Units of 10 us without an acknowledgement after which an edge is given up."""
PATIENT = 4096
"""Units that RNR NAKs which ask for less make an edge wait at most."""
EDGE = 2


class TimerTest(HopTest):
    """Writes have been sent to edge 2, which has not acknowledged the last ones."""

    outstanding = 3

    def setUp(self) -> None:
        super().setUp()
        self.begun(1)

    def begun(self, epoch: int) -> None:
        """The writes of an epoch."""
        self.context = self.star(epoch=epoch)
        if epoch == 1:
            self.serve(self.context)
        else:
            self.renew(self.context)
        self.sent = self.acked = 0
        self.writes: dict[int, Write] = {}
        self.more(self.outstanding)

    def more(self, count: int = 1) -> None:
        """The source sends more, to this edge and to nobody else."""
        for _ in range(count):
            self.writes[self.sent] = self.write(self.context, self.sent, self.bits([EDGE]))
            self.posts(self.writes[self.sent], {EDGE: self.sent})
            self.sent += 1

    def ticked(self, units: int = 2) -> int:
        """How many packets a tick brings: all that the edge lacks, the oldest of them, or none."""
        packet = self.tick(self.context, EDGE, units)
        outputs = self.outputs()
        expected = [self.again(self.writes[n], EDGE, n, packet) for n in range(self.acked, self.sent)]
        self.equal("frames sent", outputs, expected[: len(outputs)])
        self.equal("none, one or all", len(outputs) in (0, 1, len(expected)), True)
        return len(outputs)

    def bursts(self, ticks: int, units: int = 2) -> list[int]:
        """The next ticks that bring all; the others must bring nothing."""
        found = []
        for number in range(ticks):
            if count := self.ticked(units):
                self.equal("packets sent again", count, self.sent - self.acked)
                found.append(number)
        return found

    def acks(self, count: int = 1) -> None:
        """The edge acknowledges so many more."""
        self.acked += count
        self.again_acked()

    def again_acked(self, before: int = 0) -> None:
        """The edge says what it has, or, an older answer, had ``before`` that."""
        self.says(self.context, EDGE, self.acked - 1 - before, None)

    def not_ready(self, code: int) -> None:
        """The edge is not ready for the oldest packet that it lacks."""
        self.says(self.context, EDGE, self.acked, None, syndrome=RnrNak(code).syndrome)

    def given_up(self) -> dict[int, int]:
        """How many ticks have found an edge given up, by its index."""
        return dict(self.counts("IncIngress.resend_timer.given_up"))

    def waits(self, *ticks: tuple[int, int]) -> None:
        """A wait: ticks, each of so many units, and how many packets each must bring; then the edge acknowledges one, a
        tick sees it, and the source sends one more."""
        for number, (units, packets) in enumerate(ticks):
            self.equal(f"packets that tick {number} of {ticks} brings", self.ticked(units), packets)
        self.acks()
        self.equal("packets that a tick behind progress brings", self.ticked(), 0)
        self.more()

    def told(self) -> None:
        """Old ACKs tell that what was sent again was for nothing; a tick behind them does not count."""
        self.again_acked()
        self.again_acked(before=1)
        self.equal("packets that a tick behind an old ACK brings", self.ticked(), 0)


class BackOffDoubles(TimerTest):
    """The link is down: bursts follow after one tick, two, four, eight and so on."""

    def runTest(self) -> None:
        self.equal("bursts", self.bursts(64), [1, 2, 3, 5, 9, 17, 33])
        self.acks()
        self.more()
        self.equal("bursts by single units", self.bursts(34, 1), [1, 2, 4, 8, 16, 32])


class EdgesHaveTheirOwnTimers(TimerTest):
    """What one edge has waited for delays nothing for another one, nor for that edge of another context."""

    def unfit(self) -> str | None:
        return "the program has one context" if self.spec.contexts < 2 else None

    def runTest(self) -> None:
        other = self.star(number=1, at=0x0A010001)
        self.serve(other)
        theirs = self.write(other, 0, self.bits([EDGE]))
        self.posts(theirs, {EDGE: 0})
        self.writes[self.sent] = self.write(self.context, self.sent, self.bits([EDGE, 3]))
        self.posts(self.writes[self.sent], {EDGE: self.sent, 3: 0})
        self.sent += 1
        self.equal("bursts", self.bursts(8), [1, 2, 3, 5])
        for context, edge, sent in ((self.context, 3, self.writes[self.sent - 1]), (other, EDGE, theirs)):
            for tick in range(8):
                packet = self.tick(context, edge)
                self.expect([self.again(sent, edge, 0, packet)] if tick in (1, 2, 3, 5) else [])
        self.equal("bursts", self.bursts(4), [1])


class ProgressEndsBackOff(TimerTest):
    """An acknowledgement of a new packet begins a new wait; one that says nothing new does not."""

    def runTest(self) -> None:
        self.equal("bursts", self.bursts(12), [1, 2, 3, 5, 9])
        self.acks()
        self.equal("bursts after progress", self.bursts(12), [1, 2, 3, 5, 9])
        self.again_acked()
        self.equal("bursts behind an old ACK", self.bursts(3), [])


class OldAcksHoldTheTimer(TimerTest):
    """Ticks behind ACKs that say nothing new do not count; without such ACKs, back-off goes on where it was."""

    def runTest(self) -> None:
        self.acks()
        self.equal("bursts", self.bursts(3), [1, 2])
        for _ in range(4):
            self.again_acked()
            self.again_acked()
            self.equal("bursts behind old ACKs", self.bursts(1), [])
        self.equal("bursts after silence", self.bursts(7), [0, 2, 6])
        self.acks()
        self.equal("bursts after progress", self.bursts(4), [1, 2, 3])


class NaksHoldNothing(TimerTest):
    """A NAK is served at once, and is no old ACK: the ticks behind it count, and it does not start the timer."""

    def runTest(self) -> None:
        self.equal("sent again", self.ticked(), 0)
        packet = self.say(self.context, EDGE, 0, 0x60)
        self.expect([self.again(self.writes[n], EDGE, n, packet) for n in range(self.sent)])
        self.equal("bursts", self.bursts(4), [0, 1, 2])
        for syndrome in (0x61, 0x62, 0x63, 0x64):
            self.says(self.context, EDGE, 0, None, syndrome=syndrome)
        self.equal("bursts", self.bursts(5), [0, 4])


class ProgressIsNoOldAck(TimerTest):
    """ACKs that come with progress do not tell that a burst was for nothing."""

    def runTest(self) -> None:
        self.equal("bursts", self.bursts(12), [1, 2, 3, 5, 9])
        for _ in range(2):
            self.acks()
            self.equal("bursts after progress", self.bursts(1), [])
            self.more()
        self.equal("bursts", self.bursts(6), [0, 1, 2, 4])


class RoundTripsAreLearnedToTheUnit(TimerTest):
    """An old ACK tells that the longest wait before it was for nothing: up to that time only one packet is sent again,
    and from the next unit on all. Shorter waits change nothing, nor do more old ACKs."""

    def runTest(self) -> None:
        self.equal("at the first tick", self.ticked(), 0)
        self.waits((2, 3), (7, 3))  # 8 units
        self.told()
        self.waits((2, 1), (7, 0), (8, 3))  # 8 units and 16
        self.waits((2, 1), (8, 3))  # 9
        self.told()
        for units in (16, 12):
            self.waits((2, 1), (units - 1, 0))
            self.told()
        self.waits((2, 1), (15, 0))  # 16
        self.waits((2, 1), (16, 3))  # 17


class LearnedTimesAreHalved(TimerTest):
    """After 32 waits without an old ACK the time is half as long, and the longest wait before that is forgotten.
    Packets that are acknowledged at once are no waits."""

    def runTest(self) -> None:
        self.equal("at the first tick", self.ticked(), 0)
        for units in (8, 3):
            self.waits((2, 3), (units - 1, 3))
        self.told()
        for wait in range(32):
            self.waits()
            self.waits((2, 1), *(((7, 0), (8, 3)) if wait == 5 else ((4 if wait == 31 else 7, 0),)))
        self.told()
        self.waits((2, 1), (4, 0))  # 5 units, the last wait
        self.waits((2, 1), (7, 3))  # 8
        self.told()
        for _ in range(64):
            self.waits((2, 1))  # 1
        self.told()
        self.waits((2, 1), (1, 0))  # 2


class LongWaitsAreLearned(TimerTest):
    """Waits of 655 ms and more are learned as 65535 units, those below to the unit."""

    def runTest(self) -> None:
        self.equal("at the first tick", self.ticked(), 0)
        self.waits((2, 3), (0x1000F, 3))
        self.told()
        self.waits((2, 1), (0xFFFE, 0))
        self.waits((2, 1), (0xFFFF, 3))
        self.begun(2)
        self.equal("at the first tick", self.ticked(), 0)
        self.waits((2, 3), (0xFFFD, 3))
        self.told()
        self.waits((2, 1), (0xFFFE, 3))


class CountdownsAreNoWaits(TimerTest):
    """What passes while an edge is not ready tells nothing of how long answers take, and old ACKs do not prolong it."""

    def runTest(self) -> None:
        self.equal("at the first tick", self.ticked(), 0)
        self.acks()
        self.equal("after progress", self.ticked(), 0)
        self.more()
        self.not_ready(4)
        found = []
        for tick in range(3):
            self.again_acked()
            if self.bursts(1):
                found.append(tick)
        self.equal("bursts while the edge is not ready for 4 units", found, [2])
        self.not_ready(8)
        self.waits((2, 0))
        self.waits()
        self.equal("at the first tick of a wait", self.ticked(), 3)
        self.again_acked()
        self.equal("behind an old ACK", self.ticked(), 0)
        self.waits()
        self.equal("at the first tick of a wait", self.ticked(), 3)


class AckOvertakesATick(TimerTest):
    """A tick's cursor that finds nothing to send, as its edge has acknowledged all in the meantime, was no wait: an old
    ACK behind it tells nothing."""

    def runTest(self) -> None:
        self.equal("at the first tick", self.ticked(), 0)
        self.hold()
        self.tick(self.context, EDGE)
        self.acks(self.outstanding)
        self.one_pass()
        self.go()
        self.expect_nothing()
        self.equal("after progress", self.ticked(), 0)
        self.more(self.outstanding)
        self.told()
        self.equal("at the first tick of a wait", self.ticked(), 3)


class NewEpochsStartTheTimerAfresh(TimerTest):
    """A context that begins anew has given up no edge, has learned nothing of how long answers take, and knows no
    waits and no refusals, whatever comes first: a tick, an old ACK or a refusal."""

    def runTest(self) -> None:
        self.equal("bursts", self.bursts(9, GIVEN_UP // 8), [1, 2, 3, 5])
        self.learned(2)
        self.equal("at the first tick", self.ticked(), 0)
        self.again_acked()
        self.equal("behind an old ACK", self.ticked(), 0)
        self.equal("bursts", self.bursts(5), [0, 1, 2, 4])
        self.learned(3)
        self.again_acked()
        self.equal("at the first tick", self.ticked(), 0)
        self.again_acked()
        self.equal("behind an old ACK", self.ticked(), 0)
        self.equal("bursts", self.bursts(5), [0, 1, 2, 4])
        self.learned(4)
        self.not_ready(2)
        self.equal("bursts after a refusal", self.bursts(4, 1), [2, 3])

    def learned(self, epoch: int) -> None:
        """A time is learned, a longer wait ends, an edge is not ready, and an epoch begins."""
        self.begun(100 + epoch)
        self.equal("at the first tick", self.ticked(), 0)
        self.waits((2, 3), (7, 3))
        self.told()
        self.waits((2, 1), (15, 3))
        for units in (2, 4):
            self.not_ready(2)
            self.equal("packets sent again", [self.ticked(1) for _ in range(units + 1)], [*[0] * units, 1])
        self.not_ready(2)
        self.begun(epoch)


class RnrTimersAreWaitedFor(TimerTest):
    """An RNR NAK of each code: nothing for its delay, whatever a tick stands for; then all again."""

    def runTest(self) -> None:
        for code in (*range(1, 32), 0):
            asked = round(RnrNak(code).delay_us / 10)
            for period in {asked, max(1, asked - 1), max(1, asked // 3)}:
                self.equal("after progress", self.ticked(), 0)
                self.not_ready(code)
                full = -(-asked // period)  # ticks; the first comes at once
                found = self.bursts(full + 1, period)
                self.equal(f"bursts after RNR NAK {code} ({asked} units, ticks of {period})", found, [full])
                self.acks()
                self.more()


class RnrNaksBackOff(TimerTest):
    """An edge that is repeatedly not ready is tried less often, but at least every 41 ms, and is not given up. After
    progress, or of a later packet, it is the first time again."""

    def runTest(self) -> None:
        for code in (1, 2):
            self.equal("at the first tick", self.ticked(), 0)
            for number in range(18):
                self.refusal(code, min(code << number, PATIENT), number % 2)
            self.waits()
            self.refusal(code, code, 0)
            self.refusal(code, 2 * code, 0)
            self.more()
            self.acked += 1
            self.refusal(code, code, 0)
            self.refusal(code, 2 * code, 0)
            self.acks()
            self.more()
        self.equal("ticks of edges given up", self.given_up(), {})

    def refusal(self, code: int, units: int, less: int) -> None:
        """The edge is not ready; ticks stand for all of the delay but ``less`` units."""
        self.not_ready(code)
        period = max(1, units - less)
        found = self.bursts(4, period)
        self.equal(f"first burst after {units} units, ticks of {period}", found[:1], [-(-units // period)])


class LaterRefusalsBeginAnew(TimerTest):
    """An edge that counts down and then refuses a later packet is waited for as that one asks; so is one that has
    acknowledged in the meantime."""

    def runTest(self) -> None:
        self.equal("at the first tick", self.ticked(), 0)
        self.not_ready(12)
        self.equal("bursts", self.bursts(2, 1), [])
        self.acked += 1
        self.more()
        self.not_ready(3)
        self.equal("bursts after a refusal of a later packet", self.bursts(4, 1), [3])
        self.not_ready(12)
        self.equal("bursts", self.bursts(2, 1), [])
        self.waits()
        self.not_ready(3)
        self.equal("bursts after a refusal behind progress", self.bursts(4, 1), [3])


class EdgesAreGivenUp(TimerTest):
    """After ten seconds without an acknowledgement there is silence, and each tick is counted, until there is progress.
    Exact to the unit: one unit earlier there is still a burst."""

    def runTest(self) -> None:
        self.equal("bursts", self.bursts(2), [1])  # which starts the timer at 1
        self.equal("bursts", self.bursts(1, GIVEN_UP - 2), [0])
        self.equal("ticks of edges given up", self.given_up(), {})
        self.equal("bursts of an edge given up", self.bursts(2, 1), [])
        mine = edge_index(self.spec, self.context.context, EDGE)
        self.equal("ticks of edges given up", self.given_up(), {mine: 2})
        self.equal("bursts of an edge given up", self.bursts(12, (1 << 24) - 1), [])
        self.equal("ticks of edges given up", self.given_up(), {mine: 14})
        self.acks()
        self.equal("bursts of an edge that is back", self.bursts(6), [1, 2, 3, 5])
        self.equal("ticks of edges given up", self.given_up(), {mine: 14})


class WhatBringsNothingIsCounted(TimerTest):
    """Ticks that bring nothing, and answers that ask for nothing, are dropped for that."""

    def runTest(self) -> None:
        before = self.drops()
        for edge in (EDGE, 3):
            self.tick(self.context, edge)
        for syndrome in (0x1F, 0x62, RnrNak(4).syndrome):
            self.says(self.context, EDGE, 0, None, syndrome=syndrome)
        self.expect_nothing()
        self.equal("dropped", self.drops() - before, {"StartCursor.not_needed": 5})
