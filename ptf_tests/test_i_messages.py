"""Mode I stores whole messages and sends results as messages of its own (EPIC 4.2; footnote 4).

A message's packets are acknowledged when they are stored. Nothing of a result leaves before its message has arrived
from every source; then all of it leaves, in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from elements import Values
from mode_iii import (
    BROADCAST_FROM_CHILD,
    BROADCAST_FROM_PARENT,
    CNP,
    DOWN,
    REDUCE_TO_CHILD,
    REDUCE_TO_PARENT,
    ROOT,
    UP,
    Flow,
    ModeIIITest,
    Role,
    ack_of,
    again,
    control_of,
    flow_at,
    invalid_of,
    rnr_of,
    to,
)

from p4gen.papers.epic.spec import Mode
from p4gen.papers.epic.words import EMISSION
from p4gen.rocev2.opcodes import Opcode
from p4gen.vocabulary.message import Collective

Message = Sequence[Mapping[int, Values]]
"""A message's packets: what each source contributes to each of them."""


def opcodes_of(packets: int) -> list[Opcode]:
    """The opcodes of a message."""
    if packets == 1:
        return [Opcode.SEND_ONLY]
    return [Opcode.SEND_FIRST, *[Opcode.SEND_MIDDLE] * (packets - 2), Opcode.SEND_LAST]


class MessageTest(ModeIIITest):
    """Messages of M packets, or of three where M is smaller: a receiver does not limit them."""

    modes = (Mode.I,)
    role: Role = ROOT

    @property
    def length(self) -> int:
        """Packets of a message: M, and at least two."""
        return min(max(self.spec.message, 2), self.window - 1)

    def message(self, flow: Flow, packets: int | None = None) -> Message:
        """What the sources contribute to a message."""
        return [self.inputs(flow) for _ in range(packets or self.length)]

    def send_message(self, flow: Flow, edge: int, offset: int, message: Message) -> None:
        """A source's part of a message, from a number on."""
        for at, (opcode, values) in enumerate(zip(opcodes_of(len(message)), message, strict=True)):
            self.push(flow, [edge], self.psn(offset + at), values, opcode)

    def results(self, offset: int, message: Message) -> list[str]:
        """What outputs receive for a message."""
        numbered = enumerate(zip(opcodes_of(len(message)), message, strict=True))
        return [self.result(self.psn(offset + at), values, opcode) for at, (opcode, values) in numbered]

    def unfit(self) -> str | None:
        return super().unfit() or ("N is too small for a message" if self.window < 4 else None)


class NothingLeavesBeforeTheMessageIsWhole(MessageTest):
    """All packets of all sources but the last one of the last source: they are acknowledged, and nothing leaves. The
    last one releases the message."""

    def runTest(self) -> None:
        flow = self.begun(self.role)
        message, last = self.message(flow), self.psn(self.length)
        *early, late = self.random.sample(flow.sources, len(flow.sources))
        for edge in early:
            self.send_message(flow, edge, 1, message)
        self.check(flow.group, to(early, ack_of(last)))
        opcodes = opcodes_of(len(message))
        for at, (opcode, values) in enumerate(zip(opcodes[:-1], message[:-1], strict=True)):
            self.push(flow, [late], self.psn(1 + at), values, opcode)
        self.expect_nothing()
        self.push(flow, [late], last, message[-1], opcodes[-1])
        self.check(flow.group, to([late], ack_of(last)), to(flow.outputs, *self.results(1, message)))


class MessagesOfAReduceAreStoredWhole(NothingLeavesBeforeTheMessageIsWhole):
    role = REDUCE_TO_CHILD


class MessagesOfAReduceToTheParentAreStoredWhole(NothingLeavesBeforeTheMessageIsWhole):
    role = REDUCE_TO_PARENT


class MessagesToTheParentAreStoredWhole(NothingLeavesBeforeTheMessageIsWhole):
    role = UP


class DownMessageIsStoredWhole(NothingLeavesBeforeTheMessageIsWhole):
    """What comes from the parent is relayed as whole messages, too."""

    role = DOWN


