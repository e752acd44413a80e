"""Broadcast: data from the root is sent over all other edges, and their answers are combined into one (section 4.3).

ackPsn is the newest PSN that an edge has acknowledged, nodeAckPsn the least of them. An answer toward the root must
never acknowledge a packet that a receiver below this node lacks.
"""

from __future__ import annotations

from inc import broadcast_from, psns
from mode_ii import ModeIITest

from p4gen.groups.group import GroupContext
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.opcodes import Ack, Nak, NakCode, Opcode, RnrNak

ACK, NAK, RNR = Ack().syndrome, Nak().syndrome, RnrNak(5).syndrome
WAITS = "CombineAcks.waits"


class BroadcastTest(ModeIITest):
    """A node at which a Broadcast is announced; the root is at edge 0 unless stated otherwise."""

    edges = 4
    toward = 0

    def setUp(self) -> None:
        super().setUp()
        self.group: GroupContext = self.node_of(self.edges, broadcast_from(9, self.toward))
        self.others = [edge for edge in range(self.edges) if edge != self.toward]

    def begin(self, psn: int | None = None) -> int:
        """Announce; returns the PSN of the first data packet."""
        before = serial.add(self.random_psn(), -1) if psn is None else serial.add(psn, -1)
        self.open(self.group, psn=before)
        return serial.add(before, 1)

    def answer(self, edge: int, psn: int, syndrome: int = ACK) -> None:
        self.send_from(self.group, edge, self.acknowledgement(self.group, edge, psn, syndrome))

    def answered(self, *expected: tuple[int, int]) -> None:
        """Exactly these answers, as (PSN, syndrome), have gone toward the root; nothing went elsewhere."""
        self.expect_answers(self.group, [self.toward], *expected)


class BroadcastReachesAllOthers(BroadcastTest):
    """Every edge but the one it came over, without delay and without touching any state, but for what was asked for."""

    def runTest(self) -> None:
        numbers = psns(self.begin(), 5)
        state = {} if self.spec.loss_recovery.selective_naks else self.state()
        sent = [(psn, self.random_values(1)[0]) for psn in numbers]
        for psn, values in sent:
            packet = self.contribution(self.group, self.toward, psn, values)
            self.send_from(self.group, self.toward, packet)
        self.expect_at(self.group, self.others, sent)
        if state:
            self.equal("registers", self.state(), state)
        self.equal("drops", self.drops(), {})


class BroadcastFromTheParent(BroadcastReachesAllOthers):
    """The root is at another edge: here, the last one."""

    toward = 3


class BroadcastToThirtyOne(BroadcastReachesAllOthers):
    edges = 32

    def runTest(self) -> None:
        psn = self.begin()
        (values,) = self.random_values(1)
        self.send_from(self.group, self.toward, self.contribution(self.group, self.toward, psn, values))
        self.expect_at(self.group, self.others, [(psn, values)])
        last = self.random.choice(self.others)
        for edge in self.others:
            if edge != last:
                self.answer(edge, psn)
        self.expect_nothing()
        self.answer(last, psn)
        self.answered((psn, ACK))


class RepeatedBroadcastGoesOutAgain(BroadcastTest):
    """A retransmission reaches all: those that have it drop it, and acknowledge again."""

    def runTest(self) -> None:
        psn, (values,) = self.begin(), self.random_values(1)
        for _ in range(3):
            self.send_from(self.group, 0, self.contribution(self.group, 0, psn, values))
        self.expect_at(self.group, self.others, [(psn, values)] * 3)


class OnlyTheRootSends(BroadcastTest):
    """Data and control messages from any other edge are refused."""

    def runTest(self) -> None:
        psn, (values,) = self.begin(), self.random_values(1)
        for edge in self.others:
            self.refused(self.group, edge, self.contribution(self.group, edge, psn, values), "ClassifyTraffic.no_flow")
            announcement = self.announcement(self.group, edge, serial.add(psn, -1), self.call(self.group.patterns[0]))
            self.refused(self.group, edge, announcement, "ClassifyTraffic.no_flow")


