"""Internal edges, between the pipelines of a switch: what comes over them, the program itself has recirculated."""

from __future__ import annotations

from dataclasses import replace

from test_iii_pipelines import CHILDREN, PipelineTest

from p4gen.papers.epic.codes import OwnOpcode
from p4gen.rocev2.opcodes import Opcode
from p4gen.vocabulary.message import Collective


class ForgedInternalPackets(PipelineTest):
    """Packets from outside, from any port, with the addresses of an internal edge: refused, whatever they are."""

    def runTest(self) -> None:
        groups = self.nodes(Collective.ALLREDUCE)
        self.begin_all(groups, self.ranks, self.ranks, 1 << 12)
        self.round_all(groups, self.ranks, self.ranks, self.psn(1))
        values = self.lanes(1)
        for group in groups:
            forged = [
                self.packet_of(group, CHILDREN, self.psn(2), values),
                self.announcement(group, CHILDREN, self.psn(2), self.call(Collective.ALLREDUCE, 3)),
                self.acknowledgement(group, CHILDREN, self.psn(5)),
                self.notification(group, CHILDREN),
            ]
            for port in {other.edges[0].port for other in groups}:
                for packet in forged:
                    self.refused_at(port, packet, "LookupTable.wrong_port")
                for opcode in OwnOpcode:
                    self.refused_at(port, self.tick_of(group, CHILDREN, opcode), "LookupTable.wrong_port")
        self.round_all(groups, self.ranks, self.ranks, self.psn(2))


class InternalAddressesWithoutAnEdge(PipelineTest):
    """An internal packet for a QP that nobody has is told from one that is forged."""

    def runTest(self) -> None:
        groups = self.nodes(Collective.ALLREDUCE)
        packet = self.packet_of(groups[0], CHILDREN, self.psn(0), self.lanes(1))
        astray = replace(packet, bth=replace(packet.bth, dst_qp=0xABCDE, opcode=Opcode.SEND_ONLY)).sealed()
        self.refused_at(groups[0].edges[0].port, astray, "LookupTable.unknown_qp")


class BanksOfEveryWord(PipelineTest):
    """A packet changes words of its own pipeline's banks only: of contexts, of edges, of slots and of lanes, the last
    ones too."""

    def runTest(self) -> None:
        self.base = 2 * self.window * (self.spec.groups - 1)
        groups = self.nodes(Collective.ALLREDUCE)
        self.begin_all(groups, self.ranks, self.ranks, 1 << 12)
        for pipeline in self.pipelines:
            before = self.state()
            self.push_all(groups, [(pipeline, 0)], self.psn(1), {(pipeline, 0): self.lanes(1)})
            self.outputs()
            after = self.state()
            for name, words in after.items():
                bank = len(words) // self.spec.pipelines
                changed = {index // bank for index, word in enumerate(words) if word != before[name][index]}
                self.equal(f"pipelines whose words of {name} changed", changed - {pipeline}, set())
