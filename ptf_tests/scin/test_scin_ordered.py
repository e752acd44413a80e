"""Completion ``ordered``: the last WRITE of a rank's result is its flag."""

from __future__ import annotations

from pulls import NAK, PullTest

from p4gen.papers.scin.codes import Status
from p4gen.papers.scin.control import Role


class OrderedTest(PullTest):
    """A scenario of programs with ordered completion."""

    def unfit(self) -> str | None:
        return None if self.spec.ordered else "flags follow the last ACK"


class FlagBehindData(OrderedTest):
    """The last WRITE of each destination has the call's number as immediate data, and no flag follows any ACK."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 3)
        self.respond(call, [1, 2, 3], 0, 2)
        self.expect([*self.writes(call, 0), *(read for edge in (1, 2, 3) for read in self.reread(call, edge, 1, 2))])
        self.respond(call, [1, 2, 3], 1)
        self.expect(self.writes(call, 1, 2))
        for edge in (1, 2, 3):
            self.ack(call, edge, 2)
        for _ in range(3):
            self.tick(call.context)
        self.expect_nothing()


class LastWriteComesAgainAsAFlag(OrderedTest):
    """What was lost of the end of a call is written again as it was, on a NAK and on ticks."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 2)
        self.respond(call, [1, 2, 3], 0, 1)
        self.expect(self.writes(call, 0, 1))
        self.ack(call, 2, 0, NAK)
        self.expect([self.write(call, 2, index, again=True) for index in (0, 1)])
        self.ack(call, 1, 1)
        self.ack(call, 3, 0)
        self.ack(call, 2, 1)
        self.tick(call.context)
        self.expect_nothing()
        self.tick(call.context)
        self.expect([self.write(call, 3, 1, again=True)])


class SourcesAreFlaggedBehindTheLastResult(OrderedTest):
    """A rank that is read only has its flag when all results leave, and until it has acknowledged it; not so others."""

    def runTest(self) -> None:
        call = self.begin(self.served(0b011, 0b110), 2)
        self.respond(call, [1, 2], 1)
        self.expect([read for edge in (1, 2) for read in self.reread(call, edge, 0, 1)])
        self.respond(call, [1], 0)
        self.expect_nothing()
        self.respond(call, [2], 0)
        self.expect([*(self.write(call, edge, index) for edge in (2, 3) for index in (0, 1)), self.flag(call, 1)])
        self.ack(call, 2, 1)
        self.tick(call.context)
        self.expect_nothing()
        self.tick(call.context)
        self.expect([self.flag(call, 1), *(self.write(call, 3, index, again=True) for index in (0, 1))])
        self.took_flag(call, 1)
        self.ack(call, 3, 0)
        self.tick(call.context)
        self.tick(call.context)
        self.expect([self.write(call, 3, 1, again=True)])
        self.ack(call, 3, 1)
        for _ in range(3):
            self.tick(call.context)
        self.expect_nothing()


class NoFlagBeforeTheLastResult(OrderedTest):
    """While results wait for room, a rank that is read only has nothing sent again."""

    def runTest(self) -> None:
        slots = self.spec.slots
        call = self.begin(self.served(0b011, 0b110), slots + self.spec.wave)
        self.respond(call, [1, 2], *range(slots))
        self.expect(self.writes(call, *range(slots)))
        self.silence(call, 2, [self.write(call, edge, i, again=True) for edge in (2, 3) for i in range(slots)])


class FlagOfASourceIsRepeatedAlone(OrderedTest):
    """Also when all results are acknowledged, however long it takes."""

    def runTest(self) -> None:
        call = self.begin(self.served(0b011, 0b100), 1)
        self.respond(call, [1, 2], 0)
        self.expect(self.writes(call, 0))
        self.took_flag(call, 2)
        self.ack(call, 3, 0)
        self.silence(call, 2 * self.spec.patience, [self.flag(call, 1)])


class NextCallAcknowledgesTheOneBefore(OrderedTest):
    """A rank arrives again when it has its result; when all have, slots are free whatever ACKs were lost."""

    def runTest(self) -> None:
        context, size = self.served(), self.spec.slots
        call = self.begin(context, size)
        for wave in range(self.spec.waves):
            packets = self.of_wave(call, wave)
            self.respond(call, [1, 2, 3], *packets)
            self.expect(self.writes(call, *packets))
        self.ack(call, 2, 0)
        following = self.begin(context, size + 1, 1, size)
        self.post(3, self.answer(context, 3, Role.WRITE, call.data_psn(size - 1)))
        self.post(1, self.answer(context, 1, Role.WRITE, call.data_psn(0), NAK))
        self.expect_nothing()
        packets = self.of_wave(following, 0)
        self.respond(following, [1, 2, 3], *packets)
        self.expect(self.writes(following, *packets))
        for edge in (1, 2, 3):
            self.ack(following, edge, packets[-1])
        self.expect(self.reads(following, [self.spec.waves]))


class BarriersAmongCalls(OrderedTest):
    """Flags of barriers are of the call in which they come; ranks that are written to have had no others before."""

    def runTest(self) -> None:
        context = self.served(0b011, 0b110)
        before = 0
        for number, packets in enumerate((2, 0, 1, 3, 0)):
            self.finish(self.begin(context, packets, number, before))
            before += packets


class SilenceAfterTheLastResultIsOfTheNextCall(OrderedTest):
    """Who has its result has ended its call. If another rank never acknowledges its own, it is the next call that ends
    with a status: that is what ranks wait for, or will."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 1)
        self.respond(call, [1, 2, 3], 0)
        self.expect(self.writes(call, 0))
        for edge in (1, 3):
            self.ack(call, edge, 0)
        following = self.call(call.context, 1, 1, 1)
        self.arrive(following, 1)
        self.expect([self.acked(following, 1)])
        self.silence(call, self.spec.patience, [self.write(call, 2, 0, again=True)])
        self.tick(call.context)
        self.expect(self.flags(following, Status.SILENCE))
        self.ack(call, 2, 0)
        self.took_flag(following, 1, 2, status=Status.SILENCE)
        self.tick(call.context)
        self.tick(call.context)
        self.expect([self.flag(following, 3, Status.SILENCE)])


class LateAckOfABarriersFlagIsNoAnswerToAnAbort(OrderedTest):
    """A flag of a barrier that is acknowledged again says nothing about the flag of an abort."""

    def runTest(self) -> None:
        context = self.served()
        barrier = self.begin(context, 0)
        self.took_flag(barrier)
        call = self.begin(context, 1, 1)
        self.took_flag(barrier, 3)
        self.respond(call, [1, 3], 0)
        self.silence(call, self.spec.patience, [self.read(call, 2, 0, 1)])
        self.tick(context)
        self.expect(self.flags(call, Status.SILENCE))
        self.took_flag(call, 1, 2, status=Status.SILENCE)
        self.tick(context)
        self.tick(context)
        self.expect([self.flag(call, 3, Status.SILENCE)])
