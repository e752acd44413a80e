"""The in-band control message (EPIC §3.3.2): 32 bits of immediate data that a rank sends before its data.

From the most significant bit: collective 3, op 2, dtype 3, root 5, packets 19. docs/wire-format.md has the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from p4gen.errors import InputError
from p4gen.spec import DType, Numbers, Op
from p4gen.spec.reductions import numbers_of

MAX_PACKETS: Final = (1 << 19) - 1
"""The most packets that one control message can announce. CommLib announces more in several phases."""
MAX_RANKS: Final = 32


class Collective(StrEnum):
    """EPIC's six primitives (§3.1, §A)."""

    ALLREDUCE = "allreduce"
    REDUCE = "reduce"
    BROADCAST = "broadcast"
    BARRIER = "barrier"
    REDUCE_SCATTER = "reducescatter"
    ALLGATHER = "allgather"


_COLLECTIVES: Final = tuple(Collective)


@dataclass(frozen=True)
class Control:
    """The content of a control message. ``packets`` counts the data packets that follow it."""

    collective: Collective
    packets: int
    root: int = 0
    op: Op = Op.SUM
    dtype: DType = DType.INT32

    def __post_init__(self) -> None:
        if not 0 <= self.packets <= MAX_PACKETS:
            raise ValueError(f"{self.packets} packets; a control message announces at most {MAX_PACKETS}")
        if not 0 <= self.root < MAX_RANKS:
            raise ValueError(f"root {self.root} is not in 0 to {MAX_RANKS - 1}")

    def encode(self) -> int:
        """The immediate value, 32 bits."""
        return (
            (_COLLECTIVES.index(self.collective) + 1) << 29
            | Numbers(self.op, self.dtype).code << 24
            | self.root << 19
            | self.packets
        )

    @classmethod
    def decode(cls, value: int) -> Control:
        """The message that an immediate value encodes. Raises ``InputError`` when it encodes none."""
        collective, numbers = (value >> 29) - 1, numbers_of(value >> 24 & 31)
        if not 0 <= collective < len(_COLLECTIVES) or numbers is None:
            raise InputError(f"{value:#010x} is not a control message")
        return cls(_COLLECTIVES[collective], value & MAX_PACKETS, value >> 19 & 31, numbers.op, numbers.dtype)
