"""Selective NAKs in Mode II: those of a broadcast's receivers become one, those of other calls pass (section C).

A selective NAK asks for a range of packets and acknowledges nothing. What the root is told is the union of the ranges
that the receivers have named, each packet once, until it comes again.
"""

from __future__ import annotations

from dataclasses import replace

from inc import allreduce, broadcast_from, psns, reduce_to
from mode_ii import ModeIITest
from test_broadcast import ACK, BroadcastTest

from p4gen.groups.group import GroupContext
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.opcodes import Nak, NakCode
from p4gen.rocev2.packet import RocePacket

SELECTIVE = Nak(NakCode.SELECTIVE).syndrome
ASKED = "CombineSacks.asked"


class SackTest(ModeIITest):
    """A program that knows selective NAKs."""

    def unfit(self) -> str | None:
        return None if self.spec.loss_recovery.selective_naks else "the program does not know selective NAKs"

    def selective(self, group: GroupContext, edge: int, psn: int, count: int) -> RocePacket:
        """A selective NAK of an edge: it lacks ``count`` packets from ``psn`` on."""
        packet = self.acknowledgement(group, edge, psn, SELECTIVE)
        assert packet.aeth is not None
        return replace(packet, aeth=replace(packet.aeth, msn=count)).sealed()

    def expect_selective(self, group: GroupContext, at: list[int], *expected: tuple[int, int]) -> None:
        """The edges ``at`` have received exactly these selective NAKs, as (PSN, count), and the others nothing."""
        for edge, packets in enumerate(self.received(group).of_rank):
            got = [(p.bth.psn, p.aeth.syndrome, p.aeth.msn) for p in packets if p.aeth is not None]
            wanted = [(psn, SELECTIVE, count) for psn, count in expected] if edge in at else []
            self.equal(f"edge {edge}: answers", got, wanted)
            self.equal(f"edge {edge}: packets", len(packets), len(wanted))


class BroadcastSackTest(SackTest, BroadcastTest):
    """A node at which a Broadcast from edge 0 is announced."""

    def lacks(self, edge: int, psn: int, count: int = 1) -> None:
        """An edge asks for packets."""
        self.send_from(self.group, edge, self.selective(self.group, edge, psn, count))

    def asked(self, *expected: tuple[int, int]) -> None:
        """Exactly these packets have been asked for, as (PSN, count)."""
        self.expect_selective(self.group, [self.toward], *expected)

    def anew(self, psn: int) -> None:
        """The next generation of the group, whose data begin with this PSN."""
        following = self.group.epoch % 255 + 1
        self.group = self.make_group(self.edges, patterns=self.group.patterns, epoch=following)
        self.reconfigure(self.group)
        self.begin(psn)

    def come(self, *numbers: int) -> None:
        """These packets come from the root, and go to the other edges."""
        for psn in numbers:
            (values,) = self.random_values(1)
            self.send_from(self.group, self.toward, self.contribution(self.group, self.toward, psn, values))
            self.expect_at(self.group, self.others, [(psn, values)])


