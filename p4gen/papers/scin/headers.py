"""The headers of SCIN's programs, outermost first."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from p4gen.layout import Datagram, Field, Header, HeaderField, Word
from p4gen.papers.scin.spec import ScinSpec
from p4gen.rocev2 import layouts as roce
from p4gen.rocev2.opcodes import Opcode
from p4gen.vocabulary.ticks import InternalOpcode

BUFFERS: Final = Header(
    "buffers",
    "What an arrival says behind its immediate data: where the rank's operand is, and where its result goes",
    (
        HeaderField("source", 64, "virtual address of the operand"),
        HeaderField("source_key", 32, "its key"),
        HeaderField("result", 64, "virtual address of the result"),
        HeaderField("result_key", 32, "its key"),
    ),
    noted=True,
)
ANNOUNCED: Final = Word(Field("numbers", 8, "type of the elements"), Field("packets", 24, "packets"))
"""The immediate data of an arrival: what all ranks must agree on."""
FLAG: Final = Header(
    "flag",
    "What a flag writes into a rank's memory",
    (
        HeaderField("call", 24, "the call's number: the PSN of its arrivals"),
        HeaderField("status", 8, "0, or why the call was aborted"),
        HeaderField("reserved", 32, "0"),
    ),
    noted=True,
)
CURSOR: Final = Header(
    "cursor",
    "What goes round through the switch; its PSN is the BTH's",
    (
        HeaderField("what", 8, "what it is for", type="cursor_kind_t"),
        HeaderField("status", 8, "of an abort: why"),
        HeaderField("edges", 32, "ranks that it is about"),
        HeaderField("asked", 32, "ranks that have been asked in this wave"),
        HeaderField("announced", 32, "what the arrivals announced"),
    ),
    noted=True,
)


def payload(spec: ScinSpec) -> Header:
    """The header of a packet's data: an element for each lane."""
    lane = HeaderField("lane", 8 * spec.element_bytes, "an element", type="element_t")
    return Header("payload", "One element for each lane", (lane,), count=spec.lanes)


def scales(spec: ScinSpec) -> Header:
    """The header of a wave's scales: one for each block."""
    scale = HeaderField("block", 8 * spec.scaling.scale_bytes, "the scale of a block", type="scale_t")
    return Header("scales", "One scale for each block of a wave", (scale,), count=spec.scales)


def headers(spec: ScinSpec) -> tuple[Header, ...]:
    """All headers that the parser knows; scales are one of them where elements have scales."""
    return (
        roce.ETHERNET,
        roce.VLAN,
        roce.ARP,
        roce.IPV4,
        roce.UDP,
        roce.BTH,
        roce.RETH,
        roce.AETH,
        roce.IMMEDIATE,
        BUFFERS,
        FLAG,
        CURSOR,
        roce.CNP,
        payload(spec),
        *((scales(spec),) if spec.scaled else ()),
        roce.ICRC,
    )


def datagrams(spec: ScinSpec) -> tuple[Datagram, ...]:
    """What ranks and switches send each other. The last WRITE of a wave has the wave's scales behind its data."""
    data, fence = payload(spec), (Opcode.WRITE_ONLY_IMM,)
    answers = (Opcode.READ_RESPONSE_FIRST, Opcode.READ_RESPONSE_LAST, Opcode.READ_RESPONSE_ONLY)
    last = (
        Datagram(
            "LAST", "the last packet of a result: a flag, too", (roce.RETH, roce.IMMEDIATE, data), fence, made=True
        ),
    )
    write = Datagram("WRITE", "a packet of a result", (roce.RETH, data), (Opcode.WRITE_ONLY,), made=True)
    written = (*(last if spec.ordered else ()), write)
    scaled: tuple[Datagram, ...] = ()
    if spec.scaled:
        tail = scales(spec)
        scaled = (
            *(replace(each, name="", body=(*each.body, tail)) for each in written),
            Datagram("SCALES", "the scales of a wave", (roce.AETH, tail), answers),
        )
    return (
        Datagram("ARRIVAL", "a rank arrives at a call", (roce.IMMEDIATE, BUFFERS), (Opcode.SEND_ONLY_IMM,)),
        Datagram("CNP", "a congestion notification", (roce.CNP,), (Opcode.CNP,)),
        Datagram("FLAG", "a call has ended", (roce.RETH, roce.IMMEDIATE, FLAG), fence, made=True),
        *scaled,
        *written,
        Datagram("RESPONSE", "a packet of an operand", (roce.AETH, data), answers),
        Datagram("MIDDLE", "the same amid a READ's response", (data,), (Opcode.READ_RESPONSE_MIDDLE,)),
        Datagram("READ", "a READ of a wave", (roce.RETH,), (Opcode.READ_REQUEST,), made=True),
        Datagram("ACK", "an answer", (roce.AETH,), (Opcode.ACKNOWLEDGE,)),
        Datagram("ACK", "time to look whether a call makes progress", (roce.AETH,), (InternalOpcode.TICK,)),
        Datagram("CURSOR", "what goes round in the switch", (CURSOR,), (InternalOpcode.CURSOR,), inner=True),
    )
