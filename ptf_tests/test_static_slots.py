"""Slots of programs of static groups: a tag (PSN and epoch) and a bitmap, in one access.

On links that keep the order of packets, a slot's other PSN is always a newer one, as N >= 2WM keeps its previous PSN
out of every sender's window. Programs that compare PSNs as serial numbers also recognise an older one.
"""

from __future__ import annotations

from dataclasses import replace

from inc import psns
from mode_ii import StaticTest

from p4gen.papers.epic.conformance.needs import lacks
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.opcodes import Opcode

WRAP = 1 << 24


class Slots(StaticTest):
    """A star of two ranks; data needs no announcement."""

    ranks = 2

    def setUp(self) -> None:
        super().setUp()
        self.group = self.make_group(self.ranks)
        self.serve(self.group)

    def half_a_round(self, psn: int) -> None:
        """Rank 0 alone contributes."""
        self.contribute(self.group, [0], psn, self.random_values(1))
        self.expect_nothing()

    def takes_its_slot(self, psn: int) -> None:
        """A round under ``psn`` has a result of its own contributions only, and is repeated as often as one asks."""
        values = self.random_values(self.ranks)
        result = (psn, self.reduced(values))
        self.contribute(self.group, range(self.ranks), psn, values)
        self.expect_results(self.group, [result])
        self.contribute(self.group, [1], psn, values)
        self.expect_at(self.group, [1], [result])


class EveryBitOfThePsnTells(Slots):
    """PSNs of one slot that differ in a single bit are two packets: half a round of one is no part of the other."""

    def runTest(self) -> None:
        slots = self.spec.slots_per_group
        for bit in range(slots.bit_length() - 1, 23):
            low = self.random.randrange(slots)
            self.half_a_round(low)
            self.takes_its_slot(low | 1 << bit)
            self.control.reset()
            self.serve(self.group)


class EveryBitOfTheEpochTells(Slots):
    """A group that is set up again finds its slots empty under the same PSN, whichever bit its epoch differs in."""

    def runTest(self) -> None:
        psn, epoch = self.random_psn(), 1
        self.takes_its_slot(psn)
        for bit in (1, 2, 3, 4, 5, 6, 7, 0):
            epoch ^= 1 << bit
            self.reconfigure(replace(self.group, epoch=epoch))
            self.takes_its_slot(psn)
        self.equal("drops that lose something", self.losses(), {})


class NewEpochBeginsAnywhere(Slots):
    """In a new epoch an older PSN is no late one: the group begins again where it wants."""

    def runTest(self) -> None:
        slots, psn = self.spec.slots_per_group, self.random_psn()
        for epoch, ahead in enumerate((0, -slots, 3 * slots, serial.HALF, serial.HALF - slots, -2 * slots), start=2):
            psn = serial.add(psn, ahead)
            self.reconfigure(replace(self.group, epoch=epoch))
            self.takes_its_slot(psn)
        self.equal("drops that lose something", self.losses(), {})


class SlotsThatIdle(Slots):
    """A slot may be left alone while PSNs advance by nearly half of the number space, also across its wrap."""

    def runTest(self) -> None:
        slots = self.spec.slots_per_group
        for first in (self.random_psn(), serial.HALF - 1, WRAP - 1, WRAP - slots):
            psn = first
            for ahead in (slots, 5 * slots, 1 << 20, serial.HALF - slots, serial.HALF - slots):
                self.half_a_round(psn)
                psn = serial.add(psn, ahead)
                self.takes_its_slot(psn)
                psn = serial.add(psn, slots)
            self.control.reset()
            self.serve(self.group)
        self.equal("drops that lose something", self.losses(), {})


class OlderPsnsAreStale(Slots):
    """Up to half the number space behind, a packet is late: it leaves the slot alone and is counted."""

    def runTest(self) -> None:
        slots = self.spec.slots_per_group
        for psn in (self.random_psn(), 0, slots, serial.HALF, WRAP - 1):
            self.half_a_round(psn)
            for behind in (slots, 2 * slots, 1 << 20, serial.HALF - slots):
                for rank in range(self.ranks):
                    late = self.contribution(self.group, rank, serial.add(psn, -behind), self.random_values(1)[0])
                    self.refused(self.group, rank, late, "CheckDuplicate.stale")
            self.control.reset()
            self.serve(self.group)


class LateControlMessagesAreStale(Slots):
    """A control message takes a slot as data does: one from before what the slot holds changes nothing."""

    def unfit(self) -> str | None:
        return "the program does not tell older PSNs" if lacks(self.spec, "stale") else None

    def runTest(self) -> None:
        slots, psn = self.spec.slots_per_group, self.random_psn()
        self.takes_its_slot(psn)
        late = self.announcement(self.group, 1, serial.add(psn, -slots), self.call(packets=1))
        self.refused(self.group, 1, late, "CheckDuplicate.stale")


