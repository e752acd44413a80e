"""Arrivals: who has arrived, at which call, and what starts it."""

from __future__ import annotations

from dataclasses import replace

from pulls import BROKEN, INVALID, NAK, REFUSED, PullTest

from p4gen.papers.scin.codes import NUMBERS, Status
from p4gen.papers.scin.control import PullContext, Role, configuration


class LastArrivalStartsTheReads(PullTest):
    """Nothing leaves before all ranks have arrived but their ACKs; then every source is read."""

    def runTest(self) -> None:
        self.finish(self.begin(self.served(), 1))


class RepeatedArrivalCountsOnce(PullTest):
    """An arrival that comes again is acknowledged again, stands for nobody else, and does not start the call again."""

    def runTest(self) -> None:
        context = self.served()
        call = self.call(context, 2)
        for edge in (1, 1, 2, 1, 2):
            self.arrive(call, edge)
            self.expect([self.acked(call, edge)])
        self.arrive(call, 3)
        self.expect([self.acked(call, 3), *self.reads(call, range(min(self.spec.waves, self.waves(call))))])
        for edge in (1, 2, 3):
            self.arrive(call, edge)
            self.expect([self.acked(call, edge)])
        self.finish(call)


class NextCallMayArriveEarly(PullTest):
    """A rank that has its flag arrives again while others wait for theirs; the last of them starts the next call."""

    def runTest(self) -> None:
        context = self.served()
        call = self.begin(context, 1)
        self.respond(call, [1, 2, 3], 0)
        self.expect(self.writes(call, 0))
        following = self.call(context, 1, 1, 1)
        for edge in (1, 2, 3):
            self.ack(call, edge, 0)
        self.expect(self.flags(call))
        self.took_flag(call, 1)
        self.arrive(following, 1)
        self.expect([self.acked(following, 1)])
        self.arrive(following, 2)
        self.expect([self.acked(following, 2)])
        self.took_flag(call, 2, 3)
        self.arrive(following, 3)
        self.expect([self.acked(following, 3), *self.reads(following, [0])])
        self.finish(following)


class DisagreementAborts(PullTest):
    """The rank that announces something else is refused; all ranks get a flag with a status, and nothing is read."""

    def runTest(self) -> None:
        context = self.served()
        call = self.call(context, 2)
        self.arrive(call, 1)
        self.arrive(call, 2)
        self.expect([self.acked(call, 1), self.acked(call, 2)])
        self.post(3, self.arrival(call, 3, packets=3))
        self.expect([self.acked(call, 3, INVALID), *self.flags(call, Status.DISAGREEMENT)])
        self.equal("dropped", self.drops()["TrackArrival.disagrees"], 1)
        self.took_flag(call, 1, 3, status=Status.DISAGREEMENT)
        self.silence(call, 4, [self.flag(call, 2, Status.DISAGREEMENT)])
        again = self.call(context, 1, 1)
        self.arrive(again, 1)
        self.expect([self.acked(again, 1, BROKEN)])
        self.equal("dropped", self.drops()["TrackArrival.aborted"], 1)


class OtherNumbersAreRefused(PullTest):
    """A rank that announces elements of another type is refused; a call of the right type is possible afterwards."""

    def runTest(self) -> None:
        context = self.served()
        call = self.call(context, 1)
        for bit in range(8):
            frame = self.arrival(call, 1, numbers=NUMBERS[self.spec.dtype] ^ 1 << bit).to_bytes()
            self.refused(self.port(1), frame, "TrackArrival.other_numbers", [self.acked(call, 1, INVALID)])
        self.finish(self.begin(context, 1))


class ArrivalAheadIsNaked(PullTest):
    """A rank cannot arrive at the call after the next one: an arrival before it is missing."""

    def runTest(self) -> None:
        context = self.served()
        ahead = self.call(context, 1, 1)
        told = self.acked(ahead, 2, NAK, number=0)
        self.refused(self.port(2), self.arrival(ahead, 2).to_bytes(), "TrackArrival.ahead", [told])
        self.finish(self.begin(context, 1))


class OldArrivalIsOnlyAcknowledged(PullTest):
    """An arrival of a call that has ended counts for no other and moves no address."""

    def runTest(self) -> None:
        context = self.served()
        call = self.begin(context, 1)
        self.finish(call)
        following = self.call(context, 1, 1, 1)
        self.arrive(following, 1)
        self.arrive(call, 1)
        self.arrive(following, 2)
        self.arrive(call, 3)
        self.expect([self.acked(following, 1), self.acked(call, 1), self.acked(following, 2), self.acked(call, 3)])
        self.arrive(following, 3)
        self.expect([self.acked(following, 3), *self.reads(following, [0])])
        self.finish(following)