class BroadcastMessagesAreStoredWhole(NothingLeavesBeforeTheMessageIsWhole):
    role = BROADCAST_FROM_CHILD


class BroadcastMessagesFromTheParentAreStoredWhole(NothingLeavesBeforeTheMessageIsWhole):
    role = BROADCAST_FROM_PARENT


class MessagesAcrossTheWrapAreStoredWhole(NothingLeavesBeforeTheMessageIsWhole):
    wraps = True


class AckOnStorage(MessageTest):
    """A packet inside a message that asks for an ACK gets it at once: it is stored, whatever others have sent."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        values, edge = self.inputs(flow), self.random.choice(flow.sources)
        self.push(flow, [edge], self.psn(1), values, Opcode.SEND_FIRST, asks=True)
        self.check(flow.group, to([edge], ack_of(self.psn(1))))
        self.push(flow, [edge], self.psn(2), values, Opcode.SEND_LAST, asks=False)
        self.expect_nothing()
        # An ACK is cumulative: a repeated packet is answered with the newest.
        self.push(flow, [edge], self.psn(1), values, Opcode.SEND_FIRST, asks=True)
        self.check(flow.group, to([edge], ack_of(self.psn(2))))


class ShortLastMessage(MessageTest):
    """A message that is shorter than the others ends where its last packet says so, not after M."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        long, short = self.message(flow, 3), self.message(flow, 1)
        for edge in flow.sources:
            self.send_message(flow, edge, 1, long)
        self.check(flow.group, to(flow.sources, ack_of(self.psn(3))), to(flow.outputs, *self.results(1, long)))
        self.ack(flow.group, flow.outputs, self.psn(3))
        for edge in flow.sources:
            self.send_message(flow, edge, 4, short)
        self.check(flow.group, to(flow.sources, ack_of(self.psn(4))), to(flow.outputs, *self.results(4, short)))


