"""What an output has lost is sent again out of the slots: after a NAK, and when time passes without progress
(Algorithm 3, lines 8-14)."""

from __future__ import annotations

from collections import Counter

from mode_iii import (
    BROADCAST_FROM_CHILD,
    BROADCAST_FROM_PARENT,
    BURST,
    CURSOR,
    DOWN,
    REDUCE_TO_CHILD,
    REDUCE_TO_PARENT,
    ROOT,
    UP,
    Flow,
    ModeIIITest,
    again,
    control_of,
    to,
)

from p4gen.papers.epic.codes import OwnOpcode
from p4gen.rocev2.opcodes import Ack, Nak, NakCode, Opcode, RnrNak
from p4gen.vocabulary import Reliability
from p4gen.vocabulary.message import Collective

EVERY = tuple(Reliability)


class Resends(ModeIIITest):
    """Results are under way: the announcement under the first PSN, and ``outstanding`` packets after it."""

    role = ROOT
    outstanding = 5

    def under_way(self, outstanding: int | None = None, edges: int | None = None) -> tuple[Flow, list[str]]:
        """A flow, and what has been sent to its outputs, by its place after the first PSN; nothing is acknowledged."""
        count = min(self.outstanding if outstanding is None else outstanding, self.window - 1)
        flow = self.begun(self.role, acked=False, edges=edges)
        announced = control_of(self.psn(0), self.immediate(flow, 1 << 12))
        return flow, [announced, *self.rounds(flow, 1, count, acked=False)]


class NakBringsAllSince(Resends):
    """The edge that misses a packet gets it and its successors again, in order and unchanged; others get nothing."""

    def runTest(self) -> None:
        flow, sent = self.under_way()
        for edge in (flow.outputs[0], flow.outputs[-1]):
            for missing in (3, len(sent) - 1, 1):
                self.nak(flow.group, edge, self.psn(missing))
                self.check(flow.group, {}, {edge: [again(result) for result in sent[missing:]]})
        self.equal("losses", dict(self.losses()), {})


class NakFromTheParentBringsAllSince(NakBringsAllSince):
    role = UP


class NakFromAChildBringsAllSince(NakBringsAllSince):
    role = DOWN


class NakOfAReductionBringsAllSince(NakBringsAllSince):
    role = REDUCE_TO_CHILD


class NakOfAReductionFromTheParentBringsAllSince(NakBringsAllSince):
    role = REDUCE_TO_PARENT


class NakInABroadcastBringsAllSince(NakBringsAllSince):
    role = BROADCAST_FROM_CHILD


class NakInABroadcastFromTheParentBringsAllSince(NakBringsAllSince):
    role = BROADCAST_FROM_PARENT


class NakAcrossTheWrapBringsAllSince(NakBringsAllSince):
    wraps = True


class NakAcknowledgesWhatIsBefore(Resends):
    """Its PSN is the one expected, so that all before it has arrived: the range moves, and a tick starts from there."""

    role = ROOT

    def runTest(self) -> None:
        flow, sent = self.under_way(self.window - 1)
        for edge in flow.outputs:
            self.nak(flow.group, edge, self.psn(2))
        self.check(flow.group, {}, to(flow.outputs, *map(again, sent[2 : 2 + BURST])))
        sent += self.rounds(flow, self.window, 2, acked=False)  # two slots are free
        edge = flow.outputs[0]
        self.tick(flow.group, edge, edge)
        self.check(flow.group, {}, {edge: [again(result) for result in sent[2 : 2 + BURST]]})


class NakFromTheParentAcknowledgesWhatIsBefore(NakAcknowledgesWhatIsBefore):
    role = UP


class NakAcknowledgesWhatIsBeforeAcrossTheWrap(NakAcknowledgesWhatIsBefore):
    wraps = True


class ControlMessageIsSentAgainAsItWas(Resends):
    """An announcement that was lost is sent again with its immediate, and without a payload."""

    reliability = EVERY

    def runTest(self) -> None:
        flow, sent = self.under_way(0)
        for edge in flow.outputs:
            self.nak(flow.group, edge, self.psn(0))
            self.check(flow.group, {}, {edge: sent})


class ControlMessageFromTheParentIsSentAgainAsItWas(ControlMessageIsSentAgainAsItWas):
    role = DOWN


