"""Results of Modes I and III as RDMA WRITEs (EPIC footnote 5)."""

from __future__ import annotations

from dataclasses import replace

from inc import psns
from mode_iii import BROADCAST_FROM_PARENT, DOWN, REDUCE_TO_CHILD, ROOT, UP, Flow, ModeIIITest, ack_of, again, to
from written import Write, Written, image, message

from p4gen.groups.group import Memory
from p4gen.rocev2.headers import RETH, ImmDt
from p4gen.rocev2.opcodes import Opcode, has_imm, has_reth
from p4gen.vocabulary import Reliability


class WriteTest(Written, ModeIIITest):
    """A test of a flow to ranks."""

    reliability = tuple(Reliability)
    role = ROOT

    def unfit(self) -> str | None:
        return self.not_written() or super().unfit()

    def sends(self, flow: Flow, psn: int, packets: int, *, acked: bool = True) -> tuple[list[str], list[Write]]:
        """All sources send a message. Returns the results that the outputs get, and the WRITEs that they are to
        ranks."""
        answers: dict[int, list[str]] = {edge: [] for edge in flow.sources}
        results, writes = [], []
        for number, (opcode, write) in zip(psns(psn, packets), message(packets), strict=True):
            values = self.inputs(flow)
            self.push(flow, flow.sources, number, values, opcode)
            results.append(self.result(number, values, opcode))
            writes.append(write)
            if opcode in (Opcode.SEND_LAST, Opcode.SEND_ONLY):
                for edge in flow.sources:
                    answers[edge].append(ack_of(number))
        self.check(flow.group, answers, to(flow.outputs, *results))
        if acked:
            self.ack(flow.group, flow.outputs, psns(psn, packets)[-1])
            self.expect_nothing()
        return results, writes

    def ranks(self, flow: Flow) -> list[int]:
        """The outputs at which there are ranks."""
        return [edge for edge in flow.outputs if flow.group.edges[edge].first_hop]


class EachPacketIsWrittenByItsPlaceInTheMessage(WriteTest):
    """FIRST, MIDDLE, LAST and ONLY remain what they are, at every place of the ring, which PSNs go round."""

    def runTest(self) -> None:
        flow, offset = self.begun(self.role), 1
        while offset < self.spec.ring + self.window:
            size = self.message_size(self.spec.message)
            _, writes = self.sends(flow, self.psn(offset), size)
            self.check_written(flow.group, self.ranks(flow), writes)
            offset += size
        self.equal("losses", dict(self.losses()), {})


class ResultsFromTheParentAreWritten(EachPacketIsWrittenByItsPlaceInTheMessage):
    role = DOWN


class ReductionForAChildIsWritten(EachPacketIsWrittenByItsPlaceInTheMessage):
    role = REDUCE_TO_CHILD


class BroadcastIsWritten(EachPacketIsWrittenByItsPlaceInTheMessage):
    role = BROADCAST_FROM_PARENT


class SwitchesAreSentResults(WriteTest):
    """A partial result for a switch stays a SEND."""

    role = UP

    def runTest(self) -> None:
        flow = self.begun(self.role)
        self.sends(flow, self.psn(1), self.spec.message)
        (parent,) = flow.outputs
        opcodes = [opcode for opcode, _ in message(self.spec.message)]
        self.equal("the parent's", [packet.bth.opcode for packet in self.taken(flow.group, parent)], opcodes)


class ShortMessageAtTheEnd(WriteTest):
    """The last message of a call has as many packets as are announced, as the first one's RETH says, also when it is
    sent again while the next call has begun."""

    def runTest(self) -> None:
        flow = self.served(self.role)
        first = flow.group.first_psn
        for packets in range(1, self.spec.message + 1):
            psn = self.begin(flow, packets, psn=first)
            results, writes = self.sends(flow, psn, packets, acked=False)
            self.check_written(flow.group, self.ranks(flow), writes)
            edge, last = flow.outputs[0], psns(psn, packets)[-1]
            first = psns(last, 2)[1]
            self.announce(flow.group, flow.sources[:1], first, self.immediate(flow, self.spec.message))
            self.check(flow.group, to(flow.sources[:1], ack_of(first)))
            self.nak(flow.group, edge, psn)
            again_sent = self.resent(results)
            self.check(flow.group, {}, {edge: again_sent})
            self.check_written(flow.group, [edge], writes[: len(again_sent)])
            self.ack(flow.group, flow.outputs, last)
            self.expect_nothing()
            # The others begin it, too.
            value = self.immediate(flow, self.spec.message)
            self.announce(flow.group, flow.sources[1:], first, value)
            self.received(flow.group)
            self.ack(flow.group, flow.outputs, first)
            rest = psns(first, 1 + self.spec.message)
            self.sends(flow, rest[1], self.spec.message)
            self._written.clear()
            first = psns(rest[-1], 2)[1]


class SentAgainFromTheMiddle(WriteTest):
    """What is sent again is what was sent first: a MIDDLE without a RETH, or a LAST with its immediate data."""

    def runTest(self) -> None:
        flow = self.begun(self.role)
        size = self.spec.message
        results, _ = self.sends(flow, self.psn(1), size, acked=False)
        edge, other = flow.outputs[:2]
        sent = self.taken(flow.group, edge)
        for at in reversed(range(size)):
            self.taken(flow.group, edge)
            self.nak(flow.group, edge, self.psn(1 + at))
            resent = [again(each) for each in results[at:]][: None if self.spec.loss_recovery.in_order else 1]
            self.check(flow.group, {}, {edge: resent})
            got = self.taken(flow.group, edge)
            self.equal("sent again", [*map(image, got)], [*map(image, sent[at:])][: len(resent)])
        self.taken(flow.group, other)


class MemoryIsEachRanks(WriteTest):
    """Memory that a rank offers anew takes the place of what it has offered before, for this rank alone."""

    def runTest(self) -> None:
        flow = self.begun(self.role)
        self.sends(flow, self.psn(1), 1)
        moved = Memory(self.random.randrange(1 << 62), 0x0BAD_CAFE, self.spec.channel_memory)
        first, *others = flow.group.edges
        group = replace(flow.group, edges=(replace(first, memory=moved), *others))
        self.reconfigure(group)
        self.sends(replace(flow, group=group), self.psn(2), 1)


class RanksSend(WriteTest):
    """What ranks contribute are SENDs: a WRITE to a switch is refused."""

    def runTest(self) -> None:
        flow = self.begun(self.role)
        values = self.inputs(flow)[0]
        for opcode in (each for each in Opcode if each.name.startswith("WRITE")):
            sent = self.packet_of(flow.group, 0, self.psn(1), values, opcode)
            reth = RETH(0x1000, 1, self.spec.payload_bytes) if has_reth(opcode) else None
            immediate = ImmDt(1) if has_imm(opcode) else None
            packet = replace(sent, reth=reth, immdt=immediate).sealed()
            self.refused(flow.group, 0, packet, "ValidatePacket.bad_opcode")
