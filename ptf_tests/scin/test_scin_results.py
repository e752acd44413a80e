"""Results and flags: their order, and who gets them when."""

from __future__ import annotations

from pulls import NAK, PullTest

from p4gen.papers.scin.control import Role
from p4gen.rocev2.opcodes import RnrNak


class WritesLeaveInOrder(PullTest):
    """Slots that are complete behind a gap wait, and follow when it is filled."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 5)
        for index in (3, 1, 4):
            self.respond(call, [2, 3, 1], index)
        self.expect([read for edge in (1, 2, 3) for read in self.reread(call, edge, 0, 3)])
        self.respond(call, [1, 2], 0)
        self.expect_nothing()
        self.respond(call, [3], 0)
        self.expect(self.writes(call, 0, 1))
        before = self.drops()
        self.respond(call, [1, 2, 3], 2)
        self.expect(self.writes(call, 2, 3, 4))
        self.equal("passes without output", (self.drops() - before)["ReplicateData.absorbed"], 2)
        for edge in (1, 2, 3):
            self.ack(call, edge, 4)
        self.expect(self.flags(call))


class OnlyReleaseWrites(PullTest):
    """A cursor that reads again passes a complete slot, whose turn it is, ahead of the cursor that writes it."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 2)
        self.respond(call, [1, 2], 0, 1)
        self.respond(call, [3], 1)
        self.expect(self.reread(call, 3, 0, 1))
        self.hold()
        self.post(2, self.answer(call.context, 2, Role.READ, call.data_psn(1), NAK))
        self.post(3, self.response(call, 3, 0))
        self.expect(self.writes(call, 0))
        self.go()
        self.expect(self.writes(call, 1))


class FlagAfterAllAcks(PullTest):
    """Flags follow the last ACK of the slowest destination, once."""

    def unfit(self) -> str | None:
        return "the last WRITE is the flag" if self.spec.ordered else None

    def runTest(self) -> None:
        call = self.begin(self.served(), 3)
        self.respond(call, [1, 2, 3], 0, 1, 2)
        self.expect(self.writes(call, 0, 1, 2))
        self.ack(call, 1, 2)
        self.ack(call, 2, 2)
        self.ack(call, 3, 1)
        self.ack(call, 1, 2)
        self.expect_nothing()
        self.ack(call, 3, 2)
        self.expect(self.flags(call))
        self.ack(call, 3, 2)
        self.expect_nothing()


class ResultsStayUntilTheyAreAcknowledged(PullTest):
    """The first result, which one destination has not got, can be written again when all slots have been read out."""

    def runTest(self) -> None:
        call = self.begin(self.served(), self.spec.slots + self.spec.wave)
        self.respond(call, [1, 2, 3], *range(self.spec.slots))
        self.expect(self.writes(call, *range(self.spec.slots)))
        for edge in (1, 3):
            self.ack(call, edge, self.spec.slots - 1)
        self.ack(call, 2, 0, NAK)
        self.expect([self.write(call, 2, index, again=True) for index in range(self.spec.slots)])
        self.ack(call, 2, self.spec.slots - 1)
        self.expect(self.reads(call, [self.spec.waves]))


