"""Which PSNs a control message opens (EPIC 3.3.2): data is taken inside announced ranges, and nowhere else.

A control message of PSN p that announces n packets opens p + 1 to p + n. The switch learns it from the first control
message that passes; a few announcements of a context live at a time.
"""

from __future__ import annotations

from inc import allreduce, broadcast_from, psns
from mode_ii import ModeIITest

from p4gen.groups.group import GroupContext
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.opcodes import Opcode
from p4gen.vocabulary.message import Collective

LIVE = 3
"""Number of announcements per context that the program remembers."""
UNANNOUNCED = "TrackInvocation.not_announced"


class Announced(ModeIITest):
    """A star of three ranks without announcements."""

    ranks = 3
    epoch = 1

    def setUp(self) -> None:
        super().setUp()
        self.group: GroupContext = self.make_group(self.ranks, patterns=[allreduce()], epoch=self.epoch)
        self.serve(self.group)

    def call_all(self, psn: int, packets: int) -> None:
        """All ranks announce an AllReduce."""
        self.announce(self.group, range(self.ranks), psn, self.call(packets=packets))
        self.expect_announced(self.group, (psn, self.call(packets=packets)))

    def refuse_data(self, *numbers: int) -> None:
        """Data under these PSNs is refused; a program of static groups takes it."""
        if not self.announces:
            return
        values = self.random_values(1)[0]
        for psn in numbers:
            packet = self.contribution(self.group, 1, psn, values)
            self.refused(self.group, 1, packet, UNANNOUNCED)


class DataBeforeItsAnnouncement(Announced):
    """A newly configured switch accepts no data, not even where its registers' initial zeros could be taken for an
    announcement."""

    def runTest(self) -> None:
        psn = self.random_psn()
        self.refuse_data(psn, 1, self.most_packets, serial.HALF, 0xFFFFFF)
        values = self.random_values(1)[0]
        packet = self.contribution(self.group, 0, 0, values)
        self.refused(self.group, 0, packet, UNANNOUNCED)
        self.refused(self.group, 0, self.acknowledgement(self.group, 0, psn), UNANNOUNCED)
        self.call_all(psn, 1)
        self.complete(self.group, serial.add(psn, 1))


class DataOutsideTheAnnouncedRange(Announced):
    """The PSN after the last one, that of the control message itself, and those before it are refused."""

    def runTest(self) -> None:
        psn, packets = self.random_psn(), self.random.randrange(2, 9)
        self.call_all(psn, packets)
        self.refuse_data(psn, serial.add(psn, -1), serial.add(psn, packets + 1), serial.add(psn, serial.HALF))
        for number in psns(serial.add(psn, 1), packets):
            self.complete(self.group, number)
        self.refuse_data(serial.add(psn, packets + 1))


class RangeAcrossTheWrap(Announced):
    def runTest(self) -> None:
        self.call_all(0xFFFFFE, 4)
        self.refuse_data(0xFFFFFD, 0xFFFFFE, 3)
        for number in (0xFFFFFF, 0, 1, 2):
            self.complete(self.group, number)


class LargestRange(Announced):
    """The largest number of packets that 19 bits can announce."""

    def unfit(self) -> str | None:
        return self.filters()

    def runTest(self) -> None:
        psn = self.random_psn()
        self.call_all(psn, self.most_packets)
        last = serial.add(psn, self.most_packets)
        self.refuse_data(serial.add(last, 1))
        self.complete(self.group, serial.add(psn, 1))
        self.complete(self.group, last)


class EmptyRange(Announced):
    """No packets are announced: by a barrier, or by a collective without data."""

    def runTest(self) -> None:
        for number, collective in enumerate((Collective.BARRIER, Collective.ALLREDUCE)):
            psn = serial.add(self.first_psn, number)
            self.announce(self.group, range(self.ranks), psn, self.call(collective, 0))
            self.expect_announced(self.group, (psn, self.call(collective, 0)))
            self.refuse_data(serial.add(psn, 1), psn)


class OneRanksAnnouncementWillDo(Announced):
    """The other ranks' control messages were lost, so the group waits; their data counts nevertheless."""

    def unfit(self) -> str | None:
        return self.filters()

    def runTest(self) -> None:
        psn, call = self.random_psn(), self.call(packets=2)
        self.announce(self.group, [2], psn, call)
        self.complete(self.group, serial.add(psn, 1))
        self.announce(self.group, [2, 0], psn, call)
        self.expect_nothing()
        self.complete(self.group, serial.add(psn, 2))
        self.announce(self.group, [1], psn, call)
        self.expect_announced(self.group, (psn, call))


