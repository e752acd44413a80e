"""Elements with scales: what is read first, and where scales of results go."""

from __future__ import annotations

from itertools import permutations

from pulls import ANSWERS, NAK, REFUSED
from scaled import ScaledTest

from p4gen.papers.scin.codes import Status
from p4gen.papers.scin.control import Role, configuration

HEADERS = 14 + 20 + 8 + 12 + 16 + 4
"""Bytes of a WRITE over IPv4 beside its data: Ethernet, IPv4, UDP, BTH, RETH, ICRC."""


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
            more = self.spec.scale_bytes if last or index % self.spec.wave == self.spec.wave - 1 else 0
            immediate = 4 if last and self.spec.ordered else 0
            length = HEADERS + (20 if self.ipv6 else 0) + self.spec.payload + more + immediate
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
        lacked = [self.read_scales(call, 2, 0), self.read_scales(call, 1, 1), self.read_scales(call, 3, 1)]
        self.silence(call, 3, lacked)
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
