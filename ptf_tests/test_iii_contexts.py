"""Contexts side by side in Mode III: every word of state is one context's own, however far the others are."""

from __future__ import annotations

from dataclasses import replace

from mode_iii import DOWN, ROOT, UP, Flow, ack_of, control_of, flow_at, to
from test_iii_range import RangeTest

from p4gen.papers.epic.tofino import static
from p4gen.rocev2 import psn as serial
from p4gen.vocabulary.message import Collective


class ContextsTakeTurns(RangeTest):
    """Two groups on the same ports, with the same PSNs. What one has announced or acknowledged, the other has not."""

    epochs = (1, 1)
    second = 1
    jump = 0
    """The distance of the first PSNs of the two groups."""

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.spec.groups > 1 else "the program serves one group")

    def runTest(self) -> None:
        one, other = self.flows()
        self.begin(one, 1 << 12, acked=False)
        self.begin(other, 1 << 11, acked=False)
        self.burst(one, self.numbers_of(one, 1, self.window), acked=False)
        last = self.number(other, self.window - 1)
        self.refused(other.group, 0, self.acknowledgement(other.group, 0, last), "TrackSent.never_sent")
        self.ack(one.group, one.outputs, self.number(one, self.window - 1))
        self.expect_nothing()
        for flow, wanted in ((one, []), (other, [control_of(other.group.first_psn, self.immediate(other, 1 << 11))])):
            self.tick(flow.group, 0, 0)
            self.check(flow.group, {}, {0: wanted})
        self.burst(other, self.numbers_of(other, 1, self.window), acked=False)
        self.refuse(other, self.number(other, self.window))
        self.burst(one, self.numbers_of(one, self.window, self.window + 1), acked=False)
        self.ack(other.group, other.outputs, self.number(other, 0))
        self.expect_nothing()
        self.burst(other, self.numbers_of(other, self.window, self.window + 1), acked=False)

    def flows(self) -> tuple[Flow, Flow]:
        """The groups' flows; one is in the first context of the switch."""
        first = self.first_psn
        one = self.make_flow(ROOT)
        self.first_psn = serial.add(first, self.jump)
        other = self.make_flow(ROOT, context=self.second % self.spec.groups, first_port=1)
        one, other = (
            replace(flow, group=replace(flow.group, epoch=epoch))
            for flow, epoch in zip((one, other), self.epochs, strict=True)
        )
        self.serve(one.group, other.group)
        return one, other

    def number(self, flow: Flow, offset: int) -> int:
        """The PSN at ``offset`` after the first one of its group."""
        return serial.add(flow.group.first_psn, offset)

    def numbers_of(self, flow: Flow, first: int, end: int) -> list[int]:
        """PSNs from one offset up to another."""
        return [self.number(flow, offset) for offset in range(first, end)]


class ContextsOfTwoGenerationsTakeTurns(ContextsTakeTurns):
    """The same with other PSNs and epochs: who finds a word of the other's takes it for none."""

    epochs = (3, 2)
    second = -1
    jump = 5000


class EachPipeHasItsOwnWords(RangeTest):
    """What goes up is in the words of the aggregation pipe, what goes down in those of the broadcast pipe, as their
    names say to whoever reads registers."""

    def unfit(self) -> str | None:
        return super().unfit() or ("both pipes' words are in one register" if static(self.spec) else None)

    def runTest(self) -> None:
        group, sent = self.served(UP).group, "emission" if self.spec.mode.stores else "sent"
        for down, pipe in ((False, "aggregation"), (True, "broadcast")):
            flow = flow_at(group, Collective.ALLREDUCE, down=down)
            before = self.state()
            self.begin(flow)
            self.round(flow, self.psn(1))
            changed = {name for name, words in self.state().items() if words != before[name]}
            pipes = {name for name in changed if name.startswith(("aggregation.", "broadcast."))}
            self.equal("words of pipes that changed", pipes, {f"{pipe}.{sent}", f"{pipe}.psn_start"})


class ContextsOfDifferentSizes(RangeTest):
    """A context of twice as many slots after one with the usual number: each slot belongs to one context only."""

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.spec.groups > 2 else "the program has no room for a larger context")

    def runTest(self) -> None:
        slots = 2 * self.window
        small, large = self.make_flow(DOWN), self.make_flow(ROOT, context=1, first_port=1)
        large = replace(large, group=replace(large.group, slots=slots, base=slots, base_down=2 * slots))
        self.serve(small.group, large.group)
        for flow in (small, large):
            self.begin(flow)
        *early, late = large.sources
        rounds = {self.psn(offset): self.inputs(large) for offset in range(1, slots + 1)}
        for psn, values in rounds.items():
            self.push(large, early, psn, values)
        self.check(large.group, to(early, *map(ack_of, rounds)))
        for offset in range(1, self.window + 1):
            self.round(small, self.psn(offset))
        for psn, values in rounds.items():
            self.push(large, [late], psn, values)
        results = [self.result(psn, values) for psn, values in rounds.items()]
        self.check(large.group, to([late], *map(ack_of, rounds)), to(large.outputs, *results))
