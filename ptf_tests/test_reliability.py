"""Loss, retransmission and acknowledgement: end hosts repeat, the switch stays idempotent (section 4.3)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from inc import allreduce, psns
from mode_ii import ModeIITest

from p4gen.papers.epic.conformance.needs import lacks
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.opcodes import Ack, Nak, NakCode, Opcode, RnrNak


class DuplicateBeforeCompletionCountsOnce(ModeIITest):
    """A rank that repeats itself while others are missing adds nothing and gets nothing."""

    def runTest(self) -> None:
        group = self.group_of(4)
        psn, values = self.random_psn(), self.random_values(4)
        for rank in (0, 0, 2, 0, 2):
            self.contribute(group, [rank], psn, values)
        self.expect_nothing()
        self.equal("drops", self.drops(), Counter({"ReplicateData.absorbed": 2, "CheckDuplicate.duplicate": 3}))
        self.contribute(group, (1, 3), psn, values)
        self.expect_results(group, [(psn, self.reduced(values))])


class DuplicateAfterCompletionGetsTheResultAgain(ModeIITest):
    """A rank that lost the result repeats its contribution, and it alone is answered; the sum does not change."""

    def runTest(self) -> None:
        group = self.group_of(4)
        psn, values = self.random_psn(), self.random_values(4)
        self.contribute(group, range(4), psn, values)
        self.expect_results(group, [(psn, self.reduced(values))])
        state = self.state()
        for rank in (0, 3, 1, 2, 2):
            self.contribute(group, [rank], psn, values)
            self.expect_at(group, [rank], [(psn, self.reduced(values))])
        self.equal("registers", self.state(), state)
        self.equal("drops that lose something", self.losses(), {})


class DuplicateWithOtherDataChangesNothing(ModeIITest):
    """The first contribution counts; a repeated packet's payload is ignored."""

    def runTest(self) -> None:
        group = self.group_of(2)
        psn, values, others = self.random_psn(), self.random_values(2), self.random_values(2)
        self.contribute(group, [0], psn, values)
        self.contribute(group, [0], psn, others)
        self.contribute(group, [1], psn, values)
        self.expect_results(group, [(psn, self.reduced(values))])
        for rank in (1, 0):
            self.contribute(group, [rank], psn, others)
            self.expect_at(group, [rank], [(psn, self.reduced(values))])


class GoBackNAfterALoss(ModeIITest):
    """One contribution is lost: its sender goes back and repeats all since; the others repeat theirs too."""

    def unfit(self) -> str | None:
        return self.filters()

    def runTest(self) -> None:
        group = self.group_of(3)
        numbers = psns(self.random_psn(), min(6, self.spec.slots_per_group))
        lost = min(2, len(numbers) - 1)
        rounds = [self.random_values(3) for _ in numbers]
        results = [(psn, self.reduced(values)) for psn, values in zip(numbers, rounds, strict=True)]
        for index, psn in enumerate(numbers):
            self.contribute(group, (1, 2, 0) if index != lost else (1, 2), psn, rounds[index])
        self.expect_results(group, results[:lost] + results[lost + 1 :])
        # The ranks' receivers answer the gap with a NAK, which comes back to each of them; they resend from there.
        for rank in range(3):
            nak = self.acknowledgement(group, rank, numbers[lost], Nak().syndrome)
            self.send_from(group, rank, nak)
        self.equal("NAKs reflected", self.received(group).total, 3)
        self.contribute(group, [1], numbers[lost], rounds[lost])
        self.expect_nothing()
        self.contribute(group, [0], numbers[lost], rounds[lost])
        self.expect_results(group, [results[lost]])
        for index in range(lost + 1, len(numbers)):
            self.contribute(group, [0], numbers[index], rounds[index])
        self.expect_at(group, [0], results[lost + 1 :])