class AnyOtherPsnIsNewer(Slots):
    """Where tags are compared for equality only, any other PSN begins its slot afresh, whatever its distance."""

    def unfit(self) -> str | None:
        return None if lacks(self.spec, "stale") else "the program tells older PSNs"

    def runTest(self) -> None:
        slots, psn = self.spec.slots_per_group, self.random_psn()
        for ahead in (slots, -slots, serial.HALF, serial.HALF - slots, -2 * slots, WRAP - slots):
            self.half_a_round(psn)
            psn = serial.add(psn, ahead)
            self.takes_its_slot(psn)
            psn = serial.add(psn, slots)
        self.equal("drops that lose something", self.losses(), {})


class LinksThatKeepOrderLoseNothing(Slots):
    """Ranks a window apart, results lost, Go-Back-N: while each rank sends in order, every PSN is reduced once.

    A rank goes back to the first packet whose result it has not got; PSNs wrap on the way.
    """

    ranks = 3

    def runTest(self) -> None:
        window, total = self.spec.window * self.spec.message, min(4 * self.spec.slots_per_group, 96)
        numbers = psns(serial.add(WRAP, -total // 2), total)
        rounds = [self.random_values(self.ranks) for _ in numbers]
        sent, done = [0] * self.ranks, [0] * self.ranks
        while min(done) < total:
            ready = [rank for rank in range(self.ranks) if sent[rank] < min(total, done[rank] + window)]
            if not ready or self.random.random() < 0.05:
                rank = self.random.randrange(self.ranks)
                sent[rank] = done[rank]
                continue
            rank = self.random.choice(ready)
            self.contribute(self.group, [rank], numbers[sent[rank]], rounds[sent[rank]])
            sent[rank] += 1
            for to, packets in enumerate(self.received(self.group).of_rank):
                for packet in packets:
                    at = numbers.index(packet.bth.psn)
                    self.check_payload(f"rank {to}, PSN {packet.bth.psn}", packet, self.reduced(rounds[at]))
                    if at == done[to] and self.random.random() < 0.9:
                        done[to] += 1
        self.equal("losses", self.losses().keys() - {"CheckDuplicate.duplicate"}, set())


class EveryEdgesRepetitionIsKnown(StaticTest):
    """As many ranks as the program takes: each one's repetition is told from all others' contributions."""

    def runTest(self) -> None:
        ranks = self.spec.fan_in
        group = self.make_group(ranks)
        self.serve(group)
        psn, values = self.random_psn(), self.random_values(ranks)
        *early, last = self.random.sample(range(ranks), ranks)
        for rank in early:
            self.contribute(group, [rank, rank], psn, values)
            self.expect_nothing()
        self.equal("repetitions", self.drops()["CheckDuplicate.duplicate"], len(early))
        self.contribute(group, [last], psn, values)
        self.expect_results(group, [(psn, self.reduced(values))])
        for rank in range(ranks):
            self.contribute(group, [rank], psn, values)
            self.expect_at(group, [rank], [(psn, self.reduced(values))])


class ResultsAreOfTheLastPacket(Slots):
    """A slot keeps neither operation nor AckReq nor mark: a result has those of the packet that completes it."""

    def unfit(self) -> str | None:
        return None if lacks(self.spec, "ack_request") else "the program keeps them"

    def runTest(self) -> None:
        first = self.random_psn()
        for number, (opcode, asks, ecn) in enumerate(
            ((Opcode.SEND_FIRST, False, 0b10), (Opcode.SEND_LAST, True, 0b11), (Opcode.SEND_MIDDLE, True, 0b10))
        ):
            psn, values = serial.add(first, number), self.random_values(2)
            one, other = (self.contribution(self.group, rank, psn, values[rank], opcode) for rank in (0, 1))
            one = replace(one, bth=replace(one.bth, ack_request=not asks), ip=replace(one.ip, tos=0b11 ^ ecn ^ 0b10))
            other = replace(other, bth=replace(other.bth, ack_request=asks), ip=replace(other.ip, tos=ecn))
            self.send_from(self.group, 0, one.sealed())
            self.expect_nothing()
            self.send_from(self.group, 1, other.sealed())
            for packets in self.received(self.group).of_rank:
                got = [(p.bth.opcode, p.bth.ack_request, p.ip.tos & 0b11) for p in packets]
                self.equal(f"opcode, AckReq and mark under PSN {psn}", got, [(int(opcode), asks, ecn)])
