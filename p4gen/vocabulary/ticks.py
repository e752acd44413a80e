"""Ticks: packets with which a switch's agent drives a program's timers (``CollectiveSpec.wants_ticks``)."""

from __future__ import annotations

from typing import Final

from p4gen.arch.ports import CPU_PORT

EVERY_US: Final = 20
"""The period of ticks for each edge, microseconds; two without progress cause a retransmission."""
OPCODE: Final = 0xC0
"""The BTH opcode of a tick, one of those for the manufacturer's use (InfiniBand 9.2.1)."""
PORT: Final = CPU_PORT
"""The port on which a switch receives its agent's frames: v1model's CPU port."""
