"""Packets of an operand that are passed over: they are read again without waiting for a tick."""

from __future__ import annotations

from pulls import PullTest


class GapIsReadAgainAtOnce(PullTest):
    """The packet behind a lost one has the rest of its wave read again, once, of its rank only."""

    def unfit(self) -> str | None:
        return None if self.spec.wave >= 4 else "a wave is too short for holes"

    def runTest(self) -> None:
        size = self.spec.wave
        call = self.begin(self.served(), 2 * size)
        self.respond(call, [2], 0)
        self.expect_nothing()
        self.respond(call, [2], 2)
        self.expect([self.read(call, 2, 1, size - 1)])
        self.respond(call, [2], 3)
        self.expect_nothing()
        self.respond(call, [2], 1, *range(4, 2 * size))
        self.expect_nothing()
        self.respond(call, [1, 3], *range(2 * size))
        self.expect(self.writes(call, *range(2 * size)))


class GapBehindAGap(PullTest):
    """What is missing of a wave still is asked for with what is behind it: a NIC may not serve it after that."""

    def unfit(self) -> str | None:
        return None if self.spec.wave >= 4 else "a wave is too short for holes"

    def runTest(self) -> None:
        size = self.spec.wave
        call = self.begin(self.served(), 2 * size)
        self.respond(call, [2], 0, 2)
        self.expect([self.read(call, 2, 1, size - 1)])
        self.respond(call, [2], size)
        self.expect([self.read(call, 2, 1, size - 1)])
        self.respond(call, [2], 1)
        self.respond(call, [2], size + 2)
        self.expect([self.read(call, 2, size + 1, size - 1)])


class GapOverWaves(PullTest):
    """Of each wave that the gap is in there is one READ, and none of what is behind the gap."""

    def runTest(self) -> None:
        size = self.spec.wave
        call = self.begin(self.served(), 2 * size)
        self.respond(call, [1], size)
        self.expect(self.reread(call, 1, 0, size))
        self.respond(call, [3], 0, 2 * size - 1)
        self.expect(self.reread(call, 3, 1, 2 * size - 1))


class OvertakenPacketsCountOnce(PullTest):
    """What was only overtaken comes twice, and counts once."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 2)
        self.respond(call, [2], 1)
        self.expect(self.reread(call, 2, 0, 1))
        self.respond(call, [2], 0)
        for index in (0, 1):
            self.refused(self.port(2), self.response(call, 2, index).to_bytes(), "CheckDuplicate.duplicate")
        self.respond(call, [1, 3], 0, 1)
        self.expect(self.writes(call, 0, 1))


class GapAtTheBeginningOfACall(PullTest):
    """PSNs go on from call to call, and wrap around; a context's next epoch begins with its own."""

    def runTest(self) -> None:
        context = self.served(first=(1 << 24) - 3)
        self.finish(self.begin(context, 2))
        call = self.begin(context, 2, 1, 2)
        self.respond(call, [3], 1)
        self.expect(self.reread(call, 3, 0, 1))
        self.respond(call, [1, 2], 0, 1)
        self.respond(call, [3], 0)
        self.expect(self.writes(call, 0, 1))


class GapsWhereverACallBegins(GapIsReadAgainAtOnce):
    """Waves are counted from a call's first PSN, whatever that is."""

    def setUp(self) -> None:
        super().setUp()
        self.first_psn |= 1


class GapsOfSeveralContexts(PullTest):
    """Each rank of each context has a next packet of its own, and addresses of its own."""

    def runTest(self) -> None:
        size, edges = self.spec.wave, range(1, min(self.spec.edges, 4) + 1)
        everybody = (1 << len(edges)) - 1
        contexts = [self.served(everybody, everybody, number=number) for number in range(min(self.spec.contexts, 4))]
        calls = [self.begin(context, size + 1) for context in contexts]
        for edge in edges:
            for call in calls:
                self.respond(call, [edge], *range(size + 1))
        self.expect([each for call in calls for each in self.writes(call, *range(size + 1))])
        for call in calls:
            for edge in edges:
                self.ack(call, edge, size)
            self.expect(self.flags(call))
            self.took_flag(call)
        after = [self.begin(context, 2, 1, size + 1) for context in contexts]
        for edge in reversed(edges):
            for call in after:
                self.respond(call, [edge], 1)
                self.expect(self.reread(call, edge, 0, 1))
