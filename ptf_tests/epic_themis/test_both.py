"""EPIC's groups and Themis's connections in one program: each gets its own packets, and neither disturbs the other."""

from __future__ import annotations

from dataclasses import replace

from both import CONTEXT, BothTest
from leaf import FIRST_SPINE, NAK, SPINES
from mode_ii import ModeIITest
from mode_iii import ROOT, Flow, ModeIIITest, control_of, to

from p4gen.groups.group import GroupContext
from p4gen.papers.epic.codes import OwnOpcode
from p4gen.ptf.scenario import Output
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import IPv4
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket, parse, problems
from p4gen.vocabulary import Reliability

EVERY = tuple(Reliability)
ROUNDS = 8


class GroupsOfModeII(BothTest, ModeIITest):
    """A group of Mode II, and connections."""

    def begun_group(self) -> GroupContext:
        """A group of four ranks, whose AllReduce has been announced."""
        group = self.make_group(4, context=CONTEXT)
        self.ready(group)
        return group

    def rounds_of(self, group: GroupContext, number: int) -> None:
        """All ranks contribute, and get the result."""
        values, psn = self.random_values(4), serial.add(self.first_psn, 1 + number)
        self.contribute(group, range(4), psn, values)
        self.expect_results(group, [(psn, self.reduced(values))])


class GroupsOfModeIII(BothTest, ModeIIITest):
    """A group of Mode III, and connections."""

    reliability = EVERY

    def begun_group(self, *, acked: bool = True) -> Flow:
        """A group of four ranks, whose AllReduce has been announced."""
        flow = self.served(ROOT, context=CONTEXT)
        self.begin(flow, acked=acked)
        return flow


class EpicBesideThemisInModeII(GroupsOfModeII):
    """Contributions of a group between packets of a sprayed connection, and of one that ends here: all are right."""

    def runTest(self) -> None:
        group = self.begun_group()
        sent = self.sprayed()
        base = self.base_of(sent)
        for number in range(ROUNDS):
            self.rounds_of(group, number)
            self.equal("path", self.paths_of(sent, range(number, number + 1)), [(base + number) % SPINES])
            self.arrive(number)
        self.arrive(ROUNDS + 1)
        self.rounds_of(group, ROUNDS)
        self.blocked(ROUNDS)
        self.rounds_of(group, ROUNDS + 1)
        self.arrive(ROUNDS)
        self.equal("disarmed", self.verdicts()["DISARMED"], 1)


class EpicBesideThemis(GroupsOfModeIII):
    """The same in Mode III, in which the switch sends answers of its own."""

    def runTest(self) -> None:
        flow = self.begun_group()
        sent = self.sprayed()
        base = self.base_of(sent)
        for number in range(ROUNDS):
            self.round(flow, self.psn(1 + number))
            self.equal("path", self.paths_of(sent, range(number, number + 1)), [(base + number) % SPINES])
            self.arrive(number)
        self.arrive(ROUNDS + 1)
        self.round(flow, self.psn(1 + ROUNDS))
        self.blocked(ROUNDS)
        self.round(flow, self.psn(2 + ROUNDS))
        self.arrive(ROUNDS)
        self.equal("disarmed", self.verdicts()["DISARMED"], 1)


class EpicEdgesAreNotSprayed(GroupsOfModeIII):
    """Packets for ends of edges are EPIC's, even with entries of Themis's for the same addresses and QPs."""

    def runTest(self) -> None:
        flow = self.begun_group()
        self.claim(flow.group)
        for number in range(ROUNDS):
            self.round(flow, self.psn(1 + number))


class EpicEdgesAreNotSprayedInModeII(GroupsOfModeII):
    """The same in Mode II, in which ranks' answers pass through the switch."""

    def runTest(self) -> None:
        group = self.begun_group()
        self.claim(group)
        for number in range(ROUNDS):
            self.rounds_of(group, number)
        self.send_from(group, 0, self.acknowledgement(group, 0, serial.add(self.first_psn, 1), NAK))
        self.equal("answers", [len(packets) for packets in self.received(group).of_rank], [1, 0, 0, 0])


class EdgesThatPassAreNotSprayed(BothTest):
    """Packets of an edge between a host and another switch: nobody has registered it, and it has one path."""

    def runTest(self) -> None:
        sent = self.outgoing()
        for opcode in (Opcode.SEND_ONLY, Opcode.SEND_MIDDLE, Opcode.SEND_ONLY_IMM):
            packets = [sent.request(psn, opcode, bytes(self.spec.payload_bytes)) for psn in range(2 * SPINES)]
            self.equal("paths", len(set(self.ports_taken(packets))), 1)


