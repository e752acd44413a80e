"""Ticks: packets with which a switch's agent drives a program's timers (``CollectiveSpec.wants_ticks``)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from p4gen.arch.ports import CPU_PORT

EVERY_US: Final = 20
"""The period of ticks for each edge, microseconds; two without progress cause a retransmission."""


class InternalOpcode(IntEnum):
    """BTH opcodes within a switch and its agent, of those for the manufacturer's use (InfiniBand 9.2.1)."""

    TICK = 0xC0
    CURSOR = 0xC1
    """Of what goes round in a switch, and never leaves it."""


OPCODE: Final = InternalOpcode.TICK
PORT: Final = CPU_PORT
"""The port on which a switch receives its agent's frames: v1model's CPU port."""
