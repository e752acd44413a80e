"""Which answers to a Broadcast count: those of each of its outputs, and of earlier Broadcasts the recent ones."""

from __future__ import annotations

from inc import broadcast_from, psns
from mode_ii import ModeIITest
from test_broadcast import ACK, NAK, RNR, BroadcastTest

from p4gen.rocev2 import psn as serial

RECENT = 1 << 20
"""Acknowledgements of PSNs this far before a Broadcast begins, or further, are forgotten."""
MOST_EDGES = 8


class EveryEdgeIsWaitedFor(ModeIITest):
    """A node with many edges, Broadcasts from each in turn: whichever of the others is slowest, it is waited for."""

    def runTest(self) -> None:
        edges = range(min(self.spec.fan_in, MOST_EDGES))
        patterns = [broadcast_from(edge, edge) for edge in edges]
        group = self.node_of(len(edges), *patterns)
        psn = self.first_psn
        for toward in edges:
            others = [edge for edge in edges if edge != toward]
            self.announce(group, [toward], psn, self.call(patterns[toward], len(others)))
            self.equal("outputs announced to", len(self.outputs()), len(others))
            for slowest in others:
                psn = serial.add(psn, 1)
                for edge in others:
                    if edge != slowest:
                        self.send_from(group, edge, self.acknowledgement(group, edge, psn))
                self.expect_nothing()
                self.send_from(group, slowest, self.acknowledgement(group, slowest, psn))
                self.expect_answers(group, [toward], (psn, ACK))
            psn = serial.add(psn, 1)


class ShortBroadcasts(BroadcastTest):
    """Broadcasts of two packets, any number of PSNs one after the other."""

    def begin(self, psn: int | None = None) -> int:
        """Announce two packets; returns the PSN of the first one, a random one if not ``psn``."""
        first = self.random_psn() if psn is None else psn
        self.announce(self.group, [self.toward], serial.add(first, -1), self.call(self.group.patterns[0], 2))
        self.equal("edges announced to", len(self.outputs()), len(self.others))
        return first


class NakOfTheAnnouncementGoesOn(ShortBroadcasts):
    """One receiver has not got the announcement itself: all else that it was sent before is acknowledged by all."""

    def runTest(self) -> None:
        before = self.begin(self.first_psn)
        for edge in self.others:
            self.answer(edge, before)
        self.answered((before, ACK))
        for edge in self.others:
            first = self.begin(serial.add(before, edge * (serial.HALF - 2)))
            announced = serial.add(first, -1)
            self.answer(edge, announced, NAK)
            self.answered((announced, NAK))


class RecentAnswersCount(ShortBroadcasts):
    """A Broadcast soon after another one, perhaps another root's: who has not acknowledged that one has not got it."""

    distances = (1, 5, (1 << 19) - 1, (1 << 19) + 1, RECENT - 1)

    def runTest(self) -> None:
        acked = self.begin()
        for edge in self.others:
            self.answer(edge, acked)
        self.answered((acked, ACK))
        for distance in self.distances:
            acked = self.next_one(acked, distance)

    def next_one(self, acked: int, distance: int) -> int:
        """Run the next Broadcast, whose announcement is ``distance`` after the PSN that follows ``acked``. All edges
        have acknowledged ``acked``, and one of them another packet since. Returns the last PSN that all have
        acknowledged at its end."""
        first = self.begin(serial.add(acked, 2 + distance))
        one, two, three = self.random.sample(self.others, 3)
        self.answer(one, first)
        self.answer(two, serial.add(acked, 1))
        self.expect_nothing()
        self.answer(three, first)
        self.answered((serial.add(acked, 1), ACK))
        self.answer(two, first)
        self.answered((first, ACK))
        return first


class AnswersOfLongAgoAreForgotten(ShortBroadcasts):
    """They would be ahead once half of the number space has passed: no edge keeps any, if it has not answered since."""

    distances = (RECENT, RECENT + (1 << 19), 1 << 21, 1 << 22, serial.HALF - 3)

    def runTest(self) -> None:
        psn = self.first_psn
        for between in (*self.distances, 5):
            for distance in self.distances:
                acked = self.begin(psn)
                for edge in self.others:
                    self.answer(edge, acked)
                self.outputs()
                # One Broadcast that nobody answers, and a second one as far from the first as can be.
                between_psn = self.begin(serial.add(acked, 2 + between))
                first = self.begin(serial.add(between_psn, distance))
                self.fresh(first)
                psn = serial.add(first, 3)

    def fresh(self, first: int) -> None:
        """Answers to a Broadcast are waited for, and go on, as if they were the first that there ever were."""
        one, two, three = self.random.sample(self.others, 3)
        second = serial.add(first, 1)
        self.answer(one, second)
        self.answer(two, first)
        self.expect_nothing()
        self.answer(three, second)
        self.answered((first, ACK))
        self.answer(two, second)
        self.answered((second, ACK))


class ReservedBitOfASyndromeIsZero(BroadcastTest):
    """The AETH's first bit is reserved: what goes on has 0 there, whatever was in it."""

    def runTest(self) -> None:
        psn = self.begin()
        for edge in self.others:
            self.answer(edge, psn, ACK | 0x80)
        self.answered((psn, ACK))


class NakBehindAnAckIsKept(BroadcastTest):
    """It comes to the same PSN as the ACK before it, and goes on once the others have come as far."""

    def runTest(self) -> None:
        start, acked, missing, last = psns(self.begin(), 4)
        self.answer(1, acked)
        self.answer(1, missing, NAK)
        self.answer(2, last)
        self.expect_nothing()
        self.answer(3, start)
        self.answered((start, ACK))
        self.answer(3, last)
        self.answered((missing, NAK))


class NaksSayMoreThanAcks(BroadcastTest):
    """An ACK, and a NAK of the next packet: the NAK is forwarded when all edges have come as far, even if the ACK is
    repeated after it, and whichever edges send them."""

    def runTest(self) -> None:
        psn = self.begin()
        for waiting in self.others:
            one, two = (edge for edge in self.others if edge != waiting)
            for syndrome in (NAK, RNR):
                start, acked, missing, last = psns(psn, 4)
                self.answer(waiting, acked)
                self.answer(waiting, missing, syndrome)
                self.answer(waiting, acked)
                self.answer(two, last)
                self.expect_nothing()
                self.answer(one, start)
                self.answered((start, ACK))
                self.answer(one, acked)
                self.answered((missing, syndrome))
                self.answer(one, last)
                self.expect_nothing()
                self.answer(waiting, last)
                self.answered((last, ACK))
                one, two, psn = two, one, serial.add(psn, 4)