class RootDoesNotAnswer(BroadcastTest):
    """Answers from the edge toward the root acknowledge nothing."""

    def runTest(self) -> None:
        psn = self.begin()
        for syndrome in (ACK, NAK):
            answer = self.acknowledgement(self.group, 0, psn, syndrome)
            self.refused(self.group, 0, answer, "ClassifyTraffic.no_flow")


class AnnouncementReachesAllOthersAtOnce(BroadcastTest):
    def runTest(self) -> None:
        psn, call = self.random_psn(), self.call(self.group.patterns[0], 4)
        self.announce(self.group, [0], psn, call)
        self.expect_announced(self.group, (psn, call), at=self.others)
        self.announce(self.group, [0], psn, call)
        self.expect_announced(self.group, (psn, call), at=self.others)
        for edge in self.others:
            self.answer(edge, psn)
        self.answered((psn, ACK))


class AckWaitsForTheSlowest(BroadcastTest):
    """An ACK goes on when the last edge has acknowledged, with that edge's PSN; then only when the least advances."""

    def runTest(self) -> None:
        numbers = psns(self.begin(), 8)
        self.answer(1, numbers[5])
        self.answer(2, numbers[2])
        self.expect_nothing()
        self.answer(3, numbers[4])
        self.answered((numbers[2], ACK))
        self.answer(1, numbers[7])  # not the slowest
        self.answer(3, numbers[5])
        self.expect_nothing()
        self.answer(2, numbers[6])
        self.answered((numbers[5], ACK))
        self.equal("answers that wait", self.drops(), {WAITS: 4})


class AckOfEachEdgeCounts(BroadcastTest):
    """Whichever edge is the slowest, it is waited for."""

    def runTest(self) -> None:
        numbers = psns(self.begin(), len(self.others))
        for psn, slowest in zip(numbers, self.others, strict=True):
            for edge in self.others:
                if edge != slowest:
                    self.answer(edge, psn)
            self.expect_nothing()
            self.answer(slowest, psn)
            self.answered((psn, ACK))


class RepeatedAckGoesOnAgain(BroadcastTest):
    """The ACK may have been lost on its way to the root, which then repeats itself: whoever is at the least answers."""

    def runTest(self) -> None:
        psn, further = psns(self.begin(), 2)
        for edge in self.others:
            self.answer(edge, psn)
        self.answered((psn, ACK))
        for edge in self.others:
            self.answer(edge, psn)
            self.answered((psn, ACK))
        # Once an edge is further, its ACKs alone say nothing new.
        self.answer(1, further)
        self.answer(1, further)
        self.expect_nothing()
        self.answer(2, psn)
        self.answered((psn, ACK))


class OldAckTakesNothingBack(BroadcastTest):
    """ACKs overtake each other: a lower PSN changes neither the edge's ackPsn nor what goes on."""

    def runTest(self) -> None:
        numbers = psns(self.begin(), 6)
        for edge in self.others:
            self.answer(edge, numbers[4])
        self.answered((numbers[4], ACK))
        self.answer(2, numbers[1])
        self.expect_nothing()
        for edge in (1, 3):
            self.answer(edge, numbers[5])
        self.expect_nothing()
        self.answer(2, numbers[5])
        self.answered((numbers[5], ACK))


class AcksInAnyOrder(BroadcastTest):
    """ACKs at random: what has gone on is always the least that the edges have acknowledged."""

    def runTest(self) -> None:
        first = self.begin()
        acked = dict.fromkeys(self.others, -1)
        node = -1
        for _ in range(60):
            edge = self.random.choice(self.others)
            count = max(0, acked[edge] + self.random.randrange(-2, 5))
            acked[edge] = max(acked[edge], count)
            least = min(acked.values())
            self.answer(edge, serial.add(first, count))
            if least > node or (count == least and least >= 0):
                self.answered((serial.add(first, least), ACK))
            else:
                self.expect_nothing()
            node = least
        self.equal("drops that lose something", self.losses(), {})


class AckAcrossTheWrap(BroadcastTest):
    """0xFFFFFF is less than 0: the least is found by serial numbers."""

    def runTest(self) -> None:
        numbers = psns(self.begin(0xFFFFFC), 8)
        self.answer(1, numbers[6])  # 2
        self.answer(2, numbers[3])  # 0xFFFFFF
        self.answer(3, numbers[5])
        self.answered((0xFFFFFF, ACK))
        self.answer(2, numbers[7])
        self.answered((1, ACK))
        self.answer(3, numbers[7])
        self.answered((2, ACK))