class NaksOfEdgesAreEpics(GroupsOfModeIII):
    """A NAK of an edge sends the group's results again, and is no NACK of a connection."""

    def runTest(self) -> None:
        flow = self.begun_group(acked=False)
        self.claim(flow.group)
        sent = [control_of(self.psn(0), self.immediate(flow, 1 << 12)), *self.rounds(flow, 1, 3, acked=False)]
        edge = flow.outputs[0]
        self.nak(flow.group, edge, self.psn(2))
        self.check(flow.group, {}, {edge: self.resent(sent[2:])})
        for index in range(min(self.themis.connections, 4)):
            self.equal(f"verdicts of connection {index}", self.verdicts(index), {})


class WalksAndCursors(GroupsOfModeIII):
    """A NACK goes round to be judged while cursors go round to send slots again: all come to their ends."""

    def runTest(self) -> None:
        flow = self.begun_group(acked=False)
        sent = [control_of(self.psn(0), self.immediate(flow, 1 << 12)), *self.rounds(flow, 1, 3, acked=False)]
        self.arrive(*range(1, self.themis.queue + 1))
        lost = self.flow.answer(0)  # older than all that is known: every row is looked at
        for number, edge in enumerate(flow.outputs):
            nak = self.acknowledgement(flow.group, edge, self.psn(1), NAK)
            self.send_from(flow.group, edge, nak)
            if number == 1:
                self.send(0, lost.to_bytes())
        outputs = self.outputs()
        self.equal("it goes round", self.verdicts()["UNDECIDED"] > 0, True)
        nacks = [output for output in outputs if self._of_connection(output)]
        self.equal("number of NACKs", len(nacks), 1)
        self.equal("NACK", nacks[0].frame.hex(), self.routed(lost, nacks[0].port).hex())
        self._pending = [output for output in outputs if not self._of_connection(output)]
        self.check(flow.group, {}, to(flow.outputs, *self.resent(sent[1:])))

    def _of_connection(self, output: Output) -> bool:
        return parse(output.frame).ip.src == self.hosts[0]


class DataShowsALoss(BothTest):
    """A packet of the size and the opcode that EPIC's parser looks into shows the loss of another one: a NACK."""

    opcode = Opcode.SEND_ONLY

    def size(self) -> int:
        """Bytes of payload."""
        return self.spec.payload_bytes

    def runTest(self) -> None:
        msn = 0x00CAFE
        self.arrive(0, 1, SPINES + 3)
        self.blocked(2, msn=msn)
        trigger = self.flow.request(SPINES + 2, self.opcode, self.random.randbytes(self.size()))
        self.send(FIRST_SPINE, trigger.to_bytes())
        outputs = self.outputs()
        to_host = [output for output in outputs if output.port < FIRST_SPINE]
        made = [output for output in outputs if output.port >= FIRST_SPINE]
        self.equal("frames for the host", to_host, [Output(0, self.routed(trigger, 0))])
        self.equal("NACKs", len(made), 1)
        self.equal("what is wrong with it", list(problems(made[0].frame)), [])
        wanted = self.flow.answer(2, msn=msn)
        expected = parse(self.routed(wanted, made[0].port))
        got = parse(made[0].frame)
        self.equal("NACK", _plain(got), _plain(expected))


def _plain(packet: RocePacket) -> RocePacket:
    """Without the IPv4 identification, and what depends on it, or the flow label."""
    ip = packet.ip
    plain = replace(ip, identification=0, checksum=0) if isinstance(ip, IPv4) else replace(ip, flow_label=0)
    return replace(packet, ip=plain)


class MiddleShowsALoss(DataShowsALoss):
    opcode = Opcode.SEND_MIDDLE


class ControlMessageShowsALoss(DataShowsALoss):
    """Its immediate is not in the NACK."""

    opcode = Opcode.SEND_ONLY_IMM

    def size(self) -> int:
        return 0


class TicksOfHostsAreNoNacks(BothTest):
    """A packet with a tick's or a cursor's opcode and a NACK's syndrome is none, and is routed unchanged."""

    def runTest(self) -> None:
        self.arrive(0, 1, 3)
        for opcode in OwnOpcode:
            packet = self.flow.answer(2)
            self.passes(replace(packet, bth=replace(packet.bth, opcode=int(opcode))).sealed())
        self.equal("verdicts", self.verdicts(), {})
        self.blocked(2)
