"""What is lost is read or written again; what cannot be mended ends the call with a status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from pulls import ACK, BROKEN, INVALID, NAK, REFUSED, Call, PullTest

from p4gen.papers.scin.codes import Status
from p4gen.papers.scin.control import PullContext, Role
from p4gen.papers.scin.headers import CURSOR
from p4gen.ptf.scenario import Output
from p4gen.rocev2.headers import BTH
from p4gen.rocev2.opcodes import RnrNak
from p4gen.vocabulary import ticks


class LostReadIsAskedAgain(PullTest):
    """A NIC's NAK of a READ has that rank, and no other, read again from there on, wave by wave."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 2 * self.spec.wave)
        nak = self.answer(call.context, 2, Role.READ, call.data_psn(0), NAK)
        self.post(2, nak)
        self.expect([self.read(call, 2, 0, self.spec.wave), self.read(call, 2, self.spec.wave, self.spec.wave)])
        self.respond(call, [1, 2, 3], *range(self.spec.wave))
        self.expect(self.writes(call, *range(self.spec.wave)))
        self.post(2, nak)
        self.expect([self.read(call, 2, self.spec.wave, self.spec.wave)])


class ResultsAreNotReadAgain(PullTest):
    """In place: what has been written is not read again, though its slot is in use for something else by now."""

    def runTest(self) -> None:
        count, size = self.spec.waves, self.spec.wave
        call = self.begin(self.served(), (count + 1) * size)
        self.respond(call, [1, 2, 3], *range(size))
        self.expect(self.writes(call, *range(size)))
        for edge in (1, 2, 3):
            self.ack(call, edge, size - 1)
        self.expect(self.reads(call, [count]))
        self.respond(call, [1], *range(size, (count + 1) * size))
        self.post(2, self.answer(call.context, 2, Role.READ, call.data_psn(0), NAK))
        self.expect([self.read(call, 2, wave * size, size) for wave in range(1, count + 1)])


class LostResponseIsAskedForOnceATick(PullTest):
    """On the second tick without progress the rest of the wave is read again, of those whose data is missing."""

    def runTest(self) -> None:
        size = self.spec.wave
        call = self.begin(self.served(), 2 * size)
        self.respond(call, [1, 2, 3], *range(size - 1))
        self.respond(call, [1, 3], size - 1)
        self.respond(call, [3], *range(size, 2 * size))
        self.expect(self.writes(call, *range(size - 1)))
        self.tick(call.context)
        self.expect_nothing()
        self.tick(call.context)
        self.expect([self.read(call, 2, size - 1, 1), self.read(call, 1, size, size), self.read(call, 2, size, size)])
        self.respond(call, [2], *range(size - 1, 2 * size))
        self.respond(call, [1], *range(size, 2 * size))
        self.expect(self.writes(call, *range(size - 1, 2 * size)))


class RestOfTheWaveFromItsFirstHole(PullTest):
    """One READ a wave and a rank, from the first packet that it lacks on, though it may have later ones."""

    def unfit(self) -> str | None:
        return None if self.spec.wave >= 4 else "a wave is too short for holes"

    def runTest(self) -> None:
        size = self.spec.wave
        call = self.begin(self.served(), size)
        self.respond(call, [1, 3], *range(size))
        self.respond(call, [2], 0, 2)
        self.expect([*self.writes(call, 0), self.read(call, 2, 1, size - 1)])
        self.tick(call.context)
        self.tick(call.context)
        self.expect([self.read(call, 2, 1, size - 1)])


class LostWriteComesAgain(PullTest):
    """A NIC's NAK has the result from there on written again to that rank, the same bytes under the same PSNs."""

    def runTest(self) -> None:
        for number, first in enumerate((1 << 22, 3 << 22)):  # PSNs that 0 is before, and behind
            call = self.begin(self.served(number=number, first=first), 3)
            self.respond(call, [1, 2, 3], 0, 1, 2)
            self.expect(self.writes(call, 0, 1, 2))
            self.ack(call, 2, 1, NAK)
            self.expect([self.write(call, 2, index, again=True) for index in (1, 2)])
            for edge in (1, 3):
                self.ack(call, edge, 2)
            self.expect_nothing()
            self.ack(call, 2, 2)
            self.expect(self.flags(call))