class WhatSeveralLackIsAskedForOnce(BroadcastSackTest):
    """Wherever the range lies among the PSNs that a word has bits for, also across its end."""

    def runTest(self) -> None:
        window = 256 if self.spec.window * self.spec.message > 128 else 128
        first = self.begin(self.random_psn() // window * window)
        for place in (0, 3, window // 2, window - 2, window - 1 + window):
            psn = serial.add(first, place)
            self.lacks(1, psn, 3)
            self.asked((psn, 3))
            for edge in (2, 3):
                self.lacks(edge, psn, 3)
            self.expect_nothing()
            self.equal("NAKs of packets that were asked for", self.drops(), {ASKED: 2})
            self.discount()
            self.come(*psns(psn, 3))


class WhoAsksAgainIsHeard(BroadcastSackTest):
    """The NAK or what it asked for may be lost: a receiver asks again on a timer."""

    def runTest(self) -> None:
        psn = self.begin()
        self.lacks(1, psn, 2)
        self.asked((psn, 2))
        self.lacks(1, psn, 2)
        self.asked((psn, 2))
        self.lacks(2, psn, 2)
        self.expect_nothing()
        self.lacks(2, psn, 1)
        self.asked((psn, 1))


class AnyEdgeMayAsk(BroadcastSackTest):
    """The root is at the last edge."""

    toward = 3

    def runTest(self) -> None:
        psn = self.begin()
        for edge in self.others:
            self.lacks(edge, serial.add(psn, edge))
            self.asked((serial.add(psn, edge), 1))
        for edge in self.others:
            self.lacks(edge, serial.add(psn, (edge + 1) % 3))
        self.expect_nothing()
        self.come(psn)
        self.lacks(0, psn, 3)
        self.asked((psn, 2))


class RangesAreUnited(BroadcastSackTest):
    """A NAK that goes on asks from the first to the last packet that nobody else has asked for."""

    def runTest(self) -> None:
        numbers = psns(self.begin(), 12)
        self.lacks(1, numbers[4], 3)
        self.asked((numbers[4], 3))
        self.lacks(2, numbers[2], 5)
        self.asked((numbers[2], 2))
        self.lacks(3, numbers[3], 6)
        self.asked((numbers[7], 2))
        self.lacks(1, numbers[1], 10)  # 4 to 6 are its own
        self.asked((numbers[1], 10))
        for edge in (2, 3):
            self.lacks(edge, numbers[9], 2)
        self.expect_nothing()
        self.lacks(2, numbers[2], 10)
        self.asked((numbers[2], 10))


class RangesAreCut(BroadcastSackTest):
    """At either end, wherever it is."""

    def runTest(self) -> None:
        window = 256 if self.spec.window * self.spec.message > 128 else 128
        powers = [1 << power for power in range(window.bit_length() - 1)]
        psn = self.begin()
        for cut in sorted({cut for power in powers for cut in (power - 1, power, power + 1)} - {0}):
            for asked, left in (((0, cut), (cut, window - cut)), ((cut, window - cut), (0, cut))):
                self.lacks(1, serial.add(psn, asked[0]), asked[1])
                self.asked((serial.add(psn, asked[0]), asked[1]))
                self.lacks(2, psn, window)
                self.asked((serial.add(psn, left[0]), left[1]))
                self.anew(psn)


class WhatComesMayBeAskedForAnew(BroadcastSackTest):
    """A packet that is lost again behind the node is asked for by whoever lacks it, and no other packet."""

    def runTest(self) -> None:
        numbers = psns(self.begin(), 4)
        self.lacks(1, numbers[0], 4)
        self.asked((numbers[0], 4))
        self.come(numbers[1], numbers[2])
        self.lacks(2, numbers[0], 4)
        self.asked((numbers[1], 2))
        for edge in (1, 3):
            self.come(numbers[3])
            self.lacks(edge, numbers[3])
            self.asked((numbers[3], 1))


class SelectiveNaksAcknowledgeNothing(BroadcastSackTest):
    def runTest(self) -> None:
        numbers = psns(self.begin(), 6)
        for edge in (1, 2):
            self.answer(edge, numbers[5])
        self.lacks(3, numbers[3], 2)
        self.asked((numbers[3], 2))
        self.answer(3, numbers[2])
        self.answered((numbers[2], ACK))
        self.answer(3, numbers[5])
        self.answered((numbers[5], ACK))


class ManyPackets(BroadcastSackTest):
    """A range of all PSNs that a word has bits for, and one that is longer; none at all is nothing to ask for."""

    def runTest(self) -> None:
        window = 256 if self.spec.window * self.spec.message > 128 else 128
        psn = self.begin()
        self.lacks(1, psn, 0)
        self.expect_nothing()
        self.lacks(1, psn, window - 1)
        self.asked((psn, window - 1))
        self.lacks(2, psn, window)
        self.asked((serial.add(psn, window - 1), 1))
        for count in (window + 1, 1 << 20):
            self.lacks(2, psn, count)
            self.asked((psn, window))
        self.lacks(3, psn, window)
        self.expect_nothing()


class RangesAtRandom(BroadcastSackTest):
    """What goes on is always what the edge has asked for and nobody else has, first to last."""

    def runTest(self) -> None:
        numbers = psns(self.begin(), 48)
        lacking: dict[int, set[int]] = {edge: set() for edge in self.others}
        for _ in range(200):
            first = self.random.randrange(len(numbers))
            if self.random.random() < 0.3:
                self.come(numbers[first])
                for missing in lacking.values():
                    missing.discard(first)
                continue
            edge, last = self.random.choice(self.others), self.random.randrange(first, min(first + 9, len(numbers)))
            wanted = set(range(first, last + 1))
            theirs = set().union(*(lacking[other] for other in self.others if other != edge))
            new = wanted & (lacking[edge] | (wanted - theirs))
            lacking[edge] |= wanted
            self.lacks(edge, numbers[first], last - first + 1)
            self.asked(*([(numbers[min(new)], max(new) - min(new) + 1)] if new else []))


class GroupsAskForThemselves(BroadcastSackTest):
    """What another group, or an earlier generation of this one, has asked for is not asked for here."""

    def runTest(self) -> None:
        psn = self.begin()
        self.lacks(1, psn, 2)
        self.asked((psn, 2))
        other = self.node_of(self.edges, broadcast_from(9, self.toward), context=1, first_port=4)
        self.open(other, psn=serial.add(psn, -1))
        self.send_from(other, 2, self.selective(other, 2, psn, 2))
        self.expect_selective(other, [self.toward], (psn, 2))
        for toward in (self.toward, 3):
            self.toward, self.others = toward, [edge for edge in range(self.edges) if edge != toward]
            self.group = replace(self.group, patterns=(broadcast_from(9, toward),))
            self.anew(psn)
            for edge in self.others:
                self.lacks(edge, serial.add(psn, edge))
                self.asked((serial.add(psn, edge), 1))
            self.anew(psn)
            for edge in reversed(self.others):
                self.lacks(edge, psn, 4)
                self.asked((psn, 4))
                self.come(*psns(psn, 4))


class SelectiveNaksAreReflected(SackTest):
    """In an AllReduce, whoever lacks a result sends its contribution again."""

    def runTest(self) -> None:
        group = self.node_of(3, allreduce())
        self.open(group)
        psn = serial.add(self.first_psn, 1)
        self.send_from(group, 1, self.selective(group, 1, psn, 2))
        self.expect_selective(group, [1], (psn, 2))


class SelectiveNaksReachAllSenders(SackTest):
    """In a Reduce, all send what the root lacks."""

    def runTest(self) -> None:
        group = self.node_of(3, reduce_to(0, 0))
        self.open(group)
        psn = serial.add(self.first_psn, 1)
        for _ in range(2):
            self.send_from(group, 0, self.selective(group, 0, psn, 2))
            self.expect_selective(group, [1, 2], (psn, 2))
