"""Themis-D's verdicts on NACKs: requests come to a host in a given order, then the host's NACK (section 3.3)."""

from __future__ import annotations

from dataclasses import replace

from leaf import ACK, FIRST_SPINE, DestinationTest

from p4gen.papers.themis.spec import Blocked, ThemisSpec
from p4gen.ptf.scenario import composed
from p4gen.rocev2.packet import parse


def no_queue(spec: ThemisSpec) -> str | None:
    """Why a scenario about the queue itself does not apply to a program; None if it does."""
    return None if spec.walks else "the program keeps no queue of PSNs"


class Figure4bBlocked(DestinationTest):
    """0 1 3 2: NACK(2) was caused by 3, which took another path, and 2 has arrived meanwhile."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 2)
        self.blocked(2)


class Figure4bForwarded(DestinationTest):
    """0 1 3 2 5 6: NACK(4) is right, as 6 took the path of 4 and has come before it."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 2, 6)
        self.forwarded(4)


class LatePacketDoesNotArm(DestinationTest):
    """0 1 3 2, NACK(2), then 4: 2 has come, so 4 proves nothing. The paper's listing sends a NACK here."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 2)
        self.blocked(2)
        self.arrive(4, 6)


class LossAlreadyInQueueIsForwarded(DestinationTest):
    """0 1 3 4: when NACK(2) arrives, 4 has already shown that 2 is lost."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 4)
        self.forwarded(2)


class LastHopLossIsForwarded(DestinationTest):
    """0 1 2 3: 2 came before the larger ones, so it was lost after this switch."""

    def runTest(self) -> None:
        self.arrive(0, 1, 2, 3)
        self.forwarded(2)


class CopyOfTheNewestIsNotLate(DestinationTest):
    """0 1 2 2 3: both copies of 2 came before the larger PSN."""

    def runTest(self) -> None:
        self.arrive(0, 1, 2, 2, 3)
        self.forwarded(2)


class FirstLargerByArrivalNotSize(DestinationTest):
    """0 1 2 7 4 over four paths: 7 took the path of 3 and shows its loss, whatever 4 did."""

    n = 4

    def runTest(self) -> None:
        self.arrive(0, 1, 2, 7, 4)
        self.forwarded(3)


class NoEvidenceIsForwarded(DestinationTest):
    """An empty queue is no evidence against a NACK; it passes, and is counted."""

    def runTest(self) -> None:
        self.forwarded(2)
        self.equal("verdicts", self.verdicts(), {"NO_EVIDENCE": 1})


class QueueIsCircular(DestinationTest):
    """After three times as many PSNs as the queue can hold, the newest ones decide."""

    def runTest(self) -> None:
        start = 3 * self.spec.queue
        self.arrive(*range(start), start + 1, start)
        self.blocked(start)
        self.arrive(start + 3, start + 4)
        self.forwarded(start + 2)


class QueueRemembersExactlyR(DestinationTest):
    """Evidence is found as far back as the queue reaches, and not one PSN further."""

    def unfit(self) -> str | None:
        return no_queue(self.spec)

    def runTest(self) -> None:
        size = self.spec.queue
        for behind, blocked in ((size - 1, True), (size, False)):
            # ePSN came late, after a larger PSN, which is the oldest in the queue, or has just been overwritten.
            first = self.random.randrange(1 << 24)
            older = [first - 1 - i for i in range(behind - 1)]
            self.arrive(first + 1, first, *older)
            if blocked:
                self.blocked(first)
            else:
                self.forwarded(first)


class TruncatedPsnsAcrossBothWraps(DestinationTest):
    """PSNs are compared as serial numbers, over the wrap of what the queue keeps and over that of the PSN."""

    def unfit(self) -> str | None:
        return no_queue(self.spec)

    def runTest(self) -> None:
        for wrap in (1 << self.spec.psn_bits, 1 << 24):
            for epsn in (wrap - 2, wrap - 1, wrap):
                self.arrive(*range(epsn - self.spec.queue, epsn), epsn + 1, epsn)
                self.blocked(epsn)
                self.arrive(epsn + 3, epsn + 4)
                self.forwarded(epsn + 2)


