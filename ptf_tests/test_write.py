"""Results of Mode II as RDMA WRITEs (EPIC footnote 5)."""

from __future__ import annotations

from dataclasses import replace

from inc import allreduce, psns
from mode_ii import ModeIITest
from written import Written, image, message

from p4gen.groups.group import GroupContext, Memory
from p4gen.host.collectives.control import Control
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import RETH, ImmDt
from p4gen.rocev2.opcodes import Opcode, has_imm, has_reth
from p4gen.rocev2.packet import RocePacket
from p4gen.vocabulary.message import Collective


class WriteTest(Written, ModeIITest):
    """A test at the root of a star."""

    ranks = 3

    def unfit(self) -> str | None:
        return self.not_written() or super().unfit()

    def star(self, packets: int) -> tuple[GroupContext, int]:
        """A star's root, whose ranks have announced so many packets, and the PSN of the first of them."""
        group = self.node_of(min(self.ranks, self.spec.fan_in), allreduce())
        self.announce_to(group, self.first_psn, packets)
        return group, serial.add(self.first_psn, 1)

    def announce_to(self, group: GroupContext, psn: int, packets: int) -> None:
        """All ranks announce so many packets, and get the announcement as a SEND."""
        value = Control(Collective.ALLREDUCE, packets, 0, self.numbers.op, self.numbers.dtype, self.spec.roots)
        self.announce(group, range(len(group.edges)), psn, value)
        self.expect_announced(group, (psn, value))

    def sends(self, group: GroupContext, psn: int, opcodes: list[int]) -> None:
        """All ranks send these packets, and get the results."""
        numbers = psns(psn, len(opcodes))
        values = [self.random_values(len(group.edges)) for _ in opcodes]
        for number, opcode, mine in zip(numbers, opcodes, values, strict=True):
            self.contribute(group, range(len(group.edges)), number, mine, opcode)
        self.expect_results(group, [*zip(numbers, map(self.reduced, values), strict=True)], opcodes)


class EachPacketIsWrittenByItsPlaceInTheMessage(WriteTest):
    """FIRST, MIDDLE, LAST and ONLY remain what they are, at every place of the ring, which PSNs go round."""

    def runTest(self) -> None:
        count = 2 * self.spec.ring
        group, psn = self.star(count)
        everybody = range(len(group.edges))
        while count:
            size = self.message_size(count)
            opcodes, wanted = zip(*message(size), strict=True)
            self.sends(group, psn, list(opcodes))
            self.check_written(group, everybody, wanted)
            psn, count = serial.add(psn, size), count - size
        self.equal("drops that lose something", self.losses(), {})


class ShortMessageAtTheEnd(WriteTest):
    """The last message of a call has as many packets as are announced: what it is told in the first one's RETH."""

    def runTest(self) -> None:
        group, psn = self.star(1)
        self.sends(group, psn, [Opcode.SEND_ONLY])
        for packets in range(2, self.spec.message + 1):
            self.taken(group, 0)
            psn = serial.add(psn, packets - 1)
            self.announce_to(group, psn, packets)
            psn = serial.add(psn, 1)
            opcodes, wanted = zip(*message(packets), strict=True)
            self.sends(group, psn, list(opcodes))
            self.equal("WRITEs of rank 0", self.told(group, 0), list(wanted))


class LengthIsThatOfTheMessagesOwnCall(WriteTest):
    """A result of an earlier call than the newest has the length that its own call has announced."""

    def runTest(self) -> None:
        if self.spec.message < 3:
            self.skipTest("messages have too few packets")
        group, psn = self.star(2)
        everybody = range(len(group.edges))
        values = self.random_values(len(group.edges))
        # One rank has begun the next call already.
        self.announce(group, [0], serial.add(psn, 2), self.call(packets=self.spec.message))
        self.contribute(group, everybody, psn, values, Opcode.SEND_FIRST)
        self.expect_results(group, [(psn, self.reduced(values))], [Opcode.SEND_FIRST])
        self.check_written(group, everybody, [("WRITE_FIRST", 2)])