class AckOfWhatWasNotWrittenIsIgnored(PullTest):
    """A NIC cannot acknowledge a result before it has been written."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 2)
        self.respond(call, [1, 2, 3], 0)
        self.expect(self.writes(call, 0))
        self.tick(call.context)
        for edge in (1, 2, 3):
            frame = self.answer(call.context, edge, Role.WRITE, call.data_psn(1)).to_bytes()
            self.refused(self.port(edge), frame, "ReceiveAck.never_sent")
        self.tick(call.context)
        self.expect([read for edge in (1, 2, 3) for read in self.reread(call, edge, 1, 2)])
        self.respond(call, [1, 2, 3], 1)
        self.expect(self.writes(call, 1))


class LostFlagIsRepeated(PullTest):
    """Who has not acknowledged its flag gets it again on ticks; others do not."""

    def unfit(self) -> str | None:
        return "the last WRITE is the flag" if self.spec.ordered else None

    def runTest(self) -> None:
        context = self.served()
        call = self.begin(context, 1)
        self.respond(call, [1, 2, 3], 0)
        self.expect(self.writes(call, 0))
        for edge in (1, 2, 3):
            self.ack(call, edge, 0)
        self.expect(self.flags(call))
        first, second, last = self.random.sample([1, 2, 3], 3)
        self.took_flag(call, first)
        self.tick(context)
        self.expect_nothing()
        self.tick(context)
        self.expect([self.flag(call, second), self.flag(call, last)])
        self.took_flag(call, second)
        self.tick(context)
        self.expect([self.flag(call, last)])
        self.took_flag(call, last)
        self.tick(context)
        self.tick(context)
        self.expect_nothing()


class FlagIsRepeatedForEachRankAlone(PullTest):
    """Whichever rank has not acknowledged its flag gets it again, alone."""

    def runTest(self) -> None:
        context = self.served(0b011, 0b110, number=self.spec.contexts - 1)
        for number, edge in enumerate((1, 2, 3)):
            call = self.begin(context, 0, number)
            self.took_flag(call, *({1, 2, 3} - {edge}))
            self.tick(context)
            self.expect_nothing()
            self.tick(context)
            self.expect([self.flag(call, edge)])
            self.took_flag(call, edge)
        before = self.drops()
        for _ in range(3):
            self.tick(context)
        self.expect_nothing()
        self.equal("copies for nobody", (self.drops() - before)["PrunePort.not_wanted"], 0)


class TickAcknowledgesNoFlag(PullTest):
    """A tick has the PSN 0, which may be that of a flag."""

    def runTest(self) -> None:
        context = self.served(first=0)
        call = self.begin(context, 0)
        self.took_flag(call, 2, 3)
        self.silence(call, 3, [self.flag(call, 1)])


class FlagsAreRepeatedForGood(PullTest):
    """From the 128th tick on a flag is repeated at every 128th, at the 4,096th and behind it, too."""

    def runTest(self) -> None:
        context = self.served()
        call = self.begin(context, 0)
        self.took_flag(call, 1, 2)
        for ticks, times in ((4095, 38), (2, 1), (126, 0), (2, 1)):
            for _ in range(ticks):
                self.tick(context)
            self.expect([self.flag(call, 3)] * times)


class FlagsOfALaterCallAreRepeated(PullTest):
    """ACKs of a call's flags say nothing of the next one's; a NAK of a flag's own PSN says that the flag is lacking."""

    def runTest(self) -> None:
        context = self.served()
        earlier = self.begin(context, 0)
        self.took_flag(earlier)
        call = self.begin(context, 0, 1)
        self.post(3, self.answer(context, 3, Role.SYNC, earlier.psn))
        for syndrome in (NAK, RnrNak(1).syndrome):
            self.post(2, self.answer(context, 2, Role.SYNC, call.psn, syndrome))
        self.took_flag(call, 1)
        self.tick(context)
        self.expect_nothing()
        self.tick(context)
        self.expect([self.flag(call, 2), self.flag(call, 3)])


class RankThatIsNotReadyHasNotGotIt(PullTest):
    """An RNR NAK acknowledges what is before its PSN only: the call does not end, and the WRITE comes again."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 1)
        self.respond(call, [1, 2, 3], 0)
        self.expect(self.writes(call, 0))
        self.ack(call, 1, 0)
        self.ack(call, 3, 0)
        self.ack(call, 2, 0, RnrNak(1).syndrome)
        self.tick(call.context)
        self.expect_nothing()
        self.tick(call.context)
        self.expect([self.write(call, 2, 0, again=True)])
        self.ack(call, 2, 0)
        self.expect(self.flags(call))


class NothingIsWaitedFor(PullTest):
    """Ticks do nothing before the first call, between calls, and while there is progress."""

    def runTest(self) -> None:
        context = self.served()
        for _ in range(3):
            self.tick(context)
        self.expect_nothing()
        call = self.begin(context, 2)
        self.tick(context)
        self.respond(call, [1, 2, 3], 0)
        self.expect(self.writes(call, 0))
        self.tick(context)
        self.ack(call, 1, 0)
        self.ack(call, 2, 0)
        self.ack(call, 3, 0)
        self.tick(context)
        self.expect_nothing()


class LostFlagIsRepeatedForEver(PullTest):
    """A flag is not given up: from the 128th tick without an answer on, every 128th brings it again."""

    def unfit(self) -> str | None:
        return "the last WRITE is the flag" if self.spec.ordered else None

    def runTest(self) -> None:
        call = self.begin(self.served(), 1)
        self.respond(call, [1, 2, 3], 0)
        self.expect(self.writes(call, 0))
        for edge in (1, 2, 3):
            self.ack(call, edge, 0)
        self.expect(self.flags(call))
        self.took_flag(call, 1, 3)
        passed = -1
        for number in (1, 2, 4, 8, 16, 32, 64, *range(128, 4353, 128)):
            for _ in range(passed + 1, number):
                self.tick(call.context)
            self.expect_nothing()
            self.tick(call.context)
            self.expect([self.flag(call, 2)])
            passed = number
