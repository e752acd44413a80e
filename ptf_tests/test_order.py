"""Go-Back-N: packets ahead of their turn do not change the buffer (section C)."""

from __future__ import annotations

from inc import allreduce, broadcast_from, psns, reduce_to
from mode_ii import ModeIITest

from p4gen.rocev2 import psn as serial
from p4gen.rocev2.opcodes import Nak, Opcode

AHEAD = "FilterOrder.out_of_order"


class InOrder(ModeIITest):
    """A program that takes an edge's packets in order only."""

    def unfit(self) -> str | None:
        gbn = self.spec.loss_recovery.in_order
        return None if gbn else "the program takes an edge's packets in any order"


class AheadOfItsTurn(InOrder):
    """After a gap of one packet or many, packets are refused until the missing ones have arrived."""

    def runTest(self) -> None:
        group = self.group_of(2)
        numbers = psns(self.random_psn(), 6)
        rounds = [self.random_values(2) for _ in numbers]
        for index in (1, 2, 5):
            packet = self.contribution(group, 0, numbers[index], rounds[index][0])
            self.refused(group, 0, packet, AHEAD)
        for psn, values in zip(numbers, rounds, strict=True):
            self.contribute(group, [0, 1], psn, values)
            self.expect_results(group, [(psn, self.reduced(values))])


class FilteredGoBackN(InOrder):
    """A contribution is lost: the sender's later packets were not stored, and are sent again."""

    def runTest(self) -> None:
        group = self.group_of(3)
        numbers = psns(self.random_psn(), 6)
        rounds = [self.random_values(3) for _ in numbers]
        results = [(psn, self.reduced(values)) for psn, values in zip(numbers, rounds, strict=True)]
        for index, psn in enumerate(numbers):
            self.contribute(group, (1, 2, 0) if index != 2 else (1, 2), psn, rounds[index])
        self.expect_results(group, results[:2])
        self.equal("ahead of their turn", self.drops()[AHEAD], 3)
        for index in range(2, 6):
            self.contribute(group, [0], numbers[index], rounds[index])
        self.expect_results(group, results[2:])


class RepetitionsPassTheFilter(InOrder):
    """A packet before the ePSN is a repetition: it gets the result again, and does not move the ePSN."""

    def runTest(self) -> None:
        group = self.group_of(2)
        numbers = psns(self.random_psn(), 3)
        rounds = [self.random_values(2) for _ in numbers]
        for psn, values in zip(numbers[:2], rounds, strict=False):
            self.contribute(group, [0, 1], psn, values)
        self.outputs()
        for index in (0, 1, 0):
            self.contribute(group, [1], numbers[index], rounds[index])
            self.expect_at(group, [1], [(numbers[index], self.reduced(rounds[index]))])
        self.contribute(group, [0, 1], numbers[2], rounds[2])
        self.expect_results(group, [(numbers[2], self.reduced(rounds[2]))])


class EdgesAreFilteredApart(InOrder):
    """One rank is a window ahead of another; both are in order."""

    def runTest(self) -> None:
        ranks, group = 3, self.group_of(3)
        numbers = psns(self.random_psn(), min(4, self.spec.window * self.spec.message))
        rounds = [self.random_values(ranks) for _ in numbers]
        for rank in (2, 0):
            for psn, values in zip(numbers, rounds, strict=True):
                self.contribute(group, [rank], psn, values)
        self.expect_nothing()
        for psn, values in zip(numbers, rounds, strict=True):
            self.contribute(group, [1], psn, values)
            self.expect_results(group, [(psn, self.reduced(values))])
        self.equal("drops that lose something", self.losses(), {})


class OneEdgesTurnIsNoOthers(InOrder):
    """A packet that arrives at one edge does not advance the ePSN of any other edge."""

    def runTest(self) -> None:
        ranks = min(8, self.spec.fan_in)
        group = self.group_of(ranks)
        first, second = psns(self.random_psn(), 2)
        values = self.random_values(ranks)
        for rank in range(ranks):
            self.contribute(group, [rank], first, values)
            self.equal("results", self.received(group).total, ranks if rank == ranks - 1 else 0)
            before = self.all_drops()[AHEAD]
            self.contribute(group, range(rank + 1, ranks), second, values)
            self.expect_nothing()
            self.equal("ahead of their turn", self.all_drops()[AHEAD] - before, ranks - 1 - rank)
        self.complete(group, second)


class GroupsAreFilteredApart(InOrder):
    """Edges of other contexts have ePSNs of their own."""

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.spec.groups > 1 else "the program serves one group")

    def runTest(self) -> None:
        groups = [self.make_group(2, context=context) for context in range(self.spec.groups)]
        self.serve(*groups)
        for ahead, group in enumerate(groups):
            self.open(group, psn=serial.add(self.first_psn, 10 * ahead))
        for ahead, group in enumerate(groups):
            self.complete(group, serial.add(self.first_psn, 10 * ahead + 1))


class AnnouncementIsANewBeginning(InOrder):
    """Between collectives PSNs may jump: a control message sets its edge's ePSN; a repeated one leaves it."""

    def runTest(self) -> None:
        group = self.group_of(2)
        first = self.random_psn()
        self.complete(group, first)
        control = serial.add(self.first_psn, (1 << 19) + 1000)
        self.announce(group, [0, 1], control, self.call(packets=4))
        self.outputs()
        for ahead in (2, 4):
            packet = self.contribution(group, 0, serial.add(control, ahead), self.random_values(1)[0])
            self.refused(group, 0, packet, AHEAD)
        self.complete(group, serial.add(control, 1))
        self.announce(group, [0], control, self.call(packets=4))
        self.expect_announced(group, (control, self.call(packets=4)), at=[0])
        packet = self.contribution(group, 0, serial.add(control, 3), self.random_values(1)[0])
        self.refused(group, 0, packet, AHEAD)
        self.complete(group, serial.add(control, 2))


