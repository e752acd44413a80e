"""Themis-D with ``evidence: classes``: of each path, the newest PSN and the newest gap are known, and nothing else."""

from __future__ import annotations

from leaf import FIRST_SPINE, DestinationTest

from p4gen.papers.themis.control import PathSet

WRAP = 1 << 24
FAR = 1 << 15
"""PSNs twice as far back are forgotten."""


class ClassTest(DestinationTest):
    """Two paths: even and odd PSNs."""

    def unfit(self) -> str | None:
        return None if self.spec.by_class else "the program keeps a queue of PSNs"

    def judged(self, **wanted: int) -> None:
        """These verdicts have been given, and no others."""
        self.equal("verdicts", self.verdicts(), wanted)


class OnePassTells(ClassTest):
    """Whatever the verdict is, the NACK does not recirculate."""

    def runTest(self) -> None:
        self.forwarded(9)
        self.arrive(0, 1, 2, 3)
        self.forwarded(2)
        self.arrive(5, 4)
        self.blocked(4)
        self.arrive(7, 8)
        self.forwarded(6)
        self.arrive(11)
        self.blocked(10)
        self.judged(NO_EVIDENCE=1, LAST_HOP=1, LATE=1, LOST=1, UNKNOWN=1)


class LargestIsNoEvidence(ClassTest):
    """The NACK of the largest PSN that has passed: nothing larger can have caused it."""

    def runTest(self) -> None:
        self.arrive(0, 1, 2, 3)
        self.forwarded(3)
        self.judged(NO_EVIDENCE=1)


class EvidenceIsNotOverwritten(ClassTest):
    """However many PSNs come after a gap, or after a packet that came late, they are remembered."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 2, 5, 6, *range(7, 400))
        self.blocked(2)
        self.forwarded(4)
        self.judged(LATE=1, LOST=1)


class NewerGapReplaces(ClassTest):
    """A class has one gap. What was in an older one, or before it, is not known to have come, so its NACK passes."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 4, 5, 6, 7, 10)
        self.forwarded(8)
        self.forwarded(2)
        self.forwarded(0)
        self.judged(LOST=1, NO_EVIDENCE=2)


class DoubtMovesToTheNextGap(ClassTest):
    """2, 6 and 10 are lost, each in a gap that takes the place of the one before: 2 and 6 are in doubt."""

    def runTest(self) -> None:
        self.arrive(0, 1, 4, 8, 12, 13)
        for psn in (2, 6, 10):
            self.forwarded(psn)
        self.judged(NO_EVIDENCE=2, LOST=1)


class WhatFollowedTheOlderGapHasCome(ClassTest):
    """2 is lost; 6 comes late; 10 is lost. NACK(6) is blocked, though it is older than the gap that is known."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 4, 5, 7, 6, 8, 9, 12)
        self.blocked(6)
        self.forwarded(2)
        self.forwarded(10)
        self.judged(LATE=1, NO_EVIDENCE=1, LOST=1)


class PacketsBeforeTheGapHaveCome(ClassTest):
    """2 came late, and then 6 is lost: 2 has come nevertheless."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 2, 4, 5, 8)
        self.blocked(2)
        self.forwarded(6)
        self.judged(LATE=1, LOST=1)


class ClosedGapIsNotDoubted(ClassTest):
    """2 was lost, and has come again before 8 is lost."""

    def unfit(self) -> str | None:
        if self.spec.narrow:
            return "the program takes a closed gap for an open one when another takes its place (closed_gaps)"
        return super().unfit()

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 4, 2, 5, 6, 7, 10)
        self.blocked(2)
        self.forwarded(8)
        self.judged(LATE=1, LOST=1)


class DoubtIsOfTheNewestGap(ClassTest):
    """A gap of one path is replaced after a newer one of the other path was: doubt does not go back."""

    def runTest(self) -> None:
        self.arrive(0, 1, 4, 3, 7, 9, 13, 8)  # 11 is missing instead of 5, then 6 instead of 2
        self.forwarded(5)
        self.arrive(12)  # 10 instead of 6
        self.forwarded(5)
        self.forwarded(10)
        self.judged(NO_EVIDENCE=2, LOST=1)


class GapsOfPathsAreApart(ClassTest):
    """A gap of another path replaces none."""

    def runTest(self) -> None:
        self.arrive(0, 1, 4, 7, 6, 9)
        self.forwarded(2)
        self.forwarded(3)
        self.judged(LOST=2)


