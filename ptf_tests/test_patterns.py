"""Several patterns in one group: in contexts of their own (subgroups), or one after the other in one (refined).

EPIC 4.3, PSN synchronisation: with subgroups, every pattern has QPs and a PSN space to itself; without, all share one,
and a barrier stands between patterns of which some ranks only send or only receive.
"""

from __future__ import annotations

from collections.abc import Sequence

from inc import allreduce, broadcast_from, psns, reduce_to
from mode_ii import ModeIITest, sources

from p4gen.groups.group import GroupContext, Pattern
from p4gen.papers.epic.conformance.needs import lacks
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.opcodes import Ack, Nak
from p4gen.vocabulary.message import Collective

ACK = Ack().syndrome


def all_patterns(ranks: int, parent: int | None = None) -> list[Pattern]:
    """AllReduce, Reduce to and Broadcast from each rank, at a node where rank r is at edge r."""
    one_way = [make(rank, rank) for make in (reduce_to, broadcast_from) for rank in range(ranks)]
    return [allreduce(parent), *one_way]


class PatternTest(ModeIITest):
    """Rounds of any pattern at any node."""

    def round(self, group: GroupContext, pattern: Pattern, numbers: Sequence[int]) -> None:
        """The control message under the first PSN, data under the others, and answers to all of it."""
        first, *rest = numbers
        edges = range(len(group.edges))
        senders = sources(group, pattern)
        one_way = pattern.collective is not Collective.ALLREDUCE or pattern.toward is not None
        receivers = [edge for edge in edges if edge not in senders] if one_way else list(edges)
        call = self.call(pattern, len(rest))
        self.announce(group, senders, first, call)
        self.expect_announced(group, (first, call), at=receivers)
        for psn in rest:
            values = self.random_values(len(edges))
            self.contribute(group, self.random.sample(senders, len(senders)), psn, values)
            self.expect_at(group, receivers, [(psn, self.reduced([values[edge] for edge in senders]))])
        if pattern.collective is Collective.ALLREDUCE:
            return
        for edge in receivers:
            self.send_from(group, edge, self.acknowledgement(group, edge, numbers[-1]))
        self.expect_answers(group, senders, (numbers[-1], ACK))

    def barrier(self, group: GroupContext, psn: int) -> None:
        call = self.call(Collective.BARRIER, 0)
        self.announce(group, range(len(group.edges)), psn, call)
        self.expect_announced(group, (psn, call))


class PatternsFollowEachOther(PatternTest):
    """Refined: every pattern in one context and one PSN space, in random order, each closed by a barrier."""

    def unfit(self) -> str | None:
        return self.filters()

    def runTest(self) -> None:
        ranks = 3
        patterns = all_patterns(ranks)
        group = self.node_of(ranks, *patterns)
        psn = self.random_psn()
        for pattern in self.random.sample(patterns, len(patterns)):
            numbers = psns(psn, 1 + self.random.randrange(1, 4))
            self.round(group, pattern, numbers)
            self.barrier(group, serial.add(psn, len(numbers)))
            psn = serial.add(psn, len(numbers) + 1)
        self.equal("drops that lose something", self.losses(), {})


class PatternIsChosenByPsn(PatternTest):
    """While a Broadcast is announced, remaining packets of the AllReduce before it are still reduced, not copied."""

    def unfit(self) -> str | None:
        return self.filters()

    def runTest(self) -> None:
        group = self.node_of(3, *all_patterns(3))
        first, values = self.random_psn(), self.random_values(3)
        self.announce(group, range(3), first, self.call(packets=2))
        self.outputs()
        reduced, data = serial.add(first, 2), serial.add(first, 4)
        self.contribute(group, [0, 2], reduced, values)
        self.announce(group, [1], serial.add(first, 3), self.call(broadcast_from(1, 1), 2))
        self.outputs()
        self.contribute(group, [1], data, values)
        self.expect_at(group, [0, 2], [(data, values[1])])
        self.contribute(group, [1], reduced, values)
        self.expect_results(group, [(reduced, self.reduced(values))])
        # Answers, too: to the AllReduce's PSN back to their sender, to the Broadcast's together to its root.
        self.send_from(group, 0, self.acknowledgement(group, 0, reduced))
        self.expect_answers(group, [0], (reduced, ACK))
        self.send_from(group, 0, self.acknowledgement(group, 0, data))
        self.expect_nothing()
        self.send_from(group, 2, self.acknowledgement(group, 2, data))
        self.expect_answers(group, [1], (data, ACK))


