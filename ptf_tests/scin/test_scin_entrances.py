"""Nobody speaks for another: a packet counts only if it comes in by a port of the rank that it is from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pulls import ACK, Call, PullTest

from p4gen.papers.scin.control import Role, configuration
from p4gen.papers.scin.headers import CURSOR
from p4gen.rocev2.headers import BTH
from p4gen.rocev2.opcodes import Nak
from p4gen.rocev2.packet import RocePacket
from p4gen.vocabulary import ticks

WRONG_PORT = "LookupTable.wrong_port"


class Entrances(PullTest):
    """Calls whose first arrival a scenario sends itself."""

    def joined(self, call: Call) -> None:
        """All but the first rank arrive."""
        self.arrive(call, 2)
        self.arrive(call, 3)
        self._waves[call.context.context, call.context.epoch, call.number + 1] = call.waves + self.waves(call)
        self.expect([self.acked(call, 2), self.acked(call, 3), *self.reads(call, [0])])


class AnotherHostsPort(Entrances):
    """Arrivals, data, scales, ACKs, NAKs, ticks and cursors that are a rank's in all but the port they come in by: the
    port of another rank, or of nobody. They change nothing, and the call goes on."""

    def runTest(self) -> None:
        context = self.served()
        call = self.call(context, 1)
        self.refuse(1, self.arrival(call, 1))
        self.arrive(call, 1)
        self.expect([self.acked(call, 1)])
        self.joined(call)
        for edge in (1, 3):
            for packet in self.kinds(call, edge):
                self.refuse(edge, packet)
        self.finish(call)
        self.finish(self.begin(context, 1, 1, 1))

    def refuse(self, edge: int, packet: RocePacket) -> None:
        """A rank's packet comes in by other ports."""
        others = {self.port(other) for other in (1, 2, 3) if other != edge} | {self.spec.ports - 1}
        for port in sorted(others - {self.port(edge)}):
            self.refused(port, packet.to_bytes(), WRONG_PORT)

    def kinds(self, call: Call, edge: int) -> Iterator[RocePacket]:
        """What a rank may send in a call, and what the switch and its agent may."""
        context, nak = call.context, Nak().syndrome
        yield self.arrival(call, edge)
        yield self.response(call, edge, 0)
        if self.spec.scaled:
            yield self.scales(call, edge, 0)
            yield self.answer(context, edge, Role.SCALES, call.scales_psn(0), nak)
        yield self.answer(context, edge, Role.READ, call.data_psn(0), nak)
        yield self.answer(context, edge, Role.WRITE, call.data_psn(0))
        yield self.answer(context, edge, Role.SYNC, call.psn, ACK)
        said = CURSOR.word.pack(what=6, status=2, edges=7, asked=0, announced=0).to_bytes(CURSOR.size)
        for opcode, payload in ((ticks.OPCODE, bytes(4)), (ticks.OPCODE + 1, said)):
            yield self._from(context, edge, Role.SYNC, BTH(opcode, 0, call.psn), payload=payload)


class SeveralEntrances(Entrances):
    """A rank that several paths lead from: its packets count from each of these ports, and from no other. What is sent
    to it leaves by one, but for the answers to its arrivals, which leave by the port that these have come by."""

    def runTest(self) -> None:
        context = self.context()
        more = self.port(2)
        first, *others = context.edges
        context = replace(context, edges=(replace(first, more_ports=(more,)), *others))
        self.install(configuration(self.spec, [context]))
        for number, port in enumerate((more, self.port(1))):
            call = self.call(context, 1, number, number)
            arrival = self.arrival(call, 1).to_bytes()
            self.refused(self.port(3), arrival, WRONG_PORT)
            self.send(port, arrival)
            self.expect([replace(self.acked(call, 1), port=port)])
            self.refused(self.port(1), self.arrival(call, 2).to_bytes(), WRONG_PORT)
            self.joined(call)
            self.finish(call)


class SameQueuePairAtAnotherAddress(Entrances):
    """Endpoints of two addresses may have equal queue pairs, whose packets come in by different ports."""

    def runTest(self) -> None:
        context, other = self.context(), self.context(number=1)
        ports = {edge: self.port(edge % 3 + 1) for edge in (1, 2, 3)}
        other = replace(other, edges=tuple(replace(each, port=ports[each.edge]) for each in other.edges))
        self.install(configuration(self.spec, [context, other]))
        call = self.call(context, 1)
        for edge in (1, 2, 3):
            self.refused(ports[edge], self.arrival(call, edge).to_bytes(), WRONG_PORT)
        self.finish(self.begin(context, 1))
