"""The in-band control message (EPIC §3.3.2): 32 bits of immediate data that a rank sends before its data.

``p4gen.vocabulary.message`` has the layout of these bits, docs/wire-format.md the table.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Final

from p4gen.errors import InputError
from p4gen.vocabulary import DType, Numbers, Op
from p4gen.vocabulary.message import ROOTS, Collective, max_packets, message_of
from p4gen.vocabulary.reductions import numbers_of

_KNOWN: Final = 256
"""Messages whose immediate values are kept: ranks repeat the same calls."""
_BY_CODE: Final = {collective.code: collective for collective in Collective}


@dataclass(frozen=True)
class Control:
    """The content of a control message. ``packets`` counts the data packets that follow it."""

    collective: Collective
    packets: int
    root: int = 0
    op: Op = Op.SUM
    dtype: DType = DType.INT32
    roots: int = field(default=ROOTS, repr=False)
    """The ranks that control messages of the program can name as roots."""

    def __post_init__(self) -> None:
        if not 0 <= self.packets <= (most := max_packets(self.roots)):
            raise ValueError(f"{self.packets} packets; a control message announces at most {most}")
        if not 0 <= self.root < self.roots:
            raise ValueError(f"root {self.root} is not in 0 to {self.roots - 1}")

    @functools.lru_cache(_KNOWN)  # noqa: B019 - these are small, and few
    def encode(self) -> int:
        """The immediate value, 32 bits."""
        numbers = Numbers(self.op, self.dtype).code
        layout = message_of(self.roots)
        return layout.pack(collective=self.collective.code, numbers=numbers, root=self.root, packets=self.packets)

    @classmethod
    def decode(cls, value: int, roots: int = ROOTS) -> Control:
        """The message that an immediate value encodes. Raises ``InputError`` when it encodes none."""
        said = message_of(roots).unpack(value)
        collective, numbers = _BY_CODE.get(said["collective"]), numbers_of(said["numbers"])
        if collective is None or numbers is None:
            raise InputError(f"{value:#010x} is not a control message")
        return cls(collective, said["packets"], said["root"], numbers.op, numbers.dtype, roots)
