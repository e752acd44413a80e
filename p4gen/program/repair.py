"""Repair by the switch: modules of families whose switches send again what an edge has not acknowledged.

A cursor is a packet that goes round through the switch, one stored packet a pass, and sends each by its edge (EPIC
Algorithm 3). A NAK starts one, or the timer of the edge, which ticks drive. Besides what ``p4gen.program.common``
lists, ``shared/resend_timer`` asks for ``repair``, a ``Repair``; for ``EDGES``, the size of its counter and register;
for the constants ``GIVEN_UP`` and ``MOST_PATIENT``; for the kinds ``TICK`` and ``CURSOR``; and for
``meta.lookup.edge_index`` and ``meta.progress.acked``, the PSN up to which the edge has acknowledged.
``shared/advance_cursor`` asks for ``meta.path.goes_round``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from p4gen.layout import Field, Word
from p4gen.rocev2.layouts import PSN_BITS

RNR_10_US: Final = 1
"""The code of the wait that RNR NAKs of switches ask for: 10 us (InfiniBand 9.7.5.2.8)."""
GIVEN_UP: Final = 0x100000
"""The time, in units of 10 us, at which a timer stays: the edge is given up."""
TIMER: Final = Word(
    Field("vain", 16, "time in which resending is vain"),
    Field("waited", 16, "longest wait since it was halved"),
    Field("silent", 5, "waits since"),
    Field("stands", 32, "", Word(Field("epoch", 8, "epoch"), Field("acked", PSN_BITS, "lastAcked"))),
    Field("comes", 1, "an ACK has come"),
    Field("counts_down", 1, "counts down"),
    Field("refusals", 4, "RNR NAKs"),
    Field("time", 27, "time"),
)
"""The timer of an edge."""


@dataclass(frozen=True)
class Repair:
    """P4 expressions that differ from family to family."""

    epoch: str
    """The generation of the state to which an edge belongs."""
    complete: str
    """Of a cursor's pass: 1 if there is something to send, 1 bit."""


def wait(word: int) -> int:
    """How long the timer in a register's word waits, in units of 10 us; 0 if it does not run, so that ticks do nothing.
    Its waits double: what has passed since the last progress is at least what is left until something is sent again."""
    timer = TIMER.unpack(word)
    if timer["counts_down"]:
        return max(1, timer["time"])
    return max(timer["time"], 2 * timer["vain"]) if 0 < timer["time"] < GIVEN_UP else 0