class MessagesAreSentAgainWithTheirOpcodes(Resends):
    """First, middle, last: each is unchanged, except that it asks for an ACK, since the ACK may have been lost."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        opcodes = (Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST)
        rounds = [self.inputs(flow) for _ in opcodes]
        for offset, (opcode, values) in enumerate(zip(opcodes, rounds, strict=True), start=1):
            self.push(flow, flow.sources, self.psn(offset), values, opcode)
        self.outputs()
        self.tick(flow.group, 1, 1)
        results = [
            again(self.result(self.psn(offset), values, opcode))
            for offset, (opcode, values) in enumerate(zip(opcodes, rounds, strict=True), start=1)
        ]
        self.check(flow.group, {}, to([1], *results))


class ResendingEndsAtWhatIsIncomplete(Resends):
    """A slot that waits for others holds nothing to send, and nothing after it is in order."""

    def unfit(self) -> str | None:
        return super().unfit() or ("its range ends before the sixth packet" if self.window < 6 else None)

    def runTest(self) -> None:
        flow, sent = self.under_way(3)
        incomplete, values, later = self.psn(4), self.inputs(flow), self.inputs(flow)
        for edge in flow.sources[1:]:
            self.push(flow, [edge], incomplete, values)
            self.push(flow, [edge], self.psn(5), later)
        self.outputs()
        self.nak(flow.group, 1, self.psn(2))
        self.check(flow.group, {}, {1: [again(result) for result in sent[2:]]})
        self.nak(flow.group, 1, incomplete)
        self.expect_nothing()
        # The cursor has changed nothing: the slots complete as they would have.
        self.push(flow, flow.sources[:1], incomplete, values, asks=False)
        self.push(flow, flow.sources[:1], self.psn(5), later, asks=False)
        both = [self.result(incomplete, values), self.result(self.psn(5), later)]
        self.check(flow.group, {}, to(flow.outputs, *both))
        self.nak(flow.group, 1, incomplete)
        self.check(flow.group, {}, to([1], *both))


class ResendingGoesOnceRoundTheBuffer(Resends):
    """All N slots hold something; a cursor ends at the first slot that holds an older PSN."""

    def runTest(self) -> None:
        flow, sent = self.under_way(self.window - 1)
        self.nak(flow.group, 2, self.psn(0))
        self.check(flow.group, {}, {2: [again(result) for result in sent[:BURST]]})


class ResendingGoesOnceRoundTheBufferAcrossTheWrap(ResendingGoesOnceRoundTheBuffer):
    wraps = True


class OneNakBringsSixtyFourPackets(Resends):
    """A burst is limited; the ACKs of its packets start the next one."""

    edges = 2

    def unfit(self) -> str | None:
        return super().unfit() or (
            None if self.window > BURST + 2 else f"it has {self.window} slots, a burst fits none"
        )

    def runTest(self) -> None:
        flow, sent = self.under_way(BURST + 1, edges=2)
        self.nak(flow.group, 1, self.psn(0))
        self.check(flow.group, {}, {1: [again(result) for result in sent[:BURST]]})
        self.nak(flow.group, 1, self.psn(BURST))
        self.check(flow.group, {}, {1: [again(result) for result in sent[BURST:]]})


class NothingToSendAgain(Resends):
    """NAKs of packets that are no longer in their slots, and answers other than sequence errors."""

    reliability = EVERY

    def runTest(self) -> None:
        flow, sent = self.under_way(self.window - 1)
        group = flow.group
        for syndrome in (Ack(), RnrNak(1), Nak(NakCode.INVALID_REQUEST), Nak(NakCode.REMOTE_ACCESS_ERROR)):
            self.answer(group, 1, self.psn(1), syndrome.syndrome)
        self.expect_nothing()
        self.ack(group, flow.outputs, self.psn(len(sent) - 1))
        self.rounds(flow, len(sent), 2)
        self.nak(group, 1, self.psn(1))  # an old one that was overtaken
        self.expect_nothing()
        self.equal("losses", dict(self.losses()), {})


class SecondTickWithoutProgressResends(Resends):
    """The first tick records the edge's progress; the second one finds no change, and sends the outstanding packets."""

    def runTest(self) -> None:
        flow, sent = self.under_way()
        edge, other = flow.outputs[0], flow.outputs[-1]
        self.ack(flow.group, [edge], self.psn(1))
        self.tick(flow.group, edge)
        self.expect_nothing()
        self.tick(flow.group, edge)
        self.check(flow.group, {}, {edge: [again(result) for result in sent[2:]]})
        self.tick(flow.group, edge)  # and so on, until there is progress
        self.check(flow.group, {}, {edge: [again(result) for result in sent[2:]]})
        self.ack(flow.group, [edge], self.psn(2))
        self.tick(flow.group, edge)
        self.expect_nothing()
        self.tick(flow.group, edge)
        self.check(flow.group, {}, {edge: [again(result) for result in sent[3:]]})
        if other != edge:  # this edge has acknowledged nothing at all
            self.tick(flow.group, other)
            self.expect_nothing()
            self.tick(flow.group, other)
            self.check(flow.group, {}, {other: [again(result) for result in sent]})


class SecondTickTowardTheParentResends(SecondTickWithoutProgressResends):
    role = UP


class SecondTickFromTheParentResends(SecondTickWithoutProgressResends):
    role = DOWN


class SecondTickInAReduceResends(SecondTickWithoutProgressResends):
    role = REDUCE_TO_CHILD


