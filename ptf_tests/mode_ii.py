"""Groups of EPIC Mode II (section 4.3), their announcements, and their results.

In this mode answers come from the other ranks: the switch keeps partial results and originates no answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from elements import Values
from inc import IncTest, Results, allreduce

from p4gen.groups.group import GroupContext, Pattern
from p4gen.host.collectives.control import Control
from p4gen.papers.epic.conformance.needs import lacks, missing, reason
from p4gen.papers.epic.control import FACET
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.papers.epic.tofino import static
from p4gen.rocev2.opcodes import Opcode, ends_message
from p4gen.rocev2.packet import RocePacket
from p4gen.vocabulary.message import Collective


class ModeIITest(IncTest):
    """A test with groups whose PSNs are kept end to end."""

    modes: ClassVar[tuple[Mode, ...]] = (Mode.II,)

    def filters(self) -> str | None:
        """Why the program does not take packets in any order; None when it does."""
        gbn = self.spec.loss_recovery.in_order
        return "the program takes an edge's packets in order only" if gbn else None

    def misfit(self, spec: EpicSpec) -> str | None:
        """Includes what programs of static groups lack, which says more than how this program is set."""
        lacked = missing(spec, f"{type(self).__module__}.{type(self).__name__}") if self.is_about(spec.mode) else None
        return lacked or super().misfit(spec)

    @property
    def announces(self) -> bool:
        """Whether the program remembers what was announced, and takes data nowhere else."""
        return not lacks(self.spec, "announcements")

    def reason(self, other: str) -> str:
        """The program's own reason to drop what programs that remember announcements drop for ``other``."""
        return reason(self.spec, other)

    def refused_at(self, port: int, frame: RocePacket | bytes, reason: str) -> None:
        """``reason`` is that of a program that remembers announcements."""
        super().refused_at(port, frame, self.reason(reason))

    def serve(self, *groups: GroupContext) -> None:
        """Configure the switch for groups. Skips the test when a program of static groups cannot serve them."""
        if static(self.spec):
            for problem in (problem for group in groups for problem in FACET.problems(self.spec, group)):
                self.skipTest(problem)
        super().serve(*groups)

    # --- groups ---

    def group_of(self, ranks: int, *, context: int = 0, first_port: int = 0, psn: int | None = None) -> GroupContext:
        """A star's root, configured, with a large AllReduce announced (see ``ready``)."""
        group = self.make_group(ranks, context=context, first_port=first_port)
        self.ready(group, psn=psn)
        return group

    def node_of(self, edges: int, *patterns: Pattern, context: int = 0, first_port: int = 0) -> GroupContext:
        """A configured node with these patterns, without announcements."""
        group = self.make_group(edges, context=context, first_port=first_port, patterns=patterns)
        self.serve(group)
        return group

    def ready(self, *groups: GroupContext, psn: int | None = None) -> None:
        """Configure the switch for groups, and ``open`` the first pattern of each."""
        self.serve(*groups)
        self.open(*groups, psn=psn)

    def open(self, *groups: GroupContext, psn: int | None = None, pattern: Pattern | None = None) -> None:
        """All sources announce the most packets possible, from the PSN after ``psn`` (by default ``first_psn``) on.

        Output and drops that this causes are ignored.
        """
        before = self.first_psn if psn is None else psn
        for group in groups:
            chosen = pattern or group.patterns[0]
            self.announce(group, sources(group, chosen), before, self.call(chosen, self.most_packets))
        self.equal("an announcement gets through", bool(self.outputs()), True)
        self.discount()

    # --- what ranks receive ---

    def expect_results(
        self, group: GroupContext, expected: Sequence[tuple[int, Values]], opcodes: Sequence[int] | None = None
    ) -> None:
        """Check that every rank has received exactly these results, as (PSN, elements), in this order, and nothing else
        was sent."""
        self.check_results(group, self.received(group), expected, opcodes)

    def expect_at(
        self,
        group: GroupContext,
        ranks: Sequence[int],
        expected: Sequence[tuple[int, Values]],
        opcodes: Sequence[int] | None = None,
    ) -> None:
        """Check that ``ranks`` have received exactly these results, and nothing else was sent."""
        self.check_results(group, self.received(group), expected, opcodes, ranks)

    def check_results(
        self,
        group: GroupContext,
        results: Results,
        expected: Sequence[tuple[int, Values]],
        opcodes: Sequence[int] | None = None,
        ranks: Sequence[int] | None = None,
    ) -> None:
        """``expect_at`` (all ranks by default) on what has been received already."""
        for rank, packets in enumerate(results.of_rank):
            at = f"group {group.context}, rank {rank}"
            due = expected if ranks is None or rank in ranks else []
            self.equal(f"{at}: PSNs of results", [p.bth.psn for p in packets], [psn for psn, _ in due])
            wanted = opcodes if opcodes and due else [Opcode.SEND_ONLY] * len(due)
            self.equal(f"{at}: opcodes of results", [p.bth.opcode for p in packets], [int(o) for o in wanted])
            for packet, (psn, values) in zip(packets, due, strict=True):
                # Ranks ask for an ACK at the end of a message, and wait for it.
                asked = ends_message(packet.bth.opcode)
                self.equal(f"{at}, PSN {psn}: ACK requested", packet.bth.ack_request, asked)
                self.check_payload(f"{at}, PSN {psn}", packet, values)

    def expect_announced(
        self, group: GroupContext, *expected: tuple[int, int | Control], at: Sequence[int] = ()
    ) -> None:
        """Check that the ranks ``at`` (all by default) have received exactly these announcements, as (PSN,
        immediate)."""
        wanted = [(psn, value if isinstance(value, int) else value.encode()) for psn, value in expected]
        for rank, packets in enumerate(self.received(group).of_rank):
            due = wanted if not at or rank in at else []
            got = [announced(packet) for packet in packets]
            self.equal(f"rank {rank}: announcements", got, due)

    def expect_answers(self, group: GroupContext, at: Sequence[int], *expected: tuple[int, int]) -> None:
        """Check that the ranks ``at`` have received exactly these answers, as (PSN, AETH syndrome), and the others
        nothing."""
        for rank, packets in enumerate(self.received(group).of_rank):
            got = [(p.bth.psn, p.aeth.syndrome) for p in packets if p.aeth is not None]
            self.equal(f"rank {rank}: answers", got, list(expected) if rank in at else [])
            self.equal(f"rank {rank}: opcodes", {p.bth.opcode for p in packets} - {int(Opcode.ACKNOWLEDGE)}, set())

    def complete(self, group: GroupContext, psn: int) -> None:
        """Check that a round of AllReduce without faults under ``psn`` works."""
        values = self.random_values(len(group.edges))
        self.contribute(group, range(len(group.edges)), psn, values)
        self.expect_results(group, [(psn, self.reduced(values))])


class StaticTest(ModeIITest):
    """A test of what only programs of static groups have."""

    def misfit(self, spec: EpicSpec) -> str | None:
        """Includes programs of other groups."""
        return super().misfit(spec) or (None if static(spec) else "the program remembers announcements")


def sources(group: GroupContext, pattern: Pattern) -> list[int]:
    """The edges over which a node receives a pattern's data from its sources."""
    if pattern.collective is Collective.BROADCAST:
        assert pattern.toward is not None
        return [pattern.toward]
    return [rank for rank in range(len(group.edges)) if rank != pattern.toward]


def announced(packet: RocePacket) -> tuple[int, int] | None:
    """PSN and immediate of a control message; None for anything else."""
    if packet.immdt is None or packet.payload or packet.bth.opcode != Opcode.SEND_ONLY_IMM:
        return None
    return packet.bth.psn, packet.immdt.value


__all__ = ["ModeIITest", "StaticTest", "allreduce", "announced", "sources"]