class SingleReceiver(BroadcastTest):
    """With one other edge, every answer goes on as it is."""

    edges = 2

    def runTest(self) -> None:
        numbers = psns(self.begin(), 3)
        for psn, syndrome in zip(numbers, (ACK, Ack(7).syndrome, ACK), strict=True):
            self.answer(1, psn, syndrome)
            self.answered((psn, syndrome))
        self.answer(1, serial.add(numbers[2], 1), NAK)
        self.answered((serial.add(numbers[2], 1), NAK))


class NakGoesOnAtTheLeast(BroadcastTest):
    """The edge with the least ackPsn misses a packet: its NAK is forwarded at once, unchanged."""

    def runTest(self) -> None:
        numbers = psns(self.begin(), 6)
        for edge in (1, 3):
            self.answer(edge, numbers[5])
        self.answer(2, numbers[0])
        self.answered((numbers[0], ACK))
        self.answer(2, numbers[3], NAK)  # has all before it
        self.answered((numbers[3], NAK))
        # Again, as it may have been lost; then what was missing arrives.
        self.answer(2, numbers[3], NAK)
        self.answered((numbers[3], NAK))
        self.answer(2, numbers[5])
        self.answered((numbers[5], ACK))


class NakWaitsUntilOthersHaveComeAsFar(BroadcastTest):
    """A NAK acknowledges all before its PSN, so it must not overtake an edge that has not got that."""

    def runTest(self) -> None:
        numbers = psns(self.begin(), 6)
        for edge in self.others:
            self.answer(edge, numbers[0])
        self.answered((numbers[0], ACK))
        self.answer(1, numbers[4], NAK)
        self.expect_nothing()
        self.answer(2, numbers[5])
        self.expect_nothing()
        self.answer(3, numbers[1])
        self.answered((numbers[1], ACK))
        self.answer(3, numbers[5])  # now the NAK's edge is the last
        self.answered((numbers[4], NAK))


class NakOfOneWhereOthersAcknowledge(BroadcastTest):
    """Two edges stand at the same PSN, one with a NAK: the root must hear of the loss."""

    def runTest(self) -> None:
        numbers = psns(self.begin(), 4)
        self.answer(1, numbers[2])
        self.answer(2, numbers[2], NAK)  # has numbers[1]
        self.expect_nothing()
        self.answer(3, numbers[1])
        self.answered((numbers[2], NAK))
        # The other way around: the ACK was there first.
        self.answer(2, numbers[2])
        self.expect_nothing()
        self.answer(3, numbers[2], NAK)
        self.answered((numbers[2], NAK))
        # All are at the same PSN, and the last of them misses the next one.
        self.answer(3, numbers[2])
        self.answered((numbers[2], ACK))
        self.answer(3, numbers[3], NAK)
        self.answered((numbers[3], NAK))


class RnrNakWaitsLikeANak(BroadcastTest):
    """Receiver not ready: the requested delay is forwarded with it, for the least ackPsn."""

    def runTest(self) -> None:
        numbers = psns(self.begin(), 5)
        self.answer(2, numbers[3], RNR)
        self.answer(1, numbers[4])
        self.expect_nothing()
        self.answer(3, numbers[4])
        self.answered((numbers[3], RNR))
        self.answer(2, numbers[3])
        self.answered((numbers[3], ACK))


class FatalNakGoesOn(BroadcastTest):
    """A remote error breaks the connection, once everything before it is acknowledged by all."""

    def runTest(self) -> None:
        numbers = psns(self.begin(), 3)
        fatal = Nak(NakCode.REMOTE_ACCESS_ERROR).syndrome
        for edge in (1, 2):
            self.answer(edge, numbers[2])
        self.answer(3, numbers[1], fatal)
        self.answered((numbers[1], fatal))


