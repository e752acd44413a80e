"""Words that are not used while PSNs advance by half of the number space and more, or by all of it: slots, and ePSNs of
edges.

PSNs are advanced by announcements of the largest size: data in between makes no difference to what is tested, except
where it is sent.
"""

from __future__ import annotations

from collections import Counter

from inc import allreduce, broadcast_from
from mode_ii import ModeIITest

from p4gen.groups.group import GroupContext
from p4gen.rocev2 import psn as serial
from p4gen.vocabulary.message import Collective

ROUND = 1 << 24


class Idle(ModeIITest):
    """A node with Broadcasts between its AllReduces."""

    ranks = 3

    def setUp(self) -> None:
        super().setUp()
        self.group: GroupContext = self.node_of(self.ranks, allreduce(), broadcast_from(1, 1))
        self.at = self.first_psn

    def all_reduce(self, packets: int) -> None:
        """Run an AllReduce from the next PSN on: every rank receives every result."""
        call = self.call(packets=packets)
        self.announce(self.group, range(self.ranks), self.at, call)
        self.expect_announced(self.group, (self.at, call))
        for offset in range(1, 1 + packets):
            self.complete(self.group, serial.add(self.at, offset))
        self.at = serial.add(self.at, 1 + packets)

    def broadcast(self, packets: int) -> int:
        """Announce a Broadcast. Returns the PSN of the control message."""
        call = self.call(broadcast_from(1, 1), packets)
        self.announce(self.group, [1], self.at, call)
        self.expect_announced(self.group, (self.at, call), at=[0, 2])
        self.at = serial.add(self.at, 1 + packets)
        return serial.add(self.at, -1 - packets)

    def go_on(self, distance: int) -> None:
        """Advance by ``distance`` PSNs with Broadcasts."""
        while distance:
            packets = min(distance, 1 + self.most_packets) - 1
            self.broadcast(packets)
            distance -= 1 + packets