class SecondTickInABroadcastResends(SecondTickWithoutProgressResends):
    role = BROADCAST_FROM_PARENT


class SecondTickAcrossTheWrapResends(SecondTickWithoutProgressResends):
    wraps = True


class ProgressStopsTheTimer(Resends):
    """An ACK or a NAK between two ticks restarts the timer."""

    reliability = EVERY

    def runTest(self) -> None:
        flow, _ = self.under_way()
        for offset in range(3):
            self.tick(flow.group, *flow.outputs)
            self.ack(flow.group, flow.outputs, self.psn(offset))
        self.tick(flow.group, *flow.outputs)
        self.expect_nothing()
        self.ack(flow.group, flow.outputs, self.psn(1))  # an old one is none
        self.tick(flow.group, flow.outputs[0])
        self.tick(flow.group, flow.outputs[0])
        self.equal("something is sent again", bool(self.outputs()), True)


class NothingOutstandingNothingResent(Resends):
    """Ticks have no effect before anything is sent, after all is acknowledged, or for an edge that gets nothing."""

    reliability = EVERY
    role = REDUCE_TO_PARENT

    def runTest(self) -> None:
        flow = self.served(self.role)
        everybody = range(len(flow.group.edges))
        for _ in range(3):
            self.tick(flow.group, *everybody)
        self.expect_nothing()
        self.begin(flow)
        self.rounds(flow, 1, 2)
        for _ in range(3):
            self.tick(flow.group, *everybody)
        self.expect_nothing()
        self.equal("losses", self.losses(), Counter())  # ticks have no effect for edges that receive nothing


class NothingOutstandingInABroadcast(NothingOutstandingNothingResent):
    role = BROADCAST_FROM_CHILD


class IncompleteIsNotOutstanding(Resends):
    """A slot that still waits for a source is not sent, however much time passes."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        self.push(flow, flow.sources[1:], self.psn(1), self.inputs(flow), asks=False)
        for _ in range(3):
            self.tick(flow.group, *flow.outputs)
        self.expect_nothing()


class TicksOfOneEdgeAreNoOthers(Resends):
    """One tick for each of two edges does not count as two ticks for one."""

    reliability = EVERY

    def runTest(self) -> None:
        flow, _ = self.under_way()
        self.tick(flow.group, *flow.outputs)
        self.expect_nothing()


class TicksComeFromTheAgentAlone(Resends):
    """Ticks from a rank's port are forged, and so is a cursor that arrives on any port."""

    reliability = EVERY

    def runTest(self) -> None:
        flow, sent = self.under_way(1)
        group = flow.group
        self.tick(group, 0)
        self.expect_nothing()
        for edge in (0, 1):
            self.refused(group, edge, self.tick_of(group, edge), "ValidatePacket.bad_opcode")
        self.refused(group, 0, self.tick_of(group, 0, CURSOR), "ValidatePacket.bad_opcode")
        self.tick(group, 0)
        self.check(group, {}, {0: [again(result) for result in sent]})


class CursorsFromTheAgentAreRefused(Resends):
    """Only the program itself makes cursors, and answers in a later pass."""

    reliability = EVERY

    def runTest(self) -> None:
        flow, _ = self.under_way(1)
        self.tick(flow.group, 0)
        for opcode in (CURSOR, OwnOpcode.CHECKED, OwnOpcode.COUNTED):
            self.refused_at(self.agent_port, self.tick_of(flow.group, 0, opcode), "LookupTable.wrong_port")


class BarrierIsSentAgain(Resends):
    """A lost barrier is repaired like lost data, at both ends: a tick triggers the retransmission without a NAK."""

    reliability = EVERY

    def runTest(self) -> None:
        flow = self.served(ROOT)
        value = self.call(Collective.BARRIER, 0).encode()
        self.equal("a barrier's code", self.immediates.unpack(value)["collective"], Collective.BARRIER.code)
        self.announce(flow.group, flow.sources, self.psn(0), value)
        self.outputs()
        self.tick(flow.group, 0, 2, 0)
        self.check(flow.group, {}, {0: [control_of(self.psn(0), value)]})


class LostResultsOfManyEdges(Resends):
    """Every output has lost a different packet; each gets its own again, in whatever order their NAKs arrive."""

    role = ROOT
    outstanding = 6

    def runTest(self) -> None:
        flow, sent = self.under_way()
        missing = {edge: 1 + index for index, edge in enumerate(flow.outputs)}
        for edge in self.random.sample(flow.outputs, len(flow.outputs)):
            self.nak(flow.group, edge, self.psn(missing[edge]))
        wanted = {edge: [again(result) for result in sent[first:]] for edge, first in missing.items()}
        self.check(flow.group, {}, wanted)


class LostResultsOfManyChildren(LostResultsOfManyEdges):
    role = DOWN
