"""Frames with one 802.1Q tag: whatever a switch makes of them has the same tag, so that priorities (PFC) hold.

Scenarios of other modules run as without a tag; the base class looks for the tag on each frame that comes out.
"""

from __future__ import annotations

import test_aggregation as aggregation
import test_broadcast as broadcast
import test_forwarding as forwarding
import test_reliability as reliability
from base import Output
from mode_ii import ModeIITest

from p4gen.rocev2.codes import ETHERTYPE_VLAN

PRIORITY_5_VLAN_100 = 5 << 13 | 100
PRIORITY_TAG = 3 << 13
"""VLAN 0: the tag says a priority and nothing else."""


class SumOfTaggedRanks(aggregation.Aggregation):
    vlan = PRIORITY_5_VLAN_100
    runTest = aggregation.SumOfFourRanksInEveryOrder.runTest


class SumUnderAPriorityTag(aggregation.Aggregation):
    vlan = PRIORITY_TAG
    runTest = aggregation.SumOfTwoRanks.runTest


class TaggedDuplicateGetsTheResultAgain(ModeIITest):
    vlan = PRIORITY_5_VLAN_100
    runTest = reliability.DuplicateAfterCompletionGetsTheResultAgain.runTest


class TaggedAckIsReflected(reliability.Reflection):
    vlan = PRIORITY_5_VLAN_100
    runTest = reliability.AckIsReflected.runTest


class TaggedAcksAreCombined(broadcast.BroadcastTest):
    vlan = PRIORITY_5_VLAN_100
    runTest = broadcast.AckWaitsForTheSlowest.runTest


class TaggedFrames(forwarding.Routing):
    """Ordinary traffic, tagged."""

    def tagged(self, frame: bytes, tags: int = 1) -> bytes:
        """``frame`` with tags of random content."""
        tag = b"".join(ETHERTYPE_VLAN.to_bytes(2) + self.random.randbytes(2) for _ in range(tags))
        return frame[:12] + tag + frame[12:]


class TaggedTrafficIsRouted(TaggedFrames):
    """It keeps its tag, VLAN, priority and drop eligibility alike."""

    def runTest(self) -> None:
        for size in (0, 40, 1400):
            for hop in self.hops:
                frame = self.ip_frame(self.to(hop), self.udp(self.random.randbytes(size)))
                sent = self.tagged(frame)
                self.send(0, sent)
                routed = self.routed(frame, hop)
                self.expect([Output(hop.port, routed[:12] + sent[12:16] + routed[12:])])


class TwoTagsAreNotRouted(TaggedFrames):
    """Packets with one tag are routed, those with two are not."""

    def unfit(self) -> str | None:
        return super().unfit() or ("programs with IPv6 route packets with two tags" if self.spec.ipv6 else None)

    def runTest(self) -> None:
        frame = self.ip_frame(self.to(self.hops[1]), self.udp(b"provider bridges"))
        self.expect_dropped(self.tagged(frame, tags=2), "Forward.not_ipv4")


class TaggedFrameThatEndsTooSoon(ModeIITest):
    """The tag counts: a tagged frame that lacks four bytes is no whole one."""

    vlan = PRIORITY_5_VLAN_100

    def runTest(self) -> None:
        group = self.group_of(2)
        psn = self.random_psn()
        frame = self.contribution(group, 0, psn, self.random_values(1)[0]).to_bytes()
        self.refused(group, 0, frame[:-4], "ValidatePacket.truncated")
        self.complete(group, psn)


class TaggedFrameThatGoesOn(ModeIITest):
    """A tagged frame with four bytes more than its datagram is no whole one either."""

    vlan = PRIORITY_5_VLAN_100

    def runTest(self) -> None:
        group = self.group_of(2)
        psn = self.random_psn()
        frame = self.contribution(group, 0, psn, self.random_values(1)[0]).to_bytes()
        self.refused(group, 0, frame + bytes(4), "ValidatePacket.bad_length")
        self.complete(group, psn)
