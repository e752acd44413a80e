"""AllReduce below the root of the IncTree: partial results go up, results come down (section 4.3).

Edge 0 and up lead to children, ranks or switches, and the last one to the parent.
"""

from __future__ import annotations

from inc import allreduce, psns
from mode_ii import ModeIITest

from p4gen.groups.group import GroupContext
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.opcodes import Ack, Nak, Opcode, RnrNak
from p4gen.vocabulary.message import Collective


class Below(ModeIITest):
    """A node with children and a parent, of which a large AllReduce is announced."""

    children = 3

    def setUp(self) -> None:
        super().setUp()
        self.parent = min(self.children, self.spec.fan_in - 1)
        self.below = range(self.parent)
        if not self.below:
            self.skipTest("the program's fan-in has no room for a parent")
        self.group: GroupContext = self.node_of(self.parent + 1, allreduce(self.parent))


class PartialResultGoesUp(Below):
    """The children's packets become one packet to the parent; the children receive nothing."""

    def runTest(self) -> None:
        self.open(self.group)
        for psn in psns(self.random_psn(), 6):
            values = self.random_values(self.parent)
            order = self.random.sample(self.below, self.parent)
            self.contribute(self.group, order[:-1], psn, values)
            self.expect_nothing()
            self.contribute(self.group, order[-1:], psn, values)
            self.expect_at(self.group, [self.parent], [(psn, self.reduced(values))])
        self.equal("drops that lose something", self.losses(), {})


class ThirtyOneChildren(PartialResultGoesUp):
    """The maximum number of edges, including the parent's."""

    children = 31

    def unfit(self) -> str | None:
        return None if self.spec.fan_in == 32 else f"the program's fan-in is {self.spec.fan_in}"


class OnlyChild(PartialResultGoesUp):
    """A node with one child hands on what it gets."""

    children = 1


class ResultComesDown(Below):
    """The parent's packet goes to every child and not back; it touches no slot, and may come again."""

    def runTest(self) -> None:
        self.open(self.group)
        state = self.state()
        (result,) = self.random_values(1)
        for psn in (self.random_psn(),) * 2:
            self.send_from(self.group, self.parent, self.contribution(self.group, self.parent, psn, result))
            self.expect_at(self.group, self.below, [(psn, result)])
        self.equal("registers", self.state(), state)
        self.equal("drops", self.drops(), {})


class UpAndDownAreApart(Below):
    """The result of a PSN comes down while its slot still waits for a child: neither disturbs the other."""

    def runTest(self) -> None:
        self.open(self.group)
        psn, values, (result,) = self.random_psn(), self.random_values(self.parent), self.random_values(1)
        self.contribute(self.group, self.below[:-1], psn, values)
        self.send_from(self.group, self.parent, self.contribution(self.group, self.parent, psn, result))
        self.expect_at(self.group, self.below, [(psn, result)])
        self.contribute(self.group, self.below[-1:], psn, values)
        self.expect_at(self.group, [self.parent], [(psn, self.reduced(values))])


class RepetitionGoesUpAgain(Below):
    """A child's repetition replaces any packet lost further up; only the root answers it."""

    def runTest(self) -> None:
        self.open(self.group)
        psn, values = self.random_psn(), self.random_values(self.parent)
        self.contribute(self.group, self.below, psn, values)
        self.expect_at(self.group, [self.parent], [(psn, self.reduced(values))])
        state = self.state()
        for child in self.below:
            self.contribute(self.group, [child], psn, values)
            self.expect_at(self.group, [self.parent], [(psn, self.reduced(values))])
        self.equal("registers", self.state(), state)


class AnnouncementGoesUpAndComesDown(Below):
    """A control message is aggregated on its way up; on its way down it changes nothing but reaches all."""

    def runTest(self) -> None:
        psn, call = self.random_psn(), self.call(packets=5)
        self.announce(self.group, self.below[:-1], psn, call)
        self.expect_nothing()
        self.announce(self.group, self.below[-1:], psn, call)
        self.expect_announced(self.group, (psn, call), at=[self.parent])
        state = self.state()
        self.announce(self.group, [self.parent], psn, call)
        self.expect_announced(self.group, (psn, call), at=self.below)
        self.equal("registers", self.state(), state)


class BarrierBelowTheRoot(Below):
    """A barrier is up and down once, with nothing after it."""

    def runTest(self) -> None:
        call = self.call(Collective.BARRIER, 0)
        for psn in psns(self.random_psn(), 3):
            self.announce(self.group, self.below, psn, call)
            self.expect_announced(self.group, (psn, call), at=[self.parent])
            self.announce(self.group, [self.parent], psn, call)
            self.expect_announced(self.group, (psn, call), at=self.below)
            if self.announces:
                (values,) = self.random_values(1)
                data = self.contribution(self.group, self.parent, serial.add(psn, 1), values)
                self.refused(self.group, self.parent, data, "TrackInvocation.not_announced")


