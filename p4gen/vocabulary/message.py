"""The control message's immediate data (EPIC 3.3.2), for programs and hosts; docs/wire-format.md has the table."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from functools import cache
from typing import Final

from p4gen.layout import Field, Word
from p4gen.vocabulary.formats import NUMBERS_LAYOUT

COLLECTIVE: Final = Field("collective", 3, "collective")
_COUNTS: Final = 24
"""Bits of a control message for the root and the packets."""
ROOTS: Final = 32
"""The ranks that a control message can name as a root, those from 0 on, unless the program has more."""
MAX_RANKS: Final = 4096


@cache
def root_of(roots: int = ROOTS) -> Field:
    """The field of the root, where ranks 0 to ``roots`` - 1 can be roots; a power of two."""
    return Field("root", roots.bit_length() - 1, "root")


@cache
def message_of(roots: int = ROOTS) -> Word:
    """The layout of control messages that can name ``roots`` ranks as roots: more roots leave fewer packets."""
    root = root_of(roots)
    numbers = Field("numbers", NUMBERS_LAYOUT.bits, "op and dtype", NUMBERS_LAYOUT)
    return Word(COLLECTIVE, numbers, root, Field("packets", _COUNTS - root.bits, "packets that follow"))


def max_packets(roots: int = ROOTS) -> int:
    """The most packets that one control message can announce. CommLib announces more in several phases."""
    return (1 << _COUNTS) // roots - 1


MESSAGE: Final = message_of()
MAX_PACKETS: Final = max_packets()


class Lease(IntEnum):
    """Barriers by which a group acquires and releases what its tree shares with other groups, by their root; that of
    all others is 0."""

    ACQUIRE = 1
    """With one packet, whose result says whether it is granted."""
    RELEASE = 2


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
        """Whether each rank is the root of a phase, so that a group has no more ranks than roots."""
        return self in (Collective.REDUCE_SCATTER, Collective.ALLGATHER)
