"""Slots that idle while PSNs go on, by half of the number space and more, and once round.

A generation in which all of a context's words take part, and few slots, stands for the millions of packets of other
collectives that go on without the others.
"""

from __future__ import annotations

from dataclasses import replace

from mode_iii import (
    BROADCAST_FROM_CHILD,
    DOWN,
    ROOT,
    UP,
    Flow,
    ModeIIITest,
    Role,
    ack_of,
    again,
    control_of,
    flow_at,
    nak_of,
    selective_of,
    to,
)

from p4gen.groups.group import Pattern
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.opcodes import Ack, Nak, NakCode
from p4gen.vocabulary import Reliability
from p4gen.vocabulary.message import Collective

LIVE = 3
"""Announcements that a context keeps."""


class IdleTest(ModeIIITest):
    """A context whose epochs may come again."""

    reliability = tuple(Reliability)

    def generation(self, flow: Flow, epoch: int, first_psn: int) -> Flow:
        """The context in another epoch, from another PSN on."""
        self.first_psn = first_psn
        group = replace(flow.group, epoch=epoch, first_psn=first_psn)
        self.renew(group)
        return replace(flow, group=group)


class SlotsThatIdled(IdleTest):
    """Results are as of a new switch, whatever PSNs the slots were left with."""

    role: Role = ROOT

    def runTest(self) -> None:
        flow = self.begun(self.role)
        packets = min(self.window - 1, 15)
        self.rounds(flow, 1, packets)
        idles = (serial.HALF, serial.HALF + self.window + 1, (1 << 24) - self.window, (1 << 24) - 1, 1 << 24)
        for idle in (*idles, (1 << 24) + 1, (1 << 24) + self.window):
            last = self.first_psn
            flow = self.generation(flow, 2, serial.add(last, self.window))
            for count in range(LIVE):
                self.begin(flow, 0, psn=self.psn(count))
            flow = self.generation(flow, 1, serial.add(last, idle))
            self.begin(flow)
            self.rounds(flow, 1, packets)
        self.equal("losses", dict(self.losses()), {})


class SlotsTowardTheParentThatIdled(SlotsThatIdled):
    role = UP


class SlotsFromTheParentThatIdled(SlotsThatIdled):
    role = DOWN


class SlotsOfABroadcastThatIdled(SlotsThatIdled):
    role = BROADCAST_FROM_CHILD


class SlotsOfAReduceThatIdledOnceRound(SlotsThatIdled):
    """A Reduce to rank 0 has no contribution of rank 0: its slots are complete all the same, and one wrap later an
    AllReduce of the same PSNs starts them afresh, though rank 0 comes first."""

    def runTest(self) -> None:
        group = self.node(Pattern(Collective.ALLREDUCE), Pattern(Collective.REDUCE, toward=0), parent=False)
        self.serve(group)
        reduction, flow = flow_at(group, Collective.REDUCE), flow_at(group, Collective.ALLREDUCE)
        self.begin(reduction)
        self.rounds(reduction, 1, 3)
        first = self.first_psn
        flow = self.generation(flow, 2, serial.add(first, 2 * self.window))
        for count in range(LIVE):
            self.begin(flow, 0, psn=self.psn(count))
        flow = self.generation(flow, 1, first)
        self.begin(flow)
        for psn in (self.psn(1), self.psn(2), self.psn(3)):
            values = self.inputs(flow)
            self.push(flow, flow.sources, psn, values)
            result = self.result(psn, values)
            self.check(flow.group, to(flow.sources, ack_of(psn)), to(flow.outputs, result))


class SlotOfAnotherGeneration(SlotsThatIdled):
    """The same PSNs in another epoch: what one source left in a slot is not what the others' packets are added to."""

    def runTest(self) -> None:
        flow = self.begun(self.role)
        self.push(flow, flow.sources[:1], self.psn(1), self.inputs(flow))
        self.check(flow.group, to(flow.sources[:1], ack_of(self.psn(1))))
        flow, values = self.generation(flow, 2, self.first_psn), self.inputs(flow)
        self.begin(flow)
        for edge in reversed(flow.sources):
            self.push(flow, [edge], self.psn(1), values)
        result = self.result(self.psn(1), values)
        self.check(flow.group, to(flow.sources, ack_of(self.psn(1))), to(flow.outputs, result))


