"""The order of a source's packets at a node, and what is repeated."""

from __future__ import annotations

from writes import NAK, SourceTest


class GapIsNakedOnce(SourceTest):
    """What is asked for is the first packet that is not everywhere: a NAK acknowledges all before its PSN."""

    def runTest(self) -> None:
        context = self.served()
        for psn in range(3):
            self.posts(self.write(context, psn, self.bits([2, 3])), {2: psn, 3: psn})
        self.says(context, 2, 2, None)
        self.says(context, 3, 0, 1)
        first, second = (self.write(context, psn, self.bits([2])) for psn in (4, 5))
        self.post(first)
        self.expect([self.reply(context, first.packet, 1, NAK)])
        self.post(second)
        self.expect_nothing()
        self.equal("dropped", self.drops()["CheckOrder.gap"], 2)
        self.posts(self.write(context, 3, self.bits([2])), {2: 3})
        self.posts(self.write(context, 4, self.bits([2])), {2: 4})
        again = self.write(context, 6, self.bits([2]))
        self.post(again)
        self.expect([self.reply(context, again.packet, 1, NAK)])


class NothingAheadOfItsTurn(SourceTest):
    """A packet that comes too early reaches nobody and takes no edge's PSN."""

    def runTest(self) -> None:
        context = self.served()
        for psn in (1, 2, self.spec.slots - 1):
            self.post(self.write(context, psn, self.bits([2, 3])))
        self.outputs()
        self.posts(self.write(context, 0, self.bits([3])), {3: 0})
        self.posts(self.write(context, 1, self.bits([2, 3])), {2: 0, 3: 1})


class RepetitionReachesOnlyWhoLacksIt(SourceTest):
    """A repetition goes to the edges that have not acknowledged it, under the PSN that it had."""

    def runTest(self) -> None:
        context = self.served()
        first, second = self.write(context, 0, self.bits([2, 3, 4])), self.write(context, 1, self.bits([3, 4]))
        self.posts(first, {2: 0, 3: 0, 4: 0})
        self.posts(second, {3: 1, 4: 1})
        self.says(context, 2, 0, None)
        self.says(context, 4, 1, None)
        self.posts(first, {3: 0})
        self.posts(second, {3: 1})
        self.posts(self.write(context, 2, self.bits([2, 3])), {2: 1, 3: 2})


class RepetitionOfAllIsAcknowledged(SourceTest):
    """A repetition of what is everywhere is acknowledged again, or the loss of an ACK would never be mended."""

    def runTest(self) -> None:
        context = self.served()
        writes = [self.write(context, psn, self.bits([2])) for psn in range(3)]
        for psn, write in enumerate(writes):
            self.posts(write, {2: psn})
        self.says(context, 2, 1, 2)
        for write in writes[:2]:
            self.post(write)
            self.expect([self.reply(context, write.packet, 2)])
        self.equal("dropped", self.drops()["CheckOrder.duplicate"], 2)
        self.posts(writes[2], {2: 2})


class RepetitionThatNobodyLacks(SourceTest):
    """Its own destinations have it, others lack an earlier one: the source hears how far all are."""

    def runTest(self) -> None:
        context = self.served()
        self.posts(self.write(context, 0, self.bits([2])), {2: 0})
        self.posts(self.write(context, 1, self.bits([2])), {2: 1})
        later = self.write(context, 2, self.bits([3]))
        self.posts(later, {3: 0})
        self.says(context, 3, 0, None)
        self.says(context, 2, 0, 1)
        self.post(later)
        self.expect([self.reply(context, later.packet, 1)])
        self.equal("dropped", self.drops()["CombineAcks.nobody_lacks"], 1)


class OlderWordsOfRingsAreNotTaken(SourceTest):
    """Rings are used again: what they held of packets N before does not count for an edge that was skipped since."""

    def runTest(self) -> None:
        for context, skipped, edge in zip(self.at_both_ends(), (2, 1), (3, 3), strict=False):
            count = self.spec.slots
            both = self.bits([skipped, edge])
            for psn in range(count):
                self.posts(self.write(context, psn, both), {skipped: psn, edge: psn})
            self.says(context, skipped, count - 1, None)
            self.says(context, edge, count - 1, count)
            for psn in range(count, 2 * count):
                self.posts(self.write(context, psn, self.bits([edge])), {edge: psn})
            for psn in range(count, 2 * count):
                # The other edge has never been sent it; its bit in a repetition changes nothing.
                self.posts(self.write(context, psn, both), {edge: psn})


class OlderPsnsAreNotOtherPackets(SourceTest):
    """A PSN that an edge had for a packet in an older generation, and has for another one now, is not that packet's."""

    def runTest(self) -> None:
        old = self.served()
        self.posts(self.write(old, 0, self.bits([3])), {3: 0})
        self.posts(self.write(old, 1, self.bits([2])), {2: 0})
        new = self.star(epoch=2)
        self.renew(new)
        self.posts(self.write(new, 0, self.bits([2])), {2: 0})
        self.posts(self.write(new, 1, self.bits([3])), {3: 0})
        self.posts(self.write(new, 1, self.bits([2, 3])), {3: 0})


class OlderEpochsOfRingsAreNotTaken(SourceTest):
    """Nor does what they held in an older generation, under the same PSNs."""

    def runTest(self) -> None:
        old = self.served()
        for psn in range(4):
            self.posts(self.write(old, psn, self.bits([2, 3])), {2: psn, 3: psn})
        self.renew(self.star(epoch=2))
        new = self.star(epoch=2)
        for psn in range(4):
            self.posts(self.write(new, psn, self.bits([3])), {3: psn})
        for psn in range(4):
            self.posts(self.write(new, psn, self.bits([2, 3])), {3: psn})