class NakAcknowledgesWhatIsBefore(PullTest):
    """A NAK, and an RNR NAK, acknowledges all before its PSN, and no more; one behind the last WRITE ends a call."""

    def runTest(self) -> None:
        context = self.served()
        for number, syndrome in enumerate((NAK, RnrNak(1).syndrome)):
            call = self.begin(context, 3, number, 3 * number)
            self.respond(call, [1, 2, 3], 0, 1, 2)
            self.expect(self.writes(call, 0, 1, 2))
            for edge in (1, 3):
                self.ack(call, edge, 2)
            last = self.write(call, 2, 2, again=True)
            self.ack(call, 2, 2, syndrome)
            self.expect([last] if syndrome == NAK else [])
            self.silence(call, 3, [last])
            self.ack(call, 2, 3, syndrome)
            self.expect(self.flags(call))
            self.took_flag(call)


class NakThatSaysNothingNew(PullTest):
    """A NAK that comes again shows that answers are on their way, and is no progress."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 2)
        self.respond(call, [1, 2, 3], 0, 1)
        self.expect(self.writes(call, 0, 1))
        for edge in (1, 3):
            self.ack(call, edge, 1)
        again = [self.write(call, 2, index, again=True) for index in (0, 1)]
        self.silence(call, 3, again)
        self.ack(call, 2, 0, NAK)
        self.expect(again)
        for _ in range(2):
            self.tick(call.context)
        self.expect_nothing()
        self.tick(call.context)
        self.expect(again)


class OldNakTakesFewPasses(PullTest):
    """A NAK of what is acknowledged long ago has no cursor go all the way from there."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 3)
        self.respond(call, [1, 2, 3], 0, 1, 2)
        self.expect(self.writes(call, 0, 1, 2))
        for edge in (1, 2, 3):
            self.ack(call, edge, 1)
        before = self.drops()
        self.ack(call, 2, -500, NAK)
        self.expect([self.write(call, 2, 2, again=True)])
        self.equal("passes without output", (self.drops() - before)["ReplicateData.absorbed"], 3)
        before = self.drops()
        self.post(2, self.answer(call.context, 2, Role.READ, call.data_psn(-500), NAK))
        self.expect_nothing()
        self.equal("passes without output", (self.drops() - before)["ReplicateData.absorbed"], 3)