class OldEpochIsEmpty(DestinationTest):
    """A connection that takes over another's words of state does not see that one's PSNs."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 2)
        self.unregister(self.flow)
        self.register(self.flow, epoch=2)
        self.forwarded(2)
        self.forwarded(0)
        self.equal("verdicts", self.verdicts(), {"NO_EVIDENCE": 2})


class OldEpochIsEmptyInEveryBank(DestinationTest):
    """The same with a queue full of PSNs: those next to the first new one do not count either."""

    def unfit(self) -> str | None:
        return no_queue(self.spec)

    def runTest(self) -> None:
        self.arrive(*range(100, 100 + self.spec.queue))
        self.unregister(self.flow)
        self.register(self.flow, epoch=2)
        self.arrive(0)
        self.forwarded(2)
        self.equal("verdicts", self.verdicts(), {"NO_EVIDENCE": 1})


class TwoQpsTwoQueues(DestinationTest):
    """Two connections, their packets interleaved: each is judged by its own."""

    def runTest(self) -> None:
        other = self.incoming(1)
        self.register(other, index=1)
        self.arrive(97, 98, 99, flow=other)
        for mine, its in ((0, 100), (1, 101), (3, 104), (2, 103)):
            self.arrive(mine)
            self.arrive(its, flow=other)
        self.blocked(2)
        self.forwarded(102, other)
        self.arrive(*range(200, 200 + self.spec.queue), flow=other)
        self.blocked(2)
        self.equal("LATE", self.verdicts()["LATE"], 2)


class SameQpnOnTwoHosts(DestinationTest):
    """QPNs are a host's own: the address is part of the key."""

    def runTest(self) -> None:
        other = self.incoming(0, host=1)
        connection = replace(other.connection, requester=replace(other.connection.requester, qp=0x999))
        other = replace(other, connection=connection)
        self.register(other, index=1, port=1)
        self.arrive(0, 1, 3, 2)
        self.passes(other.answer(2), port=1)
        self.blocked(2)


class DuplicatesAreNoEvidence(DestinationTest):
    """Older PSNs that come again change no verdict."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3, 0, 1, 2, 0, 1)
        self.blocked(2)
        self.arrive(5, 6, 0, 1, 3)
        self.forwarded(4)


class EvidenceInEveryRow(DestinationTest):
    """The pair that decides is found in whichever row of the banks it is."""

    def unfit(self) -> str | None:
        return no_queue(self.spec)

    def runTest(self) -> None:
        banks = self.spec.queue_banks
        psn = 0
        for _ in range(self.spec.queue_rows):
            for younger in (0, banks - 1, self.spec.queue - 2):
                psn += 1000
                self.arrive(psn + 1, psn, *(psn - 2 - i for i in range(younger)))
                self.blocked(psn)
            self.arrive(*(psn - 2 for _ in range(banks)))


class OldestRowIsPartlyNew(DestinationTest):
    """The oldest PSNs share a row of the banks with the newest: ePSN, the oldest, came before the larger one."""

    def unfit(self) -> str | None:
        return no_queue(self.spec)

    def runTest(self) -> None:
        psn = 0x1000
        older = (psn - 10 - i for i in range(self.spec.queue - 2))
        self.arrive(psn - 3, psn - 2, psn, *older, psn + 1)
        self.forwarded(psn)


class WalkEndsEarly(DestinationTest):
    """A packet that has come late is found among the newest PSNs: one pass tells."""

    def unfit(self) -> str | None:
        return no_queue(self.spec)

    def runTest(self) -> None:
        banks = self.spec.queue_banks
        self.arrive(*range(4 * banks), 4 * banks + 1, 4 * banks)
        self.arrive(*range(-1, 1 - banks, -1))  # the row is full
        self.blocked(4 * banks)
        self.equal("verdicts", self.verdicts(), {"LATE": 1})


class WalkEndsWithTheLastRow(DestinationTest):
    """There is no pass for a row behind the oldest PSN."""

    def unfit(self) -> str | None:
        return no_queue(self.spec) or ("there, a pass before the first row counts" if self.spec.narrow else None)

    def runTest(self) -> None:
        self.arrive(0, 1, *(3 for _ in range(self.spec.queue_banks - 2)))
        self.blocked(2)
        self.equal("verdicts", self.verdicts(), {"UNKNOWN": 1})


class RepeatedNackIsIdempotent(DestinationTest):
    """The same NACK again gets the same verdict, and one NACK is made for both."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3)
        self.blocked(2)
        self.blocked(2)
        self.send(2, self.flow.request(4).to_bytes())
        self.equal("frames for PSN 4", len(self.outputs()), 2)
        self.arrive(6)


