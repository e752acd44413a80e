"""The frame of a packet with the blocks of ``V1Switch``."""

from __future__ import annotations

from dataclasses import dataclass

from p4gen.model.jit.layout import BEHIND, OWN, Types, align
from p4gen.p4 import types as t

INGRESS_LENGTH = 24
CHECKSUM_ERROR = OWN
CLONE, CLONE_SESSION, CLONE_LIST = 56, 64, 72
RESUBMIT, RESUBMIT_LIST, RECIRCULATE, RECIRCULATE_LIST, TRUNCATE, TRUNCATE_TO, COLOR = range(80, 136, 8)
REQUESTS, REQUESTS_SIZE = CLONE, COLOR + 8 - CLONE
HEADERS = BEHIND
"""Byte offsets, 8 bytes each: the length of ``interp.Context`` that counters add, whether a checksum is wrong, and
requests to the traffic manager (0: none). A clone request is 1 without a field list and 2 with one; the others are 1.
Headers, user metadata and standard metadata follow."""


@dataclass(frozen=True)
class FrameShape:
    """Offsets of a packet's headers and metadata in its frame, and the frame's size."""

    headers: int
    meta: int
    standard: int
    size: int

    @classmethod
    def of(cls, types: Types, headers: t.Type, meta: t.Type, standard: t.Type) -> FrameShape:
        """The frame of a program with those types."""
        first = types.shape(headers)
        second = align(HEADERS + first.size, 16)
        third = align(second + types.shape(meta).size, 16)
        return cls(HEADERS, second, third, align(third + types.shape(standard).size, 64))
