"""Each edge's own PSNs."""

from __future__ import annotations

from brute_force import Node
from writes import NAK, WriteTest


class EachEdgeCountsItsOwn(WriteTest):
    """Sets of destinations vary, and no edge has a gap, nor a number twice."""

    def runTest(self) -> None:
        context = self.served()
        everybody = self.others(context)
        node = Node(everybody)
        for psn in range(4 * self.spec.slots):
            edges = self.random.sample(everybody, self.random.randint(1, len(everybody)))
            numbers = node.send(edges)
            self.posts(self.write(context, psn, self.bits(edges)), numbers)
            for edge, number in numbers.items():
                node.acknowledge(edge, number)
                self.says(context, edge, number, node.start if node.start == node.sent else None)


class SkippedEdgeSeesNoGap(WriteTest):
    """An edge that many packets skip gets its next one under its next PSN."""

    def runTest(self) -> None:
        context = self.served()
        self.posts(self.write(context, 0, self.bits([2, 3])), {2: 0, 3: 0})
        for psn in range(1, self.spec.slots - 1):
            self.posts(self.write(context, psn, self.bits([3])), {3: psn})
        last = self.spec.slots - 1
        self.posts(self.write(context, last, self.bits([2, 3])), {2: 1, 3: last})


class PsnsWrap(WriteTest):
    """The source's PSNs wrap, and, far behind, those of edges."""

    def runTest(self) -> None:
        first = (1 << 24) - 5
        context = self.served(first_psn=first)
        node = Node([2, 3])
        for psn in range(24):
            numbers = node.send([2, 3] if psn % 4 == 0 else [3])
            self.posts(self.write(context, psn, self.bits(numbers)), numbers)
            for edge, number in numbers.items():
                node.acknowledge(edge, number)
                self.says(context, edge, number, psn + 1 if edge == 3 else None)


class SourcesDoNotMix(WriteTest):
    """Each source has its own PSNs at every edge, its own windows, and its own answers."""

    def unfit(self) -> str | None:
        return "the program has one context" if self.spec.contexts < 2 else None

    def runTest(self) -> None:
        contexts = [
            self.star(0, number=0),
            self.star(1, number=self.spec.contexts - 1, first_psn=self.first_psn ^ 0x800000),
        ]
        self.serve(*contexts)
        nodes = [Node(self.others(context)) for context in contexts]
        for which in self.random.sample([0, 1] * 6, 12):
            context, node = contexts[which], nodes[which]
            edges = self.random.sample([3, 4], self.random.randint(1, 2))
            psn = node.sent
            numbers = node.send(edges)
            self.posts(self.write(context, psn, self.bits(edges)), numbers)
        for context, node in zip(contexts, nodes, strict=True):
            for edge, copies in node.copies.items():
                for number in range(len(copies)):
                    before = node.start
                    node.acknowledge(edge, number)
                    self.says(context, edge, number, node.start if node.start != before else None)


class NewEpochStartsAfresh(WriteTest):
    """In a new generation of a context nothing counts that was before: not PSNs, not what edges wait for."""

    def runTest(self) -> None:
        old = self.served()
        for psn in range(3):
            self.posts(self.write(old, psn, self.bits([2, 3])), {2: psn, 3: psn})
        self.says(old, 2, 2, None, syndrome=0x61)
        for distance in (2, 1 << 20):
            first = (self.first_psn + distance) % (1 << 24)
            new = self.star(epoch=1 + distance % 100, first_psn=first)
            self.renew(new)
            self.posts(self.write(new, 0, self.bits([3])), {3: 0})
            self.posts(self.write(new, 1, self.bits([2])), {2: 0})
            if not self.spec.holds:
                self.posts(self.write(new, 0, self.bits([3])), {3: 0})
            self.says(new, 3, 0, 1)
            self.says(new, 2, 0, 2)


class NewEpochHasSentNoNak(WriteTest):
    """A gap in a new generation is reported, though one was in the old one."""

    def runTest(self) -> None:
        for epoch in (1, 2, 3):
            context = self.star(epoch=epoch)
            if epoch == 1:
                self.serve(context)
            else:
                self.renew(context)
            early = self.write(context, 1, self.bits([2]))
            self.post(early)
            self.expect([self.reply(context, early.packet, 0, NAK)])
            self.post(early)
            self.expect_nothing()