class SomeAnnouncementsLive(Announced):
    """Ranks have begun the next collectives while others repeat packets of those before; what was earlier is over."""

    def unfit(self) -> str | None:
        return self.filters()

    def runTest(self) -> None:
        controls = [serial.add(self.first_psn, 3 * number) for number in range(LIVE + 1)]
        values, call = self.random_values(self.ranks), self.call(packets=2)
        for psn in controls[:-1]:
            self.call_all(psn, 2)
            self.contribute(self.group, range(self.ranks), serial.add(psn, 1), values)
            self.expect_results(self.group, [(serial.add(psn, 1), self.reduced(values))])
        # All remembered collectives can be completed, and completed packets are answered again.
        for psn in controls[:-1]:
            self.complete(self.group, serial.add(psn, 2))
            self.contribute(self.group, [1], serial.add(psn, 1), values)
            self.expect_at(self.group, [1], [(serial.add(psn, 1), self.reduced(values))])
            self.announce(self.group, [1], psn, call)
            self.expect_announced(self.group, (psn, call), at=[1])
        # The next one takes the first one's place.
        self.call_all(controls[-1], 2)
        self.refuse_data(serial.add(controls[0], 1), serial.add(controls[0], 2))
        self.complete(self.group, serial.add(controls[-1], 1))
        for psn in controls[1:]:
            self.contribute(self.group, [1], serial.add(psn, 1), values)
            self.equal(f"PSN {psn} + 1 answered", self.received(self.group).total, 1)


class RanksSomeCollectivesApart(Announced):
    """Each rank does some collectives in a row before the next rank begins with the first of them."""

    def runTest(self) -> None:
        controls = [serial.add(self.first_psn, 2 * number) for number in range(LIVE)]
        rounds, call = [self.random_values(self.ranks) for _ in controls], self.call(packets=1)
        for rank in range(self.ranks):
            last = rank == self.ranks - 1
            for psn, values in zip(controls, rounds, strict=True):
                data = serial.add(psn, 1)
                self.announce(self.group, [rank], psn, call)
                self.expect_announced(self.group, *([(psn, call)] if last else []))
                self.contribute(self.group, [rank], data, values)
                self.expect_results(self.group, [(data, self.reduced(values))] if last else [])
        # Ranks that lost the results request all of them again.
        for psn, values in zip(controls, rounds, strict=True):
            self.announce(self.group, [0], psn, call)
            self.expect_announced(self.group, (psn, call), at=[0])
            self.contribute(self.group, [0], serial.add(psn, 1), values)
            self.expect_at(self.group, [0], [(serial.add(psn, 1), self.reduced(values))])
        self.equal("drops that lose something", self.losses(), {})


class RanksApartInTheLastEpoch(RanksSomeCollectivesApart):
    """The same where a register without an announcement must not be taken for one: all bits of the epoch are set.

    PSN 0xFFFFFF, which a word of ones names, is ahead of all that is announced.
    """

    epoch = 255

    def setUp(self) -> None:
        super().setUp()
        self.first_psn = self.random.randrange(serial.HALF + 1, 0xFFFFFF - (1 << 20))


class OldEpochsAnnounceNothing(Announced):
    """A group is set up again and announces something: data that belongs to what was announced before is refused."""

    def runTest(self) -> None:
        controls = [serial.add(self.first_psn, 2 * number) for number in range(LIVE + 1)]
        for psn in controls[:-1]:
            self.call_all(psn, 1)
        again = self.make_group(self.ranks, patterns=[allreduce()], epoch=2)
        self.reconfigure(again)
        self.call_all(controls[-1], 1)
        self.refuse_data(*(serial.add(psn, 1) for psn in controls[:-1]))
        self.complete(again, serial.add(controls[-1], 1))


class StaleAnnouncement(Announced):
    """A control message from before those that live opens nothing, and is not answered."""

    def unfit(self) -> str | None:
        return self.filters()

    def runTest(self) -> None:
        controls = [serial.add(self.first_psn, 3 * number) for number in range(LIVE + 1)]
        for psn in controls:
            self.call_all(psn, 2)
        stale = self.announcement(self.group, 1, controls[0], self.call(packets=2))
        self.refused(self.group, 1, stale, UNANNOUNCED)
        for psn in controls[1:]:
            self.complete(self.group, serial.add(psn, 1))
            self.complete(self.group, serial.add(psn, 2))