class AnnouncementRepeatedAfterTheLastPacket(InOrder):
    """All announced packets have been sent, and the control message is repeated: any packet may be repeated, too."""

    def runTest(self) -> None:
        group, packets = self.node_of(2, allreduce()), 3
        control, call = self.first_psn, self.call(packets=packets)
        rounds = {psn: self.random_values(2) for psn in psns(serial.add(control, 1), packets)}
        self.announce(group, [0, 1], control, call)
        self.expect_announced(group, (control, call))
        for psn, values in rounds.items():
            self.contribute(group, [0, 1], psn, values)
            self.expect_results(group, [(psn, self.reduced(values))])
        state = self.state()
        self.announce(group, [1], control, call)
        self.expect_announced(group, (control, call), at=[1])
        self.equal("registers", self.state(), state)
        for psn, values in reversed(rounds.items()):
            self.contribute(group, [1], psn, values)
            self.expect_at(group, [1], [(psn, self.reduced(values))])


class AheadOfItsTurnAndWrong(InOrder):
    """If a packet ahead of its turn has other faults, too, it is refused for its turn."""

    def runTest(self) -> None:
        group = self.group_of(2)
        numbers = psns(self.random_psn(), 2)
        rounds = [self.random_values(2) for _ in numbers]
        for psn, values in zip(numbers, rounds, strict=True):
            self.contribute(group, [0], psn, values)
        mixed = self.contribution(group, 1, numbers[1], rounds[1][1], Opcode.SEND_FIRST)
        self.refused(group, 1, mixed, AHEAD)
        for psn, values in zip(numbers, rounds, strict=True):
            self.contribute(group, [1], psn, values)
            self.expect_results(group, [(psn, self.reduced(values))])


class DataBeforeTheEdgesOwnAnnouncement(InOrder):
    """Another rank has announced; this one's control message is missing, so its data is ahead of its turn."""

    begins = 5

    def runTest(self) -> None:
        group = self.node_of(2, allreduce())
        psn, values = self.begins, self.random_values(2)
        self.announce(group, [0], psn, self.call(packets=1))
        data = serial.add(psn, 1)
        self.refused(group, 1, self.contribution(group, 1, data, values[1]), AHEAD)
        self.announce(group, [1], psn, self.call(packets=1))
        self.outputs()
        self.complete(group, data)


class DataBeforeTheEdgesOwnAnnouncementInTheUpperHalf(DataBeforeTheEdgesOwnAnnouncement):
    """The same with PSNs that lie before 0, which is no edge's ePSN before its announcement."""

    begins = serial.HALF + 5


class OrderAcrossTheWrap(InOrder):
    def runTest(self) -> None:
        group = self.group_of(2, psn=0xFFFFFD)
        for psn in (0xFFFFFE, 0xFFFFFF, 0, 1):
            ahead = self.contribution(group, 0, serial.add(psn, 1), self.random_values(1)[0])
            self.refused(group, 0, ahead, AHEAD)
            self.complete(group, psn)


class OrderOfANewEpoch(InOrder):
    """A group that is set up again starts with the PSN that it announces, before or after its previous PSNs."""

    def runTest(self) -> None:
        group = self.group_of(2)
        self.complete(group, self.random_psn())
        for epoch, psn in ((2, serial.add(self.first_psn, -900)), (3, serial.add(self.first_psn, 900))):
            again = self.make_group(2, epoch=epoch)
            self.reconfigure(again)
            self.open(again, psn=psn)
            self.complete(again, serial.add(psn, 1))


class OnlyContributionsAreFiltered(InOrder):
    """Results from the parent, broadcast data and answers are forwarded in the order in which they arrive."""

    def runTest(self) -> None:
        group = self.node_of(3, allreduce(2), broadcast_from(0, 0), reduce_to(1, 1))
        psn = self.first_psn
        for pattern in group.patterns:
            self.open(group, psn=psn, pattern=pattern)
            numbers = psns(serial.add(psn, 1), 3)
            down = {0: 2, 1: 0}.get(group.patterns.index(pattern))
            for number in reversed(numbers):
                (values,) = self.random_values(1)
                if down is not None:
                    self.send_from(group, down, self.contribution(group, down, number, values))
                    self.expect_at(group, [edge for edge in range(3) if edge != down], [(number, values)])
                else:
                    self.send_from(group, 1, self.acknowledgement(group, 1, number, Nak().syndrome))
                    self.expect_answers(group, [0, 2], (number, Nak().syndrome))
            psn = serial.add(psn, 1 << 19)


class MessagesInOrder(InOrder):
    """FIRST to LAST pass one by one; a LAST that overtakes its MIDDLE does not."""

    def runTest(self) -> None:
        group = self.group_of(2)
        opcodes = [Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST]
        numbers = psns(self.random_psn(), 3)
        rounds = [self.random_values(2) for _ in numbers]
        self.contribute(group, [0, 1], numbers[0], rounds[0], opcodes[0])
        self.contribute(group, [0], numbers[2], rounds[2], opcodes[2])
        for psn, values, opcode in list(zip(numbers, rounds, opcodes, strict=True))[1:]:
            self.contribute(group, [0, 1], psn, values, opcode)
        results = [(psn, self.reduced(values)) for psn, values in zip(numbers, rounds, strict=True)]
        self.expect_results(group, results, opcodes)
        self.equal("ahead of their turn", self.drops()[AHEAD], 1)
