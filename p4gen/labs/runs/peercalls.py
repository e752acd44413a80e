"""Collectives over connections between hosts: rings, and AlltoAll between each two. Switches only forward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from p4gen.errors import InputError
from p4gen.host.collectives.arrays import Array
from p4gen.net.collectives.config import MAX_DATA, Call
from p4gen.net.collectives.values import draw, expected
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.message import Collective

ALLTOALL: Final = "alltoall"
COLLECTIVES: Final = (*map(str, Collective), ALLTOALL)
"""Names of the collectives that hosts can run over connections."""


@cache
def numbers() -> CollectiveSpec:
    """What they compute with: sums of int32."""
    return CollectiveSpec()


@dataclass(frozen=True)
class PeerCall:
    """One call; ``size`` and ``root`` as in ``Call``. Of an AlltoAll ``size`` is a rank's array."""

    collective: str
    size: int
    root: int = 0

    @property
    def is_alltoall(self) -> bool:
        """Whether each rank sends to each other one; all other collectives run on a ring."""
        return self.collective == ALLTOALL

    def check(self, ranks: int) -> None:
        """Raises ``InputError`` unless ``ranks`` hosts can make the call."""
        if ranks < 2:
            raise InputError(f"{self.collective}: at least two hosts are needed")
        if not self.is_alltoall:
            self._call.check(numbers(), ranks)
            return
        unit = numbers().dtype.number_format.bytes * ranks
        if not self.size or self.size % unit:
            raise InputError(f"{ALLTOALL} of {self.size} bytes: it has to be a positive multiple of {unit}")
        if self.size * ranks > MAX_DATA:
            raise InputError(f"{ALLTOALL} of {self.size} bytes: all ranks' data together have 1 GiB at most")

    def data(self, ranks: int, chance: np.random.Generator) -> list[Array]:
        """Every rank's input."""
        call = Call(size=self.size) if self.is_alltoall else self._call
        return draw(call, numbers(), ranks, chance, overflowing=False)

    def results(self, values: Sequence[Array]) -> list[Array | None]:
        """Every rank's result by NumPy; None for ranks that get none."""
        if not self.is_alltoall:
            return expected(self._call, numbers(), values)
        ranks = len(values)
        blocks = np.stack(values).reshape(ranks, ranks, -1)
        return list(blocks.transpose(1, 0, 2).reshape(ranks, -1))

    @property
    def _call(self) -> Call:
        return Call(Collective(self.collective), self.size, self.root)
