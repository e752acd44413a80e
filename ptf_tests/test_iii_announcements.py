"""Which announcement a packet belongs to in Mode III, and which packets conflict with an announcement (sections 3.3.2
and 4.4)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from inc import allreduce, broadcast_from, reduce_to
from mode_iii import CNP, ROOT, ModeIIITest, ack_of, flow_at, invalid_of, nak_of, to

from p4gen.groups.group import GroupContext
from p4gen.vocabulary import Reliability
from p4gen.vocabulary.message import Collective

EVERY = tuple(Reliability)
PACKETS = 3


class AnnouncementTest(ModeIIITest):
    """Three packets are announced under the first PSN."""

    reliability = EVERY

    def unfit(self) -> str | None:
        room = PACKETS + 3  # for the announcement, its packets and what follows them
        return super().unfit() or (None if self.window >= room else f"its range ends at {self.window} packets")

    def misplaced(self, group: GroupContext, edge: int, psn: int, value: int) -> None:
        """A control message where something else was announced: its sender is told, whether or not it asks."""
        before = self.losses()
        packet = self.announcement(group, edge, psn, value)
        self.send_from(group, edge, replace(packet, bth=replace(packet.bth, ack_request=False)).sealed())
        self.check(group, {edge: [invalid_of(psn)]})
        self.equal("losses", self.losses() - before, Counter({"TrackInvocation.mixed_control": 1}))


class AnnouncementInPlaceOfData(AnnouncementTest):
    """Nobody has sent a packet yet, so that no slot knows better. The same announcement once more is none either."""

    place = 1

    def runTest(self) -> None:
        flow = self.begun(ROOT, PACKETS)
        for offset in range(1, self.place):
            self.push(flow, [0], self.psn(offset), self.inputs(flow))
        self.outputs()
        self.misplaced(flow.group, 0, self.psn(self.place), self.immediate(flow, PACKETS))


class AnnouncementInPlaceOfTheLastData(AnnouncementInPlaceOfData):
    place = PACKETS


class AnnouncementBehindTheLastData(AnnouncementTest):
    """PSNs after the announced packets are free, also for a rank that is alone there."""

    def runTest(self) -> None:
        flow = self.begun(ROOT, PACKETS)
        for offset in range(1, PACKETS + 1):
            self.push(flow, [0], self.psn(offset), self.inputs(flow))
        self.announce(flow.group, [0], self.psn(PACKETS + 1), self.immediate(flow, PACKETS))
        self.check(flow.group, {0: [ack_of(self.psn(offset)) for offset in range(1, PACKETS + 2)]})


class AnnouncementInPlaceOfABroadcasts(AnnouncementTest):
    """A rank that has missed a Broadcast, or its last packets, announces something at its PSNs while others have
    announced what follows it: an announcement older than the newest is checked as well."""

    newer = 1

    def runTest(self) -> None:
        group = self.node(allreduce(), broadcast_from(1, 1), parent=False)
        self.serve(group)
        barrier = self.call(Collective.BARRIER, 0).encode()
        for epoch, place in enumerate(range(PACKETS + 1), start=2):
            group = replace(group, epoch=epoch)
            self.reconfigure(group)
            broadcast = flow_at(group, Collective.BROADCAST, 1, down=True)
            self.begin(broadcast, PACKETS, acked=False)
            self.rounds(broadcast, 1, PACKETS, acked=False)
            self.ack(group, [0, 2], self.psn(PACKETS))
            for behind in range(1, self.newer + 1):
                psn = self.psn(PACKETS + behind)
                self.announce(group, [0], psn, barrier)
                self.check(group, {0: [ack_of(psn)]})
            if place:
                self.ack(group, [3], self.psn(place - 1))
                self.expect_nothing()
            self.misplaced(group, 3, self.psn(place), barrier)


class AnnouncementInPlaceOfTheOldestBroadcasts(AnnouncementInPlaceOfABroadcasts):
    newer = 2


class CollectivesOfAnOldGenerationAreForgotten(ModeIIITest):
    """A Broadcast ran a generation ago. Now it is not known yet which of the group's patterns comes: whoever sends data
    is told that a control message is missing."""

    reliability = EVERY

    def runTest(self) -> None:
        group = self.node(allreduce(), broadcast_from(1, 1), parent=False)
        self.serve(group)
        self.begin(flow_at(group, Collective.BROADCAST, 1, down=True))
        group = replace(group, epoch=2)
        self.reconfigure(group)
        for edge in range(len(group.edges)):
            self.send_from(group, edge, self.packet_of(group, edge, self.psn(1), self.lanes(1)))
            self.check(group, {edge: [nak_of(self.psn(0))]})
        self.equal("losses", self.losses(), Counter({"CheckOrder.gap": len(group.edges)}))


class NotificationsOfTheNewestCollective(ModeIIITest):
    """A CNP has no PSN: it goes to those who send in the collective that is newest, whatever ran before."""

    reliability = EVERY

    def runTest(self) -> None:
        self.first_psn = 100
        group = self.node(allreduce(), reduce_to(0, 0), parent=False)
        self.serve(group)
        everybody, reduction = flow_at(group, Collective.ALLREDUCE), flow_at(group, Collective.REDUCE)
        self.begin(everybody, 1)
        self.round(everybody, self.psn(1))
        self.begin(reduction, 1, psn=self.psn(2))
        self.send_from(group, 0, self.notification(group, 0))
        self.check(group, to(reduction.sources, CNP))


class AnnouncementsAreKeptOnce(ModeIIITest):
    """What the first rank announces is kept, in one place; the others' announcements of the same, their data and their
    ACKs change nothing. Epochs have eight bits, and the one that is all ones is like any other."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.make_flow(ROOT)
        flow = replace(flow, group=replace(flow.group, epoch=255))
        self.serve(flow.group)
        before, value = self.kept(), self.immediate(flow, PACKETS)
        self.announce(flow.group, flow.sources[:1], self.psn(0), value)
        after = self.kept()
        self.equal("announcements that changed", [n for n in after if after[n] != before[n]], ["newest.announcement"])
        self.announce(flow.group, flow.sources[1:], self.psn(0), value)
        self.outputs()
        self.ack(flow.group, flow.outputs, self.psn(0))
        self.round(flow, self.psn(1))
        self.equal("announcements", self.kept(), after)

    def kept(self) -> dict[str, list[int]]:
        return {name: words for name, words in self.state().items() if name.endswith(".announcement")}


class AnnouncementsTouchNoPayload(ModeIIITest):
    """A control message takes a slot, but what the lanes hold there is data's."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT, self.window)
        self.rounds(flow, 1, self.window)
        lanes = self.payloads()
        self.begin(flow, 1, psn=self.psn(self.window + 1))
        self.equal("lanes", self.payloads(), lanes)

    def payloads(self) -> dict[str, list[int]]:
        return {name: words for name, words in self.state().items() if name.endswith(".partial")}
