"""Programs whose calls say whether they are quantised: exact ones beside others (QuantEnable, section 3.4.2)."""

from __future__ import annotations

from pulls import ACK, INVALID, NAK, Call
from scaled import ScaledTest

from p4gen.papers.scin.codes import NUMBERS, Status
from p4gen.papers.scin.control import Role


class ChosenTest(ScaledTest):
    """Calls of a program that may be exact."""

    def unfit(self) -> str | None:
        return None if self.spec.exact else "all calls are alike"

    def exact(self, packets: int, number: int = 0, before: int = 0, **how: int) -> Call:
        """An exact call that all ranks have arrived at, in the first context."""
        context = self.contexts[0] if self.contexts else self.served(**how)
        return self.started(self.call(context, packets, number, before, exact=True))


class CallsChoose(ChosenTest):
    """Exact calls read no scales, and leave none in memory; quantised ones have theirs, whose PSNs go on."""

    def runTest(self) -> None:
        context, before = self.served(), 0
        size = self.spec.wave
        for number, (packets, exact) in enumerate(
            ((size + 1, True), (size, False), (2 * size, True), (0, True), (1, True), (size + 1, False), (size, False))
        ):
            call = self.started(self.call(context, packets, number, before, exact=exact))
            self.finish(call)
            before += packets


class ManyWavesOfAnExactCall(ChosenTest):
    """ACKs have further waves of an exact call read, and slots are used again."""

    def runTest(self) -> None:
        self.finish(self.exact((self.spec.waves + 2) * self.spec.wave + 1))


class ExactMasks(ChosenTest):
    """Exact calls read sources only, and write to destinations only."""

    def runTest(self) -> None:
        self.finish(self.exact(self.spec.wave + 1, sources=0b011, destinations=0b110))


class RanksAgreeOnQuantisation(ChosenTest):
    """A rank that says exact where others do not, or the other way round, is refused; all get a flag with a status."""

    def runTest(self) -> None:
        kinds = NUMBERS[self.spec.dtype], NUMBERS[str(self.spec.exact)]
        for number, (most, other) in enumerate((kinds, kinds[::-1])):
            call = self.call(self.served(number=number), self.spec.wave)
            for edge in (1, 2):
                self.post(edge, self.arrival(call, edge, numbers=most))
                self.expect([self.acked(call, edge)])
            self.post(3, self.arrival(call, 3, numbers=other))
            self.expect([self.acked(call, 3, INVALID), *self.flags(call, Status.DISAGREEMENT)])
            self.equal("dropped", self.drops()["TrackArrival.disagrees"], number + 1)


class ExactSumsSaturate(ChosenTest):
    """Sums of whole numbers that do not fit are the least and the greatest; all others are exact."""

    def runTest(self) -> None:
        call = self.call(self.served(), 1, exact=True)
        for edge in (1, 2, 3):
            values = call.operands[edge][0]
            values[0], values[1], values[2] = (1 << 30) + edge, -(1 << 30) - edge, edge << 20
            values[3:] = [self.random.randrange(-(1 << 29), 1 << 29) for _ in values[3:]]
        self.equal("sums", self.result(call, 0)[:3].tolist(), [(1 << 31) - 1, -(1 << 31), 6 << 20])
        self.finish(self.started(call))


class ExactCallsTakeNoScales(ChosenTest):
    """Scales that come in an exact call are asked for by nobody; a quantised call behind it reads its own."""

    def runTest(self) -> None:
        size = self.spec.wave
        context = self.served()
        self.finish(self.begin(context, size))
        call = self.exact(2 * size, 1, size)
        stray = self.call(context, 2 * size, 1, size)
        for edge in (1, 2, 3):
            self.refused(self.port(edge), self.scales(stray, edge, 0).to_bytes(), "TrackScales.never_asked")
        for syndrome in (ACK, NAK):
            self.post(1, self.answer(call.context, 1, Role.SCALES, stray.scales_psn(0), syndrome))
            self.expect_nothing()
        self.finish(call)
        self.finish(self.begin(context, size, 2, 3 * size))


class ExactDataIsAskedFor(ChosenTest):
    """Data that no READ has asked for is refused, in exact calls as in others."""

    def runTest(self) -> None:
        call = self.exact((self.spec.waves + 1) * self.spec.wave)
        early = self.response(call, 1, self.spec.slots).to_bytes()
        self.refused(self.port(1), early, "IssueWave.never_asked")
        self.finish(call)


class HeldExactResultsFollow(ChosenTest):
    """A cursor writes what was held behind a gap: whole numbers, as they are."""

    def runTest(self) -> None:
        call = self.exact(self.spec.wave)
        others = range(1, self.spec.wave)
        self.respond(call, [1, 2], 0, *others)
        self.respond(call, [3], *others)
        self.outputs()  # READs of what was passed over
        self.respond(call, [3], 0)
        self.expect(self.writes(call, 0, *others))


class LostExactDataIsReadAgain(ChosenTest):
    """A tick has what is missing of an exact call read again, and not its scales; then it has results written again."""

    def runTest(self) -> None:
        size = self.spec.wave
        call = self.exact(size + 1)
        self.respond(call, [1, 2, 3], *range(size))
        self.expect(self.writes(call, *range(size)))
        self.respond(call, [1, 3], size)
        self.silence(call, 3, self.reread(call, 2, size, size + 1))
        self.respond(call, [2], size)
        self.expect(self.writes(call, size))
        for edge in (1, 2, 3):
            self.ack(call, edge, size - 1)
        writes = [self.write(call, edge, size, again=True) for edge in (1, 2, 3)]
        self.silence(call, 3, writes)


class LostExactReadIsAskedAgain(ChosenTest):
    """A NIC's NAK has an exact call's READs sent again from there on."""

    def runTest(self) -> None:
        size = self.spec.wave
        call = self.exact(2 * size)
        self.post(2, self.answer(call.context, 2, Role.READ, call.data_psn(0), NAK))
        self.expect(self.reread(call, 2, 0, 2 * size))
