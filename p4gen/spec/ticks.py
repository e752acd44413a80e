"""Ticks: the packets by which a switch's agent tells time to programs that want it (``CollectiveSpec.wants_ticks``)."""

from __future__ import annotations

from typing import Final

EVERY_US: Final = 20
"""How often a program wants a tick for each edge, microseconds; two without progress make it send again."""
OPCODE: Final = 0xC0
"""The BTH opcode of a tick, one of those for the manufacturer's use (InfiniBand 9.2.1)."""
PORT: Final = 510
"""Where a switch takes its agent's frames: v1model's CPU port."""
