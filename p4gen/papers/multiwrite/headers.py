"""The headers of MultiWrite's programs, outermost first, and the header of bitmaps that the immediate cannot hold."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final

from p4gen.layout import Datagram, Field, Header, HeaderField, Word
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.rocev2 import layouts as roce
from p4gen.rocev2.opcodes import Opcode
from p4gen.vocabulary.ticks import InternalOpcode

VERSION: Final = 1
WORD_BITS: Final = 512
"""Bits of a field of the payload: no module looks into it."""


@lru_cache
def mweth(receivers: int) -> Header:
    """MultiWrite's extended transport header, after the RETH, for bitmaps of more than 32 bits."""
    return Header(
        "mweth",
        "MultiWrite's extended transport header: after the RETH, where a bitmap does not fit immediate data",
        (
            HeaderField("version", 4, f"{VERSION}"),
            HeaderField(
                "flags",
                4,
                "what the write is",
                Word(Field("fence", 1, "1: a fence, delivered with immediate data"), Field("unused", 3, "0")),
            ),
            HeaderField("hop_limit", 8, "switches that it may still pass"),
            HeaderField("group_id", 16, "number of the group"),
            HeaderField("immediate", 32, "immediate data of a fence"),
            HeaderField("bitmap", receivers, "destinations, rank i is bit i", type="bitmap_t"),
        ),
        noted=True,
    )


def mtu(spec: MultiwriteSpec) -> int:
    """Bytes that a NIC sends as the data of a packet: with a wide bitmap, the MWETH, too."""
    return spec.payload + (mweth(spec.receivers).size if spec.wide else 0)


def payload(spec: MultiwriteSpec) -> Header:
    """The header of a packet's data: ``spec.payload`` bytes, in words of ``WORD_BITS`` bits."""
    return Header("payload", "The data", (HeaderField("data", WORD_BITS, "data"),), count=8 * spec.payload // WORD_BITS)


def headers(spec: MultiwriteSpec) -> tuple[Header, ...]:
    """All headers that the parser knows; the MWETH is one of them where a bitmap does not fit immediate data."""
    return (
        roce.ETHERNET,
        roce.VLAN,
        roce.ARP,
        roce.IPV4,
        roce.UDP,
        roce.BTH,
        roce.RETH,
        *((mweth(spec.receivers),) if spec.wide else ()),
        roce.AETH,
        roce.IMMEDIATE,
        roce.CNP,
        payload(spec),
        roce.ICRC,
    )


def datagrams(spec: MultiwriteSpec) -> tuple[Datagram, ...]:
    """What sources, switches and destinations send each other."""
    data, answers = payload(spec), Datagram("ACK", "an answer", (roce.AETH,), (Opcode.ACKNOWLEDGE,))
    alone, fenced = (Opcode.WRITE_ONLY,), (Opcode.WRITE_ONLY_IMM,)
    named = mweth(spec.receivers) if spec.wide else roce.IMMEDIATE
    fence = Datagram("", "a fence, as a destination gets it", (roce.RETH, roce.IMMEDIATE, data), fenced, made=True)
    internal = {
        InternalOpcode.TICK: "time for an edge to look whether it makes progress",
        InternalOpcode.CURSOR: "sends again; never leaves the switch",
    }
    return (
        answers,
        *(
            replace(answers, meaning=meaning, opcodes=(code,), inner=code is InternalOpcode.CURSOR)
            for code, meaning in (internal.items() if spec.holds else ())
        ),
        Datagram("CNP", "a congestion notification", (roce.CNP,), (Opcode.CNP,)),
        Datagram("DATA", "a write to a set of ranks", (roce.RETH, named, data), alone if spec.wide else fenced),
        *((fence,) if spec.wide else ()),
        Datagram("", "a write as a destination gets it", (roce.RETH, data), alone, made=True),
    )