class AnnouncementsOutOfOrder(Announced):
    """The control message before the newest comes late, its first copies having been lost: both ranges are open."""

    def unfit(self) -> str | None:
        return self.filters()

    def runTest(self) -> None:
        *early, late, newest = (serial.add(self.first_psn, 3 * number) for number in range(LIVE + 1))
        call = self.call(packets=2)
        for psn in early:
            self.call_all(psn, 2)
        self.announce(self.group, [0], newest, call)
        self.refuse_data(serial.add(late, 1))
        self.announce(self.group, [1, 2, 0], late, call)
        self.expect_announced(self.group, (late, call))
        for psn in (late, newest, *early[1:]):
            self.complete(self.group, serial.add(psn, 1))
        self.refuse_data(serial.add(early[0], 1))
        self.announce(self.group, [1, 2], newest, call)
        self.expect_announced(self.group, (newest, call))


class RepeatedAnnouncementKeepsTheRange(Announced):
    """Copies of a control message, before and after the data: the range stays, and so does the one before it."""

    def unfit(self) -> str | None:
        return self.filters()

    def runTest(self) -> None:
        first, second = self.first_psn, serial.add(self.first_psn, 3)
        call = self.call(packets=2)
        for psn in (first, second):
            self.call_all(psn, 2)
        for psn in (second, first, second):
            for rank in range(self.ranks):
                self.announce(self.group, [rank], psn, call)
                self.expect_announced(self.group, (psn, call), at=[rank])
        for psn in (first, second):
            self.complete(self.group, serial.add(psn, 2))


class GroupsAnnounceForThemselves(ModeIITest):
    """What one group has announced opens nothing for another, whose PSNs are the same."""

    def unfit(self) -> str | None:
        return None if self.spec.groups > 1 else "the program serves one group"

    def runTest(self) -> None:
        groups = [self.make_group(2, context=context) for context in (0, self.spec.groups - 1)]
        self.serve(*groups)
        psn, values = serial.add(self.first_psn, 1), self.random_values(2)
        self.open(groups[0])
        self.refused(groups[1], 0, self.contribution(groups[1], 0, psn, values[0]), UNANNOUNCED)
        self.complete(groups[0], psn)
        self.open(groups[1])
        self.complete(groups[1], psn)


class CollectiveThatIsNotServed(Announced):
    """A pattern the context has no entry for, or a collective that there is none of."""

    def runTest(self) -> None:
        psn = self.random_psn()
        calls = [self.call(broadcast_from(0, 0), 3).encode(), self.call(Collective.REDUCE_SCATTER, 3).encode()]
        call = self.call(packets=3).encode()
        calls += [self.immediates.replaced(call, collective=code) for code in (0, 7)] + [
            self.immediates.replaced(call, root=1)
        ]
        for value in calls:
            before = self.all_drops()
            self.announce(self.group, [0], psn, value)
            self.expect_nothing()
            self.equal(f"{value:#x} dropped", self.all_drops() - before, {self.reason("ClassifyTraffic.no_pattern"): 1})
            psn = serial.add(psn, 1 + self.immediates.unpack(value)["packets"])


class OtherOpOrDtype(Announced):
    """What is announced is not what the program was generated for: it would reduce the wrong thing."""

    def runTest(self) -> None:
        psn, call = self.random_psn(), self.call(packets=3).encode()
        announced = self.immediates.unpack(call)["numbers"]
        supported = [numbers.code for numbers in self.spec.choices]
        for code in (announced ^ bits for bits in (1, 2, 4, 8, 16, 3, 24, 31)):
            if code in supported:
                continue
            packet = self.announcement(self.group, 1, psn, self.immediates.replaced(call, numbers=code))
            self.refused(self.group, 1, packet, "FindContext.unsupported")
        self.refuse_data(serial.add(psn, 1))
        self.call_all(psn, 3)


class MiddleOfAMessageAnnounced(Announced):
    """Ranges do not mind messages: the last announced packet may be inside one."""

    def runTest(self) -> None:
        psn, values = self.random_psn(), self.random_values(self.ranks)
        self.call_all(psn, 2)
        numbers = psns(serial.add(psn, 1), 3)
        opcodes = [Opcode.SEND_FIRST, Opcode.SEND_MIDDLE]
        for number, opcode in zip(numbers, opcodes, strict=False):
            self.contribute(self.group, range(self.ranks), number, values, opcode)
        result = self.reduced(values)
        self.expect_results(self.group, [(number, result) for number in numbers[:2]], opcodes)
        self.refuse_data(numbers[2])
