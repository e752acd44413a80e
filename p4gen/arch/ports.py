"""The ports of 9 bits that v1model keeps for itself."""

from __future__ import annotations

from typing import Final

DROP_PORT: Final = 511
"""Packets that are sent to it are dropped: what ``mark_to_drop`` assigns (simple_switch.md, ``--drop-port``)."""
CPU_PORT: Final = 510
"""The port of a switch's agent: its frames arrive on it."""
