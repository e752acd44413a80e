"""Control messages and barriers (EPIC 3.3.2, section A), and congestion notifications on their way back.

A control message is a SEND with immediate data and no payload: all ranks announce the same collective under the same
PSN, and what all have announced goes to all. A barrier is a control message that no data follows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from mode_ii import ModeIITest, psns

from p4gen.manager.config import Group
from p4gen.rocev2.headers import BTH, ImmDt
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket


class Control(ModeIITest):
    """A group whose ranks announce things."""

    ranks = 3

    def setUp(self) -> None:
        super().setUp()
        self.group: Group = self.group_of(self.ranks)

    def announcement(self, rank: int, psn: int, value: int) -> RocePacket:
        """The control message by which ``rank`` announces ``value``."""
        packet = self._from_rank(self.group, rank, BTH(Opcode.SEND_ONLY_IMM, 0, psn, ack_request=True))
        return replace(packet, immdt=ImmDt(value)).sealed()

    def announce(self, ranks: range | list[int], psn: int, value: int) -> None:
        for rank in ranks:
            self.send_from(self.group, rank, self.announcement(rank, psn, value))

    def expect_announced(self, *expected: tuple[int, int]) -> None:
        """Every rank has received exactly these announcements, as (PSN, immediate)."""
        for rank, packets in enumerate(self.received(self.group).of_rank):
            at = f"rank {rank}"
            got = [(p.bth.psn, p.immdt.value) for p in packets if p.immdt is not None]
            self.equal(f"{at}: announcements", got, list(expected))
            self.equal(f"{at}: opcodes", {p.bth.opcode for p in packets}, {int(Opcode.SEND_ONLY_IMM)})
            self.equal(f"{at}: payloads", {p.payload for p in packets}, {b""})


class AnnouncementReachesAllOnceAllHaveMadeIt(Control):
    def runTest(self) -> None:
        psn, value = self.random_psn(), self.random.getrandbits(32)
        lanes = {name: cells for name, cells in self.state().items() if name != "slots"}
        self.announce([0, 2], psn, value)
        self.expect_nothing()
        self.announce([1], psn, value)
        self.expect_announced((psn, value))
        self.equal("drops", self.drops(), Counter({"AggregateData.absorbed": 2}))
        after = {name: cells for name, cells in self.state().items() if name != "slots"}
        self.equal("lanes", after, lanes)


class BarrierAfterBarrier(Control):
    """A rank that is ahead waits for the others; a stream of barriers several times as long as the buffer."""

    def runTest(self) -> None:
        stream = psns(self.random_psn(), min(3 * self.spec.slots_per_group, 192))
        for first, second in zip(stream[::2], stream[1::2], strict=True):
            self.announce([0], first, 0x20000000)
            self.announce([0], second, 0x20000000)
            self.announce([1, 2], first, 0x20000000)
            self.expect_announced((first, 0x20000000))
            self.announce([2, 1], second, 0x20000000)
            self.expect_announced((second, 0x20000000))
        self.equal("drops that lose something", self.losses(), {})


class DataFollowsItsAnnouncementAtOnce(Control):
    """Pipelined: data is not held up by an announcement that is still incomplete."""

    def runTest(self) -> None:
        control, data = psns(self.random_psn(), 2)
        values = self.random_values(self.ranks)
        self.announce([0, 1], control, 7)
        self.contribute(self.group, range(self.ranks), data, values)
        self.expect_results(self.group, [(data, self.reduced(values))])
        self.announce([2], control, 7)
        self.expect_announced((control, 7))


class RepeatedAnnouncementHealsLoss(Control):
    def runTest(self) -> None:
        psn = self.random_psn()
        self.announce([0, 0], psn, 9)
        self.expect_nothing()
        self.announce([1, 2], psn, 9)
        self.expect_announced((psn, 9))
        self.announce([1], psn, 9)
        self.expect_announced((psn, 9))
        self.equal("drops that lose something", self.losses(), {"CheckDuplicate.duplicate": 1})


class RanksThatCallDifferentCollectives(Control):
    """A rank that announces something else is refused, and the others are none the worse for it."""

    def runTest(self) -> None:
        psn = self.random_psn()
        value = self.random.getrandbits(32)
        self.announce([0], psn, value)
        for other in (value ^ 1, value ^ 1 << 31, 0):
            self.refused(self.group, 1, self.announcement(1, psn, other), "CheckDuplicate.mixed_control")
        self.announce([1, 2], psn, value)
        self.expect_announced((psn, value))
        # Once complete, a repetition that announces something else is no repetition.
        self.refused(self.group, 1, self.announcement(1, psn, value ^ 1), "CheckDuplicate.mixed_control")


class AnnouncementWhereOthersSendData(Control):
    def runTest(self) -> None:
        psn, values = self.random_psn(), self.random_values(self.ranks)
        self.contribute(self.group, [0], psn, values)
        self.refused(self.group, 1, self.announcement(1, psn, 0), "CheckDuplicate.mixed_opcode")
        self.contribute(self.group, [1, 2], psn, values)
        self.expect_results(self.group, [(psn, self.reduced(values))])


class AnnouncementOfAnotherLength(Control):
    """Without its immediate, or with data behind it."""

    def runTest(self) -> None:
        sound = self.announcement(1, self.random_psn(), 5)
        for spoilt in (replace(sound, immdt=None), replace(sound, payload=bytes(self.spec.payload_bytes))):
            self.refused(self.group, 1, spoilt.sealed(), "ValidatePacket.bad_length")


class CorruptAnnouncement(Control):
    def unfit(self) -> str | None:
        return None if self.spec.icrc == "recompute" else "the program ignores the ICRC"

    def runTest(self) -> None:
        sound = self.announcement(1, self.random_psn(), 5)
        self.refused(self.group, 1, replace(sound, immdt=ImmDt(4)), "CheckIcrc.bad_icrc")


class CongestionNotificationIsReflected(Control):
    """A CNP slows down the rank that got a marked result: it is among those whose contributions crowd the path."""

    def runTest(self) -> None:
        state = self.state()
        for rank in range(self.ranks):
            cnp = self._from_rank(self.group, rank, BTH(Opcode.CNP, 0, 0, becn=True), payload=bytes(16))
            self.send_from(self.group, rank, cnp)
            results = self.received(self.group)
            self.equal("packets received by each rank", [len(p) for p in results.of_rank], [
                int(other == rank) for other in range(self.ranks)
            ])  # fmt: skip
            back = results.of_rank[rank][0]
            self.equal("opcode", back.bth.opcode, int(Opcode.CNP))
            self.equal("BECN", back.bth.becn, True)
            self.equal("room", back.payload, bytes(16))
        self.equal("registers", self.state(), state)
        short = self._from_rank(self.group, 0, BTH(Opcode.CNP, 0, 0, becn=True), payload=bytes(12))
        self.refused(self.group, 0, short, "ValidatePacket.bad_length")