class BlockedBecomesAck(DestinationTest):
    """With ``blocked: ack``, a NACK still acknowledges the PSNs before its own."""

    def unfit(self) -> str | None:
        return None if self.spec.blocked is Blocked.ACK else "the program drops blocked NACKs"

    def runTest(self) -> None:
        self.arrive(0, 1, 3)
        outputs = self.answered(self.flow.answer(2, msn=0x1234))
        self.equal("frames sent", len(outputs), 1)
        wanted = self.flow.answer(1, ACK, msn=0x1234)
        self.equal("frame", outputs[0].frame.hex(), self.routed(wanted, outputs[0].port).hex())


class BlockedBecomesASoundAck(DestinationTest):
    """So it is of a NACK with a UDP checksum, or with a tag."""

    def unfit(self) -> str | None:
        return None if self.spec.blocked is Blocked.ACK else "the program drops blocked NACKs"

    def runTest(self) -> None:
        self.arrive(0, 1, 3)
        nack, ack = self.flow.answer(2), self.flow.answer(1, ACK)
        for sent, wanted in (
            (nack.with_udp_checksum(), ack),
            (replace(nack, vlan=0x6005), replace(ack, vlan=0x6005)),
        ):
            output = self.only(self.answered(sent))
            self.equal("frame", output.frame.hex(), self.routed(wanted, output.port).hex())


class EveryVerdictIsCounted(DestinationTest):
    """Each verdict has a counter of its own for each connection."""

    def runTest(self) -> None:
        self.forwarded(9)
        self.arrive(0, 1, 2, 3)
        self.forwarded(2)
        self.arrive(101, 100)
        self.blocked(100)
        self.arrive(203, 204)
        self.forwarded(202)
        self.arrive(301)
        self.blocked(300)
        self.arrive(300)
        found = self.verdicts()
        found.pop("UNDECIDED", None)
        wanted = {"NO_EVIDENCE": 1, "LAST_HOP": 1, "LATE": 1, "LOST": 1, "UNKNOWN": 1, "DISARMED": 1}
        self.equal("verdicts", found, wanted)
        other = self.incoming(1)
        self.register(other, index=3)
        self.forwarded(5, other)
        self.equal("verdicts of another connection", self.verdicts(3), {"NO_EVIDENCE": 1})


class BlockedNacksAreCounted(DestinationTest):
    """A blocked NACK is a drop with its own reason, which does not count as a loss, even if it could not be routed."""

    def unfit(self) -> str | None:
        return None if self.spec.blocked is Blocked.DROP else "the program turns blocked NACKs into ACKs"

    def runTest(self) -> None:
        drops = {drop.drop.reason: drop.index for drop in composed(self.program).drops}
        self.arrive(0, 1, 3, 2)
        nack = self.flow.answer(2)
        for number, ttl in enumerate((64, 1), start=1):
            self.equal("frames sent", self.answered(replace(nack, ip=replace(nack.ip, ttl=ttl)).sealed()), [])
            if ttl > 1 or not self.spec.narrow:  # there, a NACK is routed before it is judged
                self.equal("drops", self.counts("IncIngress.drops"), {drops["blocked"]: number})


class BetweenPasses(DestinationTest):
    """NACK(2) waits between two passes. What it was caused by is the oldest of as many PSNs as ``behind`` says."""

    def unfit(self) -> str | None:
        return no_queue(self.spec)

    def nack(self, cause: int, behind: int) -> None:
        self.arrive(cause, *(psn % 2 for psn in range(behind - 1)))
        self.hold()
        self.equal("frames sent", self.answered(self.flow.answer(2)), [])

    def judged(self, verdict: str, *, blocked: bool) -> None:
        """The NACK gets a verdict."""
        self.go()
        outputs = self.outputs()
        sent = self.flow.answer(2) if not blocked else self.flow.answer(1, ACK)
        some = not blocked or self.spec.blocked is Blocked.ACK
        self.equal("frames", [o.frame for o in outputs], [self.routed(sent, o.port) for o in outputs] if some else [])
        self.equal("frames sent", len(outputs), some)
        found = {name: count for name, count in self.verdicts().items() if name != "UNDECIDED"}
        self.equal("verdicts", found, {verdict: 1})


class NackIsJudgedByWhatWasThere(BetweenPasses):
    """A PSN that comes between two passes moves nothing out of the NACK's sight."""

    def runTest(self) -> None:
        self.nack(3, self.spec.queue_banks + 1)
        self.arrive(1)
        self.judged("UNKNOWN", blocked=True)