class StalePsnIsIgnored(ModeIITest):
    """A packet that was overtaken by its slot's next PSN is dropped, and affects neither round."""

    def unfit(self) -> str | None:
        return self.filters()

    def runTest(self) -> None:
        group = self.group_of(2)
        slots = self.spec.slots_per_group
        psn, old, new = self.random_psn(), self.random_values(2), self.random_values(2)
        self.contribute(group, (0, 1), psn, old)
        self.expect_results(group, [(psn, self.reduced(old))])
        ahead = serial.add(psn, slots)
        self.contribute(group, [0], ahead, new)
        self.expect_nothing()
        for rank in (0, 1):
            late = self.contribution(group, rank, psn, old[rank])
            self.refused(group, rank, late, "CheckDuplicate.stale")
        self.contribute(group, [1], ahead, new)
        self.expect_results(group, [(ahead, self.reduced(new))])
        late = self.contribution(group, 0, serial.add(ahead, -slots), old[0])
        self.refused(group, 0, late, "CheckDuplicate.stale")


class PacketsBeyondTheBufferWait(ModeIITest):
    """A rank with more than N packets outstanding takes no slot whose PSN is incomplete; what is in the slot stays."""

    def runTest(self) -> None:
        group, slots = self.group_of(2), self.spec.slots_per_group
        numbers = psns(self.random_psn(), slots + 1)
        rounds = [self.random_values(2) for _ in numbers]
        for psn, values in zip(numbers[:-1], rounds, strict=False):
            self.contribute(group, [0], psn, values)
        self.expect_nothing()
        beyond = self.contribution(group, 0, numbers[-1], rounds[-1][0])
        self.refused(group, 0, beyond, "CheckDuplicate.early")
        for psn, values in zip(numbers[:-1], rounds, strict=False):
            self.contribute(group, [1], psn, values)
        self.expect_results(group, [(p, self.reduced(v)) for p, v in zip(numbers[:-1], rounds, strict=False)])
        if self.filters() is None:  # else its ePSN has moved on, and only a repetition from there would be taken
            self.contribute(group, (0, 1), numbers[-1], rounds[-1])
            self.expect_results(group, [(numbers[-1], self.reduced(rounds[-1]))])


class SlotsLeftIncompleteAreTaken(ModeIITest):
    """A call that is over may have left a slot incomplete, with what came late from ranks of another generation."""

    def unfit(self) -> str | None:
        return self.filters()

    def runTest(self) -> None:
        group, psn = self.group_of(2), self.random_psn()
        self.contribute(group, [0], psn, self.random_values(2))
        later, values = serial.add(psn, 5 * self.spec.slots_per_group), self.random_values(2)
        self.contribute(group, (0, 1), later, values)
        self.expect_results(group, [(later, self.reduced(values))])


class StaleAtTheEndOfItsCollective(ModeIITest):
    """The last slots are no different from the first ones: a PSN older by the buffer's length is stale."""

    def runTest(self) -> None:
        group, slots = self.node_of(2, allreduce()), self.spec.slots_per_group
        packets = 2 * slots
        self.announce(group, [0, 1], self.first_psn, self.call(packets=packets))
        self.outputs()
        numbers = psns(serial.add(self.first_psn, 1), packets)
        for psn in numbers:
            self.complete(group, psn)
        for psn in numbers[:slots]:
            late = self.contribution(group, 0, psn, self.random_values(1)[0])
            self.refused(group, 0, late, "CheckDuplicate.stale")
        self.equal("drops that lose something", self.losses(), {"CheckDuplicate.stale": slots})


