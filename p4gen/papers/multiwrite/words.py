"""Layouts of MultiWrite's registers.

A context is a source of a group. The epoch in a word is the generation of the context's state to which it belongs; a
word of another epoch counts as empty.
"""

from __future__ import annotations

from p4gen.layout import Field, Word
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.program.repair import TIMER
from p4gen.rocev2.layouts import PSN_BITS, SYNDROME

_EPOCH = Field("epoch", 8, "epoch")

RECEIVE = Word(_EPOCH, Field("nak_sent", 1, "NAK sent"), Field("psn", PSN_BITS, "ePSN"))
"""CheckOrder: the PSN that a source sends next."""
START = Word(_EPOCH, Field("psn", PSN_BITS, "PSN"))
"""CheckRange: the first PSN that is not yet at all its destinations."""
NEXT = Word(_EPOCH, Field("psn", PSN_BITS, "PSN"))
"""AssignPsn: the PSN that an edge's next copy gets."""


def acked(spec: MultiwriteSpec) -> Word:
    """CombineAcks: how far an edge has acknowledged its copies, and the oldest of the source's PSNs that it has not."""
    # The first bit of a syndrome is reserved (InfiniBand 9.7.5.1). Without it a word has 64 bits.
    said = () if spec.holds else (Field("syndrome", SYNDROME.bits - 1, "last syndrome other than an ACK's"),)
    return Word(
        _EPOCH,
        Field("psn", PSN_BITS, "acknowledged PSN"),
        Field("low", PSN_BITS, "source's PSN that it waits for"),
        Field("busy", 1, "1: waits for one"),
        *said,
    )


def slot(spec: MultiwriteSpec) -> Word:
    """HoldPacket: the headers of a packet that is kept."""
    wide = Field("hop_limit", 8, "hop limit"), Field("immediate", 32, "immediate data")
    return Word(
        _EPOCH,
        Field("psn", PSN_BITS, "PSN of the source"),
        Field("fence", 1, "1: a fence"),
        Field("ecn", 2, "ECN"),
        *(wide if spec.wide else ()),
        Field("address", 64, "offset"),
        Field("bitmap", spec.receivers, "destinations"),
    )


def token(spec: MultiwriteSpec) -> Word:
    """GatherToken: whose outputs of a token have come."""
    return Word(
        _EPOCH,
        Field("complete", 1, "1: all have"),
        Field("ecn", 2, "ECN"),
        Field("number", PSN_BITS, "number of the token"),
        Field("set", spec.receivers, "ranks that have got it"),
        Field("came", spec.edges, "edges whose outputs have come"),
    )


def layouts(spec: MultiwriteSpec) -> dict[str, Word]:
    """The layouts of all words, by the last part of their registers' names."""
    return {
        "acked": acked(spec),
        "next": NEXT,
        "psn_start": START,
        "receive": RECEIVE,
        "slots": slot(spec),
        "timers": TIMER,
        "tokens": token(spec),
    }
