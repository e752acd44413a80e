"""What one generation of a context knows the next one must not: every word of state is held to its epoch."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from mode_iii import DOWN, ROOT, Flow, Role, ack_of, control_of, nak_of, to
from test_iii_range import RangeTest

from p4gen.vocabulary import Reliability

EVERY = tuple(Reliability)


class GenerationTest(RangeTest):
    """A context whose next generation begins with the PSN that the one before began with."""

    role: Role = ROOT
    reliability = EVERY

    def renewed(self, flow: Flow) -> Flow:
        """The flow's context in its next generation."""
        fresh = replace(flow.group, epoch=flow.group.epoch + 1)
        self.reconfigure(fresh)
        return replace(flow, group=fresh)


class AcksOfAnOldGenerationFreeNothing(GenerationTest):
    """One output has acknowledged, the others have not: that they did so a generation ago does not count."""

    def runTest(self) -> None:
        flow = self.begun(self.role)
        self.rounds(flow, 1, 3)
        flow = self.renewed(flow)
        self.begin(flow, acked=False)
        last = self.psn(self.window - 1)
        self.rounds(flow, 1, self.window - 1, acked=False)
        for number, edge in enumerate(flow.outputs[:-1]):
            self.ack(flow.group, [edge], last)
            self.refuse(flow, self.psn(self.window), again=number > 0)
        self.ack(flow.group, flow.outputs[-1:], last)
        self.expect_nothing()
        self.round(flow, self.psn(self.window))


class AcksOfAnOldGenerationFreeNothingBelowAParent(AcksOfAnOldGenerationFreeNothing):
    role = DOWN


class AnnouncementsOfAnOldGenerationAreForgotten(GenerationTest):
    """Data where the first control message belongs: what was announced a generation ago does not cover it."""

    def runTest(self) -> None:
        flow = self.renewed(self.begun(self.role))
        before = self.drops()
        self.push(flow, flow.sources[:1], self.psn(0), self.inputs(flow))
        self.expect_nothing()
        self.equal("dropped", self.drops() - before, Counter({"CheckOrder.not_announced": 1}))
        self.begin(flow)
        self.round(flow, self.psn(1))


class WhatCameBeforeTheFirstPsn(GenerationTest):
    """It counts as arrived, and is acknowledged if it is repeated; the first PSN itself is not announced."""

    def runTest(self) -> None:
        flow = self.served(self.role)
        for epoch, self.first_psn in enumerate((256, 1 << 22, 3 << 22, (1 << 24) - 256, 1, 0), start=2):
            flow = replace(flow, group=replace(flow.group, epoch=epoch, first_psn=self.first_psn))
            self.reconfigure(flow.group)
            for psn in (self.psn(-1), self.psn(-3)):
                self.push(flow, flow.sources[:1], psn, self.inputs(flow))
                self.check(flow.group, to(flow.sources[:1], ack_of(self.psn(-1))))
            before = self.drops()
            self.push(flow, flow.sources[:1], self.psn(0), self.inputs(flow))
            self.expect_nothing()
            self.equal("dropped", self.drops() - before, Counter({"CheckOrder.not_announced": 1}))


class NaksOfAnOldGenerationAreForgotten(GenerationTest):
    """A gap was reported a generation ago; the first one of this generation is reported too."""

    def runTest(self) -> None:
        flow = self.begun(self.role)
        self.push(flow, flow.sources[:1], self.psn(2), self.inputs(flow))
        self.outputs()
        flow = self.renewed(flow)
        # Not the announcement, whose turn it is, but one behind it.
        self.announce(flow.group, flow.sources[:1], self.psn(1), self.immediate(flow, 1))
        self.check(flow.group, to(flow.sources[:1], nak_of(self.psn(0))))


class HolesOfAnOldGenerationAreForgotten(GenerationTest):
    """What was missing a generation ago is not waited for."""

    reliability = (Reliability.SR, Reliability.SACK)

    def runTest(self) -> None:
        flow = self.begun(self.role)
        for offset in (2, 5):
            self.push(flow, flow.sources, self.psn(offset), self.inputs(flow))
        self.outputs()
        flow = self.renewed(flow)
        self.begin(flow)
        self.rounds(flow, 1, 6)


class TicksOfAnOldGenerationAreForgotten(GenerationTest):
    """A timer of two ticks begins afresh."""

    def runTest(self) -> None:
        flow = self.begun(self.role, acked=False)
        self.tick(flow.group, *flow.outputs)
        self.expect_nothing()
        flow = self.renewed(flow)
        self.begin(flow, acked=False)
        self.tick(flow.group, *flow.outputs)
        self.expect_nothing()
        self.tick(flow.group, *flow.outputs)
        self.check(flow.group, {}, to(flow.outputs, control_of(self.psn(0), self.immediate(flow, 1 << 12))))
        self.ack(flow.group, flow.outputs, self.psn(0))
        self.round(flow, self.psn(1))


class DuplicatesOfAnOldGenerationAreNone(GenerationTest):
    """The same PSNs again, with other data: none of it is a duplicate, and none of it is added to what was there."""

    def runTest(self) -> None:
        flow = self.begun(self.role)
        self.rounds(flow, 1, self.window - 2)
        flow = self.renewed(flow)
        self.begin(flow)
        self.rounds(flow, 1, self.window - 2)
        values = self.inputs(flow)
        self.push(flow, flow.sources[:1], self.psn(1), values)
        self.check(flow.group, to(flow.sources[:1], ack_of(self.psn(self.window - 2))))
