"""EPIC's groups and Themis's connections at one switch: EPIC's classes make the groups, Themis's the connections.

Groups are in context 2: their addresses (10.2.0.0/16) are neither those of the leaf's hosts (10.0.0.0/24) nor of other
racks (10.1.0.0/16).
"""

from __future__ import annotations

from base import P4genTest
from leaf import FIRST_SPINE, SPINES, DestinationTest, Flow, lacking

from p4gen.groups.group import GroupContext
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.themis.control import Connection, Peer, filter_entries, spray_entry
from p4gen.papers.themis.spec import ThemisSpec
from p4gen.vocabulary.program import part_of

CONTEXT = 2


class BothTest(DestinationTest, P4genTest):
    """A leaf switch with both. Scenarios derive from a class of EPIC's mode, too; ``spec`` is EPIC's."""

    kind = EpicSpec  # type: ignore[assignment]
    spec: EpicSpec  # type: ignore[assignment]
    n = SPINES

    def misfit(self, spec: EpicSpec) -> str | None:  # type: ignore[override]
        """Needs both halves of Themis beside EPIC."""
        themis = part_of(self.program, ThemisSpec)
        if themis is None:
            return "the program is EPIC's alone"
        if not themis.sprays or not themis.filters:
            return "the program has one half of Themis"
        if spec.groups <= CONTEXT:
            return f"the program has fewer than {CONTEXT + 1} groups"
        if themis.tiers > 2:
            return "other switches choose the paths"
        return lacking(themis) or P4genTest.misfit(self, spec)

    def sprayed(self, number: int = 0) -> Flow:
        """A registered connection that one of the leaf's hosts begins."""
        flow = self.outgoing(number)
        self.control.insert(spray_entry(self.themis, flow.connection, 1))
        return flow

    def claim(self, group: GroupContext) -> None:
        """Entries of Themis's for the ends of all edges, as if they were those of connections."""
        for index, edge in enumerate(group.edges):
            here, there = Peer(edge.local.ip, edge.local.qp), Peer(edge.remote.ip, edge.remote.qp)
            self.control.insert(spray_entry(self.themis, Connection(there, here), 1))
            if 1 + index < self.themis.connections:
                connection = Connection(here, there)
                answers, _ = filter_entries(self.themis, connection, 1, index=1 + index, epoch=1, port=edge.port)
                self.control.insert(answers)

    def paths_of(self, flow: Flow, psns: range) -> list[int]:
        """The spines, from 0, that requests take."""
        return [port - FIRST_SPINE for port in self.ports_taken(flow.request(psn) for psn in psns)]
