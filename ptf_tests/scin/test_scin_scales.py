"""Elements with scales: what is read first, what sums are rounded to, and where scales of results go."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from pulls import ANSWERS, NAK, REFUSED, Call, PullTest, ranks

from p4gen.families.scin.codes import LARGEST, NOT_A_NUMBER, Status
from p4gen.families.scin.control import Role, configuration

HEADERS = 14 + 20 + 8 + 12 + 16 + 4
"""Bytes of a WRITE beside its data: Ethernet, IPv4, UDP, BTH, RETH, ICRC."""


class ScaledTest(PullTest):
    """Calls whose elements have scales."""

    def unfit(self) -> str | None:
        return None if self.spec.scaled else "elements have no scales"

    def opened(self, packets: int, **how: int) -> Call:
        """A call that has been arrived at, whose first scales have been asked for, and not come."""
        call = self.call(self.served(**how), packets)
        self.ask(call)
        return call

    def ask(self, call: Call) -> None:
        """All ranks arrive; the first waves' scales are asked for."""
        *early, last = self.participants(call.context)
        for edge in early:
            self.arrive(call, edge)
            self.expect([self.acked(call, edge)])
        self.arrive(call, last)
        waves = range(min(self.spec.waves, self.waves(call)))
        sources = ranks(call.context.sources)
        reads = [self.read_scales(call, edge, wave) for wave in waves for edge in sources]
        self.expect([self.acked(call, last), *reads])

    def both(self, call: Call, *indices: int) -> None:
        """Sources answer READs of data; results are those of the golden model."""
        for index in indices:
            self.respond(call, ranks(call.context.sources), index)
            self.expect(self.writes(call, index))

    def fill(self, call: Call, index: int, elements: dict[int, int], scales: dict[int, int]) -> None:
        """Have all elements of a packet be the same, and its scales."""
        for edge, element in elements.items():
            call.operands[edge][index] = np.full(self.spec.lanes, element, np.int64)
            call.scales[edge][index] = np.full(self.spec.blocks, scales[edge], np.uint8)


class ScalesComeFirst(ScaledTest):
    """A wave is read of all sources when the last one's scales are there, and waves are read in order."""

    def runTest(self) -> None:
        call = self.opened(2 * self.spec.wave)
        self.give_scales(call, [2, 3], 0)
        self.give_scales(call, [3, 1, 2], 1)
        self.expect_nothing()
        self.refused(self.port(1), self.response(call, 1, 0).to_bytes(), "TrackScales.never_asked")
        self.give_scales(call, [1], 0)
        self.expect(self.data_reads(call, [0, 1]))
        self.both(call, *range(2 * self.spec.wave))


class HeldWavesFollowTheGap(ScaledTest):
    """Waves whose scales come before those of another one wait for it, a call's all, and a later gap holds again."""

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.spec.waves >= 4 else "there are too few waves")

    def runTest(self) -> None:
        call = self.opened(4 * self.spec.wave)
        for wave in (1, 3):
            self.give_scales(call, [1, 2, 3], wave)
        self.expect_nothing()
        self.give_scales(call, [1, 2, 3], 0)
        self.expect(self.data_reads(call, [0, 1]))
        self.give_scales(call, [1, 2, 3], 2)
        self.expect(self.data_reads(call, [2, 3]))