class LostPacketsCloseTheGap(ClassTest):
    """2 and 4 are lost. When 2 has come again, its NACK is late, and 4 is still missing."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 5, 6)
        self.forwarded(2)
        self.arrive(2)
        self.blocked(2)
        self.forwarded(4)
        self.arrive(4)
        self.blocked(4)
        self.judged(LOST=2, LATE=2)


class OldPacketsLeaveTheGap(ClassTest):
    """Copies of packets before the gap, or after it, do not change it."""

    def runTest(self) -> None:
        self.arrive(0, 1, 2, 5, 6, 8, 0, 2, 6, 8)
        self.forwarded(4)
        self.judged(LOST=1)


class EndsOfAGapHaveCome(ClassTest):
    """The packets on either side of a gap are not missing."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 2, 7, 6)
        self.blocked(2)
        self.blocked(6)
        self.forwarded(4)
        self.judged(LATE=2, LOST=1)


class FirstOfAllIsNotLate(ClassTest):
    """The first PSNs of a connection have come in order."""

    def runTest(self) -> None:
        self.arrive(0, 1, 2, 3)
        self.forwarded(0)
        self.forwarded(1)
        self.judged(LAST_HOP=2)


class FirstOfAPathIsKnown(ClassTest):
    """The first PSN of a path has come, and none before it."""

    def runTest(self) -> None:
        self.arrive(11, 10)
        self.blocked(10)
        self.forwarded(8)
        self.judged(LATE=1, LOST=1)


class ClassesAcrossTheWrap(ClassTest):
    """PSNs are serial numbers: a gap over the wrap, a late packet, and one that may still come."""

    def runTest(self) -> None:
        for epoch, first in enumerate((WRAP - 6, WRAP - 5, WRAP - 4, WRAP - 3), start=2):
            self.unregister(self.flow)
            self.register(self.flow, epoch=epoch)
            self.arrive(first, first + 1, first + 3, first + 2, first + 5, first + 6)
            self.blocked(first + 2)
            self.forwarded(first + 4)
            self.arrive(first + 9)
            self.blocked(first + 8)
        self.judged(LATE=4, LOST=4, UNKNOWN=4)


class OldClassIsEmpty(ClassTest):
    """After a change of epoch, a path of which nothing has come yet is not mistaken for what it was."""

    def runTest(self) -> None:
        self.arrive(*range(8))
        self.unregister(self.flow)
        self.register(self.flow, epoch=2)
        self.arrive(1, 3)
        self.blocked(2)
        self.send(FIRST_SPINE, self.flow.request(4).to_bytes())
        self.equal("frames for PSN 4", len(self.outputs()), 2)
        self.judged(UNKNOWN=1, COMPENSATED=1)


class OldGapIsForgotten(ClassTest):
    """Nor is a gap of the epoch before."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 6)
        self.unregister(self.flow)
        self.register(self.flow, epoch=2)
        self.arrive(1, 0, 2, 4)
        self.blocked(0)
        self.arrive(3)
        self.blocked(2)
        self.judged(LATE=2)


class OldGapOfASilentPathIsForgotten(ClassTest):
    """The same for a path of which nothing has come since: what was in its gap, or before it, may still come."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 6)
        self.unregister(self.flow)
        self.register(self.flow, epoch=2)
        self.arrive(5, 7)
        self.blocked(0)
        self.blocked(2)
        self.judged(UNKNOWN=2)


class TwoQpsTwoGaps(ClassTest):
    """Connections have classes of their own, though their PSNs and paths are the same."""

    def runTest(self) -> None:
        other = self.incoming(1)
        self.register(other, index=1)
        self.arrive(0, 1, 3, 4)
        self.arrive(0, 1, 3, 2, 4, flow=other)
        self.forwarded(2)
        self.blocked(2, other)
        self.judged(LOST=1)
        self.equal("verdicts of the other one", self.verdicts(1), {"LATE": 1})


class OrderOfThreePathsRepeats(ClassTest):
    """Three paths take turns, and begin again at 256: 253 and 257 follow each other on one path, with no gap."""

    n = 3

    def runTest(self) -> None:
        self.arrive(*range(240, 250), 251, 250, *range(252, 260))
        self.blocked(250)
        self.arrive(261, 262, 263)
        self.forwarded(260)
        self.judged(LATE=1, LOST=1)


class PathsOfDifferentWeight(ClassTest):
    """Three of four PSNs take one path: what is missing of it shows, and what is not does not."""

    weights = (3, 1)

    def runTest(self) -> None:
        self.arrive(0, 1, 2, 3, 4, 6, 5, 7, 8)
        self.blocked(5)
        self.arrive(9, 10, 12)
        self.forwarded(11)
        self.arrive(13, 18)
        self.forwarded(14)
        self.judged(LATE=1, LOST=2)


