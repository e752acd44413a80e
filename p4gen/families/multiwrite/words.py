"""Layouts of MultiWrite's registers.

A context is a source of a group. The epoch in a word is the generation of the context's state to which it belongs; a
word of another epoch counts as empty.
"""

from __future__ import annotations

from p4gen.layout import Field, Word
from p4gen.rocev2.layouts import PSN_BITS, SYNDROME

_EPOCH = Field("epoch", 8, "epoch")

RECEIVE = Word(_EPOCH, Field("nak_sent", 1, "NAK sent"), Field("psn", PSN_BITS, "ePSN"))
"""CheckOrder: the PSN that a source sends next."""
START = Word(_EPOCH, Field("psn", PSN_BITS, "PSN"))
"""CheckRange: the first PSN that is not yet at all its destinations."""
NEXT = Word(_EPOCH, Field("psn", PSN_BITS, "PSN"))
"""AssignPsn: the PSN that an edge's next copy gets."""
ACKED = Word(
    _EPOCH,
    Field("psn", PSN_BITS, "acknowledged PSN"),
    Field("low", PSN_BITS, "source's PSN that it waits for"),
    Field("busy", 1, "1: waits for one"),
    Field("syndrome", SYNDROME.bits, "last syndrome other than an ACK's"),
)
"""CombineAcks: how far an edge has acknowledged its copies, and the oldest of the source's PSNs that it has not."""