class LostAckHeals(PullTest):
    """Without progress the result is written again to those who have not acknowledged it."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 3)
        self.respond(call, [1, 2, 3], 0, 1, 2)
        self.expect(self.writes(call, 0, 1, 2))
        self.ack(call, 1, 2)
        self.ack(call, 3, 0)
        before = self.drops()
        self.tick(call.context)
        self.expect_nothing()
        self.tick(call.context)
        self.expect(
            [
                *(self.write(call, 2, i, again=True) for i in range(3)),
                *(self.write(call, 3, i, again=True) for i in (1, 2)),
            ]
        )
        self.equal("passes without output", (self.drops() - before)["ReplicateData.absorbed"], 3)


class NakThatFreesAWaveWritesFirst(PullTest):
    """A NAK that acknowledges the last of a wave has what it asks for written again; the next ACK has a wave read."""

    def runTest(self) -> None:
        size, slots = self.spec.wave, self.spec.slots
        call = self.begin(self.served(), slots + size)
        self.respond(call, [1, 2, 3], *range(slots))
        self.expect(self.writes(call, *range(slots)))
        for edge in (1, 3):
            self.ack(call, edge, slots - 1)
        self.ack(call, 2, size, NAK)
        self.expect([self.write(call, 2, index, again=True) for index in range(size, slots)])
        self.tick(call.context)
        self.expect_nothing()
        self.ack(call, 2, slots - 1)
        self.expect(self.reads(call, [self.spec.waves]))


class EachIsAskedForItsOwn(PullTest):
    """Ticks have sources read again, and destinations written to, where no rank but one is both."""

    def runTest(self) -> None:
        call = self.begin(self.served(0b011, 0b110), 2)
        self.silence(call, 2, [read for edge in (1, 2) for read in self.reread(call, edge, 0, 2)])
        self.respond(call, [1, 2], 0, 1)
        self.expect(self.writes(call, 0, 1))
        if self.spec.ordered:
            self.took_flag(call)
        before = self.drops()
        self.silence(call, 2, [self.write(call, edge, index, again=True) for edge in (2, 3) for index in (0, 1)])
        self.equal("copies for nobody", (self.drops() - before)["PrunePort.not_wanted"], 0)


class EachDestinationIsWrittenToAlone(PullTest):
    """Only who has not acknowledged the result gets it again, whoever it is."""

    def runTest(self) -> None:
        if self.spec.edges < 4:
            self.skipTest("a context has fewer than four ranks")
        context = self.served(0b1111, 0b1111)
        for number, edge in enumerate((1, 2, 3, 4)):
            call = self.begin(context, 1, number, number)
            self.respond(call, [1, 2, 3, 4], 0)
            self.expect(self.writes(call, 0))
            for other in {1, 2, 3, 4} - {edge}:
                self.ack(call, other, 0)
            self.tick(context)
            self.expect_nothing()
            self.tick(context)
            self.expect([self.write(call, edge, 0, again=True)])
            self.ack(call, edge, 0)
            self.expect(self.flags(call))
            self.took_flag(call)


class OneDestinationIsWaitedFor(PullTest):
    """In a Reduce the ACKs of its only destination count, whoever it is."""

    def runTest(self) -> None:
        for number, edge in enumerate(range(1, min(self.spec.edges, self.spec.contexts, 4) + 1)):
            context = self.served(0b111, 1 << (edge - 1), number=number)
            call = self.begin(context, 1)
            self.respond(call, [1, 2, 3], 0)
            self.expect(self.writes(call, 0))
            if self.spec.ordered:
                self.took_flag(call)
            self.tick(context)
            self.expect_nothing()
            self.tick(context)
            self.expect([self.write(call, edge, 0, again=True)])
            self.ack(call, edge, 0)
            self.expect(self.flags(call))


class RefusedReadAborts(PullTest):
    """A NIC that refuses a READ ends the call at all ranks; later packets of it do nothing."""

    def runTest(self) -> None:
        for number, (sources, destinations) in enumerate([(0b111, 0b111), (0b110, 0b011)]):
            call = self.begin(self.served(sources, destinations, number=number), 2)
            before = self.drops()
            self.post(3, self.answer(call.context, 3, Role.READ, call.data_psn(0), REFUSED))
            self.expect(self.flags(call, Status.REFUSED))
            self.equal("dropped", self.drops() - before, Counter({"ReplicateData.absorbed": 1}))
            late = self.response(call, 2, 0).to_bytes()
            self.refused(self.port(2), late, "TrackCall.aborted")
            if self.spec.icrc.checked:
                self.refused(self.port(2), late[:-1] + bytes((late[-1] ^ 1,)), "CheckIcrc.bad_icrc")
            if not sources & 1:
                stranger = self.call(self.context(number=number), 2)
                self.refused(self.port(1), self.response(stranger, 1, 0).to_bytes(), "FindContext.no_source")
            self.took_flag(call, 1, 2, status=Status.REFUSED)
            self.tick(call.context)
            self.tick(call.context)
            self.expect([self.flag(call, 3, Status.REFUSED)])


class LateRefusalOfAReadMeansNothing(PullTest):
    """A READ that was asked for again, and is refused when its data has come: the rank may have put it away."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 2)
        self.respond(call, [1, 2, 3], 0)
        self.expect(self.writes(call, 0))
        self.post(3, self.answer(call.context, 3, Role.READ, call.data_psn(0), REFUSED))
        self.expect_nothing()
        self.respond(call, [1, 2, 3], 1)
        self.expect(self.writes(call, 1))


