"""Outputs of tokens in random traffic, for programs that combine."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from p4gen.papers.multiwrite.control import WriteContext
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.papers.multiwrite.traffic.frames import ACK, answer, returned
from p4gen.rocev2.opcodes import Nak, NakCode, Opcode
from p4gen.rocev2.packet import RocePacket

_NAK = Nak(NakCode.PSN_SEQUENCE_ERROR).syndrome
_NUMBERS = 1 << 24


@dataclass
class Outputs:
    """Roughly what ranks have sent back to a source, and it has got: PSNs are counted from the first one."""

    sent: Counter[int] = field(default_factory=Counter)
    """Outputs so far, by edge."""
    number: int = 0
    """The next token's."""
    waiting: dict[int, tuple[int, frozenset[int]]] = field(default_factory=dict)
    """The set of each token that is not complete, and the edges that owe an output."""
    sums: int = 0

    def draw(
        self, rng: random.Random, spec: MultiwriteSpec, context: WriteContext, bitmap: int
    ) -> tuple[int, RocePacket, str, Callable[[], None]]:
        """The port and the packet of an output, what it is, and what is learned if nothing is wrong with it; ``bitmap``
        is the set of a token that may begin."""
        oldest = min(self.waiting, default=self.number)
        if not self.waiting or (self.number - oldest < spec.slots and rng.random() < 0.3):
            self.waiting[self.number] = bitmap, frozenset(e.edge for e in context.edges if e.reach & bitmap)
            self.number += 1
        number = rng.choice(list(self.waiting))
        ranks, edges = self.waiting[number]
        come = {each.edge for each in context.edges if each.reach & ranks} - edges
        twice = bool(come) and rng.random() < 0.05
        chosen = rng.choice(sorted(come if twice else edges))
        edge = next(each for each in context.edges if each.edge == chosen)
        psn, kind = self.sent[edge.edge], "output"
        learn: Callable[[], None] = partial(self._learn, number, edge.edge)
        said = number % _NUMBERS
        chance = rng.random()
        if twice:
            kind, learn = "output twice", partial(self._advance, edge.edge)
        elif chance < 0.1:
            psn, kind, learn = psn + rng.choice((-2, -1, 1, 3)), "output out of turn", _nothing
        elif chance < 0.18:
            other = rng.choice((0, 1 << context.rank, ranks ^ 1 << edge.edge - 1, ranks | 1 << spec.receivers - 1, 3))
            ranks, kind = other, "output with another set"
            learn = partial(self._advance, edge.edge) if other & edge.reach else _nothing
        elif chance < 0.24:
            said = rng.choice((said + spec.slots, said ^ 1, _NUMBERS))
            kind = "output with another number"
            learn = _nothing if said == _NUMBERS else partial(self._advance, edge.edge)
        packet = returned(context, edge, psn, said, ranks, rng.randbytes(spec.payload), asks=rng.random() < 0.5)
        return edge.edge - 1, packet, kind, learn

    def answered(self, rng: random.Random, context: WriteContext) -> tuple[int, RocePacket, str]:
        """What the source says of its sums."""
        psn = max(0, self.sums - rng.choice((0, 1, 1, 2, 3, 6)))
        packet = answer(context, context.toward, psn, rng.choice((ACK, ACK, _NAK)))
        if rng.random() < 0.1:
            bth = replace(packet.bth, opcode=Opcode.CNP, becn=True)
            return (
                context.source - 1,
                replace(packet, bth=bth, aeth=None, payload=bytes(16)),
                "notification back",
            )
        return context.source - 1, packet, "ACK of sums"

    def _learn(self, number: int, edge: int) -> None:
        self._advance(edge)
        if number not in self.waiting:
            return
        ranks, edges = self.waiting[number]
        self.waiting[number] = ranks, edges - {edge}
        if not self.waiting[number][1]:
            del self.waiting[number]
            self.sums += 1

    def _advance(self, edge: int) -> None:
        self.sent[edge] += 1


def _nothing() -> None:
    """Nothing is learned."""
