"""Where packets are in a rank's window, and how a rank posts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from p4gen.host.transport.verbs import SendWr
from p4gen.papers.multiwrite.control import GROUP_KEY, Window
from p4gen.papers.multiwrite.headers import VERSION, mweth
from p4gen.papers.multiwrite.spec import MultiwriteSpec

HOP_LIMIT: Final = 16
RECORD: Final = 8
"""Bytes before a token, and before the numbers in a fence: the number of the call, from 1, and the packet's place in
it, or of a fence what the call is."""


@dataclass(frozen=True)
class Layout:
    """The window of a rank: ``packets`` for the data of each source, and one for its fence."""

    spec: MultiwriteSpec
    ranks: int
    packets: int

    @property
    def slots(self) -> int:
        """Packets in the area of a source; a power of two, so that it can be a ring."""
        return 1 << self.packets.bit_length()

    @property
    def slot_shift(self) -> int:
        """A slot of a ring has 2^slot_shift bytes."""
        return (self.spec.payload - 1).bit_length()

    @property
    def slot_bytes(self) -> int:
        """From one packet's place to the next one's."""
        return 1 << self.slot_shift if self.spec.appends else self.spec.payload

    @property
    def area(self) -> int:
        """Bytes of a window that belong to one source."""
        return self.slots * self.slot_bytes

    @property
    def size(self) -> int:
        """Bytes of the window, for all sources."""
        return self.ranks * self.area

    @property
    def memory(self) -> int:
        """Bytes that a rank offers: the window, and behind it room for sums."""
        return self.size + self.spec.sum_bytes

    def results(self, base: int, rkey: int) -> Window:
        """Where sums go, as the control plane says it."""
        return Window(base + self.size, rkey, self.slot_shift)

    def window(self, base: int, rkey: int, source: int) -> Window:
        """What the control plane gives switches for a source: with ``append`` the source's ring, else all."""
        at = base + source * self.area if self.spec.appends else base
        return Window(at, rkey, self.slot_shift, self.slots)


def pieces_of(spec: MultiwriteSpec, token_bytes: int) -> int:
    """Packets of a token, each of which begins with a record."""
    return max(1, -(-token_bytes // (spec.payload - RECORD)))


def write_request(
    spec: MultiwriteSpec, rank: int, wr_id: int, data: bytes, bitmap: int, offset: int, *, fence: bool
) -> SendWr:
    """What a rank posts to write a packet to the destinations in a bitmap, at an offset in their windows."""
    place = 0 if spec.appends else offset
    if not spec.wide:
        return SendWr(wr_id, data, bitmap, GROUP_KEY, place, fence)
    header = mweth(spec.receivers)
    said = header.word.pack(
        version=VERSION, flags=int(fence) << 3, hop_limit=HOP_LIMIT, group_id=0, immediate=rank, bitmap=bitmap
    )
    return SendWr(wr_id, said.to_bytes(header.size) + data, None, GROUP_KEY, place)