class AbortReachesWhoLacksAFlag(PullTest):
    """A rank that lacks the flag of the call before is told of an abort with the PSN that its NIC waits for."""

    def runTest(self) -> None:
        for number, destinations in enumerate((0b111, 0b011)):
            self.reaches(self.served(0b111, destinations, number=number))

    def reaches(self, context: PullContext) -> None:
        """Rank 3 is told of an abort in the context."""
        self.took_flag(self.begin(context, 0), 1, 2)
        call = self.call(context, 1, 1)
        self.arrive(call, 1)
        self.expect([self.acked(call, 1)])
        self.post(2, self.arrival(call, 2, packets=2))
        self.expect([self.acked(call, 2, INVALID), *self.flags(call, Status.DISAGREEMENT)])
        lacked = self.answer(context, 3, Role.SYNC, context.first_psn, NAK)
        self.post(3, lacked)
        self.expect([self.flag(call, 3, Status.DISAGREEMENT, context.first_psn)])
        self.took_flag(call, 1, 2, status=Status.DISAGREEMENT)
        self.post(3, self.answer(context, 3, Role.SYNC, context.first_psn))
        self.tick(context)
        self.tick(context)
        self.expect([self.flag(call, 3, Status.DISAGREEMENT)])
        self.took_flag(call, 3, status=Status.DISAGREEMENT)
        self.tick(context)
        self.tick(context)
        self.expect_nothing()


class RefusedWriteAborts(PullTest):
    """So does one that refuses a WRITE."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 1)
        self.respond(call, [1, 2, 3], 0)
        self.expect(self.writes(call, 0))
        self.ack(call, 2, 0, BROKEN)
        self.expect(self.flags(self.after_flags(call), Status.REFUSED))


class RefusedWriteThatFreesAWaveAborts(PullTest):
    """Nothing is read on, though a wave has been acknowledged in the same breath."""

    def runTest(self) -> None:
        size, slots = self.spec.wave, self.spec.slots
        call = self.begin(self.served(), slots + size)
        self.respond(call, [1, 2, 3], *range(slots))
        self.expect(self.writes(call, *range(slots)))
        for edge in (1, 3):
            self.ack(call, edge, slots - 1)
        self.ack(call, 2, size, BROKEN)
        self.expect(self.flags(call, Status.REFUSED))


class NothingActsAfterAnAbort(PullTest):
    """Whatever comes of a call that has been aborted is dropped, in the pass in which it comes: nobody gets another
    flag, and nothing is read or written again."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 2)
        self.respond(call, [1, 2, 3], 0)
        self.expect(self.writes(call, 0))
        self.post(3, self.answer(call.context, 3, Role.READ, call.data_psn(1), REFUSED))
        self.expect(self.flags(call, Status.REFUSED))
        late = [self.response(call, 1, 1)]
        late += [self.answer(call.context, 1, Role.READ, call.data_psn(1), syndrome) for syndrome in (NAK, REFUSED)]
        late += [self.answer(call.context, 1, Role.WRITE, call.data_psn(0), said) for said in (ACK, NAK, REFUSED)]
        for packet in late:
            self.refused(self.port(1), packet.to_bytes(), "TrackCall.aborted")