class HalfTheNumberSpaceDividesNewFromOld(ModeIITest):
    """PSN + 2^23 is old; the next one before it in the same slot, 2^23 - N ahead, is new.

    Where PSNs are compared by the sign of their difference, 2^23 has none, and PSN + 2^23 + N is the first that is old.
    """

    def runTest(self) -> None:
        psn, values = self.random_psn(), self.random_values(2)
        group = self.group_of(2, psn=serial.add(psn, -1))
        self.complete(group, psn)
        slots = self.spec.slots_per_group
        half = serial.HALF + (slots if lacks(self.spec, "half") else 0)
        old, new = serial.add(psn, half), serial.add(psn, serial.HALF - slots)
        self.announce(group, [0, 1], serial.add(old, -1), self.call(packets=1))
        self.outputs()
        self.refused(group, 0, self.contribution(group, 0, old, values[0]), "CheckDuplicate.stale")
        self.open(group, psn=serial.add(new, -1))
        self.complete(group, new)


class MixedOpcodesAreRefused(ModeIITest):
    """Ranks that disagree where messages begin and end must not be reduced into one packet."""

    def runTest(self) -> None:
        group = self.group_of(3)
        first = self.random_psn()
        pairs = [
            (Opcode.SEND_ONLY, Opcode.SEND_FIRST),
            (Opcode.SEND_FIRST, Opcode.SEND_MIDDLE),
            (Opcode.SEND_MIDDLE, Opcode.SEND_LAST),
            (Opcode.SEND_LAST, Opcode.SEND_ONLY),
        ]
        for psn, (opcode, other) in zip(psns(first, len(pairs)), pairs, strict=True):
            values = self.random_values(3)
            self.contribute(group, [0], psn, values, opcode)
            self.expect_nothing()
            mixed = self.contribution(group, 1, psn, values[1], other)
            self.refused(group, 1, mixed, "CheckDuplicate.mixed_opcode")
            self.contribute(group, (1, 2), psn, values, opcode)
            self.expect_results(group, [(psn, self.reduced(values))], [opcode])
            # Once complete, a repetition with another opcode is no repetition.
            self.refused(group, 1, mixed, "CheckDuplicate.mixed_opcode")


class AckIsRequestedIfAnyRankAsked(ModeIITest):
    """Requesters count up to their AckReq each on its own; one that asked must not depend on who comes last."""

    def runTest(self) -> None:
        group, values = self.group_of(3), self.random_values(3)
        first = self.random_psn()
        for number, asking in enumerate([(), (0,), (1,), (2,), (0, 2)]):
            psn = serial.add(first, number)
            packets = [self.contribution(group, rank, psn, values[rank], Opcode.SEND_MIDDLE) for rank in range(3)]
            for rank, packet in enumerate(packets):
                asked = replace(packet, bth=replace(packet.bth, ack_request=rank in asking)).sealed()
                self.send_from(group, rank, asked)
            for results in self.received(group).of_rank:
                self.equal(f"{asking} asked: AckReq", [r.bth.ack_request for r in results], [bool(asking)])
            self.send_from(group, 1, packets[1])  # the repetition itself may not have asked
            repeated = self.received(group).of_rank[1]
            self.equal(f"{asking} asked: AckReq again", [r.bth.ack_request for r in repeated], [bool(asking)])


class Reflection(ModeIITest):
    """Acknowledgements of one syndrome come back to the rank that sent them, and to it alone."""

    def run_reflection(self, *syndromes: int) -> None:
        ranks = 4
        group = self.group_of(ranks, context=self.spec.groups - 1, first_port=self.spec.ports - 2)
        state = self.state()
        for syndrome in syndromes:
            for rank in range(ranks):
                psn = self.random_psn()
                sent = self.acknowledgement(group, rank, psn, syndrome)
                self.send_from(group, rank, sent)
                results = self.received(group)
                self.equal("packets received by each rank", [len(p) for p in results.of_rank], [
                    int(other == rank) for other in range(ranks)
                ])  # fmt: skip
                (back,) = results.of_rank[rank]
                self.equal("opcode", back.bth.opcode, int(Opcode.ACKNOWLEDGE))
                self.equal("PSN", back.bth.psn, psn)
                self.equal("destination QP", back.bth.dst_qp, group.edges[rank].remote.qp)
                self.equal("AETH", back.aeth, sent.aeth)
                self.equal("payload", back.payload, b"")
        self.equal("registers", self.state(), state)
        self.equal("drops", self.drops(), {})


