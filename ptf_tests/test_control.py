"""Control messages and barriers (EPIC 3.3.2, section A), and congestion notifications on their way back.

A control message is a SEND with immediate data and no payload: all ranks announce the same collective under the same
PSN, and what all have announced goes to all. A barrier is a control message that no data follows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from inc import psns
from mode_ii import ModeIITest, allreduce

from p4gen.groups.group import GroupContext
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import ImmDt
from p4gen.rocev2.opcodes import Opcode
from p4gen.vocabulary.message import Collective

BARRIER = Collective.BARRIER


class Control(ModeIITest):
    """A group whose ranks send announcements."""

    ranks = 3

    def setUp(self) -> None:
        super().setUp()
        self.group: GroupContext = self.node_of(self.ranks, allreduce())

    def some_call(self) -> int:
        """The immediate of an AllReduce of a random size."""
        return self.call(packets=self.random.randrange(1, self.most_packets + 1)).encode()


class AnnouncementReachesAllOnceAllHaveMadeIt(Control):
    def runTest(self) -> None:
        slots = self.spec.slots_per_group
        # Every slot has been used before, so that its content could be damaged.
        self.announce(self.group, range(self.ranks), self.first_psn, self.call(packets=slots))
        self.outputs()
        for number in psns(serial.add(self.first_psn, 1), slots):
            self.complete(self.group, number)
        psn, value = serial.add(self.first_psn, slots + 1 + self.random.randrange(slots)), self.some_call()
        before, lanes = self.all_drops(), self.lanes_kept()
        self.equal("lanes are in use", any(any(cells) for cells in lanes.values()), True)
        self.announce(self.group, [0, 2], psn, value)
        self.expect_nothing()
        self.announce(self.group, [1], psn, value)
        self.expect_announced(self.group, (psn, value))
        self.equal("dropped", self.all_drops() - before, Counter({"ReplicateData.absorbed": 2}))
        self.equal("lanes", self.lanes_kept(), lanes)

    def lanes_kept(self) -> dict[str, list[int]]:
        """The contents of the payload buffer."""
        return {name: cells for name, cells in self.state().items() if name.startswith("lane")}


class BarrierAfterBarrier(Control):
    """A rank that is ahead waits for the others; a stream of barriers several times as long as the buffer."""

    def runTest(self) -> None:
        stream = psns(self.random_psn(), min(3 * self.spec.slots_per_group, 192) & ~1)
        barrier = self.call(BARRIER, 0)
        for first, second in zip(stream[::2], stream[1::2], strict=True):
            self.announce(self.group, [0], first, barrier)
            self.announce(self.group, [0], second, barrier)
            self.announce(self.group, [1, 2], first, barrier)
            self.expect_announced(self.group, (first, barrier))
            self.announce(self.group, [2, 1], second, barrier)
            self.expect_announced(self.group, (second, barrier))
        self.equal("drops that lose something", self.losses(), {})


class DataFollowsItsAnnouncementAtOnce(Control):
    """Pipelined: data is not held up by an announcement that is still incomplete."""

    def unfit(self) -> str | None:
        return self.filters()

    def runTest(self) -> None:
        control, data = psns(self.random_psn(), 2)
        values, call = self.random_values(self.ranks), self.call(packets=7)
        self.announce(self.group, [0, 1], control, call)
        self.contribute(self.group, range(self.ranks), data, values)
        self.expect_results(self.group, [(data, self.reduced(values))])
        self.announce(self.group, [2], control, call)
        self.expect_announced(self.group, (control, call))


class RepeatedAnnouncementHealsLoss(Control):
    def runTest(self) -> None:
        psn, value = self.random_psn(), self.some_call()
        self.announce(self.group, [0, 0], psn, value)
        self.expect_nothing()
        self.announce(self.group, [1, 2], psn, value)
        self.expect_announced(self.group, (psn, value))
        self.announce(self.group, [1], psn, value)
        self.expect_announced(self.group, (psn, value), at=[1])
        self.equal("drops that lose something", self.losses(), {"CheckDuplicate.duplicate": 1})


class RanksThatCallDifferentCollectives(Control):
    """A rank that announces something else is refused, and the others are none the worse for it."""

    def runTest(self) -> None:
        psn, value = self.random_psn(), self.some_call()
        self.announce(self.group, [0], psn, value)
        mixed, unknown = "TrackInvocation.mixed_control", "ClassifyTraffic.no_pattern"
        barrier = self.call(BARRIER, 0).encode()
        other_root, none = self.immediates.replaced(value, root=1), self.immediates.replaced(value, collective=0)
        others = {other_root: unknown, none: unknown}
        if self.announces:
            others |= {value ^ 1: mixed, barrier: mixed}
        for other, reason in others.items():
            self.refused(self.group, 1, self.announcement(self.group, 1, psn, other), reason)
        self.announce(self.group, [1, 2], psn, value)
        self.expect_announced(self.group, (psn, value))
        # Once complete, a repetition that announces something else is no repetition.
        late = self.announcement(self.group, 1, psn, value ^ 1 if self.announces else other_root)
        self.refused(self.group, 1, late, mixed if self.announces else unknown)


class DataWhereOthersAnnounce(Control):
    """A rank that sends data under the PSN of a control message disagrees with the others."""

    def runTest(self) -> None:
        psn, value = self.random_psn(), self.some_call()
        self.announce(self.group, [0], psn, value)
        (values,) = self.random_values(1)
        packet = self.contribution(self.group, 1, psn, values)
        self.refused(self.group, 1, packet, "TrackInvocation.not_announced")
        self.announce(self.group, [1, 2], psn, value)
        self.expect_announced(self.group, (psn, value))


class AnnouncementWhereOthersSendData(Control):
    """A rank that announces something inside what has been announced is refused; what others send still counts."""

    def runTest(self) -> None:
        self.open(self.group)
        psn, values = self.random_psn(), self.random_values(self.ranks)
        self.contribute(self.group, [0], psn, values)
        for inside in (psn, serial.add(psn, 1), serial.add(self.first_psn, self.most_packets)):
            packet = self.announcement(self.group, 1, inside, self.some_call())
            self.refused(self.group, 1, packet, "TrackInvocation.not_announced")
        self.contribute(self.group, [1, 2], psn, values)
        self.expect_results(self.group, [(psn, self.reduced(values))])


class AnnouncementOfAnotherLength(Control):
    """A control message without its immediate, or with data after it."""

    def runTest(self) -> None:
        sound = self.announcement(self.group, 1, self.random_psn(), self.some_call())
        for spoilt in (replace(sound, immdt=None), replace(sound, payload=bytes(self.spec.payload_bytes))):
            self.refused(self.group, 1, spoilt.sealed(), "ValidatePacket.bad_length")


class CorruptAnnouncement(Control):
    def unfit(self) -> str | None:
        return None if self.spec.icrc.checked else "the program does not check the ICRC"

    def runTest(self) -> None:
        value = self.some_call()
        sound = self.announcement(self.group, 1, self.random_psn(), value)
        self.refused(self.group, 1, replace(sound, immdt=ImmDt(value ^ 1)), "CheckIcrc.bad_icrc")


class CongestionNotificationIsReflected(Control):
    """A CNP slows down the rank that got a marked result: it is among those whose contributions crowd the path."""

    def runTest(self) -> None:
        self.open(self.group)
        state = self.state()
        for rank in range(self.ranks):
            self.send_from(self.group, rank, self.notification(self.group, rank))
            results = self.received(self.group)
            self.equal("packets received by each rank", [len(p) for p in results.of_rank], [
                int(other == rank) for other in range(self.ranks)
            ])  # fmt: skip
            back = results.of_rank[rank][0]
            self.equal("opcode", back.bth.opcode, int(Opcode.CNP))
            self.equal("BECN", back.bth.becn, True)
            self.equal("room", back.payload, bytes(16))
        self.equal("registers", self.state(), state)
        short = self.notification(self.group, 0, room=12)
        self.refused(self.group, 0, short, "ValidatePacket.bad_length")
