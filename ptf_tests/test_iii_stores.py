"""Contributions that are stored, each edge's apart, and folded in the order of ranks.

Mode I does so by default, Mode III with ``fold ordered``.
"""

from __future__ import annotations

import numpy as np
from folds import one_too_many
from mode_iii import REDUCE_TO_CHILD, REDUCE_TO_PARENT, ROOT, ModeIIITest, Role, ack_of, again, to

from p4gen.vocabulary import DType, Reliability


class SaturatingSumsAreInRankOrder(ModeIIITest):
    """Sums that saturate depend on the order: contributions are reduced in the order of edges, whoever comes first."""

    reliability = tuple(Reliability)

    def unfit(self) -> str | None:
        wrong = not self.spec.folds or not self.spec.saturating or self.spec.dtype is not DType.INT32
        return super().unfit() or ("it is about saturating sums of signed integers" if wrong else None)

    def runTest(self) -> None:
        flow = self.begun(ROOT, edges=3)
        least, greatest = self.limits
        inputs = {0: self.lanes(greatest), 1: self.lanes(5), 2: self.lanes(-7)}
        for offset, order in enumerate(([0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]), start=1):
            psn = self.psn(offset)
            self.push(flow, order, psn, inputs)
            sums = [int(values[0]) for values in inputs.values()]
            total = sums[0]
            for each in sums[1:]:
                total = int(np.clip(total + each, least, greatest))
            result = self.result(psn, {0: self.lanes(total)})
            self.check(flow.group, to(flow.sources, ack_of(psn)), to(flow.outputs, result))
            # What is sent again has saturated once.
            self.nak(flow.group, flow.outputs[0], psn)
            self.check(flow.group, {}, to(flow.outputs[:1], again(result)))
            self.equal("overflows counted", self.counts("overflows"), {flow.group.context: offset})
            self.ack(flow.group, flow.outputs, psn)


class EachEdgeSaturates(SaturatingSumsAreInRankOrder):
    """One contribution is too much, whosever it is and in either direction; such packets alone are counted."""

    edges = 4

    def runTest(self) -> None:
        flow, saturated = self.begun(ROOT, edges=self.edges), 0
        for offset, (elements, total, beyond) in enumerate(one_too_many(self.limits, self.edges), start=1):
            psn, saturated = self.psn(offset), saturated + beyond
            self.push(flow, range(self.edges), psn, {edge: self.lanes(each) for edge, each in enumerate(elements)})
            result = self.result(psn, {0: self.lanes(total)})
            self.check(flow.group, to(flow.sources, ack_of(psn)), to(flow.outputs, result))
            self.equal("overflows counted", self.counts("overflows"), {flow.group.context: saturated})
            self.ack(flow.group, flow.outputs, psn)


class LastContributionIsStored(ModeIIITest):
    """What completes a slot is folded as it leaves, and stored: whichever edge it is from, the result can be sent
    again."""

    reliability = tuple(Reliability)

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.spec.folds else "the program reduces contributions as they arrive")

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        for offset, last in enumerate(flow.sources, start=1):
            psn, values = self.psn(offset), self.inputs(flow)
            others = [edge for edge in flow.sources if edge != last]
            self.push(flow, [*self.random.sample(others, len(others)), last], psn, values)
            result = self.result(psn, values)
            self.check(flow.group, to(flow.sources, ack_of(psn)), to(flow.outputs, result))
            for edge in (last, flow.outputs[0]):
                self.nak(flow.group, edge, psn)
                self.check(flow.group, {}, to([edge], again(result)))
            self.ack(flow.group, flow.outputs, psn)


class NonSourceIsSkipped(ModeIIITest):
    """The edge to which a Reduce goes contributes nothing: what its buffer still holds of others does not count."""

    reliability = tuple(Reliability)
    role: Role = REDUCE_TO_CHILD

    def unfit(self) -> str | None:
        wrong = not self.spec.folds or self.spec.pipelines > 1
        return super().unfit() or ("it is about buffers of edges, in one pipeline" if wrong else None)

    def runTest(self) -> None:
        flow = self.served(self.role)
        (edge,) = flow.outputs
        for slot in range(flow.group.base, flow.group.base + flow.group.slots):
            self.write_register(f"lane_0.edge_{edge}", slot, self.random.getrandbits(self.spec.lane_bits - 1))
        self.begin(flow)
        self.rounds(flow, 1, self.window)


class ParentIsSkipped(NonSourceIsSkipped):
    role = REDUCE_TO_PARENT
