"""Layouts of headers: what they refuse, how P4 declares them, and which bytes of a frame hold a field."""

from __future__ import annotations

import pytest
from hypothesis import given

from p4gen.layout import Field, Header, HeaderField, Stack, Word
from p4gen.rocev2 import layouts
from p4gen.rocev2.packet import RocePacket

from .roce_strategies import packets

KIND = Word(Field("upper", 3, "the upper part"), Field("lower", 5, "the lower one"))
TAG = Header(
    "tag",
    "A tag",
    (
        HeaderField("kind", 8, "its kind", KIND, noted=True),
        HeaderField("owner", 48, "whose it is", type="mac_addr_t"),
        HeaderField("flag", 1, "a flag"),
        HeaderField("rest", 15, "the rest"),
    ),
)
LANES = Header("lanes", "Elements", (HeaderField("lane", 32, "an element"),), count=4)


def test_declarations_are_aligned_and_only_noted_fields_have_comments() -> None:
    assert TAG.declared == (
        "bit<8>     kind;    // its kind",
        "mac_addr_t owner;",
        "bit<1>     flag;",
        "bit<15>    rest;",
    )


def test_sizes() -> None:
    assert (TAG.bits, TAG.size, LANES.size) == (72, 9, 16)


def test_a_field_with_parts_has_slices_of_its_own() -> None:
    assert (TAG["kind"]["upper"], TAG["kind"]["lower"]) == ("7:5", "4:0")
    for name in ("flag", "nothing"):
        with pytest.raises(KeyError):
            TAG[name]


def test_tables_list_fields_and_their_parts() -> None:
    assert "| `kind` | 8 | its kind |\n| `kind.upper` | 7:5 | the upper part |" in TAG.table
    assert "| `lane_*` | 32 | an element |" in LANES.table


@pytest.mark.parametrize(
    ("fields", "count", "cause"),
    [
        ([HeaderField("a", 7, "")], None, "header x has 7 bits, which are no whole bytes"),
        ([HeaderField("size", 8, "")], None, "a field of the header x cannot be called size"),
        ([HeaderField("a", 8, ""), HeaderField("b", 8, "")], 2, "header x has 2 fields, an array has one"),
    ],
)
def test_a_header_refuses_what_cannot_be_one(fields: list[HeaderField], count: int | None, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        Header("x", "", tuple(fields), count=count)


def test_bytes_of_fields() -> None:
    stack = Stack(TAG, layouts.UDP)
    assert stack.size == 17
    assert (stack.start("udp"), stack.bytes("udp.length"), stack.at("tag.flag")) == (9, slice(13, 15), 7)
    assert (stack.at("tag.lower"), stack.bytes("tag.owner")) == (0, slice(1, 7))
    with pytest.raises(ValueError, match="more than one byte"):
        stack.at("tag.rest")
    with pytest.raises(ValueError, match="no whole bytes"):
        stack.bytes("tag.rest")
    for name in ("tag.nothing", "ipv4.ttl"):
        with pytest.raises(KeyError):
            stack.at(name)


@given(packets().filter(lambda packet: not packet.ipv4.options))
def test_records_and_places_in_frames_agree(packet: RocePacket) -> None:
    """Two ways to a field's value: the record of its header, and the bytes of the frame."""
    frame = packet.to_bytes()
    values = {
        "ethernet.dst_addr": packet.eth.dst,
        "ethernet.ether_type": packet.eth.ethertype,
        "ipv4.total_length": packet.ip.total_length,
        "ipv4.protocol": packet.ip.protocol,
        "ipv4.checksum": packet.ipv4.checksum,
        "ipv4.src_addr": packet.ip.src,
        "ipv4.dst_addr": packet.ip.dst,
        "udp.dst_port": packet.udp.dst_port,
        "udp.length": packet.udp.length,
        "bth.opcode": packet.bth.opcode,
        "bth.partition_key": packet.bth.pkey,
        "bth.dest_qp": packet.bth.dst_qp,
        "bth.psn": packet.bth.psn,
    }
    assert {name: int.from_bytes(frame[layouts.ROCE.bytes(name)]) for name in values} == values
    assert frame[layouts.ROCE.at("ipv4.ecn")] & 3 == packet.ip.tos & 3


def test_the_fields_that_the_icrc_takes_as_ones() -> None:
    """InfiniBand A17.3.3."""
    variant = {
        f"{header.name}.{field.name}": field.ones
        for header in layouts.HEADERS
        for field in header.fields
        if field.variant
    }
    assert variant == {
        "ipv4.dscp": "0x3f",
        "ipv4.ecn": "0b11",
        "ipv4.ttl": "0xff",
        "ipv4.checksum": "0xffff",
        "ipv6.dscp": "0x3f",
        "ipv6.ecn": "0b11",
        "ipv6.flow_label": "0xfffff",
        "ipv6.hop_limit": "0xff",
        "udp.checksum": "0xffff",
        "bth.reserved1": "0xff",
    }


def test_places_of_rocev2_written_out() -> None:
    """Ethernet 14 bytes, IPv4 20, UDP 8, BTH 12."""
    roce = layouts.ROCE
    assert (roce.start("ipv4"), roce.start("udp"), roce.start("bth"), roce.size) == (14, 34, 42, 54)
    assert (roce.at("bth.opcode"), roce.bytes("bth.psn"), roce.at("bth.becn")) == (42, slice(51, 54), 46)