class AckIsReflected(Reflection):
    def runTest(self) -> None:
        self.run_reflection(Ack().syndrome, Ack(0).syndrome, Ack(17).syndrome)


class NakIsReflected(Reflection):
    def runTest(self) -> None:
        self.run_reflection(Nak().syndrome, Nak(NakCode.REMOTE_ACCESS_ERROR).syndrome)


class RnrNakIsReflected(Reflection):
    def runTest(self) -> None:
        self.run_reflection(RnrNak(0).syndrome, RnrNak(31).syndrome)


class AcksOfEveryRankAtOnce(ModeIITest):
    """Each of many ranks gets its own acknowledgement back, in order."""

    def runTest(self) -> None:
        ranks = min(8, self.spec.fan_in)
        group = self.group_of(ranks)
        sent = {rank: psns(self.random_psn(), 5) for rank in range(ranks)}
        for index in range(5):
            for rank in self.random.sample(range(ranks), ranks):
                self.send_from(group, rank, self.acknowledgement(group, rank, sent[rank][index]))
        for rank, packets in enumerate(self.received(group).of_rank):
            self.equal(f"rank {rank}: PSNs acknowledged", [p.bth.psn for p in packets], sent[rank])


class UdpChecksumsOfRanksAreNotPassedOn(ModeIITest):
    """A rank may use UDP checksums; a result that kept one would be dropped by every receiver."""

    def runTest(self) -> None:
        group = self.group_of(2)
        psn, values = self.random_psn(), self.random_values(2)
        for rank in (0, 1):
            packet = self.contribution(group, rank, psn, values[rank])
            self.send_from(group, rank, packet.with_udp_checksum())
        self.expect_results(group, [(psn, self.reduced(values))])
        ack = self.acknowledgement(group, 0, psn).with_udp_checksum()
        self.send_from(group, 0, ack)
        self.equal("ACKs reflected", self.received(group).total, 1)


class CongestionMarksOfASenderDoNoHarm(ModeIITest):
    """ECN bits, other traffic classes and FECN change on the way and are no part of the ICRC."""

    def runTest(self) -> None:
        group = self.group_of(2)
        psn, values = self.random_psn(), self.random_values(2)
        for rank in (0, 1):
            packet = self.contribution(group, rank, psn, values[rank])
            marked = replace(
                packet, ip=replace(packet.ip, tos=0x6B, ttl=3), bth=replace(packet.bth, fecn=True, reserved6=5)
            ).sealed()
            self.equal("ICRC of a marked packet", marked.icrc, packet.icrc)
            self.send_from(group, rank, marked)
        self.expect_results(group, [(psn, self.reduced(values))])


class LossAnywhereHealsByRepetition(ModeIITest):
    """Contributions are lost, doubled and delayed at random; repeating until the result is there always ends well."""

    def runTest(self) -> None:
        ranks = 4
        group = self.group_of(ranks)
        for psn in psns(self.random_psn(), 10):
            values = self.random_values(ranks)
            has_result: set[int] = set()
            for attempt in range(64):
                if len(has_result) == ranks:
                    break
                for rank in set(range(ranks)) - has_result:
                    for _ in range(self.random.choice((0, 1, 1, 2))):
                        self.contribute(group, [rank], psn, values)
                for rank, packets in enumerate(self.received(group).of_rank):
                    for packet in packets:
                        correct = np.array_equal(self.decode(packet.payload), self.reduced(values))
                        self.equal(
                            f"attempt {attempt}: right result for PSN {psn}", (packet.bth.psn, correct), (psn, True)
                        )
                    if packets and self.random.random() < 0.7:
                        has_result.add(rank)
            self.equal(f"ranks that have the result of PSN {psn}", has_result, set(range(ranks)))
