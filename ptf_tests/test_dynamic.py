"""Op dynamic: what the control message announces is what the switch computes, from one invocation to the next."""

from __future__ import annotations

import itertools

import numpy as np
from elements import Numbers, Values
from inc import allreduce
from mode_ii import ModeIITest

from p4gen.groups.group import GroupContext
from p4gen.rocev2 import psn as serial
from p4gen.vocabulary import DType, Op


class Dynamic(ModeIITest):
    """A star of three ranks without announcements."""

    ranks = 3

    def setUp(self) -> None:
        super().setUp()
        self.group: GroupContext = self.node_of(self.ranks, allreduce())

    def unfit(self) -> str | None:
        return None if self.spec.op is Op.DYNAMIC else f"the program is a {self.spec.op} of {self.spec.dtype}"

    @property
    def everything(self) -> list[Numbers]:
        """All that can be announced to the program."""
        return [Numbers(each.op, each.dtype) for each in self.spec.choices]

    def telling(self) -> list[Values]:
        """Contributions with a different result for every op and dtype: both signs, sums that stay in range."""
        if not self.numbers.dtype.number_format.integer:
            return self.random_values(self.ranks)
        low = self.np_random.integers(-(1 << 28), 1 << 28, (self.ranks, self.spec.lanes), np.int64)
        return [values if self.limits[0] else values % (self.limits[1] + 1) for values in low]

    def expected(self, values: list[Values]) -> Values:
        """NumPy's reduction; where unsigned sums leave the range, what the program does then. Sums of floating-point
        numbers are exact here."""
        if not self.numbers.dtype.number_format.integer:
            return self.reduced(values)
        return self.numbers.in_range(self.reduced(values), saturating=self.spec.saturating)

    def invoke(self, numbers: Numbers, psn: int, packets: int = 2) -> int:
        """A complete AllReduce of these numbers; returns the PSN after it."""
        self.numbers = numbers
        call = self.call(packets=packets)
        self.announce(self.group, range(self.ranks), psn, call)
        self.expect_announced(self.group, (psn, call))
        for number in range(packets):
            psn = serial.add(psn, 1)
            values = self.telling() if number else self.random_values(self.ranks)
            self.contribute(self.group, range(self.ranks), psn, values)
            self.expect_results(self.group, [(psn, self.expected(values))])
        return serial.add(psn, 1)


class EveryOpAndDtypeIsAnnounced(Dynamic):
    """Every combination after every other one, on a stream that uses the same slots again and again."""

    def runTest(self) -> None:
        psn = self.random_psn()
        for before, after in itertools.permutations(self.everything, 2):
            psn = self.invoke(before, psn)
            psn = self.invoke(after, psn)
        self.equal("drops that lose something", self.losses(), {})


class LateDataKeepsItsOp(Dynamic):
    """A maximum is announced while a packet of the minimum before it is still on its way."""

    def unfit(self) -> str | None:
        return super().unfit() or self.filters()

    def runTest(self) -> None:
        psn = self.random_psn()
        late, control, data = (serial.add(psn, ahead) for ahead in (1, 2, 3))
        self.numbers = Numbers(Op.MIN, DType.UINT32)
        values = self.random_values(self.ranks)
        self.announce(self.group, range(self.ranks), psn, self.call(packets=1))
        self.outputs()
        self.contribute(self.group, [0, 1], late, values)
        before, self.numbers = self.numbers, Numbers(Op.MAX)
        self.announce(self.group, [0], control, self.call(packets=1))
        others = self.random_values(self.ranks)
        self.contribute(self.group, [0, 1], data, others)
        self.contribute(self.group, [2], late, values)
        self.equal(
            "results",
            [self.parse(output).payload for output in self.outputs()],
            [before.encode(before.reduced(values))] * 3,
        )
        self.contribute(self.group, [2], data, others)
        self.expect_results(self.group, [(data, self.reduced(others))])


class RanksThatWantDifferentOps(Dynamic):
    """The first announcement counts; a rank that announces another op or dtype is refused."""

    def runTest(self) -> None:
        psn = self.random_psn()
        call = self.call(packets=1)
        self.announce(self.group, [0], psn, call)
        first, *others = self.everything
        for self.numbers in others:
            packet = self.announcement(self.group, 1, psn, self.call(packets=1))
            self.refused(self.group, 1, packet, "TrackInvocation.mixed_control")
        self.numbers = first
        self.announce(self.group, [1, 2], psn, call)
        self.expect_announced(self.group, (psn, call))
        self.complete(self.group, serial.add(psn, 1))


class OnlySumsOverflow(Dynamic):
    """Minima and maxima of extreme elements are not counted as overflow."""

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.spec.saturating else "the program's sums wrap around")

    def runTest(self) -> None:
        psn = self.random_psn()
        for numbers in (each for each in self.everything if each.dtype.number_format.integer):
            self.numbers = numbers
            self.announce(self.group, range(self.ranks), psn, self.call(packets=1))
            self.outputs()
            psn = serial.add(psn, 1)
            low, high = self.limits
            values = [self.lanes(high), self.lanes(high), self.lanes(low + 1)]
            self.contribute(self.group, range(self.ranks), psn, values)
            result = numbers.in_range(self.reduced(values[:2]), saturating=True)
            result = numbers.in_range(self.reduced([result, values[2]]), saturating=True)
            self.expect_results(self.group, [(psn, result)])
            psn = serial.add(psn, 1)
        # A signed sum overflows once; an unsigned one with each of the two that follow the first.
        self.equal("overflows counted", self.counts("overflows"), {0: 3})


class GroupsComputeTheirOwn(ModeIITest):
    """Two groups at one time, a minimum and a sum, on the same PSNs."""

    def unfit(self) -> str | None:
        if self.spec.groups < 2:
            return "the program serves one group"
        return None if self.spec.op is Op.DYNAMIC else f"the program is a {self.spec.op} of {self.spec.dtype}"

    def runTest(self) -> None:
        kinds = [Numbers(Op.MIN, DType.INT32), Numbers(Op.SUM, DType.UINT32)]
        groups = [self.make_group(3, context=context) for context in (0, 1)]
        self.serve(*groups)
        psn = serial.add(self.first_psn, 1)
        rounds = []
        for group, self.numbers in zip(groups, kinds, strict=True):
            self.open(group)
            rounds.append(self.random_values(3))
        for rank in range(3):
            for group, values, self.numbers in zip(groups, rounds, kinds, strict=True):
                self.contribute(group, [rank], psn, values)
        taken = self.received_by(*groups)
        for group, results, values, self.numbers in zip(groups, taken, rounds, kinds, strict=True):
            self.check_results(group, results, [(psn, self.reduced(values))])
