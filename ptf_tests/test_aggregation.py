"""AllReduce without faults: every rank gets the reduction of what all ranks sent (Algorithm 1, lines 16 to 27)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from inc import psns
from mode_ii import ModeIITest

from p4gen.rocev2 import psn as serial
from p4gen.rocev2.opcodes import Opcode


class Aggregation(ModeIITest):
    """Rounds of one group; subclasses say in which order contributions arrive."""

    def run_orders(self, ranks: int, orders: Iterable[Sequence[int]]) -> None:
        """One PSN per order: ranks send in that order, and only the last contribution triggers the result."""
        group = self.group_of(ranks, first_port=self.random.randrange(self.spec.ports))
        first = self.random_psn()
        orders = list(orders)
        for psn, order in zip(psns(first, len(orders)), orders, strict=True):
            values = self.random_values(ranks)
            self.contribute(group, order[:-1], psn, values)
            self.expect_nothing()
            self.contribute(group, order[-1:], psn, values)
            self.expect_results(group, [(psn, self.reduced(values))])
        self.equal("drops that lose something", self.losses(), {})
        self.equal("contributions absorbed", self.drops()["ReplicateData.absorbed"], len(orders) * (ranks - 1))


class OneRankGetsItsOwnBack(Aggregation):
    def runTest(self) -> None:
        self.run_orders(1, [[0], [0]])


class SumOfTwoRanks(Aggregation):
    def runTest(self) -> None:
        self.run_orders(2, itertools.permutations(range(2)))


class GroupsOfDifferentSizes(ModeIITest):
    """A group may have fewer slots than another one beside it; all of both are in use at a time."""

    def unfit(self) -> str | None:
        return None if self.spec.groups >= 4 else "the program has no room for groups of different sizes"

    def runTest(self) -> None:
        slots = self.spec.slots_per_group
        small = self.make_group(2, context=1)
        large = replace(self.make_group(2), base=2 * slots, slots=2 * slots)
        self.ready(small, large)
        first = serial.add(self.first_psn, 1)
        rounds = {group.context: [self.random_values(2) for _ in range(group.slots)] for group in (small, large)}
        for rank in (0, 1):
            for group in (small, large):
                for psn, values in enumerate(rounds[group.context], start=first):
                    self.contribute(group, [rank], serial.add(psn, 0), values)
            if rank == 0:
                self.expect_nothing()
        for group, results in zip((small, large), self.received_by(small, large), strict=True):
            expected = enumerate(map(self.reduced, rounds[group.context]), start=first)
            self.check_results(group, results, [(serial.add(psn, 0), values) for psn, values in expected])


class SumOfFourRanksInEveryOrder(Aggregation):
    def runTest(self) -> None:
        self.run_orders(4, itertools.permutations(range(4)))


class SumOfEightRanks(Aggregation):
    def runTest(self) -> None:
        self.run_orders(8, some_orders(self, 8, shuffles=5))


class SumOfThirtyTwoRanks(Aggregation):
    def runTest(self) -> None:
        self.run_orders(32, some_orders(self, 32, shuffles=2))


def some_orders(test: ModeIITest, ranks: int, shuffles: int) -> list[list[int]]:
    """Ascending, descending, each rank's neighbour swapped, and random ones."""
    ascending = list(range(ranks))
    swapped = [rank ^ 1 for rank in ascending]
    return [ascending, ascending[::-1], swapped, *(test.random.sample(ascending, ranks) for _ in range(shuffles))]


class RanksAWindowApart(ModeIITest):
    """Each rank sends its whole window before the next one begins: as far apart as flow control lets them be."""

    def runTest(self) -> None:
        ranks, window = 3, min(self.spec.window * self.spec.message, 32)
        group = self.group_of(ranks)
        numbers = psns(self.random_psn(), window)
        rounds = [self.random_values(ranks) for _ in numbers]
        for rank in range(ranks):
            for psn, values in zip(numbers, rounds, strict=True):
                self.contribute(group, [rank], psn, values)
        expected = [(psn, self.reduced(values)) for psn, values in zip(numbers, rounds, strict=True)]
        self.expect_results(group, expected)


class ArrivalsInterleavedAtRandom(ModeIITest):
    """Each rank sends its packets in order; the ranks are interleaved at random."""

    def runTest(self) -> None:
        ranks, window = 4, min(self.spec.window * self.spec.message, 16)
        group = self.group_of(ranks)
        numbers = psns(self.random_psn(), window)
        rounds = [self.random_values(ranks) for _ in numbers]
        turns = [rank for rank in range(ranks) for _ in numbers]
        self.random.shuffle(turns)
        sent = [0] * ranks
        completed = []
        for rank in turns:
            index = sent[rank]
            self.contribute(group, [rank], numbers[index], rounds[index])
            sent[rank] += 1
            if min(sent) == index + 1:
                completed.append(index)
        expected = [(numbers[i], self.reduced(rounds[i])) for i in completed]
        self.equal("rounds completed", len(completed), window)
        self.expect_results(group, expected)


