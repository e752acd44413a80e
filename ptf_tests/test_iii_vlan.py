"""Frames with one 802.1Q tag in Mode III: results, answers and retransmissions keep the tag.

Scenarios of other modules run as without a tag; the base class looks for the tag on each frame that comes out.
"""

from __future__ import annotations

from dataclasses import replace

import test_iii_order as order
import test_iii_range as ranges
import test_iii_retransmission as retransmission
import test_vlan as mode_ii
from mode_iii import ROOT, TICK, TICK_UNITS, UP, Flow, ModeIIITest, again

from p4gen.groups.group import GroupContext
from p4gen.papers.epic.spec import Mode
from p4gen.rocev2.packet import RocePacket
from p4gen.vocabulary import Reliability

DROP_ELIGIBLE = 2 << 13 | 1 << 12 | 0x7FF


class TaggedContributions(ModeIIITest):
    vlan = mode_ii.PRIORITY_5_VLAN_100
    role = ROOT
    runTest = order.Contributions.runTest


class TaggedContributionsUnderAPriorityTag(ModeIIITest):
    vlan = mode_ii.PRIORITY_TAG
    role = UP
    runTest = order.Contributions.runTest


class TaggedDuplicateIsAcknowledgedAgain(ModeIIITest):
    vlan = mode_ii.PRIORITY_5_VLAN_100
    role = ROOT
    runTest = order.DuplicateIsAcknowledgedAgain.runTest


class TaggedGapIsReportedOnce(ModeIIITest):
    vlan = mode_ii.PRIORITY_5_VLAN_100
    role = ROOT
    runTest = order.GapIsReportedOnce.runTest


class TaggedRankThatRunsAhead(ranges.RangeTest):
    vlan = mode_ii.PRIORITY_5_VLAN_100
    role = ROOT
    runTest = ranges.RangeIsExactlyN.runTest


class TaggedNakBringsAllSince(retransmission.Resends):
    vlan = mode_ii.PRIORITY_5_VLAN_100
    runTest = retransmission.NakBringsAllSince.runTest


class UntaggedTicks(retransmission.Resends):
    """The agent's ticks are untagged: the switch knows the tag of the edge from the rank's own packets."""

    vlan: int | None = mode_ii.PRIORITY_5_VLAN_100

    def tick_of(self, group: GroupContext, edge: int, opcode: int = TICK, units: int = TICK_UNITS) -> RocePacket:
        return replace(super().tick_of(group, edge, opcode, units), vlan=None)


class TaggedTickResends(UntaggedTicks):
    runTest = retransmission.SecondTickWithoutProgressResends.runTest


class TickResendsUnderTheLatestTag(UntaggedTicks):
    """A rank's newest packet, data or ACK, sets the tag of its edge; an untagged packet removes it."""

    reliability = tuple(Reliability)
    tags = (DROP_ELIGIBLE, None, mode_ii.PRIORITY_TAG, None, mode_ii.PRIORITY_5_VLAN_100)

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        slow, *others = self.random.sample(flow.outputs, len(flow.outputs))
        for offset, tag in enumerate(self.tags, start=1):
            self.vlan = tag
            result = again(self.round(flow, self.psn(offset), acked=False))
            self.ack(flow.group, others, self.psn(offset))
            self.resends(flow, slow, result)
            self.vlan = self.tags[offset % len(self.tags)]
            self.ack(flow.group, [slow], self.psn(offset - 1))  # says nothing new, but under another tag
            self.tick(flow.group, slow)
            self.expect_nothing()
            self.tick(flow.group, slow, units=TICK_UNITS << offset)  # longer than the wait that the old ACK tells of
            self.check(flow.group, {}, {slow: [result]})
            self.ack(flow.group, [slow], self.psn(offset))
            self.expect_nothing()

    def resends(self, flow: Flow, edge: int, result: str) -> None:
        """The second tick without progress brings the outstanding packets."""
        self.tick(flow.group, edge)
        self.expect_nothing()
        self.tick(flow.group, edge)
        self.check(flow.group, {}, {edge: [result]})


class CursorTakesNoTagBack(TickResendsUnderTheLatestTag):
    """The tag of an edge that changes while a cursor waits between two passes stays changed."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        slow, *others = flow.outputs
        result = again(self.round(flow, self.psn(1), acked=False))
        self.ack(flow.group, others, self.psn(1))
        self.hold()
        self.nak(flow.group, slow, self.psn(1))
        self.expect_nothing()
        tag, self.vlan = self.vlan, DROP_ELIGIBLE
        self.ack(flow.group, [slow], self.psn(0))
        self.expect_nothing()
        self.vlan = tag
        self.go()
        self.check(flow.group, {}, {slow: [result]})
        self.vlan = DROP_ELIGIBLE
        self.resends(flow, slow, result)


class TaggedTrafficIsRouted(mode_ii.TaggedFrames):
    modes = (Mode.I, Mode.III)
    runTest = mode_ii.TaggedTrafficIsRouted.runTest


class TwoTagsAreNotRouted(mode_ii.TwoTagsAreNotRouted):
    modes = (Mode.I, Mode.III)
