"""Nobody speaks for another: a packet counts only if it comes in by a port of the endpoint that it is from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from writes import ACK, INVALID, NAK, WriteTest

from p4gen.papers.multiwrite.control import WriteContext
from p4gen.rocev2.headers import AETH, BTH

WRONG_PORT = "LookupTable.wrong_port"
TICK, CURSOR = 0xC0, 0xC1


class AnotherHostsPort(WriteTest):
    """Writes, answers, notifications, ticks and cursors that are an edge's in all but the port they come in by, which
    is another edge's. They change nothing, and the writes that they are about go on."""

    def runTest(self) -> None:
        context = self.served()
        first = self.write(context, 0, self.bits([2, 3]))
        self.posts(first, {2: 0, 3: 0})
        following = self.write(context, 1, self.bits([2]))
        for edge in (2, 3, self.spec.edges):
            self.refused(self.ports[edge], following.packet.to_bytes(), WRONG_PORT)
        for frame in self.kinds(context, 2):
            for edge in (1, 3, 4):
                self.refused(self.ports[edge], frame, WRONG_PORT)
        self.says(context, 2, 0, None)
        self.says(context, 3, 0, 1)
        self.posts(following, {2: 1})

    def kinds(self, context: WriteContext, edge: int) -> Iterator[bytes]:
        """What a destination may send, and what its switch may."""
        for syndrome in (ACK, NAK, INVALID):
            yield self.answer(context, edge, 0, syndrome).to_bytes()
        yield self.notification(context, edge).to_bytes()
        for opcode in (TICK, CURSOR):
            yield self._from(context, edge, BTH(opcode, 0, context.first_psn), AETH(1, context.first_psn)).to_bytes()


class SeveralEntrances(WriteTest):
    """A destination and a source that several paths lead from: their packets count from each of these ports, and from
    no other. What is sent to them leaves by one."""

    def runTest(self) -> None:
        context = self.star()
        more = {1: self.ports[4], 2: self.ports[3]}
        edges = (replace(edge, more_ports=(more[edge.edge],)) if edge.edge in more else edge for edge in context.edges)
        context = replace(context, edges=tuple(edges))
        self.serve(context)
        for psn, own in enumerate((False, True, False)):
            write = self.write(context, psn, self.bits([2]))
            packet = write.packet.to_bytes()
            for edge in (2, 3):
                self.refused(self.ports[edge], packet, WRONG_PORT)
            self.send(self.ports[1] if own else more[1], packet)
            told = self.spec.holds and write.packet.bth.ack_request
            self.expect([self.copy(write, 2, psn), *([self.reply(context, write.packet, psn + 1)] if told else [])])
            answer = self.answer(context, 2, psn)
            for edge in (1, 4):
                self.refused(self.ports[edge], answer.to_bytes(), WRONG_PORT)
            self.send(self.ports[2] if own else more[2], answer.to_bytes())
            self.expect([] if self.spec.holds else [self.reply(context, answer, psn + 1)])
        self.refused(self.ports[2], self.answer(context, 3, 0).to_bytes(), WRONG_PORT)


class EqualQueuePairsAtSeveralAddresses(WriteTest):
    """Two sources' connections end at two addresses of the switch, with the same queue pairs: which edge a packet is
    of, and by which ports it may come in, depends on the address, too."""

    def unfit(self) -> str | None:
        return "the program has one context" if self.spec.contexts < 2 else None

    def runTest(self) -> None:
        first, second = self.star(), self.star(self.spec.edges - 1, number=1, at=0x0A010001)
        pairs = [edge.local.qp for edge in reversed(first.edges)]
        edges = (replace(edge, local=replace(edge.local, qp=qp)) for edge, qp in zip(second.edges, pairs, strict=True))
        second = replace(second, edges=tuple(edges))
        self.serve(first, second)
        for context in (first, second):
            others = self.others(context)
            self.posts(self.write(context, 0, self.bits(others)), dict.fromkeys(others, 0))
            for edge in others:
                mirrored = self.spec.edges + 1 - edge
                if mirrored != edge:
                    self.refused(self.ports[mirrored], self.answer(context, edge, 0).to_bytes(), WRONG_PORT)
                self.says(context, edge, 0, 1 if edge == others[-1] else None)