class MessageBoundariesArePreserved(ModeIITest):
    """FIRST, MIDDLE, LAST and ONLY come out as they went in: CommLib's messages stay whole."""

    def runTest(self) -> None:
        group = self.group_of(2)
        opcodes = [Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY]
        numbers = psns(self.random_psn(), len(opcodes))
        expected = []
        for psn, opcode in zip(numbers, opcodes, strict=True):
            values = self.random_values(2)
            self.contribute(group, [0, 1], psn, values, opcode)
            expected.append((psn, self.reduced(values)))
        self.expect_results(group, expected, opcodes)


class SlotsAreReusedOverManyWindows(ModeIITest):
    """A stream four times as long as the buffer: every slot starts afresh when its turn comes again.

    Of a large buffer, only the first slots of each turn are used.
    """

    def runTest(self) -> None:
        group = self.group_of(2)
        first, slots = self.random_psn(), self.spec.slots_per_group
        turns = [psns(first + turn * slots, min(slots, 512)) for turn in range(4)]
        stream = [psn for turn in turns for psn in turn]
        for some in (stream[i : i + 64] for i in range(0, len(stream), 64)):
            expected = []
            for psn in some:
                values = self.random_values(2)
                self.contribute(group, self.random.sample((0, 1), 2), psn, values)
                expected.append((psn, self.reduced(values)))
            self.expect_results(group, expected)
        self.equal("drops that lose something", self.losses(), {})