class PipeThatIdledOnceRound(IdleTest):
    """At the root AllReduces use one pipe, and Broadcasts the other one, whose slots have the right PSNs when a
    Broadcast comes one wrap later."""

    def once_round(self) -> tuple[Flow, int]:
        """The second Broadcast, announced, and its first output; not yet acknowledged. The first one has filled the
        slots."""
        first = self.first_psn
        group = self.node(Pattern(Collective.ALLREDUCE), Pattern(Collective.BROADCAST, toward=0), parent=False)
        self.serve(group)
        flow = flow_at(group, Collective.BROADCAST, down=True)
        self.begin(flow)
        self.rounds(flow, 1, self.packets)
        others = self.generation(flow_at(group, Collective.ALLREDUCE), 2, first)
        for number in range(LIVE):
            self.begin(others, 0, psn=self.psn(number))
        flow = self.generation(flow, 1, first)
        self.begin(flow, acked=False)
        return flow, flow.outputs[0]

    @property
    def packets(self) -> int:
        """Number of packets of data."""
        return min(self.window - 1, 15)


class NothingFromBeforeTheWrapIsSentAgain(PipeThatIdledOnceRound):
    """Only what has gone out now may be sent again, or acknowledged."""

    def runTest(self) -> None:
        flow, edge = self.once_round()
        self.tick(flow.group, edge, edge)
        announcement = control_of(self.psn(0), self.immediate(flow, 1 << 12))
        self.check(flow.group, {}, {edge: [again(announcement)]})
        answer = self.acknowledgement(flow.group, edge, self.psn(1), Ack().syndrome)
        self.refused(flow.group, edge, answer, "TrackSent.never_sent")
        self.rounds(flow, 1, self.packets)


class NothingFromBeforeTheWrapFillsAGap(PipeThatIdledOnceRound):
    """What comes late has not gone out yet, though something newer has."""

    reliability = (Reliability.SR, Reliability.SACK)

    def runTest(self) -> None:
        flow, edge = self.once_round()
        (source,), (late, newer) = flow.sources, (self.psn(1), self.psn(2))
        selective = self.spec.loss_recovery is Reliability.SACK
        values = self.inputs(flow)
        self.push(flow, [source], newer, values)
        told = selective_of(late, 1) if selective else nak_of(late)
        self.check(flow.group, {source: [told]}, to(flow.outputs, self.result(newer, values)))
        syndrome = Nak(NakCode.SELECTIVE) if selective else Nak()
        self.answer(flow.group, edge, late, syndrome.syndrome, msn=1)
        self.expect_nothing()
        self.push(flow, [source], late, values)
        self.check(flow.group, {source: [ack_of(newer)]}, to(flow.outputs, self.result(late, values)))
        self.answer(flow.group, edge, late, syndrome.syndrome, msn=1)
        self.check(flow.group, {}, {edge: [again(self.result(late, values))]})


class GapsStayWhereTheyAre(PipeThatIdledOnceRound):
    """When more goes out behind what has not, it is still the same packet that has not gone out."""

    reliability = (Reliability.SR, Reliability.SACK)

    def runTest(self) -> None:
        flow, edge = self.once_round()
        (source,), late = flow.sources, self.psn(1)
        selective = self.spec.loss_recovery is Reliability.SACK
        values = self.inputs(flow)
        for offset in (2, 3, 4):
            self.push(flow, [source], self.psn(offset), values)
        told = selective_of(late, 1) if selective else nak_of(late)
        results = [self.result(self.psn(offset), values) for offset in (2, 3, 4)]
        self.check(flow.group, {source: [told, *[ack_of(self.psn(0))] * 2]}, to(flow.outputs, *results))
        syndrome = Nak(NakCode.SELECTIVE) if selective else Nak()
        self.answer(flow.group, edge, late, syndrome.syndrome, msn=1)
        self.expect_nothing()
        self.answer(flow.group, edge, self.psn(2), syndrome.syndrome, msn=1)
        self.check(flow.group, {}, {edge: [again(results[0])]})