class SlotsThatIdled(Idle):
    """After Broadcasts of half the number space or more, slots are as good as new."""

    wraps = False

    def setUp(self) -> None:
        super().setUp()
        if self.wraps:
            self.at = ROUND - 2

    def runTest(self) -> None:
        slots = self.spec.slots_per_group
        packets = min(slots - 1, 15)
        self.all_reduce(packets)
        for idle in (serial.HALF, serial.HALF + slots // 2 + 1, ROUND - serial.HALF // 2, ROUND - 4 * slots, ROUND + 1):
            self.go_on(idle)
            barrier = self.call(Collective.BARRIER, 0)
            self.announce(self.group, range(self.ranks), self.at, barrier)
            self.expect_announced(self.group, (self.at, barrier))
            self.at = serial.add(self.at, 1)
            self.all_reduce(packets)
        self.equal("losses", self.losses(), Counter())


class SlotsThatIdledAcrossTheWrap(SlotsThatIdled):
    wraps = True


class BroadcastsTakeTheirSlots(Idle):
    """After PSNs have gone once round, a slot's own PSN comes again: a Broadcast's packet has taken it in between."""

    def runTest(self) -> None:
        self.all_reduce(1)
        reduced = serial.add(self.at, -1)
        slots = self.spec.slots_per_group
        control = self.broadcast(2 * slots)
        values = self.random_values(self.ranks)
        psns = [serial.add(control, offset) for offset in range(1, 1 + 2 * slots)]
        for psn in psns:
            self.contribute(self.group, [1], psn, values)
            self.expect_at(self.group, [0, 2], [(psn, values[1])])
        # Repeated, it goes out again; so old that its slot has gone on, nobody can want it.
        self.contribute(self.group, [1], psns[-1], values)
        self.expect_at(self.group, [0, 2], [(psns[-1], values[1])])
        self.contribute(self.group, [1], psns[0], values)
        self.expect_nothing()
        self.equal("losses", self.losses(), Counter({"CheckDuplicate.stale": 1}))
        self.go_on((reduced - 1 - self.at) % ROUND)
        self.equal("PSN", serial.add(self.at, 1), reduced)
        self.all_reduce(1)


class OrderOfEdgesThatIdled(Idle):
    """An edge's ePSN from before PSNs wrapped is no ePSN: what comes ahead of its turn is dropped."""

    def unfit(self) -> str | None:
        return None if self.spec.loss_recovery.in_order else "the program takes packets in any order"

    def in_order(self) -> None:
        """Three packets of an AllReduce from the next PSN on, the first of which is lost at first."""
        call = self.call(packets=3)
        self.announce(self.group, range(self.ranks), self.at, call)
        self.expect_announced(self.group, (self.at, call))
        before = self.all_drops()
        self.contribute(self.group, range(self.ranks), serial.add(self.at, 2), self.random_values(self.ranks))
        self.expect_nothing()
        self.equal("dropped", self.all_drops() - before, Counter({"FilterOrder.out_of_order": self.ranks}))
        for offset in (1, 2, 3):
            self.complete(self.group, serial.add(self.at, offset))
        self.at = serial.add(self.at, 4)

    def runTest(self) -> None:
        self.all_reduce(2)
        for idle in (serial.HALF + 2, ROUND - 8 * self.spec.slots_per_group):
            self.go_on(idle)
            self.in_order()


class OrderOfEdgesThatIdledAlmostOnceRound(OrderOfEdgesThatIdled):
    """An ePSN that lies one behind the largest that there can be."""

    def runTest(self) -> None:
        self.all_reduce(2)
        left = self.at
        control, (values,) = self.broadcast(self.spec.slots_per_group), self.random_values(1)
        for offset in range(1, 1 + self.spec.slots_per_group):
            packet = self.contribution(self.group, 1, serial.add(control, offset), values)
            self.send_from(self.group, 1, packet)
        self.outputs()
        self.go_on((left - 5 - self.at) % ROUND)
        self.in_order()
        self.equal("the last PSN but one", self.at, serial.add(left, -1))


class AnnouncementsThatAreNotServedAreNotKept(Idle):
    """Control messages of collectives that the group does not take: the one that runs keeps its announcement."""

    def runTest(self) -> None:
        call = self.call(packets=2)
        self.announce(self.group, range(self.ranks), self.at, call)
        self.expect_announced(self.group, (self.at, call))
        for ahead in (1, 2, 3):
            other = self.announcement(self.group, 0, serial.add(self.at, 8 * ahead), self.call(broadcast_from(2, 2), 4))
            self.refused(self.group, 0, other, "ClassifyTraffic.no_pattern")
            other = self.announcement(self.group, 0, serial.add(self.at, 8 * ahead), self.call(broadcast_from(1, 1), 4))
            self.refused(self.group, 0, other, "ClassifyTraffic.no_flow")
        for offset in (1, 2):
            self.complete(self.group, serial.add(self.at, offset))


class AnnouncementInPlaceOfAnother(Idle):
    """Who announces a Broadcast where the others announce an AllReduce is refused, though no slot tells."""

    def runTest(self) -> None:
        self.announce(self.group, [0], self.at, self.call(packets=2))
        self.expect_nothing()
        other = self.announcement(self.group, 1, self.at, self.call(broadcast_from(1, 1), 2))
        self.refused(self.group, 1, other, "TrackInvocation.mixed_control")


class AnnouncementFromTheParentInPlaceOfAnother(ModeIITest):
    """Results take no slots, so that no slot tells: a parent that has another collective's is refused all the same."""

    def runTest(self) -> None:
        parent = 2
        group = self.node_of(3, allreduce(parent), broadcast_from(0, 0))
        psn, call = self.first_psn, self.call(broadcast_from(0, 0), 2)
        self.announce(group, [0], psn, call)
        self.expect_announced(group, (psn, call), at=[1, parent])
        other = self.announcement(group, parent, psn, self.call(packets=2))
        self.refused(group, parent, other, "TrackInvocation.mixed_control")