class ForeignArrivalTouchesNothing(PullTest):
    """Arrivals from elsewhere, for no endpoint, or on another queue pair do nothing."""

    def runTest(self) -> None:
        context = self.served(number=1)
        call = self.call(context, 1)
        packet = self.arrival(call, 1)
        stranger = replace(packet, ip=replace(packet.ip, src=packet.ip.src + 7))
        self.refused(self.port(1), stranger.sealed().to_bytes(), "LookupTable.unknown_source")
        for further, reason in ((128, "LookupTable.unknown_qp"), (1, "ValidatePacket.unknown")):
            other = replace(packet, bth=replace(packet.bth, dst_qp=packet.bth.dst_qp + further))
            self.refused(self.port(1), other.sealed().to_bytes(), reason)


class ContextsThatAreNotServedDropArrivals(PullTest):
    """Ranks of a context that the switch serves no longer, or not yet, get nothing."""

    def runTest(self) -> None:
        context = self.served()
        (masks,) = (each for each in configuration(self.spec, [context]).entries if each.table == "contexts")
        self.control.delete(masks)
        call = self.call(context, 1)
        self.refused(self.port(1), self.arrival(call, 1).to_bytes(), "FindContext.not_served")
        self.control.insert(masks)
        self.finish(self.begin(context, 1))


class BarrierFlagsWithoutReads(PullTest):
    """A call without data: all arrive, all get their flag, whether they are read, or written to, or both."""

    def runTest(self) -> None:
        context = self.served(0b011, 0b110)
        self.took_flag(self.begin(context, 0))
        self.took_flag(self.begin(context, 0, 1))
        self.expect_nothing()
        self.finish(self.begin(context, 1, 2))


class CallsAlternate(PullTest):
    """Calls of several lengths follow each other; PSNs go on."""

    def runTest(self) -> None:
        context = self.served()
        before = 0
        for number in range(8):
            packets = self.random.randrange(1, 2 * self.spec.wave + 2)
            self.finish(self.begin(context, packets, number, before))
            before += packets


class NewEpochStartsAfresh(PullTest):
    """A context with another epoch knows nothing of what was before, not even of a call that was aborted, whether its
    PSNs are those of before or others."""

    def runTest(self) -> None:
        context = self.served()
        for epoch, first in enumerate((context.first_psn, self.random.randrange(1 << 24)), 2):
            self.finish(self.begin(context, 3))
            call = self.begin(context, 2, 1, 3)
            self.respond(call, [1, 2], 0)
            self.post(3, self.answer(context, 3, Role.READ, call.data_psn(1), REFUSED))
            self.expect(self.flags(call, Status.REFUSED))
            context = self.renewed(epoch, first)
            for _ in range(4):
                self.tick(context)
            self.expect_nothing()
        self.finish(self.begin(context, 3))

    def renewed(self, epoch: int, first: int = -1) -> PullContext:
        """The context in another epoch."""
        context = self.context(epoch=epoch, first=first)
        entries = configuration(self.spec, [context]).entries
        self.control.modify(*(entry for entry in entries if entry.table == "contexts"))
        self.barriers.clear()
        return context


class FlagsOfAnotherEpochAreForgotten(NewEpochStartsAfresh):
    """Neither who has acknowledged the flag of a call of that number counts, nor how long it took."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 0)
        self.took_flag(call, 1)
        self.silence(call, 3, [self.flag(call, 2), self.flag(call, 3)])
        again = self.begin(self.renewed(2), 0)
        self.silence(again, 3, self.flags(again))


class GapsOfAnotherEpochAreForgotten(NewEpochStartsAfresh):
    """What has come under a PSN in another epoch has not come."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 2)
        self.respond(call, [1, 2, 3], 0)
        self.expect(self.writes(call, 0))
        self.respond(call, [1], 1)
        again = self.begin(self.renewed(2), 2)
        self.respond(again, [2, 1], 1)
        self.expect([read for edge in (1, 2) for read in self.reread(again, edge, 0, 1)])
        self.respond(again, [1, 2], 0)
        self.expect_nothing()
        self.finish(again)


class ArrivalsOfAnotherEpochAreForgotten(NewEpochStartsAfresh):
    """Who has arrived in another epoch at a call of the same number has not arrived, and what it announced says
    nothing."""

    def runTest(self) -> None:
        call = self.call(self.served(), 2)
        for edge in (1, 2):
            self.arrive(call, edge)
        self.expect([self.acked(call, edge) for edge in (1, 2)])
        again = self.call(self.renewed(2), 1)
        for edge in (3, 1):
            self.arrive(again, edge)
            self.expect([self.acked(again, edge)])
        self.arrive(again, 2)
        self.expect([self.acked(again, 2), *self.reads(again, [0])])
        self.finish(again)


class LastArrivalStartsOnce(PullTest):
    """The last arrival, which comes again before the pass that starts the call, does not start it twice."""

    def runTest(self) -> None:
        call = self.call(self.served(), 2)
        self.hold()
        for edge in (1, 2, 3, 3):
            self.arrive(call, edge)
            self.expect([self.acked(call, edge)])
        self.go()
        self.expect(self.reads(call, range(min(self.spec.waves, self.waves(call)))))
        self.finish(call)