class PsnWrapsAround(ModeIITest):
    """A stream across 2^24: the PSN after 0xFFFFFF is 0, and slots go on in step."""

    def runTest(self) -> None:
        slots = self.spec.slots_per_group
        group = self.group_of(2, psn=-slots - 1 & 0xFFFFFF)
        reach = min(slots // 2, 64)
        # The slots past the wrap are in use from a window before it, so that a comparison of plain numbers fails.
        stream = [*psns(-slots % (1 << 24), reach), *psns(-reach % (1 << 24), 2 * reach)]
        expected = []
        for psn in stream:
            values = self.random_values(2)
            self.contribute(group, (0, 1), psn, values)
            expected.append((psn, self.reduced(values)))
        self.expect_results(group, expected)
        self.equal("drops that lose something", self.losses(), {})


class WrapInsideTheWindow(ModeIITest):
    """One rank is past the wrap while the other is still before it."""

    def runTest(self) -> None:
        count = min(8, self.spec.slots_per_group)
        stream = psns(-count // 2 % (1 << 24), count)
        group = self.group_of(2, psn=stream[0] - 1)
        rounds = [self.random_values(2) for _ in stream]
        for rank in (1, 0):
            for psn, values in zip(stream, rounds, strict=True):
                self.contribute(group, [rank], psn, values)
        self.expect_results(group, [(p, self.reduced(v)) for p, v in zip(stream, rounds, strict=True)])


class TwoGroupsNeverMix(ModeIITest):
    """Same PSNs, same QP numbers, same ports, at the same time: each group gets its own results."""

    def unfit(self) -> str | None:
        return None if self.spec.groups > 1 else "the program serves one group"

    def runTest(self) -> None:
        groups = [self.make_group(4, context=0), self.make_group(4, context=self.spec.groups - 1, first_port=1)]
        self.ready(*groups)
        numbers = psns(self.random_psn(), 12)
        rounds = [[self.random_values(4) for _ in numbers] for _ in groups]
        turns = [(g, rank) for g in range(2) for rank in range(4)]
        for index, psn in enumerate(numbers):
            for g, rank in self.random.sample(turns, len(turns)):
                self.contribute(groups[g], [rank], psn, rounds[g][index])
        for group, results, values in zip(groups, self.received_by(*groups), rounds, strict=True):
            expected = [(psn, self.reduced(v)) for psn, v in zip(numbers, values, strict=True)]
            self.check_results(group, results, expected)


class EveryContextServes(ModeIITest):
    """As many groups as the program has room for, one after the other on the same PSN."""

    def runTest(self) -> None:
        groups = [self.make_group(2, context=context) for context in range(self.spec.groups)]
        self.ready(*groups)
        psn = self.random_psn()
        rounds = [self.random_values(2) for _ in groups]
        for rank in (0, 1):
            for group, values in zip(groups, rounds, strict=True):
                self.contribute(group, [rank], psn, values)
        for group, results, values in zip(groups, self.received_by(*groups), rounds, strict=True):
            self.check_results(group, results, [(psn, self.reduced(values))])


class NewEpochForgetsTheOldState(ModeIITest):
    """A group that is set up again finds its slots empty, whatever its PSNs (in-band clearing is not needed)."""

    def runTest(self) -> None:
        group = self.group_of(2)
        psn = self.random_psn()
        self.complete(group, psn)
        half = self.random_values(2)
        self.contribute(group, [0], psn + 1 & 0xFFFFFF, half)
        self.expect_nothing()
        again = self.make_group(2, epoch=2)
        self.reconfigure(again)
        late = self.contribution(again, 0, psn, half[0])
        if self.announces:
            self.refused(again, 0, late, "ClassifyTraffic.no_pattern")
        self.open(again, psn=psn - 2 & 0xFFFFFF)
        # An older PSN, the same PSN, and one whose slot holds half a contribution of the old epoch.
        for number in (psn - 1 & 0xFFFFFF, psn, psn + 1 & 0xFFFFFF):
            self.complete(again, number)
        self.equal("drops that lose something", self.losses(), {})


class EpochsOfGroupsAreTheirOwn(ModeIITest):
    """One group is set up again while another one beside it is in the middle of a round."""

    def unfit(self) -> str | None:
        return None if self.spec.groups > 1 else "the program serves one group"

    def runTest(self) -> None:
        for stays, again in ((0, 1), (1, 0)):
            self.control.reset()
            groups = [self.make_group(2, context=context) for context in (0, 1)]
            self.ready(*groups)
            psn, values = self.random_psn(), self.random_values(2)
            for group in groups:
                self.contribute(group, [0], psn, values)
            self.expect_nothing()
            self.reconfigure(replace(groups[again], epoch=2))
            late = self.contribution(groups[again], 1, psn, values[1])
            if self.announces:
                self.refused(groups[again], 1, late, "ClassifyTraffic.no_pattern")
            else:
                # It begins its slot afresh: what the other rank sent in the old epoch does not count.
                self.send_from(groups[again], 1, late)
                self.expect_nothing()
            self.contribute(groups[stays], [1], psn, values)
            self.expect_results(groups[stays], [(psn, self.reduced(values))])


class ResultsGoToEveryPortOfTheSwitch(ModeIITest):
    """Groups of four, on every port: no port is special."""

    def runTest(self) -> None:
        psn = self.random_psn()
        for context, first_port in enumerate(range(0, self.spec.ports, 4)):
            self.control.reset()
            group = self.group_of(4, context=context % self.spec.groups, first_port=first_port)
            self.complete(group, psn)


class NothingIsLeftOfASlotsLastPacket(ModeIITest):
    """A slot's last packet was marked, asked for an ACK and ended its message: the next one in its slot does not."""

    def runTest(self) -> None:
        group, slots = self.group_of(3), self.spec.slots_per_group
        first = self.random_psn()
        for turn, (opcode, ecn) in enumerate(((Opcode.SEND_ONLY, 0b11), (Opcode.SEND_FIRST, 0b10))):
            expected = []
            for psn in psns(serial.add(first, turn * slots), slots):
                values = self.random_values(3)
                for rank in range(3):
                    packet = self.contribution(group, rank, psn, values[rank], opcode)
                    self.send_from(group, rank, replace(packet, ip=replace(packet.ip, tos=26 << 2 | ecn)).sealed())
                expected.append((psn, self.reduced(values)))
            results = self.received(group)
            self.check_results(group, results, expected, [opcode] * slots)
            for rank, packets in enumerate(results.of_rank):
                self.equal(f"turn {turn}, rank {rank}: ECN", {packet.ip.tos & 0b11 for packet in packets}, {ecn})


class MarksOfAnyRankMarkTheResult(ModeIITest):
    """CE of an absorbed contribution is that of the result (RFC 3168); without marks the result is as it was sent."""

    def runTest(self) -> None:
        group = self.group_of(3)
        first = self.random_psn()
        for number, marked in enumerate((None, 0, 1, 2)):
            psn, values = serial.add(first, number), self.random_values(3)
            for rank in range(3):
                packet = self.contribution(group, rank, psn, values[rank])
                ecn = 0b11 if rank == marked else 0b10
                self.send_from(group, rank, replace(packet, ip=replace(packet.ip, tos=26 << 2 | ecn)).sealed())
            wanted = 26 << 2 | (0b10 if marked is None else 0b11)
            for rank, packets in enumerate(self.received(group).of_rank):
                self.equal(f"rank {rank}: traffic class", [packet.ip.tos for packet in packets], [wanted])