class SlotsAreFreeForOtherSources(PatternTest):
    """A complete slot is free for the next PSN, whichever edges its collective and the next one have as sources."""

    def unfit(self) -> str | None:
        return self.filters()

    def runTest(self) -> None:
        group, psn = self.node_of(3, *all_patterns(3)), self.random_psn()
        for pattern in (reduce_to(0, 0), allreduce(), reduce_to(1, 1), broadcast_from(2, 2), allreduce()):
            self.round(group, pattern, psns(psn, 4))
            psn = serial.add(psn, self.spec.slots_per_group)
        self.equal("drops that lose something", self.losses(), {})


class RootsFollowEachOther(PatternTest):
    """AllGather's phases: each rank broadcasts in turn, from the next rank on everything goes the other way."""

    def runTest(self) -> None:
        group = self.node_of(3, *all_patterns(3))
        psn = self.random_psn()
        for root in (0, 1, 2, 1):
            self.round(group, broadcast_from(root, root), psns(psn, 3))
            psn = serial.add(psn, 3)


class NextBroadcastOvertakes(PatternTest):
    """AllGather: the next root's control message comes before the one of the root before it, which was lost once.

    What the first to have all of the earlier broadcast acknowledges, the others have not got.
    """

    def runTest(self) -> None:
        group = self.node_of(4, *all_patterns(4))
        psn = self.random_psn()
        self.round(group, broadcast_from(0, 0), psns(psn, 3))
        earlier, later = serial.add(psn, 3), serial.add(psn, 5)
        for root, control in ((2, later), (1, earlier)):
            self.announce(group, [root], control, self.call(broadcast_from(root, root), 1))
        self.outputs()
        last = serial.add(earlier, 1)
        for edge in (0, 3):
            self.send_from(group, edge, self.acknowledgement(group, edge, last))
            self.expect_nothing()
        self.send_from(group, 2, self.acknowledgement(group, 2, last))
        self.expect_answers(group, [1], (last, ACK))
        for edge in (0, 3):
            self.send_from(group, edge, self.acknowledgement(group, edge, serial.add(later, 1)))
            self.expect_nothing()
        self.send_from(group, 1, self.acknowledgement(group, 1, serial.add(later, 1)))
        self.expect_answers(group, [2], (serial.add(later, 1), ACK))


class ReduceScattersPhases(PatternTest):
    """Each rank in turn receives its share, and sends in all other phases."""

    def unfit(self) -> str | None:
        return self.filters()

    def runTest(self) -> None:
        group = self.node_of(4, *all_patterns(4))
        psn = self.random_psn()
        for root in range(4):
            self.round(group, reduce_to(root, root), psns(psn, 3))
            psn = serial.add(psn, 3)


class PatternsOfANodeBelowTheRoot(PatternTest):
    """With a parent: a Reduce to a rank below a child goes through that child, to any other rank through the parent."""

    def unfit(self) -> str | None:
        return self.filters()

    def runTest(self) -> None:
        # Ranks 0, 1 and 2 at edges 0 and 1; ranks 3 and up beyond the parent, edge 2.
        behind = [0, 0, 1, 2, 2]
        one_way = [make(rank, edge) for make in (reduce_to, broadcast_from) for rank, edge in enumerate(behind)]
        patterns = [allreduce(2), *one_way]
        group = self.node_of(3, *patterns)
        psn = self.random_psn()
        for pattern in self.random.sample(patterns, len(patterns)):
            self.round(group, pattern, psns(psn, 2))
            psn = serial.add(psn, 2)
        self.equal("drops that lose something", self.losses(), {})


