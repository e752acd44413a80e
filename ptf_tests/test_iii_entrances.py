"""Nobody speaks for another: a packet counts only if it comes in by a port of the endpoint that it is from."""

from __future__ import annotations

from dataclasses import replace

from mode_iii import ROOT, UP, Flow, ModeIIITest, ack_of, to

from p4gen.papers.epic.codes import OwnOpcode
from p4gen.rocev2.opcodes import Ack, Nak, RnrNak
from p4gen.rocev2.packet import RocePacket
from p4gen.vocabulary import Reliability

WRONG_PORT = "LookupTable.wrong_port"


class AnotherHostsPort(ModeIIITest):
    """Packets of every kind that are an edge's in all but the port they come in by: another edge's port, one that no
    endpoint has. Registers stay as they are, and the collective goes on."""

    role = ROOT
    reliability = tuple(Reliability)

    def runTest(self) -> None:
        flow = self.begun(self.role)
        self.round(flow, self.psn(1), acked=False)
        own = {edge.port for edge in flow.group.edges}
        others = [port for port in self.front if port not in own]
        for edge, here in enumerate(flow.group.edges):
            ports = {*(own - {here.port}), *others[:1], *others[-1:]}
            for packet in self.kinds(flow, edge):
                self.refused_at(self.random.choice(sorted(ports)), packet, WRONG_PORT)
        for port in sorted({flow.group.edges[1].port, *others[:1], *others[-1:]}):
            for packet in self.kinds(flow, 0):
                self.refused_at(port, packet, WRONG_PORT)
        self.refused_at(self.agent_port, self.packet_of(flow.group, 0, self.psn(2), self.lanes(1)), WRONG_PORT)
        self.ack(flow.group, flow.outputs, self.psn(1))
        self.check(flow.group)
        self.round(flow, self.psn(2))

    def kinds(self, flow: Flow, edge: int) -> list[RocePacket]:
        """One of each kind, which would have an effect over its own edge."""
        group = flow.group
        answers = [
            self.acknowledgement(group, edge, psn, syndrome)
            for psn, syndrome in (
                (self.psn(1), Ack().syndrome),
                (self.psn(1), Nak().syndrome),
                (self.psn(1), RnrNak(1).syndrome),
            )
        ]
        return [
            self.packet_of(group, edge, self.psn(2), self.lanes(1)),
            self.announcement(group, edge, self.psn(2), self.immediate(flow, 3)),
            *answers,
            self.notification(group, edge),
            *(self.tick_of(group, edge, opcode) for opcode in OwnOpcode),
        ]


class AnotherHostsPortBelowTheRoot(AnotherHostsPort):
    role = UP


class SeveralEntrances(ModeIIITest):
    """An edge that several paths lead to: its packets count from each of its ports, and from no other. What is sent
    over it leaves by one."""

    reliability = tuple(Reliability)

    def unfit(self) -> str | None:
        few = len(self.front) // self.spec.pipelines < self.edges + 2
        return super().unfit() or ("the program has too few ports" if few else None)

    def runTest(self) -> None:
        flow = self.make_flow(ROOT)
        more, foreign = self.front[self.edges : self.edges + 2]
        edge, *others = flow.group.edges
        flow = replace(flow, group=replace(flow.group, edges=(replace(edge, more_ports=(more,)), *others)))
        self.serve(flow.group)
        self.begin(flow)
        for offset, port in enumerate((more, edge.port, more), start=1):
            psn, values = self.psn(offset), self.inputs(flow)
            packet = self.packet_of(flow.group, 0, psn, values[0])
            for wrong in (foreign, others[0].port):
                self.refused_at(wrong, packet, WRONG_PORT)
            self.push(flow, flow.sources[1:], psn, values)
            self.check(flow.group, to(flow.sources[1:], ack_of(psn)))
            self.send(port, packet.to_bytes())
            self.check(flow.group, to([0], ack_of(psn)), to(flow.outputs, self.result(psn, values)))
            answer = self.acknowledgement(flow.group, 0, psn)
            self.refused_at(foreign, answer, WRONG_PORT)
            self.send(port, answer.to_bytes())
            self.ack(flow.group, flow.outputs[1:], psn)
            self.check(flow.group)
