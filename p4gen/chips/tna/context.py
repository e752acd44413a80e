"""A packet's pass through one gress."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from p4gen.model.interp import Context


class _Unset(int):
    """A number that nobody has assigned; it reads as 0."""


UNSET = _Unset(0)
"""What fields for the traffic manager hold until the program assigns them: they are invalid."""
DECIDING = ("_for_tm_t", "_for_deparser_t")
"""Ends of the names of structs with such fields."""


@dataclass
class Pass(Context):
    """``Context`` with the state of TNA's externs between calls, and their requests."""

    sums: dict[str, int] = field(default_factory=dict)
    """Checksums by instance: the sum of what was added."""
    residuals: list[tuple[str, Any]] = field(default_factory=list)
    """Instances that subtract everything that is extracted from now on, and functions that store the rest."""
    counters: dict[str, list[int]] = field(default_factory=dict)
    """Parser counters by instance, the last one on top."""
    mirrors: list[tuple[int, bytes]] = field(default_factory=list)
    """Sessions, and the bytes in front of the copy."""
    resubmits: list[bytes] = field(default_factory=list)
    """The bytes in front of a resubmitted packet."""
    generates: list[bytes] = field(default_factory=list)
    """The bytes that start applications of the packet generator."""
    types: dict[str, int] = field(default_factory=dict)
    """``mirror_type``, ``resubmit_type`` and ``digest_type`` at the start of the deparser."""
    port_metadata: int = 0
    """Bytes of port metadata between the intrinsic metadata and the packet."""
