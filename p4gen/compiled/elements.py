"""Elements in the machine's order in memory, and in network order in packets."""

from __future__ import annotations

from p4gen.compiled.cached import compiled
from p4gen.compiled.machine import PIECE, copy, load32, store_little, turn16, turn32

_WORD = 4


@compiled
def copy_elements(to: int, source: int, size: int, width: int) -> None:
    """Copy ``size`` bytes, a multiple of 4 if the elements of ``width`` bytes have more than one, from the machine's
    order to that of the network, or back."""
    if width == 1:
        copy(to, source, size)
        return
    done = 0
    while size - done >= PIECE:
        if width == _WORD:
            turn32(to + done, source + done)
        else:
            turn16(to + done, source + done)
        done += PIECE
    while done < size:
        word = load32(source + done)
        store_little(to + done, word if width == _WORD else word >> 16 | word << 16)
        done += _WORD
