"""Groups of programs in which a group runs one pattern, which its table entries say.

An entry stands for an edge, a kind of packet and, for control messages, what may be announced. Everything that no entry
names is refused, and changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from inc import allreduce, reduce_to
from mode_ii import StaticTest

from p4gen.groups.group import GroupContext
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.opcodes import Ack, Nak
from p4gen.vocabulary.message import MAX_PACKETS, MESSAGE, Collective

UNSERVED = "ClassifyTraffic.no_flow"
MOST_EDGE_ID = 0xFFFF


class Static(StaticTest):
    """A node of one pattern."""

    def refuse_announcement(self, group: GroupContext, rank: int, value: int) -> None:
        """The control message is refused."""
        packet = self.announcement(group, rank, self.random_psn(), value)
        self.refused(group, rank, packet, UNSERVED)


class WhatAStarAnnounces(Static):
    """AllReduce and Barrier of any number of packets, and nothing else: no root, collective, op or dtype of others."""

    def runTest(self) -> None:
        group = self.node_of(2, allreduce())
        psn = self.random_psn()
        for collective in (Collective.ALLREDUCE, Collective.BARRIER):
            for packets in (0, 1, 1 << 18, MAX_PACKETS):
                announced = self.call(collective, packets)
                self.announce(group, range(2), psn, announced)
                self.expect_announced(group, (psn, announced))
                psn = serial.add(psn, 1)
        call = self.call(packets=3).encode()
        served = {Collective.ALLREDUCE.code, Collective.BARRIER.code}
        others = [MESSAGE.replaced(call, collective=code) for code in range(8) if code not in served]
        others += [MESSAGE.replaced(call, root=root) for root in (1, 2, 16)]
        numbers = MESSAGE.unpack(call)["numbers"]
        others += [MESSAGE.replaced(call, numbers=numbers ^ 1 << bit) for bit in range(5)]
        for value in others:
            self.refuse_announcement(group, 1, value)
        self.complete(group, psn)


class WhatANodeOfAReduceAnnounces(Static):
    """Its Reduce with its root, from the senders: not another root's, no AllReduce, and nothing from the root."""

    def runTest(self) -> None:
        pattern = reduce_to(5, toward=1)
        group = self.node_of(3, pattern)
        psn, call = self.random_psn(), self.call(pattern, 2)
        self.announce(group, [0], psn, call)
        self.expect_nothing()
        for rank, value in (
            (2, MESSAGE.replaced(call.encode(), root=4)),
            (2, MESSAGE.replaced(call.encode(), root=0)),
            (2, self.call(packets=2).encode()),
            (2, self.call(Collective.BARRIER, 0).encode()),
            (1, call.encode()),
        ):
            packet = self.announcement(group, rank, psn, value)
            self.refused(group, rank, packet, UNSERVED)
        self.announce(group, [2], psn, call)
        self.expect_announced(group, (psn, call), at=[1])


class WhatComesFromTheParent(Static):
    """Results and announcements of the parent go to all children, and take no slot; it answers nothing."""

    def runTest(self) -> None:
        group = self.node_of(3, allreduce(2))
        state, psn = self.state(), self.random_psn()
        (values,) = self.random_values(1)
        self.contribute(group, [2], psn, [values] * 3)
        self.expect_at(group, [0, 1], [(psn, values)])
        call = self.call(packets=1)
        self.announce(group, [2], psn, call)
        self.expect_announced(group, (psn, call), at=[0, 1])
        self.refuse_announcement(group, 2, self.call(reduce_to(1, 1), 1).encode())
        for syndrome in (Ack().syndrome, Nak().syndrome):
            self.refused(group, 2, self.acknowledgement(group, 2, psn, syndrome), UNSERVED)
        self.equal("registers", self.state(), state)


class GroupsOfDifferentPatterns(Static):
    """An AllReduce and a Reduce beside each other, under the same PSNs: each edge's entries are its own."""

    def unfit(self) -> str | None:
        return None if self.spec.groups > 1 else "the program serves one group"

    def runTest(self) -> None:
        star = self.make_group(3, context=0)
        node = self.make_group(3, context=1, patterns=[reduce_to(0, toward=0)])
        self.serve(star, node)
        psn, values = self.random_psn(), self.random_values(3)
        for rank in range(3):
            self.contribute(star, [rank], psn, values)
            if rank:
                self.contribute(node, [rank], psn, values)
        of_star, of_node = self.received_by(star, node)
        self.check_results(star, of_star, [(psn, self.reduced(values))])
        self.check_results(node, of_node, [(psn, self.reduced(values[1:]))], ranks=[0])
        self.refuse_announcement(star, 1, self.call(reduce_to(0, 0), 1).encode())
        self.refuse_announcement(node, 1, self.call(packets=1).encode())