class OtherPathsOtherClasses(ClassTest):
    """6 is lost while the connection has four paths, and 6 and 8 take different ones. With two paths they are of one
    class, of which 8 and 10 have come; yet NACK(6) passes, as that class has begun with 10."""

    n = 4

    def runTest(self) -> None:
        self.arrive(0, 1, 2, 3, 4, 5, 8, 7)
        self.path_set(1, 1, number=2)
        self.unregister(self.flow)
        self.register(self.flow, epoch=self.epoch, path_set=2)
        self.arrive(9, 10, 11)
        self.forwarded(6)
        self.arrive(13, 14, 15, 12)
        self.blocked(12)
        self.judged(LOST=1, LATE=1)


class NacksAreNoPsns(ClassTest):
    """A NACK changes nothing that is known of its class: it neither opens a gap nor closes one."""

    def runTest(self) -> None:
        self.arrive(0, 1, 9)
        self.blocked(6)
        self.arrive(2, 4, 6)
        self.blocked(4)
        self.arrive(10)
        self.forwarded(8)
        self.forwarded(8)
        self.judged(UNKNOWN=1, DISARMED=1, LATE=1, LOST=2)


class LastHopLossIsToldFromLatePackets(ClassTest):
    """2 came late. 4 and 5 are larger and came in order, so NACK(5) reports a loss on the last hop."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 2, 4, 5, 6, 7)
        self.forwarded(5)
        self.judged(LAST_HOP=1)


class LastHopLossBeforeALatePacketIsNot(ClassTest):
    """1 came in order, but 3, which is larger, came late, and so may have 1. NACK(1) is blocked, and a loss on the last
    hop is left to the NIC's timer. The queue would tell."""

    def runTest(self) -> None:
        self.arrive(0, 1, 2, 4, 3)
        self.blocked(1)
        self.arrive(5, 7)
        self.judged(LATE=1)


