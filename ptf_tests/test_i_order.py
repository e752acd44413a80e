"""Mode I ends each connection: PSNs of edges and directions are unrelated.

Every group of this suite has random first PSNs, different for each edge and direction; scenarios speak of packets by
their numbers on their way, and ``inc`` turns them into PSNs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from inc import reduce_to
from mode_iii import (
    DOWN,
    ROOT,
    UP,
    ModeIIITest,
    Role,
    ack_of,
    again,
    flow_at,
    invalid_of,
    nak_of,
    to,
)

from p4gen.groups.group import GroupContext
from p4gen.papers.epic.spec import Mode
from p4gen.rocev2 import psn as serial
from p4gen.vocabulary.message import Collective


class FirstPsnsDiffer(ModeIIITest):
    """Each edge begins with a PSN of its own, both ways, and wraps when it does: the last ones before the wrap, 0, and
    any others, all in one group."""

    modes = (Mode.I,)
    role: Role = ROOT

    def runTest(self) -> None:
        flow = self.make_flow(self.role)
        firsts = [0xFFFFFE, 0, 0xFFFFFF, 0x800000, 1, 0x7FFFFF, self.random.randrange(1 << 24)]
        edges = tuple(
            replace(edge, first_received=firsts[at % 7], first_sent=firsts[(at + 3) % 7])
            for at, edge in enumerate(flow.group.edges)
        )
        flow = replace(flow, group=replace(flow.group, edges=edges))
        self.serve(flow.group)
        self.begin(flow)
        self.rounds(flow, 1, self.window + 2)
        # A gap is reported with the PSN of the edge's own connection, and so is a NAK understood.
        missing, after = self.psn(3 + self.window), self.psn(4 + self.window)
        for edge in flow.sources:
            self.push(flow, [edge], after, self.inputs(flow))
            self.check(flow.group, to([edge], nak_of(missing)))
        result = self.round(flow, missing, acked=False)
        for edge in flow.outputs:
            self.nak(flow.group, edge, missing)
            self.check(flow.group, {}, to([edge], again(result)))
        self.equal(
            "PSNs differ", len({self.wire(flow.group, edge, missing) for edge in flow.sources}) > 1, self.several
        )

    @property
    def several(self) -> bool:
        """Whether the flow has several sources."""
        return self.role is not DOWN

    def wire(self, group: GroupContext, edge: int, number: int) -> int:
        """The PSN of a contribution."""
        return self.on_the_wire(group, edge, number, sent=False)


class FirstPsnsDifferBelowAParent(FirstPsnsDiffer):
    role = UP


class FirstPsnsDifferFromTheParent(FirstPsnsDiffer):
    role = DOWN


class OneConnectionAlone(ModeIIITest):
    """The PSN of one edge means nothing to another: a packet with the neighbour's next PSN is out of order, or old."""

    modes = (Mode.I,)

    def runTest(self) -> None:
        flow = self.make_flow(ROOT, edges=2)
        one, other = flow.group.edges
        edges = (replace(one, first_received=1000), replace(other, first_received=2000))
        flow = replace(flow, group=replace(flow.group, edges=edges))
        self.serve(flow.group)
        self.begin(flow)
        values, psn = self.inputs(flow), self.psn(1)
        # Where the other edge's packet of this number stands among the packets of this one.
        self.push(flow, [0], serial.add(psn, 1000), values)
        self.check(flow.group, to([0], nak_of(psn)))
        self.push(flow, [1], serial.add(psn, -1000), values)
        self.check(flow.group, to([1], ack_of(self.psn(0))))
        self.round(flow, psn)


class AnyRankMayBeTheRoot(ModeIIITest):
    """A Reduce to another rank than 0: what is announced names it."""

    modes = (Mode.I,)

    def runTest(self) -> None:
        group = self.node(reduce_to(5, 1), parent=False)
        self.serve(group)
        flow = flow_at(group, Collective.REDUCE, 5)
        self.begin(flow)
        self.rounds(flow, 1, self.window)


class AnnouncementInPlaceOfData(ModeIIITest):
    """A source that announces something where its announcement promises data is told: invalid request."""

    modes = (Mode.I,)

    def runTest(self) -> None:
        flow = self.served(ROOT)
        self.begin(flow, 4)
        self.round(flow, self.psn(1))
        (edge, *_), psn = flow.sources, self.psn(2)
        self.announce(flow.group, [edge], psn, self.immediate(flow, 1))
        self.check(flow.group, to([edge], invalid_of(psn)))


class ParentAnnouncesSomethingElse(ModeIIITest):
    """What came up and what comes down have slots of their own, so only the announcements show that they disagree."""

    modes = (Mode.I,)

    def runTest(self) -> None:
        flow = self.served(UP)
        psn, value = self.psn(0), self.immediate(flow, 4)
        self.begin(flow, 4)
        (parent,) = flow.outputs
        self.announce(flow.group, [parent], psn, value ^ 1)
        self.check(flow.group, {parent: [invalid_of(psn)]})
        self.equal("losses", self.losses(), Counter({"TrackInvocation.mixed_control": 1}))
