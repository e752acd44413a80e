"""Selective repeat: the expected PSN is the oldest missing one, however much older than the newest it is."""

from __future__ import annotations

from collections import Counter

from mode_iii import ROOT, ModeIIITest, ack_of, nak_of, selective_of, to

from p4gen.vocabulary import Reliability

SR, SACK = Reliability.SR, Reliability.SACK
FAR = 126
"""The greatest distance from the oldest hole to the newest packet: one less than the number of places for missing
packets."""


class HolesTest(ModeIIITest):
    """One of two edges sends, every packet with a request for an ACK, which says what is expected."""

    reliability = (SR, SACK)
    edges = 2

    def unfit(self) -> str | None:
        fits = self.window > FAR + 2
        return super().unfit() or (None if fits else f"its range ends at {self.window} packets, before the limit")

    def send_one(self, offset: int, answer: str | None) -> None:
        """Edge 0 sends a packet and receives this answer."""
        self.push(self.flow, [0], self.psn(offset), self.values)
        self.check(self.flow.group, to([0], *([answer] if answer else [])))

    def reported(self, offset: int, count: int = 1) -> str:
        """The answer that reports a new gap to edge 0."""
        return nak_of(self.psn(offset)) if self.spec.loss_recovery is SR else selective_of(self.psn(offset), count)


class OneHoleAtEveryDistance(HolesTest):
    """A single hole goes through all places, and is expected at each of them."""

    def runTest(self) -> None:
        self.flow = self.begun(ROOT, edges=2)
        self.values = self.inputs(self.flow)
        self.send_one(2, self.reported(1))
        for offset in range(3, FAR + 2):
            self.send_one(offset, ack_of(self.psn(0)))
        self.send_one(1, ack_of(self.psn(FAR + 1)))
        self.send_one(FAR + 2, ack_of(self.psn(FAR + 2)))


class OneHoleAtEveryDistanceAcrossTheWrap(OneHoleAtEveryDistance):
    wraps = True


class TheOldestOfManyHoles(HolesTest):
    """Holes close from the oldest on; each time the next one is expected."""

    def runTest(self) -> None:
        self.flow = self.begun(ROOT, edges=2)
        self.values = self.inputs(self.flow)
        holes = [1, 3, 4, 8, 15, 16, 32, 33, 63, 64, 65, 100, 120]
        for offset in range(1, FAR + 1):
            if offset in holes:
                continue
            new = [hole for hole in holes if hole == offset - 1]
            if new and (new == [1] or self.spec.loss_recovery is SACK):
                first = next(hole for hole in holes if all(h in holes for h in range(hole, offset)))
                self.send_one(offset, self.reported(first, offset - first))
            else:
                self.send_one(offset, ack_of(self.psn(0)))
        # With sr, the next NAK is for the next PSN that is expected.
        for hole, following in zip(holes, [*holes[1:], FAR + 1], strict=True):
            more = following <= FAR and self.spec.loss_recovery is SR
            self.send_one(hole, nak_of(self.psn(following)) if more else ack_of(self.psn(following - 1)))


class LeapToTheLimit(HolesTest):
    """Of packets that are yet to come as many may be missing at once as there are places for, and not one more."""

    def runTest(self) -> None:
        self.flow = self.begun(ROOT, edges=2)
        self.values = self.inputs(self.flow)
        self.send_one(FAR + 1, self.reported(1, FAR))
        self.equal("refused", self.losses(), Counter())
        self.push(self.flow, [1], self.psn(FAR + 2), self.values)
        self.check(self.flow.group, {1: [nak_of(self.psn(1))]})
        self.equal("refused", self.losses(), Counter({"CheckOrder.gap": 1}))


class NothingIsKeptBeyondTheLimit(HolesTest):
    """A packet that would push the oldest hole out of its place is not taken, and the hole is asked for."""

    def runTest(self) -> None:
        self.flow = self.begun(ROOT, edges=2)
        self.values = self.inputs(self.flow)
        self.send_one(2, self.reported(1))
        for offset in range(3, FAR + 3):
            self.send_one(offset, ack_of(self.psn(0)))
        before = self.losses()["CheckOrder.gap"]
        self.push(self.flow, [0], self.psn(FAR + 3), self.values)
        self.outputs()
        self.equal("refused", self.losses()["CheckOrder.gap"] - before, 1)
        self.send_one(1, ack_of(self.psn(FAR + 2)))
        self.send_one(FAR + 3, ack_of(self.psn(FAR + 3)))
