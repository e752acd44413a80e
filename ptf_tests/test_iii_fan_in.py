"""Nodes with as many edges as the program has room for."""

from __future__ import annotations

from inc import reduce_to
from mode_iii import BROADCAST_FROM_CHILD, DOWN, ROOT, ModeIIITest, Role, flow_at
from test_iii_range import RangeTest

from p4gen.vocabulary import Reliability
from p4gen.vocabulary.message import Collective

MOST_EDGES = 8


class EveryEdgeAcknowledges(ModeIIITest):
    """The range moves on as all edges acknowledge, from the first to the last that a context can have."""

    reliability = tuple(Reliability)
    role: Role = ROOT
    edges = 1

    def runTest(self) -> None:
        flow = self.begun(self.role, edges=self.spec.fan_in)
        self.rounds(flow, 1, min(self.window, 16) + 2)
        self.equal("losses", dict(self.losses()), {})


class EveryChildAcknowledges(EveryEdgeAcknowledges):
    role = DOWN


class EveryEdgeIsWaitedFor(RangeTest):
    """Whichever output is the slowest, the range waits for its ACK, and for no other's."""

    role: Role = ROOT

    def runTest(self) -> None:
        flow = self.begun(self.role, edges=min(self.spec.fan_in, MOST_EDGES))
        done = 0
        for slowest in flow.outputs:
            self.rounds(flow, done + 1, self.window, acked=False)
            done += self.window
            others = [edge for edge in flow.outputs if edge != slowest]
            self.ack(flow.group, others, self.psn(done))
            self.expect_nothing()
            self.refuse(flow, self.psn(done + 1))
            self.ack(flow.group, [slowest], self.psn(done))
            self.expect_nothing()


class EveryChildIsWaitedFor(EveryEdgeIsWaitedFor):
    role = DOWN


class EveryReceiverIsWaitedFor(EveryEdgeIsWaitedFor):
    role = BROADCAST_FROM_CHILD


class EveryEdgeMayGetAReduce(RangeTest):
    """A Reduce to each edge in turn: the range waits for the edge that it goes to."""

    def runTest(self) -> None:
        edges = min(self.spec.fan_in, MOST_EDGES)
        group = self.node(*[reduce_to(edge, edge) for edge in range(edges)], edges=edges, parent=False)
        self.serve(group)
        announced = 0
        for edge in range(edges):
            flow = flow_at(group, Collective.REDUCE, edge)
            self.begin(flow, self.window + 1, psn=self.psn(announced))
            self.rounds(flow, announced + 1, self.window, acked=False)
            last = announced + self.window
            self.refuse(flow, self.psn(last + 1))
            self.ack(group, [edge], self.psn(last))
            self.round(flow, self.psn(last + 1))
            announced = last + 2