class GroupThatChangesItsPattern(Static):
    """A group is set up again with another pattern: what it announced before is refused from then on."""

    def runTest(self) -> None:
        group = self.node_of(3, allreduce())
        psn = self.random_psn()
        self.complete(group, psn)
        entries = [entry for entry in self.control.entries("flows") if entry.match]
        self.control.delete(*entries)
        again = replace(group, patterns=(reduce_to(1, toward=1),), epoch=2)
        self.refuse_announcement(group, 0, self.call(packets=1).encode())
        self.control.reset()
        self.serve(again)
        values = self.random_values(3)
        self.contribute(again, [0, 2], psn, values)
        self.expect_at(again, [1], [(psn, self.reduced([values[0], values[2]]))])
        self.refuse_announcement(again, 0, self.call(packets=1).encode())


class GroupThatIsTakenDown(Static):
    """Without entries of ``flows`` nothing of a group is served, and its slots stay as they are."""

    def runTest(self) -> None:
        group = self.node_of(3, allreduce())
        psn, values = self.random_psn(), self.random_values(3)
        self.contribute(group, [0], psn, values)
        self.expect_nothing()
        entries = [entry for entry in self.control.entries("flows") if entry.match]
        self.control.delete(*entries)
        for packet in (
            self.contribution(group, 1, psn, values[1]),
            self.acknowledgement(group, 1, psn),
            self.notification(group, 1),
            self.announcement(group, 1, psn, self.call(packets=1)),
        ):
            self.refused(group, 1, packet, UNSERVED)
        self.control.insert(*entries)
        self.contribute(group, [1, 2], psn, values)
        self.expect_results(group, [(psn, self.reduced(values))])


class AnswersTakeNoSlot(Static):
    """ACKs, NAKs and notifications under the PSN of a round in progress leave it alone."""

    def runTest(self) -> None:
        group = self.node_of(3, allreduce())
        psn, values = self.random_psn(), self.random_values(3)
        self.contribute(group, [0, 1], psn, values)
        self.expect_nothing()
        state = self.state()
        for rank in range(3):
            for packet in (self.acknowledgement(group, rank, psn), self.notification(group, rank)):
                self.send_from(group, rank, packet)
                self.equal("packets received", [len(p) for p in self.received(group).of_rank], [
                    int(other == rank) for other in range(3)
                ])  # fmt: skip
        self.equal("registers", self.state(), state)
        self.contribute(group, [2], psn, values)
        self.expect_results(group, [(psn, self.reduced(values))])


class EdgesOfAnyNumber(Static):
    """What ingress tells egress carries the whole number of an edge: 16 bits of it."""

    def runTest(self) -> None:
        group = self.make_group(4)
        numbers = [1, 0x100, 0x8001, MOST_EDGE_ID]
        edges = (replace(edge, edge_id=number) for edge, number in zip(group.edges, numbers, strict=True))
        group = replace(group, edges=tuple(edges))
        self.serve(group)
        psn, values = self.random_psn(), self.random_values(4)
        self.contribute(group, range(4), psn, values)
        self.expect_results(group, [(psn, self.reduced(values))])
        for rank in range(4):
            self.send_from(group, rank, self.acknowledgement(group, rank, psn))
            self.expect_answers(group, [rank], (psn, Ack().syndrome))
            self.contribute(group, [rank], psn, values)
            self.expect_at(group, [rank], [(psn, self.reduced(values))])


class SlotsOfGroupsAreApart(Static):
    """Each group's first and last slots: as many groups as the program serves, all slots of each at a time."""

    def runTest(self) -> None:
        groups = [self.make_group(2, context=context) for context in range(self.spec.groups)]
        self.serve(*groups)
        slots = self.spec.slots_per_group
        numbers = [serial.add(-slots, offset) for offset in {0, 1, slots // 2, slots - 2, slots - 1}]
        rounds = [[self.random_values(2) for _ in numbers] for _ in groups]
        for rank in (0, 1):
            for group, values in zip(groups, rounds, strict=True):
                for psn, some in zip(numbers, values, strict=True):
                    self.contribute(group, [rank], psn, some)
        for group, results, values in zip(groups, self.received_by(*groups), rounds, strict=True):
            expected = [(psn, self.reduced(some)) for psn, some in zip(numbers, values, strict=True)]
            self.check_results(group, results, expected)