class NackIsNotJudgedByWhatCameLater(BetweenPasses):
    """PSNs that overwrite the oldest ones between two passes are no evidence."""

    def runTest(self) -> None:
        self.nack(0, self.spec.queue)
        self.arrive(3)
        self.judged("NO_EVIDENCE", blocked=False)


class OverwrittenRowsAreNotCompared(BetweenPasses):
    """Nor are PSNs that overwrite all that is left to compare, and some of what has been compared."""

    def unfit(self) -> str | None:
        return "a NACK takes at most two passes" if self.spec.queue_rows < 4 else super().unfit()

    def runTest(self) -> None:
        self.nack(0, 2 * self.spec.queue_banks + 1)
        self.one_pass()
        self.arrive(*(3 for _ in range(self.spec.queue - 1)))
        self.judged("NO_EVIDENCE", blocked=False)


class LossIsSeenBetweenPasses(BetweenPasses):
    """A larger PSN of the NACK's path, which comes between two passes, shows that its packet is lost."""

    def runTest(self) -> None:
        self.nack(3, self.spec.queue_banks + 1)
        self.arrive(4)
        self.judged("OVERTAKEN", blocked=False)


class AckBetweenPassesShowsArrival(BetweenPasses):
    """An ACK that comes between two passes shows that the NACK's packet has arrived, whatever the queue says."""

    def runTest(self) -> None:
        self.nack(4, self.spec.queue_banks + 1)
        self.passes(self.flow.answer(2, ACK))
        self.judged("ARRIVED", blocked=True)


class NewerNackBetweenPassesShowsArrival(BetweenPasses):
    """So does a newer NACK."""

    def runTest(self) -> None:
        self.nack(4, self.spec.queue_banks + 1)
        self.equal("frames sent", self.answered(self.flow.answer(6)), [])
        self.go()
        self.equal("NACK(6) alone, or with an ACK", len(self.outputs()), 1 + (self.spec.blocked is Blocked.ACK))
        found = {name: count for name, count in self.verdicts().items() if name != "UNDECIDED"}
        self.equal("verdicts", found, {"ARRIVED": 1, "NO_EVIDENCE": 1})


class ConnectionBeginsAnewBetweenPasses(BetweenPasses):
    """A NACK of the epoch before, which is still judged, is none of the new one's."""

    def runTest(self) -> None:
        self.nack(4, self.spec.queue_banks + 1)
        self.unregister(self.flow)
        self.register(self.flow, epoch=2)
        self.judged("ARRIVED", blocked=True)


class SameNackBetweenPasses(BetweenPasses):
    """Of two NACKs for the same PSN that are judged at a time, the first one decides, and the other one is blocked."""

    CASES = ((4, (), "LOST"), (3, (4,), "OVERTAKEN"))

    def runTest(self) -> None:
        wanted: dict[str, int] = {}
        for epoch, (cause, between, verdict) in enumerate(self.CASES, start=2):
            self.unregister(self.flow)
            self.register(self.flow, epoch=epoch)
            self.nack(cause, self.spec.queue_banks + 1)
            self.equal("frames sent", self.answered(self.flow.answer(2)), [])
            self.arrive(*between)
            self.go()
            nacks = [output for output in self.outputs() if parse(output.frame).aeth == self.flow.answer(2).aeth]
            self.equal("NACKs that leave", len(nacks), 1)
            wanted |= {verdict: 1, "ARRIVED": epoch - 1}
            found = {name: count for name, count in self.verdicts().items() if name != "UNDECIDED"}
            self.equal("verdicts", found, wanted)


class SameNackAfterCompensation(BetweenPasses):
    """A NACK that is armed and compensated while the same one is judged is not armed again."""

    def unfit(self) -> str | None:
        return "a NACK takes at most two passes" if self.spec.queue_rows < 4 else super().unfit()

    def runTest(self) -> None:
        self.nack(3, 2 * self.spec.queue_banks + 1)
        self.one_pass()
        self.equal("frames sent", self.answered(self.flow.answer(2)), [])
        self.one_pass()
        for psn in (4, 6):  # one shows the loss, one comes after it
            self.send(FIRST_SPINE, self.flow.request(psn).to_bytes())
        self.go()
        self.outputs()
        found = {name: count for name, count in self.verdicts().items() if name != "UNDECIDED"}
        self.equal("verdicts", found, {"UNKNOWN": 1, "COMPENSATED": 1, "ARRIVED": 1})