class SilenceAborts(PullTest):
    """A rank that answers nothing ends the call after some ticks, and ranks learn of it as often as they need to."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 1)
        self.respond(call, [1, 3], 0)
        self.silence(call, self.spec.patience, [self.read(call, 2, 0, 1)])
        self.tick(call.context)
        self.expect(self.flags(call, Status.SILENCE))
        self.took_flag(call, 1, 3, status=Status.SILENCE)
        self.silence(call, 2 * self.spec.patience, [self.flag(call, 2, Status.SILENCE)])


class AnythingNewEndsBackOff(PullTest):
    """Data of any source for any slot, behind a hole, too; an ACK of any rank, though another has acknowledged less."""

    def runTest(self) -> None:
        call = self.begin(self.served(number=self.spec.contexts - 1), 3)
        lacked = [*self.reread(call, 1, 1, 3), *self.reread(call, 2, 0, 3)]
        self.respond(call, [1, 3], 0)
        self.respond(call, [3], 1, 2)
        self.silence(call, 4, lacked)
        self.respond(call, [1], 1)
        lacked = [self.read(call, 1, 2, 1), *self.reread(call, 2, 0, 3)]
        self.silence(call, 4, lacked)
        self.respond(call, [2], 0)
        self.expect(self.writes(call, 0))
        self.silence(call, 4, [self.read(call, 1, 2, 1), *self.reread(call, 2, 1, 3)])
        self.respond(call, [2], 1)
        self.respond(call, [1, 2], 2)
        self.expect(self.writes(call, 1, 2))
        lacked = [self.write(call, 2, i, again=True) for i in range(3)]
        for edge in (1, 3):
            self.ack(call, edge, 2)
            others = [self.write(call, 3, i, again=True) for i in range(3)] if edge == 1 else []
            self.silence(call, 4, [*lacked, *others])
        self.ack(call, 2, 0)
        self.silence(call, 4, lacked[1:])


class WhatComesTwiceHoldsTicks(PullTest):
    """A packet that a slot has, or an old ACK, shows that answers are on their way: such ticks count neither for what
    is read again nor for the end of the call, and begin nothing anew."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 2)
        lacked = self.reread(call, 2, 0, 2)
        self.respond(call, [1, 3], 0, 1)
        self.held(call, lambda: self.post(1, self.response(call, 1, 0)), lacked)
        self.respond(call, [2], 0, 1)
        self.expect(self.writes(call, 0, 1))
        for edge in (1, 2):
            self.ack(call, edge, 1)
        self.held(call, lambda: self.ack(call, 1, 1), [self.write(call, 3, i, again=True) for i in (0, 1)])
        for _ in range(self.spec.patience - 4):
            self.tick(call.context)
        self.outputs()
        self.ack(call, 2, 0)
        self.tick(call.context)
        self.expect_nothing()
        self.tick(call.context)
        self.expect(self.flags(self.after_flags(call), Status.SILENCE))

    def held(self, call: Call, repeats: Callable[[], None], again: Sequence[Output]) -> None:
        """A tick behind something new and three silent ones, before each of which are some to which only old things
        have come."""
        for number in range(4):
            if number:
                for _ in range(3):
                    repeats()
                    self.tick(call.context)
                    self.expect_nothing()
            self.tick(call.context)
            self.expect(again if number in (1, 2) else [])


class NothingOfNaksThatMeanNothing(PullTest):
    """An ACK on the queue pair for READs, and RNR NAKs there, change nothing."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 1)
        for syndrome in (ACK, RnrNak(1).syndrome):
            self.post(1, self.answer(call.context, 1, Role.READ, call.data_psn(0), syndrome))
        self.expect_nothing()


class TicksFromAnywhereAreForged(PullTest):
    """Ticks come by the agent's port only."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 1)
        for _ in range(3):
            self.tick(call.context, self.port(1))
        self.expect_nothing()
        self.equal("dropped", self.drops()["ValidatePacket.unknown"], 3)


class CursorsFromAnywhereAreForged(PullTest):
    """What goes round comes from the switch itself."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 1)
        said = CURSOR.word.pack(what=6, status=2, edges=7, asked=0, announced=0).to_bytes(CURSOR.size)
        bth = BTH(ticks.OPCODE + 1, 0, call.psn)
        packet = self._from(call.context, 1, Role.SYNC, bth, payload=said)
        self.refused(self.port(1), packet.to_bytes(), "ValidatePacket.unknown")
        short = replace(packet, payload=said[:4]).sealed()
        self.refused(self.port(1), short.to_bytes(), "ValidatePacket.unknown")


class CursorsOfAnAbortedCallDoNothing(PullTest):
    """A cursor on its way when the call is aborted reads nothing and writes nothing."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 2)
        self.hold()
        self.post(2, self.answer(call.context, 2, Role.READ, call.data_psn(0), NAK))
        self.post(3, self.answer(call.context, 3, Role.READ, call.data_psn(0), REFUSED))
        self.settle()
        self.post(1, self.answer(call.context, 1, Role.READ, call.data_psn(1), NAK))
        self.one_pass()
        self.expect([self.read(call, 2, 0, min(2, self.spec.wave)), *self.flags(call, Status.REFUSED)])
        before = self.drops()
        self.one_pass()
        self.expect_nothing()
        self.equal("cursors dropped", (self.drops() - before)["TrackCall.aborted"], 1)
