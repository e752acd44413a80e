"""The control message's immediate data (EPIC 3.3.2), for programs and hosts; docs/wire-format.md has the table."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from p4gen.layout import Field, Word
from p4gen.vocabulary.formats import NUMBERS_LAYOUT

COLLECTIVE: Final = Field("collective", 3, "collective")
ROOT: Final = Field("root", 5, "root")
PACKETS: Final = Field("packets", 19, "packets that follow")

MESSAGE: Final = Word(COLLECTIVE, Field("numbers", NUMBERS_LAYOUT.bits, "op and dtype", NUMBERS_LAYOUT), ROOT, PACKETS)

MAX_PACKETS: Final = (1 << PACKETS.bits) - 1
"""The most packets that one control message can announce. CommLib announces more in several phases."""
ROOTS: Final = 1 << ROOT.bits
"""The ranks that a control message can name as a root: those from 0 on."""
MAX_RANKS: Final = 4096


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

    @property
    def every_root(self) -> bool:
        """Whether each rank is the root of a phase, so that a group has at most ``ROOTS`` ranks."""
        return self in (Collective.REDUCE_SCATTER, Collective.ALLGATHER)
