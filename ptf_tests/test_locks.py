"""Groups that share a block of slots by a lock in the switch (EPIC section 6.2), in Modes II and III.

A group's packets acquire the block before a call, and release it afterwards. Edge 0 and up lead to children; with a
parent, the last edge leads to it. Verdicts are those of packets that the switch sends; what a lock holds is seen by
what another group gets.
"""

from __future__ import annotations

from dataclasses import replace

from locks import GRANTED, REFUSED, LockTest
from mode_iii import ModeIIITest

from p4gen.groups.config import configure
from p4gen.groups.group import GroupContext
from p4gen.papers.epic.spec import Mode
from p4gen.vocabulary import Reliability
from p4gen.vocabulary.message import Collective, Lease


class FirstComeHasTheBlock(LockTest):
    """The group that acquires first has the block; calls of both go on as the verdict says."""

    def runTest(self) -> None:
        one, two = self.pair()
        self.check_results(self.acquire(one, 0), 1, GRANTED, self.below(one))
        self.check_results(self.acquire(two, 0), 1, REFUSED, self.below(two))
        self.expect_call(one, 2)
        self.check_results(self.acquire(two, 2), 3, REFUSED, self.below(two))
        self.release(one, 4)
        self.check_results(self.acquire(two, 4), 5, GRANTED, self.below(two))
        self.check_results(self.acquire(one, 5), 6, REFUSED, self.below(one))
        self.expect_call(two, 6)


class FirstComeAcrossTheWrap(FirstComeHasTheBlock):
    """The same where PSNs wrap between acquire and release."""

    wraps = True

    def runTest(self) -> None:
        super().runTest()


class WhoHasNotAcquiredIsDenied(LockTest):
    """Data and announcements of a group that has not acquired leave no trace: before, after, and beside others."""

    def runTest(self) -> None:
        one, two = self.pair()
        self.expect_denied(two, 0, self.announcement(two, 0, self.psn(0), self.call(packets=1)))
        self.acquire(one, 0)
        self.expect_denied(two, 1, self.announcement(two, 1, self.psn(0), self.call(packets=1)))
        self.expect_call(one, 2)
        self.release(one, 4)
        self.expect_denied(one, 0, self.announcement(one, 0, self.psn(5), self.call(packets=1)))


class ParentRefuses(LockTest):
    """A node takes its lock on the way up, and gives it back when a refusal comes down."""

    def runTest(self) -> None:
        one, two = self.pair(parent=True)
        parent = len(one.edges) - 1
        self.check_results(self.acquire(one, 0), 1, GRANTED, [parent])
        self.equal("free", self.is_free(two, 0), False)
        self.check_results(self.acquire(one, 0, [parent], REFUSED), 1, REFUSED, self.below(one))
        self.equal("locks", set(self.control.registers("locks")), {0})
        self.equal("free", self.is_free(two, 2), True)


class ParentGrants(LockTest):
    """A node whose parent grants keeps its lock, until the release comes down; that it goes up frees nothing."""

    def runTest(self) -> None:
        one, two = self.pair(parent=True)
        parent = len(one.edges) - 1
        self.acquire(one, 0)
        self.check_results(self.acquire(one, 0, [parent]), 1, GRANTED, self.below(one))
        self.equal("free", self.is_free(two, 0), False)
        self.release(one, 2)
        self.equal("free", self.is_free(two, 2), False)
        self.release(one, 2, [parent])
        self.equal("free", self.is_free(two, 4), True)


