"""Nodes with as many edges as the program has room for."""

from __future__ import annotations

from mode_iii import DOWN, ROOT, ModeIIITest, Role

from p4gen.spec import Reliability


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