class AnswersAreReflectedAtTheFirstHop(Below):
    """A child's ACK, NAK or RNR NAK goes back to it; the parent is not told, and cannot tell."""

    def runTest(self) -> None:
        self.open(self.group)
        state = self.state()
        for syndrome in (Ack().syndrome, Nak().syndrome, RnrNak(3).syndrome):
            for child in self.below:
                psn = self.random_psn()
                self.send_from(self.group, child, self.acknowledgement(self.group, child, psn, syndrome))
                self.expect_answers(self.group, [child], (psn, syndrome))
        answer = self.acknowledgement(self.group, self.parent, self.random_psn())
        self.refused(self.group, self.parent, answer, "ClassifyTraffic.no_flow")
        self.equal("registers", self.state(), state)


class ResultsBeforeTheirAnnouncement(Below):
    """Announcements also limit the parent's packets."""

    def runTest(self) -> None:
        psn, (result,) = self.random_psn(), self.random_values(1)
        packet = self.contribution(self.group, self.parent, psn, result)
        self.refused(self.group, self.parent, packet, "ClassifyTraffic.no_pattern" if psn == 0 else UNANNOUNCED)
        self.announce(self.group, [0], serial.add(psn, -2), self.call(packets=1))
        self.outputs()
        self.refused(self.group, self.parent, packet, UNANNOUNCED)


UNANNOUNCED = "TrackInvocation.not_announced"


class MessageBoundariesUpAndDown(Below):
    """FIRST, MIDDLE and LAST leave in the same places, in both directions."""

    def runTest(self) -> None:
        self.open(self.group)
        opcodes = [Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST]
        numbers = psns(self.random_psn(), len(opcodes))
        rounds = [self.random_values(self.parent) for _ in numbers]
        for psn, opcode, values in zip(numbers, opcodes, rounds, strict=True):
            self.contribute(self.group, self.below, psn, values, opcode)
        results = [(psn, self.reduced(values)) for psn, values in zip(numbers, rounds, strict=True)]
        self.expect_at(self.group, [self.parent], results, opcodes)
        for (psn, result), opcode in zip(results, opcodes, strict=True):
            packet = self.contribution(self.group, self.parent, psn, result, opcode)
            self.send_from(self.group, self.parent, packet)
        self.expect_at(self.group, self.below, results, opcodes)


class TwoLevels(ModeIITest):
    """Two leaves and a root, contexts of one switch: what each sends is carried to the next by hand."""

    def unfit(self) -> str | None:
        return None if self.spec.groups >= 3 else f"the program serves {self.spec.groups} groups"

    def runTest(self) -> None:
        leaves = [self.make_group(3, context=context, patterns=[allreduce(2)]) for context in (0, 1)]
        root = self.make_group(2, context=2)
        self.ready(*leaves, root)
        psn, values = self.random_psn(), self.random_values(4)
        for number, leaf in enumerate(leaves):
            self.contribute(leaf, [0, 1], psn, values[2 * number : 2 * number + 2])
            (up,) = self.received(leaf).of_rank[2]
            self.send_from(root, number, self.contribution(root, number, psn, self.decode(up.payload)))
        self.expect_results(root, [(psn, self.reduced(values))])
        for leaf in leaves:
            self.send_from(leaf, 2, self.contribution(leaf, 2, psn, self.reduced(values)))
            self.expect_at(leaf, [0, 1], [(psn, self.reduced(values))])
        # A rank behind the second leaf lost the result: it repeats, the leaf repeats, the root answers that leaf alone.
        self.contribute(leaves[1], [0], psn, values[2:])
        (up,) = self.received(leaves[1]).of_rank[2]
        self.send_from(root, 1, self.contribution(root, 1, psn, self.decode(up.payload)))
        self.expect_at(root, [1], [(psn, self.reduced(values))])


class EachGroupHasItsOwnRoot(ModeIITest):
    """On one switch at one time: root of one group, below the root in another, with another parent in a third."""

    def unfit(self) -> str | None:
        return None if self.spec.groups >= 3 else f"the program serves {self.spec.groups} groups"

    def runTest(self) -> None:
        roles: list[int | None] = [None, 2, 0]
        groups = [
            self.make_group(3, context=number, patterns=[allreduce(parent)]) for number, parent in enumerate(roles)
        ]
        self.ready(*groups)
        psn = self.random_psn()
        rounds = [self.random_values(3) for _ in groups]
        sources = [[rank for rank in range(3) if rank != parent] for parent in roles]
        turns = [(number, rank) for number, ranks in enumerate(sources) for rank in ranks]
        for number, rank in self.random.sample(turns, len(turns)):
            self.contribute(groups[number], [rank], psn, rounds[number])
        taken = self.received_by(*groups)
        for number, parent in enumerate(roles):
            result = self.reduced([rounds[number][rank] for rank in sources[number]])
            outs = range(3) if parent is None else [parent]
            self.check_results(groups[number], taken[number], [(psn, result)], ranks=outs)
        for number, parent in enumerate(roles):
            if parent is not None:
                group, values = groups[number], rounds[number]
                self.contribute(group, [parent], psn, values)
                self.expect_at(group, sources[number], [(psn, values[parent])])