class EqualsTheIntegers(ScaledTest):
    """Results are those of the golden model for all distances of scales from 0 to 40, and beyond."""

    def runTest(self) -> None:
        gaps = [*range(41), 90, 254]
        size = self.spec.blocks
        call = self.call(self.served(), -(-len(gaps) // size))
        for index in range(call.packets):
            for block, gap in enumerate(gaps[index * size : (index + 1) * size]):
                top = 254 if gap > 90 else self.random.randrange(max(gap, 20), 255)
                for edge in (1, 2, 3):
                    call.scales[edge][index][block] = top - (0 if edge == 1 else gap if edge == 2 else gap // 2)
                    small = self.random.randrange(1, 8)
                    part = slice(block * self.spec.scale_block, (block + 1) * self.spec.scale_block)
                    call.operands[edge][index][part] >>= small if gap % 2 else 0
        self.finish(self.started(call))


class SmallScales(ScaledTest):
    """No scale is below 0, and none above that of the greatest numbers."""

    def runTest(self) -> None:
        call = self.call(self.served(), 6)
        for index, scale in enumerate((0, 1, 14, 16, 23, 254)):
            self.fill(call, index, {1: 127, 2: 127, 3: 3}, dict.fromkeys((1, 2, 3), scale))
        for edge in (1, 2, 3):
            call.operands[edge][1] = np.zeros(self.spec.lanes, np.int64)
        call.operands[2][1][0] = 1
        self.started(call)
        self.both(call, *range(min(6, self.spec.slots)))


class ZeroBlock(ScaledTest):
    """Zeros have the scale 0, also where operands cancel each other; what is almost zero is kept."""

    def runTest(self) -> None:
        call = self.call(self.served(), 3)
        scales = dict.fromkeys((1, 2, 3), 127)
        self.fill(call, 0, {1: 0, 2: 0, 3: 0}, scales)
        self.fill(call, 1, {1: 100, 2: -60, 3: -40}, scales)
        self.fill(call, 2, {1: 0, 2: -1, 3: 0}, {1: 127, 2: 80, 3: 127})
        self.started(call)
        for index in range(3):
            elements, scale = self.summed(call, index)
            zero = index < 2
            self.equal("scales are 0", scale.tolist(), [0] * self.spec.blocks) if zero else None
            self.equal("elements", set(elements.tolist()), {0} if zero else {-LARGEST})
        self.both(call, 0, 1, 2)


class NanSpreadsInItsBlockOnly(ScaledTest):
    """A block without numbers at one source has none in the result; other blocks have theirs."""

    def runTest(self) -> None:
        call = self.call(self.served(), 3)
        for edge in (1, 2, 3):
            for index in range(3):
                call.scales[edge][index] = np.full(self.spec.blocks, 120 + edge, np.uint8)
        call.scales[2][1][self.spec.blocks - 1] = NOT_A_NUMBER
        self.started(call)
        found = [scale for index in range(3) for scale in self.summed(call, index)[1].tolist()]
        self.equal("blocks without numbers", found.count(NOT_A_NUMBER), 1)
        self.both(call, 0, 1, 2)


class ClampsAt127(ScaledTest):
    """What would be rounded to 128, or is -128, saturates."""

    def runTest(self) -> None:
        call = self.call(self.served(), 3)
        self.fill(call, 0, {1: 127, 2: 127, 3: 0}, {1: 130, 2: 123, 3: 130})
        self.fill(call, 1, {1: -128, 2: 0, 3: 0}, {1: 130, 2: 100, 3: 99})
        self.fill(call, 2, {1: -127, 2: -127, 3: -127}, {1: 130, 2: 123, 3: 123})
        self.started(call)
        for index, wanted in enumerate((127, -127, -64)):
            self.equal("elements", set(self.summed(call, index)[0].tolist()), {wanted})
        self.both(call, 0, 1, 2)


class OrderDoesNotMatter(ScaledTest):
    """Scales and data in any order make the same bytes."""

    def runTest(self) -> None:
        count, size = min(self.spec.waves, 6), self.spec.wave
        call = self.call(self.served(), count * size)
        for edge in (1, 2, 3):
            for index in range(1, call.packets):
                call.operands[edge][index] = call.operands[edge][0]
                call.scales[edge][index] = call.scales[edge][0]
        self.ask(call)
        orders = list(permutations([1, 2, 3]))
        for wave in range(count):
            self.give_scales(call, orders[wave], wave)
            self.expect(self.data_reads(call, [wave]))
        for index in range(call.packets):
            self.respond(call, orders[index % 6], index)
            self.expect(self.writes(call, index))


class ScalesFollowTheirWave(ScaledTest):
    """The last packet of a wave, and of a call, has the scales of the wave behind its elements; also when it is written
    again."""

    def runTest(self) -> None:
        packets = self.spec.wave + 1 if self.spec.waves > 1 else self.spec.wave
        call = self.begin(self.served(), packets)
        self.both(call, *range(packets))
        for index in range(packets):
            last = index == packets - 1
            more = self.spec.scales if last or index % self.spec.wave == self.spec.wave - 1 else 0
            immediate = 4 if last and self.spec.ordered else 0
            length = HEADERS + self.spec.payload + more + immediate
            self.equal("bytes of a WRITE", len(self.write(call, 1, index).frame), length)
        self.ack(call, 2, 0, NAK)
        self.expect([self.write(call, 2, index, again=True) for index in range(packets)])


class BlocksOf32And64(ScaledTest):
    """A large element raises the scale of its own block, whose size is the program's."""

    def runTest(self) -> None:
        call = self.call(self.served(), 1)
        self.fill(call, 0, {1: 1, 2: 1, 3: 1}, {1: 100, 2: 100, 3: 100})
        call.operands[2][0][self.spec.lanes - self.spec.scale_block] = 127
        _, scales = self.summed(call, 0)
        self.equal("scales that are raised", [scale > scales.min() for scale in scales.tolist()].count(True),
                   1 if self.spec.blocks > 1 else 0)  # fmt: skip
        self.finish(self.started(call))


class ScalesOfCallsFollowEachOther(ScaledTest):
    """The PSNs of scales go on from call to call, one a wave, also a short one."""

    def runTest(self) -> None:
        context = self.served()
        packets = self.spec.wave + max(1, self.spec.wave // 2)
        self.finish(self.begin(context, packets))
        self.finish(self.begin(context, self.spec.wave, 1, packets))


class RepeatedScalesCountOnce(ScaledTest):
    """Scales that come again, too late, or that nobody has asked for do nothing."""

    def runTest(self) -> None:
        call = self.opened((self.spec.waves + 1) * self.spec.wave)
        self.give_scales(call, [1, 2], 0)
        frame = self.scales(call, 1, 0).to_bytes()
        self.refused(self.port(1), frame, "TrackScales.duplicate")
        early = self.scales(call, 1, self.spec.waves).to_bytes()
        self.refused(self.port(1), early, "TrackScales.never_asked")
        self.give_scales(call, [3], 0)
        self.expect(self.data_reads(call, [0]))
        self.refused(self.port(1), frame, "TrackScales.duplicate")
        self.both(call, *self.of_wave(call, 0))
        for edge in (1, 2, 3):
            self.ack(call, edge, self.spec.wave - 1)
        self.expect([self.read_scales(call, edge, self.spec.waves) for edge in (1, 2, 3)])
        self.give_scales(call, [2], self.spec.waves)
        self.refused(self.port(1), frame, "TrackScales.stale")


class AnyOpcodeOfScalesIsTaken(ScaledTest):
    """What counts is the PSN: NICs answer a READ again with LASTs or FIRSTs."""

    def runTest(self) -> None:
        call = self.opened(1)
        for edge, opcode in zip((1, 2, 3), (ANSWERS[0], ANSWERS[2], ANSWERS[3]), strict=True):
            self.post(edge, self.scales(call, edge, 0, opcode))
        self.expect(self.data_reads(call, [0]))


class OnlySourcesHaveScales(ScaledTest):
    """A rank that is no source has no scales to give, and scales are taken on their own queue pair only."""

    def runTest(self) -> None:
        call = self.opened(1, sources=0b011, destinations=0b110)
        stranger = self.call(self.context(0b111, 0b111), 1)
        self.refused(self.port(3), self.scales(stranger, 3, 0).to_bytes(), "FindContext.no_source")
        other = self.scales(call, 1, 0)
        wrong = self._from(call.context, 1, Role.READ, other.bth, aeth=other.aeth, payload=other.payload)
        self.refused(self.port(1), wrong.to_bytes(), "ValidatePacket.unknown")
        self.give_scales(call, [1, 2], 0)
        self.expect(self.data_reads(call, [0]))


class LostReadOfScalesIsAskedAgain(ScaledTest):
    """A NIC's NAK has that rank's scales read again from there on, but for waves that are complete."""

    def runTest(self) -> None:
        call = self.opened(2 * self.spec.wave)
        nak = self.answer(call.context, 2, Role.SCALES, call.scales_psn(0), NAK)
        self.post(2, nak)
        self.expect([self.read_scales(call, 2, wave) for wave in (0, 1)])
        self.give_scales(call, [1, 2, 3], 0)
        self.expect(self.data_reads(call, [0]))
        self.give_scales(call, [1], 1)
        self.post(2, nak)
        self.expect([self.read_scales(call, 2, 1)])


class LostScalesAreAskedForOnTicks(ScaledTest):
    """On the second tick without progress the scales that are missing are read again, of those who have not given
    them; data that is missing comes first."""

    def runTest(self) -> None:
        size = self.spec.wave
        call = self.opened(size + 1)
        self.give_scales(call, [1, 3], 0)
        self.give_scales(call, [2], 1)
        self.tick(call.context)
        self.expect_nothing()
        self.tick(call.context)
        self.expect([self.read_scales(call, 2, 0), self.read_scales(call, 1, 1), self.read_scales(call, 3, 1)])
        self.give_scales(call, [2], 0)
        self.expect(self.data_reads(call, [0]))
        self.tick(call.context)
        self.expect_nothing()
        self.tick(call.context)
        self.expect([self.read(call, edge, 0, size) for edge in (1, 2, 3)])
        self.both(call, *range(size))
        self.tick(call.context)
        self.tick(call.context)
        self.expect([self.read_scales(call, edge, 1) for edge in (1, 3)])


class RefusedReadOfScalesAborts(ScaledTest):
    """A NIC that refuses a READ of scales ends the call; scales that come later do nothing."""

    def runTest(self) -> None:
        call = self.opened(1)
        self.post(3, self.answer(call.context, 3, Role.SCALES, call.scales_psn(0), REFUSED))
        self.expect(self.flags(call, Status.REFUSED))
        self.refused(self.port(1), self.scales(call, 1, 0).to_bytes(), "TrackCall.aborted")


class ScalesOfAnotherEpochAreForgotten(ScaledTest):
    """A context with another epoch knows nothing of the scales that came before, not even under the same PSNs."""

    def runTest(self) -> None:
        call = self.opened(1)
        self.give_scales(call, [1, 2], 0)
        renewed = self.context(epoch=2)
        entries = configuration(self.spec, [renewed]).entries
        self.control.modify(*(entry for entry in entries if entry.table == "contexts"))
        again = self.call(renewed, 1)
        self.fill(again, 0, {1: 99, 2: 98, 3: 97}, {1: 30, 2: 31, 3: 32})
        self.ask(again)
        self.give_scales(again, [3], 0)
        self.expect_nothing()
        self.give_scales(again, [1, 2], 0)
        self.expect(self.data_reads(again, [0]))
        self.both(again, 0)
