"""READ responses: what is added, and what is not."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
from pulls import ANSWERS, PullTest

from p4gen.papers.scin.control import Role, roles


class SumOfAllSources(PullTest):
    """Whatever the order, results are those of all sources."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 6)
        orders = list(permutations([1, 2, 3]))
        for index in range(min(6, self.spec.slots)):
            self.respond(call, orders[index], index)
            self.expect(self.writes(call, index))


class SumsSaturateOrWrap(PullTest):
    """A sum that does not fit becomes what the program says."""

    def unfit(self) -> str | None:
        if self.spec.scaled:
            return "sums of blocks with scales always fit"
        return f"sums of {self.spec.dtype} become infinite" if self.spec.floating else None

    def runTest(self) -> None:
        call = self.begin(self.served(), 1)
        most = (1 << 31) - 1 if self.spec.dtype == "int32" else (1 << 32) - 1
        for edge in (1, 2, 3):
            call.operands[edge][0] = np.full(self.spec.lanes, most, np.int64)
        self.respond(call, [1, 2, 3], 0)
        self.expect(self.writes(call, 0))


class RepeatedResponseCountsOnce(PullTest):
    """A response that comes again is not added again."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 1)
        self.respond(call, [1, 2], 0)
        for edge in (1, 2):
            self.refused(self.port(edge), self.response(call, edge, 0).to_bytes(), "CheckDuplicate.duplicate")
        self.respond(call, [3], 0)
        self.expect(self.writes(call, 0))


class FullSlotIgnoresReduced(PullTest):
    """In place: an operand that is read again after its result was written is not taken."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 2)
        self.respond(call, [1, 2, 3], 0)
        self.expect(self.writes(call, 0))
        for edge in (1, 2, 3):
            self.refused(self.port(edge), self.response(call, edge, 0).to_bytes(), "CheckDuplicate.duplicate")
        self.respond(call, [1, 2, 3], 1)
        self.expect(self.writes(call, 1))


class LateResponseIsStale(PullTest):
    """A response that comes when its slot holds a later PSN is dropped."""

    def runTest(self) -> None:
        count = self.spec.waves + 1
        call = self.begin(self.served(), count * self.spec.wave)
        packets = self.of_wave(call, 0)
        self.respond(call, [1, 2, 3], *packets)
        self.expect(self.writes(call, *packets))
        for edge in (1, 2, 3):
            self.ack(call, edge, packets[-1])
        self.expect(self.reads(call, [self.spec.waves]))
        self.respond(call, [1], *range(self.spec.wave, self.spec.slots + 1))
        self.refused(self.port(2), self.response(call, 2, 0).to_bytes(), "CheckDuplicate.stale")
        self.refused(self.port(1), self.response(call, 1, 0).to_bytes(), "CheckDuplicate.stale")


class AnyResponseOpcodeIsTaken(PullTest):
    """What counts is the PSN: NICs resume READs with MIDDLEs or FIRSTs."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 4)
        for index, opcode in enumerate(ANSWERS):
            for edge in (1, 2, 3):
                self.post(edge, self.response(call, edge, index, opcode))
            self.expect(self.writes(call, index))


class ResponseBeyondIssuedRefused(PullTest):
    """Data that nobody has asked for is refused."""

    def runTest(self) -> None:
        call = self.begin(self.served(), (self.spec.waves + 1) * self.spec.wave)
        frame = self.response(call, 1, self.spec.slots).to_bytes()
        self.refused(self.port(1), frame, f"{self.asker}.never_asked")
        short = self.begin(self.served(number=1), 1)
        longer = self.call(short.context, 2)
        self.refused(self.port(2), self.response(longer, 2, 1).to_bytes(), f"{self.asker}.never_asked")


class WrongLengthRefused(PullTest):
    """Data of another length is not this program's."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 1)
        packet = self.response(call, 1, 0)
        short = replace(packet, payload=packet.payload[4:])
        self.refused(self.port(1), short.sealed().to_bytes(), "ValidatePacket.unknown")


class ResponsesOnOtherQueuePairsAreUnknown(PullTest):
    """Data counts on the queue pair for READs only."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 1)
        response = self.response(call, 1, 0)
        for role in set(roles(self.spec)) - {Role.READ}:
            qp = call.context.edges[0].local[role].qp
            other = replace(response, bth=replace(response.bth, dst_qp=qp)).sealed()
            self.refused(self.port(1), other.to_bytes(), "ValidatePacket.unknown")
        self.finish(call)


class BadIcrcTouchesNothing(PullTest):
    """A corrupt packet reaches no state."""

    def unfit(self) -> str | None:
        return None if self.spec.icrc.checked else "the program does not check ICRCs"

    def runTest(self) -> None:
        call = self.begin(self.served(), 1)
        for packet in (self.response(call, 1, 0), self.response(call, 1, 0, ANSWERS[1]), self.arrival(call, 1)):
            frame = bytearray(packet.to_bytes())
            frame[-5] ^= 1
            self.refused(self.port(1), bytes(frame), "CheckIcrc.bad_icrc")


class OnlySourcesAreTaken(PullTest):
    """A rank that is no source has no data to give, and one that is no destination nothing to acknowledge."""

    def runTest(self) -> None:
        call = self.begin(self.served(0b011, 0b110), 1)
        stranger = self.call(self.context(0b111, 0b111), 1)
        self.refused(self.port(3), self.response(stranger, 3, 0).to_bytes(), "FindContext.no_source")
        self.respond(call, [1, 2], 0)
        self.expect(self.writes(call, 0))
        self.ack(call, 1, 0)
        self.expect_nothing()
        self.equal("dropped", self.drops()["FindContext.no_destination"], 1)