class NewBroadcastStartsAfresh(BroadcastTest):
    """What was acknowledged of an earlier broadcast, PSNs ahead of the new one included, counts no longer."""

    def runTest(self) -> None:
        numbers = psns(self.begin(), 3)
        for edge in self.others:
            self.answer(edge, numbers[2], NAK if edge == 3 else ACK)
        self.outputs()
        # Half the number space on, where everything that was is ahead.
        psn = self.begin(serial.add(numbers[0], serial.HALF - 2))
        self.answer(1, psn)
        self.answer(2, psn)
        self.expect_nothing()
        self.answer(3, psn)
        self.answered((psn, ACK))
        again = self.begin(serial.add(psn, serial.HALF - 2))
        for edge in (2, 3):
            self.answer(edge, again)
        self.expect_nothing()
        self.answer(1, again)
        self.answered((again, ACK))


class RepeatedAnnouncementForgetsNothing(BroadcastTest):
    """A control message that was retransmitted does not begin the broadcast again."""

    def runTest(self) -> None:
        psn = self.begin()
        for edge in (1, 2):
            self.answer(edge, psn)
        self.open(self.group, psn=serial.add(psn, -1))
        self.answer(3, psn)
        self.answered((psn, ACK))


class AckOfWhatIsNotAnnounced(BroadcastTest):
    """An ACK too far ahead would complete what was never sent (a requester believes it): it goes nowhere."""

    def runTest(self) -> None:
        psn = self.random_psn()
        self.refused(self.group, 1, self.acknowledgement(self.group, 1, psn), "TrackInvocation.not_announced")
        self.announce(self.group, [0], psn, self.call(self.group.patterns[0], 4))
        self.outputs()
        for strange in (serial.add(psn, 5), serial.add(psn, -1), serial.add(psn, serial.HALF)):
            answer = self.acknowledgement(self.group, 1, strange)
            self.refused(self.group, 1, answer, "TrackInvocation.not_announced")


class CongestionNotificationsReachTheRoot(BroadcastTest):
    """It is the root that sends too fast; no edge waits for another to say so."""

    def runTest(self) -> None:
        self.begin(serial.HALF)  # a notification's PSN is 0, which is far from it
        state = self.state()
        for edge in self.others:
            self.send_from(self.group, edge, self.notification(self.group, edge))
            taken = self.received(self.group).of_rank
            self.equal("opcodes", [[p.bth.opcode for p in packets] for packets in taken], [
                [int(Opcode.CNP)] if other == self.toward else [] for other in range(self.edges)
            ])  # fmt: skip
        self.equal("registers", self.state(), state)


class TwoBroadcastsAtOnce(ModeIITest):
    """Each context keeps its own ackPsns, though PSNs and edges are the same."""

    def unfit(self) -> str | None:
        return None if self.spec.groups > 1 else "the program serves one group"

    def runTest(self) -> None:
        groups = [self.make_group(3, context=number, patterns=[broadcast_from(0, 0)]) for number in (0, 1)]
        self.ready(*groups)
        psn = self.random_psn()
        for group, edge in ((groups[0], 1), (groups[1], 2)):
            self.send_from(group, edge, self.acknowledgement(group, edge, psn))
        self.expect_nothing()
        self.send_from(groups[0], 2, self.acknowledgement(groups[0], 2, psn))
        self.expect_answers(groups[0], [0], (psn, ACK))
        self.send_from(groups[1], 1, self.acknowledgement(groups[1], 1, psn))
        self.expect_answers(groups[1], [0], (psn, ACK))
        # One is far ahead; the other's least edge advances all the same.
        for ahead, behind in (groups, groups[::-1]):
            psn = serial.add(psn, 10)
            for edge in (1, 2):
                self.expect_nothing()
                self.send_from(ahead, edge, self.acknowledgement(ahead, edge, psn))
            self.expect_answers(ahead, [0], (psn, ACK))
            least, more = psns(serial.add(psn, -5), 2)
            self.send_from(behind, 1, self.acknowledgement(behind, 1, least))
            self.expect_nothing()
            self.send_from(behind, 2, self.acknowledgement(behind, 2, more))
            self.expect_answers(behind, [0], (least, ACK))
            self.send_from(behind, 1, self.acknowledgement(behind, 1, more))
            self.expect_answers(behind, [0], (more, ACK))
