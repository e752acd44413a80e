"""READs: whom they ask for what, and how many there are."""

from __future__ import annotations

from pulls import NAK, PullTest, ranks

from p4gen.papers.scin.control import Role


class ShortLastWave(PullTest):
    """The last wave of a call asks for what is left."""

    def runTest(self) -> None:
        self.finish(self.begin(self.served(), self.spec.wave + max(1, self.spec.wave // 2)))


class ShortLastWaveWaits(PullTest):
    """A short last wave has to wait for as much room as any other: a NIC answers its k newest READs again, and that of
    a wave of which not all packets are acknowledged has to be among them."""

    def runTest(self) -> None:
        call = self.begin(self.served(), self.spec.waves * self.spec.wave + 1)
        packets = self.of_wave(call, 0)
        self.respond(call, [1, 2, 3], *packets)
        self.expect(self.writes(call, *packets))
        for count in range(len(packets) - 1):
            for edge in (1, 2, 3):
                self.ack(call, edge, count)
            self.expect_nothing()
        for edge in (1, 2):
            self.ack(call, edge, packets[-1])
        self.expect_nothing()
        self.ack(call, 3, packets[-1])
        self.expect(self.reads(call, [self.spec.waves]))


class AtMostKWaves(PullTest):
    """There are k READs of each rank, and not one more until the slowest destination has acknowledged a wave."""

    def runTest(self) -> None:
        call = self.begin(self.served(), (self.spec.waves + 2) * self.spec.wave)
        for wave in (0, 1):
            self.respond(call, [3, 1, 2], *self.of_wave(call, wave))
            self.expect(self.writes(call, *self.of_wave(call, wave)))
        last = self.of_wave(call, 0)[-1]
        for edge in (1, 2):
            self.ack(call, edge, last + self.spec.wave)
        self.expect_nothing()
        if last:
            self.ack(call, 3, last - 1)
            self.expect_nothing()
        self.ack(call, 3, last)
        self.expect(self.reads(call, [self.spec.waves]))
        self.ack(call, 3, last)
        self.expect_nothing()
        self.ack(call, 3, last + self.spec.wave)
        self.expect(self.reads(call, [self.spec.waves + 1]))


class OneAckSeveralWaves(PullTest):
    """An ACK of several waves lets as many follow."""

    def runTest(self) -> None:
        call = self.begin(self.served(), (self.spec.waves + 3) * self.spec.wave)
        packets = range(2 * self.spec.wave)
        self.respond(call, [1, 2, 3], *packets)
        self.expect(self.writes(call, *packets))
        for edge in (1, 2):
            self.ack(call, edge, packets[-1])
        self.ack(call, 3, packets[-1])
        self.expect(self.reads(call, [self.spec.waves, self.spec.waves + 1]))


class PsnsWrap(PullTest):
    """PSNs wrap inside a wave and among calls."""

    def runTest(self) -> None:
        context = self.served(first=(1 << 24) - 1)
        self.finish(self.begin(context, self.spec.wave + 1))
        self.finish(self.begin(context, 2, 1, self.spec.wave + 1))
        context = self.served(number=1, first=(1 << 24) - self.spec.wave)
        call = self.begin(context, self.spec.slots + self.spec.wave)
        self.post(2, self.answer(context, 2, Role.READ, call.data_psn(0), NAK))
        self.expect(self.reread(call, 2, 0, self.spec.slots))
        self.finish(call)


class OnlySourcesAreRead(PullTest):
    """Masks: who is a source is read, who is a destination is written, all get flags."""

    def runTest(self) -> None:
        for number, (sources, destinations) in enumerate([(0b111, 0b001), (0b100, 0b111), (0b011, 0b110)]):
            context = self.served(sources, destinations, number=number)
            self.finish(self.begin(context, self.spec.wave + 1))


class TwoContextsDoNotMix(PullTest):
    """Calls of two groups at the same time, under the same PSNs."""

    def runTest(self) -> None:
        contexts = [self.served(number=number, sources=mask) for number, mask in ((0, 0b111), (2, 0b110))]
        first, second = (self.begin(context, 2) for context in contexts)
        self.respond(first, [1, 2], 0)
        self.respond(second, [2], 0)
        self.expect_nothing()
        self.respond(second, [3], 0)
        self.expect(self.writes(second, 0))
        self.respond(first, [3], 0)
        self.expect(self.writes(first, 0))
        for call in (first, second):
            self.respond(call, ranks(call.context.sources), 1)
            self.expect(self.writes(call, 1))
            for edge in (1, 2, 3):
                self.ack(call, edge, 1)
            self.expect(self.flags(call))
