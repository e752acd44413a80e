"""Contributions that are stored, each edge's apart, and folded in the order of ranks, in Mode II (EPIC, footnote 4).

What a fold makes of single numbers is in ``test_iii_folds``; all modes have the same one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
from elements import Values
from folds import NAN, Rows, one_too_many
from inc import psns, reduce_to
from mode_ii import ModeIITest

from p4gen.groups.group import GroupContext
from p4gen.vocabulary import DType, Op

ORDERS = tuple(itertools.permutations(range(3)))


class FoldTest(ModeIITest):
    """A test of a program that folds."""

    def unfit(self) -> str | None:
        return None if self.spec.folds else "the program reduces contributions as they arrive"

    def in_every_order(self, group: GroupContext, values: list[Values], result: Values) -> Iterable[int]:
        """Check that the ranks' contributions have this result in each order of arrival, and when one repeats itself
        afterwards. Yields the number of results before and after the repetitions."""
        for round_, (psn, order) in enumerate(zip(psns(self.random_psn(), len(ORDERS)), ORDERS, strict=True), start=1):
            self.contribute(group, order, psn, values)
            self.expect_results(group, [(psn, result)])
            yield round_
            for rank in order:
                self.contribute(group, [rank], psn, self.random_values(3))
                self.expect_at(group, [rank], [(psn, result)])
            yield round_


class SaturatingSumsAreInRankOrder(FoldTest):
    """Sums that saturate depend on the order. One that is sent again has saturated once."""

    def unfit(self) -> str | None:
        wrong = not self.spec.saturating or self.spec.dtype is not DType.INT32
        return super().unfit() or ("it is about saturating sums of signed integers" if wrong else None)

    def runTest(self) -> None:
        group, (least, greatest) = self.group_of(3, context=1), self.limits
        values = [self.lanes(greatest), self.lanes(5), self.lanes(-7)]
        assert np.clip(greatest + 5, least, greatest) == greatest
        for saturated in self.in_every_order(group, values, self.lanes(greatest - 7)):
            self.equal("overflows counted", self.counts("overflows"), {group.context: saturated})


class EachEdgeSaturates(SaturatingSumsAreInRankOrder):
    """One contribution is too much, whosever it is and in either direction; such packets alone are counted."""

    edges = 4

    def runTest(self) -> None:
        group, saturated = self.group_of(self.edges), 0
        cases = list(one_too_many(self.limits, self.edges))
        for psn, (elements, total, beyond) in zip(psns(self.random_psn(), len(cases)), cases, strict=True):
            saturated += beyond
            self.contribute(group, range(self.edges), psn, [self.lanes(element) for element in elements])
            self.expect_results(group, [(psn, self.lanes(total))])
            self.equal("overflows counted", self.counts("overflows"), {group.context: saturated})


class ArrivalOrderDoesNotMatter(Rows, FoldTest):
    """Any floating-point numbers, in each order of arrival: the bits of NumPy's sum in the order of ranks."""

    def unfit(self) -> str | None:
        wrong = self.spec.op is not Op.SUM or self.spec.dtype not in NAN
        return super().unfit() or ("it is about sums of floating-point numbers" if wrong else None)

    def runTest(self) -> None:
        group, rows = self.group_of(3), self.drawn(3)
        values = [self.values(row) for row in rows]
        for _ in self.in_every_order(group, values, self.values(self.folded(rows))):
            pass


class NonSourceIsSkipped(FoldTest):
    """The edge to which a Reduce goes contributes nothing, and neither do edges that the node does not have: what their
    buffers still hold does not count."""

    def runTest(self) -> None:
        for edges in (4, 3, 2):
            for toward in range(edges):
                self.control.reset()
                group = self.node_of(edges, reduce_to(toward, toward))
                for slot, edge in itertools.product(range(group.base, group.base + group.slots), range(4)):
                    self.write_register(f"lane_0.edge_{edge}", slot, self.random.getrandbits(self.spec.lane_bits - 1))
                self.open(group)
                senders = [edge for edge in range(edges) if edge != toward]
                psn, values = self.random_psn(), self.random_values(edges)
                self.contribute(group, senders, psn, values)
                self.expect_at(group, [toward], [(psn, self.reduced([values[edge] for edge in senders]))])