class Subgroups(PatternTest):
    """Every pattern in a context of its own, on the same switch address and the same edges, told apart by QP."""

    def unfit(self) -> str | None:
        return None if self.spec.groups > 2 else f"the program serves {self.spec.groups} groups"

    def contexts(self, ranks: int) -> list[GroupContext]:
        """As many of a group's 2N + 1 contexts as the program has room for."""
        return [
            self.make_group(ranks, context=number, switch=0, channel=number, patterns=[pattern])
            for number, pattern in zip(range(self.spec.groups), self.order(ranks), strict=False)
        ]

    def order(self, ranks: int) -> list[Pattern]:
        makes = (reduce_to,) if lacks(self.spec, "broadcast") else (broadcast_from, reduce_to)
        return [allreduce(), *(make(rank, rank) for rank in range(ranks) for make in makes)]


class SubgroupsTakeTurns(Subgroups):
    """On the same PSNs, with nothing between them."""

    def runTest(self) -> None:
        groups = self.contexts(3)
        self.serve(*groups)
        numbers = psns(self.random_psn(), 4)
        for group in groups:
            self.round(group, group.patterns[0], numbers)
        self.equal("drops that lose something", self.losses(), {})


class SubgroupsAtOnce(Subgroups):
    """A Broadcast, a Reduce and an AllReduce of the same ranks, packets interleaved at random."""

    def runTest(self) -> None:
        ranks = 3
        groups = self.contexts(ranks)
        self.ready(*groups)
        psn = self.random_psn()
        rounds = [self.random_values(ranks) for _ in groups]
        senders = [sources(group, group.patterns[0]) for group in groups]
        turns = [(number, rank) for number, edges in enumerate(senders) for rank in edges]
        for number, rank in self.random.sample(turns, len(turns)):
            self.contribute(groups[number], [rank], psn, rounds[number])
        for number, (group, results) in enumerate(zip(groups, self.received_by(*groups), strict=True)):
            edges = senders[number]
            toward = group.patterns[0].collective is not Collective.ALLREDUCE
            receivers = [edge for edge in range(ranks) if edge not in edges] if toward else range(ranks)
            result = self.reduced([rounds[number][edge] for edge in edges])
            self.check_results(group, results, [(psn, result)], ranks=receivers)


class SubgroupsAnswerApart(Subgroups):
    """The same answer, from the same rank, under the same PSN means something else in each context."""

    def runTest(self) -> None:
        groups = self.contexts(2)[:3]
        self.ready(*groups)
        psn, nak = self.random_psn(), Nak().syndrome
        # AllReduce: back to rank 1. Broadcast from 0: on to rank 0. Reduce to 0 or 1: that rank answers the other.
        ways = {Collective.ALLREDUCE: (1, 1), Collective.BROADCAST: (1, 0)}
        for group in groups:
            (pattern,) = group.patterns
            edge, to = ways.get(pattern.collective, (pattern.root, 1 - pattern.root))
            self.send_from(group, edge, self.acknowledgement(group, edge, psn, nak))
            self.expect_answers(group, [to], (psn, nak))


class SubgroupsAnnounceApart(Subgroups):
    """A control message opens its own context only."""

    def runTest(self) -> None:
        groups = self.contexts(3)
        self.serve(*groups)
        psn, (values,) = serial.add(self.first_psn, 1), self.random_values(1)
        self.open(groups[1])
        for group in (groups[0], groups[2]):
            packet = self.contribution(group, 1, psn, values)
            self.refused(group, 1, packet, "TrackInvocation.not_announced")
        self.send_from(groups[1], 0, self.contribution(groups[1], 0, psn, values))
        self.expect_at(groups[1], [1, 2], [(psn, values)])
