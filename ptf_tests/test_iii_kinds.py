"""Groups of IPv4 and of IPv6 at one switch, in Modes III and I."""

from __future__ import annotations

from dataclasses import replace

from kinds import EndpointsTest, KindsTest
from mode_iii import ROOT, Flow, ModeIIITest, ack_of, again, is_answer, to

from p4gen.rocev2.headers import IPv6
from p4gen.vocabulary import Reliability

EVERY = tuple(Reliability)


class BothKinds(KindsTest, ModeIIITest):
    """A flow of each kind."""

    reliability = EVERY

    def flows(self, *, switches: int = 2) -> list[Flow]:
        """Two flows, at addresses with the same last 32 bits if at one switch, whose sources have announced packets."""
        flows = []
        for number in range(2):
            self.ipv6 = bool(number)
            flow = self.make_flow(ROOT, context=number)
            if switches == 1:
                flow = replace(flow, group=self.make_group(self.edges, context=number, switch=0))
            flows.append(flow)
        self.serve(*(flow.group for flow in flows))
        for flow in flows:
            self.begin(flow)
        return flows


class FlowsOfBothKinds(BothKinds):
    """With the same last 32 bits of their addresses, the same QPs, PSNs and ports: each completes for itself."""

    def runTest(self) -> None:
        flows = self.flows(switches=1)
        for psn in (self.psn(1), self.psn(2)):
            inputs = [self.inputs(flow) for flow in flows]
            for edge in flows[0].sources:
                for flow, values in zip(flows, inputs, strict=True):
                    self.push(flow, [edge], psn, values)
            self.check_all(
                *(
                    (flow.group, to(flow.sources, ack_of(psn)), to(flow.outputs, self.result(psn, values)))
                    for flow, values in zip(flows, inputs, strict=True)
                )
            )
            for flow in flows:
                self.ack(flow.group, flow.outputs, psn)
            self.expect_nothing()


class WhatIsLostIsSentAgain(BothKinds):
    """By a NAK, and by a tick, in headers of either kind: with lengths of their own."""

    def runTest(self) -> None:
        for flow in self.flows():
            results = [again(self.round(flow, self.psn(1), acked=False))]
            self.nak(flow.group, 1, self.psn(1))
            self.tick(flow.group, 2, 2)
            self.check(flow.group, {}, {1: results, 2: results})


class OtherKindsAddressesAreNobodys(BothKinds):
    """An IPv6 header with the addresses that stand for a group's IPv4 addresses, and the reverse: no group's."""

    def runTest(self) -> None:
        for flow in self.flows():
            group, psn, values = flow.group, self.psn(1), self.inputs(flow)
            data, answer = self.packet_of(group, 1, psn, values[1]), self.acknowledgement(group, 1, self.psn(0))
            control = self.announcement(group, 1, psn, self.immediate(flow, 1))
            self.refuse_other_kind(group, 1, data, answer, control, self.notification(group, 1))
            self.round(flow, psn)


class MalformedPacketsOfEitherKind(BothKinds):
    """Each kind of packet, over IPv4 and over IPv6, with each of its lengths wrong."""

    def runTest(self) -> None:
        for flow in self.flows():
            group, psn, values = flow.group, self.psn(1), self.inputs(flow)
            self.refuse_malformed(group, 1, self.packet_of(group, 1, psn, values[1]))
            self.refuse_malformed(group, 1, self.announcement(group, 1, psn, self.immediate(flow, 1)))
            self.refuse_malformed(group, 1, self.acknowledgement(group, 1, self.psn(0)))
            self.refuse_malformed(group, 1, self.notification(group, 1))
            self.round(flow, psn)


class MarksAreOfEitherKind(BothKinds):
    """A marked packet brings a CNP, marks the result, and is answered without its mark, in headers of both kinds."""

    def runTest(self) -> None:
        for flow in self.flows():
            psn, values = self.psn(1), self.inputs(flow)
            for edge in flow.sources:
                packet = self.packet_of(flow.group, edge, psn, values[edge])
                tos = 26 << 2 | (0b11 if edge == 1 else 0b10)
                self.send_from(flow.group, edge, replace(packet, ip=replace(packet.ip, tos=tos)).sealed())
            for edge, packets in enumerate(self.received(flow.group).of_rank):
                answers = {packet.ip.tos for packet in packets if is_answer(packet)}
                results = {packet.ip.tos for packet in packets if not is_answer(packet)}
                self.equal(f"edge {edge}: classes of answers", answers, {26 << 2 | 0b10})
                self.equal(f"edge {edge}: classes of results", results, {26 << 2 | 0b11})


class RoutersMayChangeLabels(ModeIIITest):
    """The flow label, like the class of service and the hop limit, is no part of the ICRC, whatever it becomes."""

    over_ipv6 = True
    reliability = EVERY

    def runTest(self) -> None:
        flow = self.begun(ROOT)
        psn, values = self.psn(1), self.inputs(flow)
        for edge in flow.sources:
            packet = self.packet_of(flow.group, edge, psn, values[edge])
            assert isinstance(packet.ip, IPv6)
            changed = replace(packet, ip=replace(packet.ip, flow_label=packet.ip.flow_label ^ 0xFFFFF, ttl=1, tos=0xFE))
            self.equal("the ICRC", changed.sealed().icrc, packet.icrc)
            self.send_from(flow.group, edge, changed)
        self.check(flow.group, to(flow.sources, ack_of(psn)), to(flow.outputs, self.result(psn, values)))


class EndpointsAreResolved(EndpointsTest, ModeIIITest):
    reliability = EVERY
    runTest = EndpointsTest.resolves