class LateMarkMovesOn(ClassTest):
    """What came late half a turn of PSNs ago does not look new."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 2)
        psns = [FAR * turn + turn % 2 for turn in range(1, (WRAP >> 1) // FAR + 3)]
        self.arrive(*psns, psns[-1] + 1, psns[-1] + 2)
        self.forwarded(psns[-1] + 1)
        self.judged(LAST_HOP=1)


class DoubtMovesOn(ClassTest):
    """What was doubtful half a turn of PSNs ago does not make new PSNs doubtful. No gap is left open on the way."""

    def runTest(self) -> None:
        psns = [FAR * turn for turn in range(1, (WRAP >> 1) // FAR + 3)]
        for psn in psns:
            self.arrive(psn, psn - 2)
        self.arrive(psns[-1] + 4, psns[-1] + 2)
        self.blocked(psns[-1] + 2)
        self.judged(LATE=1)


class FarBackIsForgotten(ClassTest):
    """Where a path has no gap, its PSNs are known to have come, but not for ever: they would come to look new."""

    weights = (255, 1)

    def runTest(self) -> None:
        alone = PathSet(1, self.weights).turns.index(1)
        psns = [alone + 256 * turn for turn in range(2 * FAR // 256 + 2)]
        for psn in psns:
            self.arrive(psn + 1, psn)
        self.blocked(psns[-1])
        self.blocked(psns[-100])
        self.forwarded(psns[-140])
        self.judged(LATE=2, NO_EVIDENCE=1)


class FirstGapIsOfHalfAsMany(ClassTest):
    """Of the PSNs before the first one of a path, as many are missing as are known at all; the rest is not known."""

    weights = (1,)

    def runTest(self) -> None:
        self.arrive(FAR + 10)
        self.forwarded(10)
        self.forwarded(11)
        self.judged(NO_EVIDENCE=1, LOST=1)


class AloneTest(ClassTest):
    """One path has every 256th PSN. The scenarios are about these, and count them as its turns."""

    weights = (255, 1)
    LAST = 2 * FAR // 256
    """From this turn on, the first one is too far back to be known."""

    def unfit(self) -> str | None:
        if self.spec.narrow:
            return "the program's marks move with every packet, 2^15 PSNs behind it"
        return super().unfit()

    def turn(self, number: int) -> int:
        """The PSN of a turn."""
        return PathSet(1, self.weights).turns.index(1) + 256 * number

    def turns(self, count: int) -> None:
        """The first turns come, one after the other."""
        self.arrive(*map(self.turn, range(count)))

    def again(self) -> None:
        """All begins anew."""
        self.unregister(self.flow)
        self.register(self.flow, epoch=self.epoch + 1)


class NothingIsForgottenEarly(AloneTest):
    """Nearly 2^16 PSNs back, the PSNs before the first one are known to be missing, and the first one to have come in
    order."""

    def runTest(self) -> None:
        self.turns(self.LAST - 1)
        self.forwarded(self.turn(-1))
        self.forwarded(self.turn(0))
        self.judged(LOST=1, LAST_HOP=1)


class NothingIsDoubtedEarly(AloneTest):
    """A gap takes the place of the one before the first turn, which is in doubt from then on; the first turn is not."""

    def runTest(self) -> None:
        self.turns(200)
        self.arrive(self.turn(201))
        self.forwarded(self.turn(-1))
        self.forwarded(self.turn(0))
        self.judged(NO_EVIDENCE=1, LAST_HOP=1)


class MarksMoveByHalf(AloneTest):
    """What was late or in doubt 2^16 PSNs back counts as 2^15 PSNs back from then on: a turn exactly there has come
    late, and is in doubt when there is a newer gap; one PSN less, and it is not."""

    def runTest(self) -> None:
        half = self.LAST // 2
        self.turns(self.LAST + 1)
        self.forwarded(self.turn(half - 1))
        self.blocked(self.turn(half))
        self.forwarded(self.turn(half + 1))
        self.judged(NO_EVIDENCE=1, LATE=1, LAST_HOP=1)
        self.arrive(self.turn(self.LAST + 2))
        self.forwarded(self.turn(half))
        self.forwarded(self.turn(half + 1))
        self.judged(NO_EVIDENCE=2, LATE=1, LAST_HOP=2)
        self.again()
        self.turns(self.LAST)
        self.arrive(self.turn(self.LAST) - 1)
        self.forwarded(self.turn(half))
        self.arrive(self.turn(self.LAST + 1))
        self.forwarded(self.turn(half))
        self.forwarded(self.turn(half - 1))
        self.judged(NO_EVIDENCE=3, LATE=1, LAST_HOP=4)


class MarksStayUntilThen(AloneTest):
    """2^16 - 1 PSNs back, nothing has moved yet."""

    def runTest(self) -> None:
        self.turns(self.LAST)
        self.arrive(self.turn(self.LAST) - 2)
        self.forwarded(self.turn(self.LAST // 2 - 1))
        self.judged(LAST_HOP=1)


class ForgottenGapIsClosed(AloneTest):
    """The gap before the first turn, too far back to be known, is no gap that a newer one puts in doubt."""

    def runTest(self) -> None:
        self.arrive(self.turn(0) + 600)
        self.turns(self.LAST)
        self.arrive(self.turn(self.LAST + 1))
        self.forwarded(self.turn(self.LAST // 2 - 2))
        self.judged(LAST_HOP=1)


FAR_APART = 5 << 20
"""More than a quarter of a turn of PSNs, less than half of it."""


class GapMayBeLong(ClassTest):
    """PSNs are serial numbers up to half a turn apart: all between the two of one path are missing."""

    def runTest(self) -> None:
        self.arrive(0, 1, FAR_APART, FAR_APART + 3)
        self.blocked(FAR_APART + 2)
        self.arrive(0)
        for lost in (2, FAR_APART - FAR - 10, FAR_APART - 2):
            self.forwarded(lost)
        self.judged(UNKNOWN=1, LOST=3)


class PathsMayBeFarApart(ClassTest):
    """What came late on one path is far ahead of all PSNs of the other; a copy of one of these changes nothing."""

    def runTest(self) -> None:
        self.arrive(0, 1, 2, 3, 4, FAR_APART + 1, FAR_APART + 5, FAR_APART + 3)
        self.blocked(2)
        self.arrive(2)
        self.blocked(FAR_APART + 1)
        self.judged(LATE=2)


class DoubtReachesFarBack(ClassTest):
    """What is before a gap, and much more than 2^16 PSNs back, is in doubt."""

    def unfit(self) -> str | None:
        if self.spec.narrow:
            return "the program's marks move with PSNs that follow each other"
        return super().unfit()

    def runTest(self) -> None:
        self.arrive(0, 1, FAR_APART, FAR_APART + 3)
        self.forwarded(0)
        self.judged(NO_EVIDENCE=1)
