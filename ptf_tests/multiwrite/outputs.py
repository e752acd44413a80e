"""What the experts of a token send back, and the sums that leave: NumPy's, in the order in which outputs have come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from writes import ACK, SLOT_SHIFT, HopTest

from p4gen.host.collectives.arrays import Array, array_type, combine, to_wire
from p4gen.papers.multiwrite.control import WriteContext
from p4gen.ptf.scenario import Output
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import AETH, BTH, RETH, UDP, ImmDt
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket
from p4gen.vocabulary import DType, Op, Overflow

NUMBERS = 1 << 24


@dataclass(frozen=True)
class Returned:
    """An expert's output as the test sent it."""

    context: WriteContext
    edge: int
    psn: int
    number: int
    ranks: int
    """The set of ranks that have got the token."""
    values: Array
    packet: RocePacket


class CombineTest(HopTest):
    """A scenario of programs that add outputs."""

    def values(self) -> Array:
        """A packet of elements, a third of them special ones."""
        kind = array_type(DType(str(self.spec.combine)))
        count = self.spec.payload // kind.itemsize
        draw = np.random.default_rng(self.random.randrange(1 << 32))
        if kind.kind == "i":
            plain, special = draw.integers(-(1 << 31), 1 << 31, count), np.array([0, -1, (1 << 31) - 1, -(1 << 31)])
        else:
            plain = draw.normal(size=count) * 2.0 ** draw.integers(-20, 20, count)
            special = np.array([0.0, -0.0, 1.0, -1.0, np.inf])
        return np.where(draw.random(count) < 1 / 3, draw.choice(special, count), plain).astype(kind)

    def output(
        self,
        context: WriteContext,
        edge: int,
        psn: int,
        number: int,
        ranks: int,
        *,
        asks: bool = False,
        ecn: int = 0,
        key: int | None = None,
    ) -> Returned:
        """The ``psn``-th output, from 0, that comes over an edge: of the token with this number."""
        ends = next(each for each in context.edges if each.edge == edge)
        values = self.values()
        packet = RocePacket(
            self.framed(ends.remote.mac, ends.local.mac, ends.local.ip),
            self.ip(ends.remote.ip, ends.local.ip, tos=self._dscp() | ecn, ttl=61),
            UDP(ends.udp_src_port),
            BTH(
                Opcode.WRITE_ONLY_IMM,
                ends.local.qp,
                serial.add(context.first_psn, psn),
                ack_request=asks,
                fecn=self._marked(),
            ),
            reth=RETH(number, context.rkey if key is None else key, self.spec.payload),
            immdt=ImmDt(ranks),
            payload=bytes(to_wire(values, self.spec.payload)),
        )
        return Returned(context, edge, psn, number, ranks, values, packet.sealed())

    def come(self, output: Returned) -> None:
        """An edge sends an output."""
        self.send(self.ports[output.edge], output.packet.to_bytes())

    def sum(self, outputs: Sequence[Returned], psn: int, by: RocePacket | None = None) -> Output:
        """The sum of outputs, in the order in which they have come, as the ``psn``-th one, from 0, for the source;
        made of the last one, or, if it is sent again, of the packet ``by``."""
        *_, last = outputs
        context, ends = last.context, last.context.toward
        total = outputs[0].values
        for output in outputs[1:]:
            total = combine(Op.SUM, Overflow.SATURATE, total, output.values)
        made = last.packet if by is None else by
        ip = self.translated(made.ip, ends.local.ip, ends.remote.ip)
        if by is not None:
            ip = replace(ip, tos=ip.tos & ~3 | last.packet.ip.tos & 3)
        if any(output.packet.ip.tos & 3 == 3 for output in outputs):
            ip = replace(ip, tos=ip.tos | 3)
        address, key, said = last.number, context.rkey, last.ranks
        if context.results is not None:
            place = last.number % self.spec.slots << SLOT_SHIFT
            address, key, said = context.results.base + place, context.results.rkey, last.number
        packet = RocePacket(
            self.framed(ends.local.mac, ends.remote.mac, ends.local.ip),
            ip,
            UDP(ends.udp_src_port),
            BTH(
                Opcode.WRITE_ONLY_IMM,
                ends.remote.qp,
                serial.add(context.first_psn, psn),
                ack_request=True,
                fecn=by is None and made.bth.fecn,
            ),
            reth=RETH(address, key, self.spec.payload),
            immdt=ImmDt(said),
            payload=bytes(to_wire(total, self.spec.payload)),
            vlan=made.vlan,
        )
        return self._out(context.source, packet, made)

    def told(self, output: Returned, due: int, syndrome: int = ACK) -> Output:
        """What an output's sender is told: the ``due``-th of its outputs, from 0, comes next."""
        context = output.context
        edge = next(each for each in context.edges if each.edge == output.edge)
        ip = self.translated(output.packet.ip, edge.local.ip, edge.remote.ip)
        packet = RocePacket(
            self.framed(edge.local.mac, edge.remote.mac, edge.local.ip),
            replace(ip, tos=ip.tos ^ (ip.tos & 3 == 3)),
            UDP(edge.udp_src_port),
            BTH(Opcode.ACKNOWLEDGE, edge.remote.qp, serial.add(context.first_psn, due - (syndrome == ACK))),
            aeth=AETH(syndrome, due % (1 << 24)),
            vlan=output.packet.vlan,
        )
        return self._out(output.edge, packet, output.packet)

    def adds(self, outputs: Sequence[Returned], psn: int) -> None:
        """Outputs of one token come, all that there are of it. Their sum leaves with the last one, and nothing does
        before but the answers that they ask for."""
        for i, output in enumerate(outputs):
            self.come(output)
            answers = [self.told(output, output.psn + 1)] if output.packet.bth.ack_request else []
            self.expect([*answers, *([self.sum(outputs, psn)] if i == len(outputs) - 1 else [])])
