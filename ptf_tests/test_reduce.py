"""Reduce: all but the root's edge contribute, the result goes toward the root alone; its answers go to all senders."""

from __future__ import annotations

from collections.abc import Sequence

from inc import psns, reduce_to
from mode_ii import ModeIITest

from p4gen.groups.group import GroupContext
from p4gen.rocev2.opcodes import Ack, Nak, Opcode, RnrNak


class ReduceTest(ModeIITest):
    """A node of which a Reduce is announced; rank r is at edge r."""

    edges = 4

    def node_toward(self, toward: int, *, root: int | None = None) -> GroupContext:
        """A node that is ready for a Reduce to ``root`` (by default as the edge is numbered)."""
        group = self.node_of(self.edges, reduce_to(toward if root is None else root, toward))
        self.open(group)
        return group

    def senders(self, toward: int) -> list[int]:
        return [edge for edge in range(self.edges) if edge != toward]

    def fresh(self) -> None:
        """A switch without groups."""
        self.control.reset()


class ReduceGoesTowardItsRoot(ReduceTest):
    """The root may be at any edge: a rank's own, a child switch's or the parent's. It need not contribute."""

    def runTest(self) -> None:
        for toward in range(self.edges):
            self.fresh()
            group, senders = self.node_toward(toward, root=toward + 7), self.senders(toward)
            for psn in psns(self.random_psn(), 3):
                values = self.random_values(self.edges)
                self.contribute(group, self.random.sample(senders, len(senders)), psn, values)
                self.expect_at(group, [toward], [(psn, self.reduced([values[edge] for edge in senders]))])
            self.equal("drops that lose something", self.losses(), {})


class ReduceWaitsForEverySender(ReduceTest):
    def runTest(self) -> None:
        group, senders = self.node_toward(2), self.senders(2)
        for psn, last in zip(psns(self.random_psn(), len(senders)), senders, strict=True):
            values = self.random_values(self.edges)
            self.contribute(group, [edge for edge in senders if edge != last] * 2, psn, values)
            self.expect_nothing()
            self.contribute(group, [last], psn, values)
            self.expect_at(group, [2], [(psn, self.reduced([values[edge] for edge in senders]))])


class ReduceOfOneSender(ReduceTest):
    """Two ranks: the contribution of one is the other's result."""

    edges = 2

    def runTest(self) -> None:
        group = self.node_toward(0)
        psn, values = self.random_psn(), self.random_values(2)
        self.contribute(group, [1], psn, values)
        self.expect_at(group, [0], [(psn, values[1])])
        self.send_from(group, 0, self.acknowledgement(group, 0, psn))
        self.expect_answers(group, [1], (psn, Ack().syndrome))


class RepetitionGoesToTheRootAgain(ReduceTest):
    """The sender gets no result back; it waits for the root's ACK."""

    def runTest(self) -> None:
        group, senders = self.node_toward(0), self.senders(0)
        psn, values = self.random_psn(), self.random_values(self.edges)
        self.contribute(group, senders, psn, values)
        result = (psn, self.reduced([values[edge] for edge in senders]))
        self.expect_at(group, [0], [result])
        for edge in senders:
            self.contribute(group, [edge], psn, values)
            self.expect_at(group, [0], [result])


class Answers(ReduceTest):
    """Answers of the root to a Reduce."""

    def run_answers(self, syndromes: Sequence[int]) -> None:
        group, senders = self.node_toward(1), self.senders(1)
        state = self.state()
        for syndrome in syndromes:
            psn = self.random_psn()
            self.send_from(group, 1, self.acknowledgement(group, 1, psn, syndrome))
            self.expect_answers(group, senders, (psn, syndrome))
        self.equal("registers", self.state(), state)
        self.equal("drops", self.drops(), {})


class AcksOfTheRootReachAllSenders(Answers):
    def runTest(self) -> None:
        self.run_answers([Ack().syndrome, Ack(0).syndrome, Ack(17).syndrome])


class NaksOfTheRootReachAllSenders(Answers):
    def runTest(self) -> None:
        self.run_answers([Nak().syndrome, RnrNak(0).syndrome, RnrNak(31).syndrome])


class SendersDoNotAnswer(ReduceTest):
    """Nothing goes down in a Reduce, so there is nothing that a sender could acknowledge."""

    def runTest(self) -> None:
        group = self.node_toward(3)
        for edge in self.senders(3):
            for syndrome in (Ack().syndrome, Nak().syndrome):
                answer = self.acknowledgement(group, edge, self.random_psn(), syndrome)
                self.refused(group, edge, answer, "ClassifyTraffic.no_flow")
            self.refused(group, edge, self.notification(group, edge), "ClassifyTraffic.no_flow")


class RootMustNotContribute(ReduceTest):
    """Neither data nor a control message: the root of a Reduce only receives."""

    def runTest(self) -> None:
        group = self.node_toward(3)
        psn, values = self.random_psn(), self.random_values(self.edges)
        self.contribute(group, [0, 1], psn, values)
        self.refused(group, 3, self.contribution(group, 3, psn, values[3]), "ClassifyTraffic.no_flow")
        announcement = self.announcement(group, 3, self.first_psn, self.call(group.patterns[0]))
        self.refused(group, 3, announcement, "ClassifyTraffic.no_flow")
        self.contribute(group, [2], psn, values)
        self.expect_at(group, [3], [(psn, self.reduced(values[:3]))])


class ReduceIsAnnouncedToItsRoot(ReduceTest):
    """The root receives the control message, too, once all senders have sent it."""

    def runTest(self) -> None:
        group = self.node_of(self.edges, reduce_to(0, 0))
        psn, call = self.random_psn(), self.call(group.patterns[0], 3)
        self.announce(group, [1, 2], psn, call)
        self.expect_nothing()
        self.announce(group, [3], psn, call)
        self.expect_announced(group, (psn, call), at=[0])
        self.announce(group, [2], psn, call)
        self.expect_announced(group, (psn, call), at=[0])


class CongestionAtTheRootReachesAllSenders(ReduceTest):
    """All senders contribute to congestion on the path to the root, so all get the CNP."""

    def runTest(self) -> None:
        group = self.node_toward(0)
        self.send_from(group, 0, self.notification(group, 0))
        for edge, packets in enumerate(self.received(group).of_rank):
            got = [(p.bth.opcode, p.bth.becn) for p in packets]
            self.equal(f"edge {edge}", got, [] if edge == 0 else [(int(Opcode.CNP), True)])


class GoBackNOfAReduce(ReduceTest):
    """A result is lost on its way to the root: its NAK reaches all senders, and one of them repeats."""

    def runTest(self) -> None:
        group, senders = self.node_toward(1), self.senders(1)
        numbers = psns(self.random_psn(), 4)
        rounds = [self.random_values(self.edges) for _ in numbers]
        results = [
            (psn, self.reduced([values[edge] for edge in senders])) for psn, values in zip(numbers, rounds, strict=True)
        ]
        for psn, values in zip(numbers, rounds, strict=True):
            self.contribute(group, senders, psn, values)
        self.expect_at(group, [1], results)
        self.send_from(group, 1, self.acknowledgement(group, 1, numbers[2], Nak().syndrome))
        self.expect_answers(group, senders, (numbers[2], Nak().syndrome))
        for psn, values in zip(numbers[2:], rounds[2:], strict=True):
            self.contribute(group, [3], psn, values)
        self.expect_at(group, [1], results[2:])