class RepetitionIsWrittenToTheSamePlace(WriteTest):
    """A rank that repeats its contribution gets the same WRITE again, and others get none."""

    def runTest(self) -> None:
        group, psn = self.star(2)
        everybody, rounds = range(len(group.edges)), [self.random_values(len(group.edges)) for _ in range(2)]
        opcodes, numbers = (Opcode.SEND_FIRST, Opcode.SEND_LAST), psns(psn, 2)
        for number, values, opcode in zip(numbers, rounds, opcodes, strict=True):
            self.contribute(group, everybody, number, values, opcode)
        results = [*zip(numbers, map(self.reduced, rounds), strict=True)]
        self.expect_results(group, results, opcodes)
        first = [image(packet) for packet in self.taken(group, 1)]
        self.check_written(group, [0, *everybody[2:]], [(f"WRITE_{each}", 2 - 2 * at) for at, each in _TWO])
        for number, values, opcode in zip(numbers, rounds, opcodes, strict=True):
            self.contribute(group, [1], number, values, opcode)
        self.expect_at(group, [1], results, opcodes)
        self.equal("WRITEs that are repeated", [image(packet) for packet in self.taken(group, 1)], first)
        self.check_written(group, [], [])


_TWO = ((0, "FIRST"), (1, "LAST_IMM"))


class MemoryIsEachRanks(WriteTest):
    """Memory that a rank offers anew takes the place of what it has offered before, for this rank alone."""

    def runTest(self) -> None:
        group, psn = self.star(4)
        self.sends(group, psn, [Opcode.SEND_ONLY])
        size = self.spec.channel_memory
        moved = replace(group.edges[0], memory=Memory(self.random.randrange(1 << 62), 0x0BAD_CAFE, size))
        group = replace(group, edges=(moved, *group.edges[1:]))
        self.reconfigure(group)
        self.sends(group, serial.add(psn, 1), [Opcode.SEND_ONLY])


class SwitchesAreSentWhatRanksAreWritten(WriteTest):
    """A node between ranks and a parent: partial results go to the parent as SENDs, results to the ranks as WRITEs."""

    def runTest(self) -> None:
        children = min(self.ranks, self.spec.fan_in - 1)
        if not children:
            self.skipTest("the program's fan-in has no room for a parent")
        group = self.make_group(children + 1, patterns=(allreduce(children),))
        parent = replace(group.edges[children], first_hop=False, memory=None)
        group = replace(group, edges=(*group.edges[:children], parent))
        self.ready(group)
        size = self.spec.message
        for number, (opcode, wanted) in zip(psns(self.random_psn(), size), message(size), strict=True):
            values = self.random_values(children + 1)
            self.contribute(group, range(children), number, values, opcode)
            self.expect_at(group, [children], [(number, self.reduced(values[:children]))], [opcode])
            self.equal("the parent's", [p.bth.opcode for p in self.taken(group, children)], [opcode])
            self.contribute(group, [children], number, values, opcode)
            self.expect_at(group, range(children), [(number, values[children])], [opcode])
            self.check_written(group, range(children), [wanted])


class RanksSend(WriteTest):
    """What ranks contribute are SENDs: a WRITE to a switch is refused."""

    def runTest(self) -> None:
        group, psn = self.star(4)
        for opcode in (each for each in Opcode if each.name.startswith("WRITE")):
            sent = self.contribution(group, 0, psn, self.random_values(1)[0], opcode)
            reth = RETH(0x1000, 1, self.spec.payload_bytes) if has_reth(opcode) else None
            packet: RocePacket = replace(sent, reth=reth, immdt=ImmDt(psn) if has_imm(opcode) else None).sealed()
            self.refused(group, 0, packet, "ValidatePacket.bad_opcode")