class ChildRefuses(LockTest):
    """One child's refusal is the tree's, whoever comes first; the root gives its lock back at once."""

    def runTest(self) -> None:
        one, two = self.pair()
        last = len(one.edges) - 1
        for at, order in ((0, [*range(last)]), (2, [*range(1, last)])):
            self.acquire(one, at, order)
            self.acquire(one, at, [last], REFUSED)
            rest = [rank for rank in range(last) if rank not in order]
            got = self.acquire(one, at, rest) if rest else None
            if got is not None:
                self.check_results(got, at + 1, REFUSED, self.below(one))
            self.equal("free", self.is_free(two, 3 * at // 2), True)


class ChildRefusesFirst(LockTest):
    """A node that hears a refusal first takes nothing for the others, and tells its parent."""

    def runTest(self) -> None:
        one, two = self.pair(parent=True)
        parent = len(one.edges) - 1
        self.acquire(one, 0, [0], REFUSED)
        self.check_results(self.acquire(one, 0, range(1, parent)), 1, REFUSED, [parent])
        self.equal("free", self.is_free(two, 0), True)


class FirstContributionDecides(LockTest):
    """Where the first contribution meets another group's tenure, later ones do not take the lock once it is free."""

    def runTest(self) -> None:
        one, two = self.pair()
        self.acquire(two, 0)
        self.acquire(one, 0, [0])
        self.release(two, 2)
        self.check_results(self.acquire(one, 0, range(1, len(one.edges))), 1, REFUSED, self.below(one))
        self.equal("free", self.is_free(two, 3), True)


class FirstContributionTakes(LockTest):
    """The first contribution takes the lock: another group's whole acquire behind it is refused."""

    def runTest(self) -> None:
        one, two = self.pair()
        self.acquire(one, 0, [1])
        self.check_results(self.acquire(two, 0), 1, REFUSED, self.below(two))
        others = [rank for rank in self.below(one) if rank != 1]
        self.check_results(self.acquire(one, 0, others), 1, GRANTED, self.below(one))
        self.expect_call(one, 2)


class ReleaseTakesAll(LockTest):
    """The root keeps its lock until all ranks have released."""

    def runTest(self) -> None:
        one, two = self.pair()
        self.acquire(one, 0)
        for number, rank in enumerate(reversed(self.below(one))):
            self.equal("free", self.is_free(two, 2 * number), False)
            self.release(one, 2, [rank])
        self.equal("free", self.is_free(two, 2 * len(one.edges)), True)


class RepeatsChangeNothing(LockTest):
    """Repeated acquires and releases neither take nor free anything; the verdict stays."""

    def runTest(self) -> None:
        one, two = self.pair()
        self.acquire(one, 0)
        for rank in self.below(one):
            self.send_from(one, rank, self.claim(one, rank, 0))
        for results in self.collect(one):
            self.equal("verdicts", {content for _, content in results} - {GRANTED}, set())
        self.equal("free", self.is_free(two, 0), False)
        self.release(one, 2)
        for _ in range(2):
            for rank in self.below(one):
                self.send_from(one, rank, self.claim(one, rank, 0))
            self.release(one, 2)
        self.equal("free", self.is_free(two, 2), True)


class LateAcquires(LockTest):
    """Acquires of earlier calls that come again, one after the other, take no lock."""

    def runTest(self) -> None:
        one, two = self.pair()
        self.acquire(two, 0)
        for at in (0, 2):
            self.acquire(one, at)
        self.release(two, 2)
        self.equal("locks", set(self.control.registers("locks")), {0})
        for at in (0, 2):
            self.send_from(one, 1, self.claim(one, 1, at))
            self.collect(one)
        self.equal("locks", set(self.control.registers("locks")), {0})
        self.equal("free", self.is_free(two, 3), True)


class AnswersPass(LockTest):
    """Answers need no block: those that come late reach the rank that waits for them."""

    def unfit(self) -> str | None:
        return super().unfit() or ("switches answer themselves" if self.spec.terminates else None)

    def runTest(self) -> None:
        one, _ = self.pair()
        self.acquire(one, 0)
        self.expect_call(one, 2)
        self.release(one, 4)
        self.send_from(one, 1, self.acknowledgement(one, 1, self.psn(3)))
        got = [[each.bth.psn for each in packets] for packets in self.received(one).of_rank]
        self.equal("answers", got, [[self.psn(3)] if rank == 1 else [] for rank in range(len(one.edges))])


class GroupsWithoutABlock(LockTest):
    """A group that shares nothing need not acquire."""

    def runTest(self) -> None:
        group = replace(self.sharing(0), block=None)
        self.serve(group)
        self.expect_call(group, 0)


class CallsUseTheBlock(LockTest):
    """A call has as many slots as the block, whatever the group has for itself."""

    def runTest(self) -> None:
        one, _ = self.pair()
        self.acquire(one, 0)
        rest, packets = range(1, len(one.edges)), 5
        self.announce(one, self.below(one), self.psn(2), self.call(packets=packets))
        self.collect(one)
        inputs = [self.random_values(len(one.edges)) for _ in range(packets)]
        for ranks in ([0], rest):
            for number, values in enumerate(inputs):
                self.contribute(one, ranks, self.psn(3 + number), values)
        wanted = [
            (self.psn(3 + number), self.encode(self.reduced(values)).hex()) for number, values in enumerate(inputs)
        ]
        self.equal("results", self.collect(one), [wanted] * len(one.edges))


class RepeatedReleases(LockTest):
    """A rank whose release is not answered repeats it, and gets its result although the block is another group's."""

    def unfit(self) -> str | None:
        return super().unfit() or ("switches send results again" if self.spec.terminates else None)

    def runTest(self) -> None:
        one, two = self.pair()
        self.acquire(one, 0)
        self.release(one, 2)
        self.acquire(two, 0)
        self.expect_call(two, 2)
        got = self.release(one, 2, [0])
        self.check_results(got, 2, f"announces {self.lease(Lease.RELEASE).encode():#x}", [0])


class LateReleases(LockTest):
    """A release that comes again in a later tenure of the same group does not end that, from below or above."""

    def runTest(self) -> None:
        one, two = self.pair(parent=True)
        parent = len(one.edges) - 1
        for at in (0, 3):
            self.acquire(one, at)
            self.acquire(one, at, [parent])
            if not at:
                self.release(one, 2)
                self.release(one, 2, [parent])
        self.release(one, 2)
        self.release(one, 2, [parent])
        self.equal("free", self.is_free(two, 0), False)
        self.release(one, 5)
        self.release(one, 5, [parent])
        self.equal("free", self.is_free(two, 2), True)


class LateReleasesAtTheRoot(LockTest):
    """The same at the root, where nothing comes down."""

    def runTest(self) -> None:
        one, two = self.pair()
        self.acquire(one, 0)
        self.release(one, 2)
        self.acquire(one, 3)
        self.release(one, 2)
        self.equal("free", self.is_free(two, 0), False)


class LateRefusals(LockTest):
    """A refusal that comes down again in a later tenure does not end that."""

    def runTest(self) -> None:
        one, two = self.pair(parent=True)
        parent = len(one.edges) - 1
        self.acquire(one, 0)
        self.acquire(one, 0, [parent], REFUSED)
        self.acquire(one, 2)
        self.send_from(one, parent, self.claim(one, parent, 0, REFUSED))
        self.collect(one)
        self.equal("free", self.is_free(two, 0), False)


class LateData(LockTest):
    """What a group has sent in an earlier tenure leaves no trace in another's, nor in its own next one."""

    def unfit(self) -> str | None:
        late = "switches take nothing again, whoever has the block" if self.spec.terminates else None
        return super().unfit() or late

    def runTest(self) -> None:
        one, two = self.pair()
        values = self.random_values(len(one.edges))
        self.acquire(one, 0)
        self.contributed(one, 2, values)
        self.release(one, 4)
        late = self.contribution(one, 0, self.psn(3), values[0])
        self.acquire(two, 0)
        self.expect_denied(one, 0, late)
        self.expect_call(two, 2)
        self.release(two, 4)
        self.acquire(one, 5)
        self.expect_denied(one, 0, late)
        self.expect_call(one, 7)


class AnotherGroupsRelease(LockTest):
    """A group that was refused frees nothing by a release, above or below."""

    def runTest(self) -> None:
        one, two = self.pair(parent=True)
        self.acquire(two, 0)
        parent = len(one.edges) - 1
        self.acquire(one, 0)
        self.acquire(one, 0, [parent], REFUSED)
        self.release(one, 2)
        self.release(one, 2, [parent])
        self.check_results(self.acquire(one, 3), 4, REFUSED, [parent])
        self.expect_call(two, 2)


class TenuresOfTheDead(LockTest):
    """The tenure of a group that has died ends when its context gets another epoch; what comes of it later changes
    nothing, and the group that has the context then has not its block."""

    def runTest(self) -> None:
        one, two = self.pair()
        self.acquire(one, 0)
        self.equal("free", self.is_free(two, 0), False)
        later = replace(one, epoch=9)
        self.reconfigure(later, two)
        self.expect_denied(later, 0, self.announcement(later, 0, self.psn(0), self.call(packets=1)))
        self.check_results(self.acquire(two, 2), 3, GRANTED, self.below(two))
        self.check_results(self.acquire(later, 0), 1, REFUSED, self.below(later))
        self.release(later, 2)
        self.expect_call(two, 4)
        self.release(two, 6)
        self.equal("free", self.is_free(later, 3), True)


class ContextsThatAreGone(LockTest):
    """The tenure of a group that has died ends when its entries are removed."""

    def runTest(self) -> None:
        one, two = self.pair()
        self.acquire(one, 0)
        left = configure(self.spec, [two]).entries
        self.control.delete(*(entry for entry in configure(self.spec, [one, two]).entries if entry not in left))
        self.check_results(self.acquire(two, 0), 1, GRANTED, self.below(two))
        self.expect_call(two, 2)


class TenuresOfTheLiving(LockTest):
    """Others that die, or come, end no tenure."""

    def runTest(self) -> None:
        one, two = self.pair()
        self.acquire(one, 0)
        later = replace(two, epoch=9)
        self.reconfigure(one, later)
        self.equal("free", self.is_free(later, 0), False)
        self.expect_call(one, 2)
        self.release(one, 4)
        self.equal("free", self.is_free(later, 2), True)


class EpochsOfTheDead(LockTest):
    """A group that gets a dead one's epoch has not its block."""

    def runTest(self) -> None:
        one, two = self.pair()
        self.acquire(one, 0)
        one, two = replace(one, epoch=9), replace(two, epoch=one.epoch)
        self.reconfigure(one, two)
        self.expect_denied(two, 0, self.announcement(two, 0, self.psn(0), self.call(packets=1)))
        self.check_results(self.acquire(two, 0), 1, GRANTED, self.below(two))


class AcquiredAgain(LockTest):
    """A group that has the block may acquire it again; its tenure then begins anew."""

    def runTest(self) -> None:
        one, two = self.pair()
        self.acquire(one, 0)
        self.check_results(self.acquire(one, 2), 3, GRANTED, self.below(one))
        self.equal("free", self.is_free(two, 0), False)
        self.expect_call(one, 4)
        self.release(one, 6)
        self.equal("free", self.is_free(two, 2), True)


class SlotsOfTheirOwn(LockTest):
    """Acquires and releases take no slots of the block, nor of other groups: results of a call under way stay right."""

    def runTest(self) -> None:
        one, two = self.pair()
        values = self.random_values(len(one.edges))
        last = len(one.edges) - 1
        self.acquire(one, 0)
        self.announce(one, self.below(one), self.psn(2), self.call(packets=1))
        self.collect(one)
        self.contribute(one, range(last), self.psn(3), values)
        self.check_results(self.collect(one), 3, "", [])
        for at in range(0, 8, 2):
            self.acquire(two, at, range(last))
            self.check_results(self.acquire(two, at, [last]), at + 1, REFUSED, self.below(two))
        self.contribute(one, [last], self.psn(3), values)
        self.check_results(self.collect(one), 3, self.encode(self.reduced(values)).hex(), self.below(one))
        self.release(one, 4, range(last))
        for at in range(8, 12):
            self.release(two, at)
        self.equal("free", self.is_free(two, 12), False)
        self.release(one, 4, [last])
        self.equal("free", self.is_free(two, 14), True)


class VerdictsBesideTheNext(LockTest, ModeIIITest):
    """A rank whose verdict is lost gets it although others acquire again already."""

    modes = (Mode.II, Mode.III)
    reliability = tuple(Reliability)
    silent = (0,)

    def runTest(self) -> None:
        one, two = self.pair()
        self.acquire(two, 0)
        self.acquire(one, 0)
        self.acquire(one, 2, range(1, len(one.edges)))
        if self.spec.terminates:
            for _ in range(3):
                self.tick(one, 0)
        else:
            self.send_from(one, 0, self.claim(one, 0, 0))
        got = self.collect(one)[0]
        self.equal("verdicts", {content for psn, content in got if psn == self.psn(1)}, {REFUSED})


class VerdictsOfManyCalls(LockTest):
    """Verdicts keep right as slots of their own are used again, whatever the PSNs."""

    def runTest(self) -> None:
        one, _ = self.pair()
        at = 0
        for step in (0, 1, 2, 3, 2, 1):
            self.check_results(self.acquire(one, at), at + 1, GRANTED, self.below(one))
            for number in range(step):
                self.announce(one, self.below(one), self.psn(at + 2 + number), self.call(Collective.BARRIER, 0))
                self.collect(one)
            self.release(one, at + 2 + step)
            at += 3 + step


class TicksBehindARelease(LockTest, ModeIIITest):
    """What all ranks have completed is not sent again although all acknowledgements are lost, as its slots may be
    another group's: a tick goes on with the release, which is in a slot of the group's own."""

    modes = (Mode.III,)
    reliability = tuple(Reliability)
    silent = tuple(range(32))

    def runTest(self) -> None:
        one, two = self.pair()
        self.acquire(one, 0)
        self.expect_call(one, 2)
        released = self.release(one, 4)[0]
        self.acquire(two, 0)
        self.expect_call(two, 2)
        self.expect_again(one, 0, released)

    def expect_again(self, group: GroupContext, edge: int, results: list[tuple[int, str]]) -> None:
        """Check that a few ticks of an edge bring these results there, and nothing else."""
        for _ in range(3):
            self.tick(group, edge)
        again = [set(got) for got in self.collect(group)]
        self.equal("sent again", again, [set(results) if each == edge else set() for each in range(len(again))])


class TicksOfANode(TicksBehindARelease):
    """The same toward a parent and toward a child, once the release has come down."""

    def runTest(self) -> None:
        one, two = self.pair(parent=True)
        parent = len(one.edges) - 1
        self.acquire(one, 0)
        self.acquire(one, 0, [parent])
        up = self.release(one, 2)[parent]
        down = self.release(one, 2, [parent])[0]
        self.equal("free", self.is_free(two, 0), True)
        self.expect_again(one, parent, up)
        self.expect_again(one, 0, down)


class TicksOfAVerdict(TicksBehindARelease):
    """What went up is sent again as it was, whatever has come down."""

    def runTest(self) -> None:
        one, _ = self.pair(parent=True)
        parent = len(one.edges) - 1
        self.acquire(one, 0)
        self.acquire(one, 0, [parent], REFUSED)
        announced = f"announces {self.lease(Lease.ACQUIRE).encode():#x}"
        self.expect_again(one, parent, [(self.psn(0), announced), (self.psn(1), GRANTED)])


class TicksOfANewEpoch(TicksBehindARelease):
    """What ranks have completed in an earlier epoch says nothing."""

    def runTest(self) -> None:
        one, two = self.pair()
        self.acquire(one, 0)
        self.release(one, 2)
        one = replace(one, epoch=9)
        self.reconfigure(one, two)
        self.acquire(one, 0, [0])
        self.announce(one, range(1, len(one.edges)), self.psn(0), self.lease(Lease.ACQUIRE))
        self.expect_again(one, 0, [self.collect(one)[0][-1]])


class TicksBehindAnAcquire(TicksBehindARelease):
    """An acquire may be under way: it is sent again from its beginning; what was before it is through."""

    def runTest(self) -> None:
        one, two = self.pair()
        self.acquire(one, 0)
        self.expect_call(one, 2)
        self.release(one, 4)
        self.acquire(two, 0)
        self.expect_call(two, 2)
        self.acquire(one, 5)
        announced = f"announces {self.lease(Lease.ACQUIRE).encode():#x}"
        self.expect_again(one, 0, [(self.psn(5), announced), (self.psn(6), REFUSED)])


class BlocksApart(LockTest):
    """Each block has a lock of its own."""

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.spec.locks > 1 else "the program has one block")

    def runTest(self) -> None:
        one, two = self.sharing(0, lock=0), self.sharing(1, lock=1)
        self.serve(one, two)
        self.check_results(self.acquire(one, 0), 1, GRANTED, self.below(one))
        self.check_results(self.acquire(two, 0), 1, GRANTED, self.below(two))
        self.expect_call(one, 2)
        self.expect_call(two, 2)
        self.release(one, 4)
        self.expect_call(two, 4)


class PipelinesApart(LockTest):
    """Each pipeline has its own locks and slots."""

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.spec.pipelines > 1 else "the program has one pipeline")

    def runTest(self) -> None:
        one, two = self.sharing(0), self.sharing(1, pipeline=1)
        self.serve(one, two)
        self.check_results(self.acquire(one, 0), 1, GRANTED, self.below(one))
        self.check_results(self.acquire(two, 0), 1, GRANTED, self.below(two))
        self.expect_call(one, 2)
        self.expect_call(two, 2)