class MessagesLeaveInOrder(MessageTest):
    """One source has sent a message more than the others: it waits for them, and the one before it leaves first."""

    def runTest(self) -> None:
        flow = self.begun(self.role)
        length = min(self.length, (self.window - 1) // 2)
        first, second = self.message(flow, length), self.message(flow, length)
        ahead, *others = self.random.sample(flow.sources, len(flow.sources))
        for offset, message in ((1, first), (1 + length, second)):
            self.send_message(flow, ahead, offset, message)
        self.check(flow.group, to([ahead], ack_of(self.psn(length)), ack_of(self.psn(2 * length))))
        for offset, message in ((1, first), (1 + length, second)):
            for edge in others:
                self.send_message(flow, edge, offset, message)
            acks = to(others, ack_of(self.psn(offset + length - 1)))
            self.check(flow.group, acks, to(flow.outputs, *self.results(offset, message)))


class MessagesDownLeaveInOrder(MessagesLeaveInOrder):
    role = UP


class AckReqOnLast(MessageTest):
    """A result asks for an ACK at its end, whatever its sources did; but a packet that is sent again always asks."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        message, opcodes = self.message(flow, 2), opcodes_of(2)
        for at, (opcode, values) in enumerate(zip(opcodes, message, strict=True)):
            self.push(flow, flow.sources, self.psn(1 + at), values, opcode, asks=at == 0)
        results = self.results(1, message)
        self.equal("AckReq", [result.endswith(" AckReq") for result in results], [False, True])
        self.check(flow.group, to(flow.sources, ack_of(self.psn(1))), to(flow.outputs, *results))
        self.nak(flow.group, flow.outputs[0], self.psn(1))
        self.check(flow.group, {}, to(flow.outputs[:1], *map(again, results)))


class NakInsideAMessage(MessageTest):
    """An output that misses a packet gets it and all since, folded again, and it alone."""

    def runTest(self) -> None:
        flow = self.begun(self.role)
        message = self.message(flow, 3)
        for edge in flow.sources:
            self.send_message(flow, edge, 1, message)
        self.outputs()
        results, edge = self.results(1, message), self.random.choice(flow.outputs)
        self.nak(flow.group, edge, self.psn(2))
        self.check(flow.group, {}, to([edge], *map(again, results[1:])))
        # Nothing has changed: the same once more, from the first on.
        self.nak(flow.group, edge, self.psn(1))
        self.check(flow.group, {}, to([edge], *map(again, results)))


class NakOfADownMessage(NakInsideAMessage):
    role = DOWN


class NakOfABroadcastMessage(NakInsideAMessage):
    role = BROADCAST_FROM_CHILD


class WhatIsNotWholeIsNotSentAgain(MessageTest):
    """The slots of a message's beginning are complete, but nothing of it has been sent: no NAK, no tick brings it."""

    def runTest(self) -> None:
        flow = self.begun(self.role, acked=False)
        value, message = self.immediate(flow, 1 << 12), self.message(flow, 3)
        for at, opcode in ((0, Opcode.SEND_FIRST), (1, Opcode.SEND_MIDDLE)):
            self.push(flow, flow.sources, self.psn(1 + at), message[at], opcode)
        self.expect_nothing()
        edge = flow.outputs[0]
        self.nak(flow.group, edge, self.psn(0))
        self.check(flow.group, {}, to([edge], control_of(self.psn(0), value)))
        self.ack(flow.group, flow.outputs, self.psn(0))
        self.tick(flow.group, edge, edge, edge)
        self.expect_nothing()
        self.push(flow, flow.sources, self.psn(3), message[2], Opcode.SEND_LAST)
        acks = to(flow.sources, ack_of(self.psn(3)))
        self.check(flow.group, acks, to(flow.outputs, *self.results(1, message)))


class WhatIsNotWholeIsNotSentDown(WhatIsNotWholeIsNotSentAgain):
    role = DOWN


class WaitingIsNotGivenUp(MessageTest):
    """An output that awaits a message whose sources are slow acknowledges nothing for long, and is not given up."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        message, edge = self.message(flow, 2), flow.outputs[0]
        self.push(flow, flow.sources, self.psn(1), message[0], Opcode.SEND_FIRST)
        self.tick(flow.group, *[edge] * 8, units=1 << 19)
        self.equal("ticks of edges that are given up", self.counts("given_up"), {})
        self.push(flow, flow.sources, self.psn(2), message[1], Opcode.SEND_LAST)
        results = self.results(1, message)
        self.check(flow.group, to(flow.sources, ack_of(self.psn(2))), to(flow.outputs, *results))
        self.tick(flow.group, edge)
        self.check(flow.group, {}, to([edge], *map(again, results)))


class UnderWay(MessageTest):
    """A cursor is under way: a switch that handles a packet with all that it causes shows none, so the word of its pipe
    says so."""

    def say(self, flow: Flow, *, down: bool, next_one: int, ready: int) -> None:
        """The word of one of a node's pipes: what is sent next, and the last that is whole."""
        pipe = "broadcast" if down else "aggregation"
        index = flow.group.pipeline * self.spec.bank_contexts + flow.group.context
        word = EMISSION.pack(epoch=flow.group.epoch, next=self.psn(next_one), ready=self.psn(ready))
        self.write_register(f"{pipe}.emission", index, word)


class LostEmitterIsReplaced(UnderWay):
    """The cursor that sends a message has been lost on its way round: a tick's goes on where it was. Messages that have
    become whole meanwhile follow; each packet leaves once."""

    def runTest(self) -> None:
        flow = self.begun(self.role)
        length = min(self.length, (self.window - 1) // 2)
        message, second = self.message(flow, length), self.message(flow, length)
        last = self.psn(length)
        self.say(flow, down=self.role.down, next_one=1, ready=length)
        for edge in flow.sources:
            self.send_message(flow, edge, 1, message)
            self.send_message(flow, edge, 1 + length, second)
        acks = [ack_of(last), ack_of(self.psn(2 * length))]
        self.check(flow.group, to(flow.sources, *acks))
        self.tick(flow.group, flow.outputs[0], flow.outputs[0])
        results = [*self.results(1, message), *self.results(1 + length, second)]
        self.check(flow.group, {}, to(flow.outputs, *results))
        self.ack(flow.group, flow.outputs, self.psn(2 * length))
        self.round(flow, self.psn(1 + 2 * length))


class LostEmitterBelowAParentIsReplaced(LostEmitterIsReplaced):
    role = UP


class LostEmitterOfADownMessageIsReplaced(LostEmitterIsReplaced):
    role = DOWN


class LostEmitterOfAReduceIsReplaced(LostEmitterIsReplaced):
    role = REDUCE_TO_PARENT


class NextMessageCompletesDuringEmission(UnderWay):
    """A message becomes whole while the one before it is leaving: no second cursor starts. The one that is under way
    goes on with it, so that all leaves once, and in order."""

    def runTest(self) -> None:
        flow = self.begun(self.role)
        length = min(self.length, (self.window - 1) // 2)
        first, second = self.message(flow, length), self.message(flow, length)
        last = 2 * length
        self.say(flow, down=self.role.down, next_one=1, ready=length)
        for edge in flow.sources:
            self.send_message(flow, edge, 1, first)
        self.check(flow.group, to(flow.sources, ack_of(self.psn(length))))
        # Its first packet has left, and the next message becomes whole.
        self.say(flow, down=self.role.down, next_one=2, ready=length)
        for edge in flow.sources:
            self.send_message(flow, edge, 1 + length, second)
        self.check(flow.group, to(flow.sources, ack_of(self.psn(last))))
        # A cursor that a tick has started takes over: for its edge again what that edge lacks, for all what follows.
        edge, *others = flow.outputs
        self.tick(flow.group, edge, edge)
        results = [*self.results(1, first), *self.results(1 + length, second)]
        self.check(flow.group, {}, {edge: [again(results[0]), *results[1:]], **to(others, *results[1:])})
        self.ack(flow.group, flow.outputs, self.psn(last))
        self.round(flow, self.psn(1 + last))

    def unfit(self) -> str | None:
        return super().unfit() or ("N is too small for two messages of two packets" if self.window < 5 else None)


class NextMessageToTheParentCompletesDuringEmission(NextMessageCompletesDuringEmission):
    role = UP


class NextMessageDownCompletesDuringEmission(NextMessageCompletesDuringEmission):
    role = DOWN


class OneEmitterAPipe(UnderWay):
    """A pipe whose cursor is under way starts no other, whatever becomes whole; the node's other pipe has its own."""

    def runTest(self) -> None:
        up = self.make_flow(UP)
        down = flow_at(up.group, Collective.ALLREDUCE, down=True)
        self.serve(up.group)
        for flow in (up, down):
            self.begin(flow)
        for busy, other in ((up, down), (down, up)):
            offset = 1 if busy is up else 1 + self.length
            message, rest = self.message(busy), self.message(other)
            last = offset + self.length - 1
            self.say(busy, down=busy is down, next_one=offset, ready=last)
            for flow, contributions in ((busy, message), (other, rest)):
                for edge in flow.sources:
                    self.send_message(flow, edge, offset, contributions)
            acks = to((*busy.sources, *other.sources), ack_of(self.psn(last)))
            self.check(up.group, acks, to(other.outputs, *self.results(offset, rest)))
            self.ack(up.group, other.outputs, self.psn(last))
            self.tick(up.group, busy.outputs[0], busy.outputs[0])
            self.check(up.group, {}, to(busy.outputs, *self.results(offset, message)))
            self.ack(up.group, busy.outputs, self.psn(last))

    def unfit(self) -> str | None:
        return super().unfit() or ("N is too small for two messages" if self.window < 2 * self.length else None)


class RnrWhenNoBuffer(MessageTest):
    """A message begins only where there are slots for M packets; a message of one packet needs one. Whoever has to wait
    is told when to try again, every time, and what follows is no gap."""

    def runTest(self) -> None:
        flow = self.begun(self.role)
        room = self.spec.message - 1
        taken = self.window - room
        if taken < 2 or not room:
            self.skipTest("every free slot is room for a message")
        self.rounds(flow, 1, taken, acked=False)
        psn, values = self.psn(1 + taken), self.inputs(flow)
        for _ in range(2):
            for edge in flow.sources:
                self.push(flow, [edge], psn, values, Opcode.SEND_FIRST)
                self.push(flow, [edge], self.psn(2 + taken), values, Opcode.SEND_MIDDLE)
                answers = self.received(flow.group).of_rank[edge]
                self.equal("refusals", [each.aeth.syndrome for each in answers if each.aeth is not None], [RNR])
        # A shorter message fits.
        self.round(flow, psn, acked=False)
        self.ack(flow.group, flow.outputs, psn)
        self.expect_nothing()
        message = self.message(flow)
        for edge in flow.sources:
            self.send_message(flow, edge, 2 + taken, message)
        acks = to(flow.sources, ack_of(self.psn(1 + taken + len(message))))
        self.check(flow.group, acks, to(flow.outputs, *self.results(2 + taken, message)))


class RnrTowardTheParent(RnrWhenNoBuffer):
    role = UP


class RnrFromTheParent(RnrWhenNoBuffer):
    role = DOWN


class RnrAcrossTheWrap(RnrWhenNoBuffer):
    wraps = True


class OneEdgeFullOthersGoOn(MessageTest):
    """A source that has filled its buffers waits; the others send what is missing, and then it may go on."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        ahead, *others = self.random.sample(flow.sources, len(flow.sources))
        inputs = [self.inputs(flow) for _ in range(self.window)]
        numbers = [self.psn(1 + at) for at in range(self.window)]
        for psn, values in zip(numbers, inputs, strict=True):
            self.push(flow, [ahead], psn, values)
        self.check(flow.group, to([ahead], *map(ack_of, numbers)))
        refused = self.psn(1 + self.window)
        self.push(flow, [ahead], refused, inputs[0])
        answers = [rnr_of(refused), *([CNP] if self.spec.notifies else [])]
        self.check(flow.group, to([ahead], *answers))
        for edge in others:
            for psn, values in zip(numbers, inputs, strict=True):
                self.push(flow, [edge], psn, values)
        results = [self.result(psn, values) for psn, values in zip(numbers, inputs, strict=True)]
        self.check(flow.group, to(others, *map(ack_of, numbers)), to(flow.outputs, *results))
        self.ack(flow.group, flow.outputs, numbers[0])
        self.push(flow, [ahead], refused, inputs[0])
        self.check(flow.group, to([ahead], ack_of(refused)))


class MessageBoundariesDiffer(MessageTest):
    """A source whose message ends where others' go on is told: invalid request; the message is not released."""

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        values, (first, *others) = self.inputs(flow), flow.sources
        self.push(flow, [first], self.psn(1), values, Opcode.SEND_FIRST)
        self.push(flow, others, self.psn(1), values, Opcode.SEND_ONLY)
        self.check(flow.group, to(others, invalid_of(self.psn(1))))


class TwoGroupsShareNothing(MessageTest):
    """Messages of two groups, and of a group's two directions, are stored at the same time under the same numbers."""

    def runTest(self) -> None:
        one, other = self.make_flow(UP), self.make_flow(UP, context=1, first_port=1)
        self.serve(one.group, other.group)
        flows = [
            flow_at(node, Collective.ALLREDUCE, down=down)
            for node in (one.group, other.group)
            for down in (False, True)
        ]
        for flow in flows:
            self.begin(flow)
        messages = [self.message(flow, 2) for flow in flows]
        for at, opcode in enumerate(opcodes_of(2)):
            psn = self.psn(1 + at)
            for flow, message in zip(flows, messages, strict=True):
                self.push(flow, flow.sources[:-1], psn, message[at], opcode)
        self.outputs()
        for flow, message in zip(flows, messages, strict=True):
            self.send_message(flow, flow.sources[-1], 1, message)
            acks = to(flow.sources[-1:], ack_of(self.psn(2)))
            self.check(flow.group, acks, to(flow.outputs, *self.results(1, message)))


RNR = 0x21
"""The syndrome of an RNR NAK that asks for 10 us."""
