"""Calls whose elements have scales, and what scenarios do with them."""

from __future__ import annotations

import numpy as np
from pulls import Call, PullTest, ranks

from p4gen.papers.scin.ranks.numbers import NUMBERS


class ScaledTest(PullTest):
    """Calls whose elements have scales."""

    def unfit(self) -> str | None:
        return None if self.spec.scaled else "elements have no scales"

    def opened(self, packets: int, **how: int) -> Call:
        """A call that has been arrived at, whose first scales have been asked for, and not come."""
        call = self.call(self.served(**how), packets)
        self.ask(call)
        return call

    def ask(self, call: Call) -> None:
        """All ranks arrive; the first waves' scales are asked for."""
        *early, last = self.participants(call.context)
        for edge in early:
            self.arrive(call, edge)
            self.expect([self.acked(call, edge)])
        self.arrive(call, last)
        waves = range(min(self.spec.waves, self.waves(call)))
        sources = ranks(call.context.sources)
        reads = [self.read_scales(call, edge, wave) for wave in waves for edge in sources]
        self.expect([self.acked(call, last), *reads])

    def both(self, call: Call, *indices: int) -> None:
        """Sources answer READs of data; results are those of the golden model."""
        for index in indices:
            self.respond(call, ranks(call.context.sources), index)
            self.expect(self.writes(call, index))

    def fill(self, call: Call, index: int, elements: dict[int, int], scales: dict[int, int]) -> None:
        """Have all elements of a packet be the same, and its scales."""
        for edge, element in elements.items():
            call.operands[edge][index] = np.full(self.spec.lanes, element, np.int64)
            call.scales[edge][index] = np.full(self.spec.blocks, scales[edge], NUMBERS[self.spec.dtype].scale)
