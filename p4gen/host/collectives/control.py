"""The in-band control message (EPIC §3.3.2): 32 bits of immediate data that a rank sends before its data.

``p4gen.spec.message`` has the layout of these bits, docs/wire-format.md the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from p4gen.errors import InputError
from p4gen.spec import DType, Numbers, Op
from p4gen.spec.message import MESSAGE, PACKETS, ROOT
from p4gen.spec.reductions import numbers_of

MAX_PACKETS: Final = (1 << PACKETS.bits) - 1
"""The most packets that one control message can announce. CommLib announces more in several phases."""
MAX_RANKS: Final = 1 << ROOT.bits


class Collective(StrEnum):
    """EPIC's six primitives (§3.1, §A), each with its code in control messages, which is never reused for another.

    0 announces nothing, 7 is reserved. Control messages announce the phases of REDUCE_SCATTER and ALLGATHER, not these.
    """

    code: int

    ALLREDUCE = "allreduce", 1
    REDUCE = "reduce", 2
    BROADCAST = "broadcast", 3
    BARRIER = "barrier", 4
    REDUCE_SCATTER = "reducescatter", 5
    ALLGATHER = "allgather", 6

    def __new__(cls, name: str, code: int = 0) -> Collective:
        """A member: its value is the name. ``Collective(name)`` looks one up without calling this."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.code = code
        return member


_BY_CODE: Final = {collective.code: collective for collective in Collective}


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
        numbers = Numbers(self.op, self.dtype).code
        return MESSAGE.pack(collective=self.collective.code, numbers=numbers, root=self.root, packets=self.packets)

    @classmethod
    def decode(cls, value: int) -> Control:
        """The message that an immediate value encodes. Raises ``InputError`` when it encodes none."""
        said = MESSAGE.unpack(value)
        collective, numbers = _BY_CODE.get(said["collective"]), numbers_of(said["numbers"])
        if collective is None or numbers is None:
            raise InputError(f"{value:#010x} is not a control message")
        return cls(collective, said["packets"], said["root"], numbers.op, numbers.dtype)
