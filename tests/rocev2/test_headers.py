from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.rocev2.headers import (
    AETH,
    BTH,
    RETH,
    UDP,
    AtomicAckETH,
    AtomicETH,
    Ethernet,
    HeaderError,
    ImmDt,
    IPv4,
    internet_checksum,
    ip_from,
    ip_header,
    ip_text,
    ipv4,
    ipv4_text,
    is_ipv6,
    mac,
    mac_text,
)
from p4gen.rocev2.opcodes import Nak, NakCode

from .roce_strategies import BTHS, ETHERNET, EXTENSIONS, IPV4, IPV6, UDPS

HEADERS = st.one_of(ETHERNET, IPV4, IPV6, UDPS, BTHS, *EXTENSIONS.values())


@given(HEADERS, st.binary(max_size=5), st.binary(max_size=5))
def test_unpack_undoes_pack_at_any_offset(header: Ethernet | IPv4 | BTH, before: bytes, after: bytes) -> None:
    assert type(header).unpack(before + header.pack() + after, len(before)) == header


@given(HEADERS, st.data())
def test_truncated_input_says_what_is_missing(header: Ethernet | IPv4 | BTH, data: st.DataObject) -> None:
    packed = header.pack()
    cut = data.draw(st.integers(0, len(packed) - 1))
    with pytest.raises(HeaderError, match=r"^error: \w+: \d+ bytes (needed|of options announced), \d+ left$"):
        type(header).unpack(packed[:cut])


def test_layouts() -> None:
    assert Ethernet(1, 2).pack().hex() == "0000000000010000000000020800"
    ip = IPv4(ipv4("10.0.0.1"), ipv4("10.0.0.2"), ttl=7, tos=2, identification=0x1234, total_length=20, checksum=9)
    assert ip.pack().hex() == "4502001412344000071100090a0000010a000002"
    assert UDP(1, 4791, 2, 3).pack().hex() == "000112b700020003"
    bth = BTH(0x11, 0x0A0B0C, 0x0D0E0F, ack_request=True, solicited=True, pad_count=2, version=1, pkey=0x7FFF)
    assert bth.pack().hex() == "11a17fff000a0b0c800d0e0f"
    assert (
        BTH(0, 0, 0, becn=True, reserved6=1, reserved7=3, mig_request=True).pack().hex() == "0040ffff4100000003000000"
    )
    assert RETH(1, 2, 3).pack().hex() == "00000000000000010000000200000003"
    assert AETH(0x60, 5).pack().hex() == "60000005"
    assert AETH(0x60, 5).meaning() == Nak(NakCode.PSN_SEQUENCE_ERROR)
    assert ImmDt(0xDEADBEEF).pack().hex() == "deadbeef"
    assert AtomicETH(1, 2, 3, 4).pack().hex() == "00000000000000010000000200000000000000030000000000000004"
    assert AtomicAckETH(7).pack().hex() == "0000000000000007"


@pytest.mark.parametrize(
    "header",
    [Ethernet(0, 0), UDP(), BTH(0, 0, 0), RETH(0, 0, 0), AETH(0), ImmDt(0), AtomicETH(0, 0, 0), AtomicAckETH(0)],
)
def test_declared_sizes(header: Ethernet | BTH) -> None:
    assert len(header.pack()) == header.SIZE


def test_ipv4_refuses_other_versions_and_short_headers() -> None:
    with pytest.raises(HeaderError, match="version is 6"):
        IPv4.unpack(b"\x65" + bytes(19))
    with pytest.raises(HeaderError, match="header length is 4 words"):
        IPv4.unpack(b"\x44" + bytes(19))


def test_internet_checksum_of_rfc_1071() -> None:
    assert internet_checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0xDDF2 ^ 0xFFFF
    assert internet_checksum(b"\x01") == 0x0100 ^ 0xFFFF


def test_addresses() -> None:
    assert mac_text(mac("02:00:00:00:0a:ff")) == "02:00:00:00:0a:ff"
    assert ipv4_text(ipv4("192.168.0.255")) == "192.168.0.255"
    for text in ("10.0.0.1", "fd00::1:2", "::ffff:10.0.0.1"):
        assert ip_address(ip_text(ip_from(text))) == ip_address(text)
    assert (is_ipv6(ip_from("10.0.0.1")), is_ipv6(ip_from("fd00::1"))) == (False, True)
    for text in ("10.0.0", "::1", "host"):
        with pytest.raises(ValueError, match="address"):
            ip_from(text)
    with pytest.raises(ValueError, match="different kinds"):
        ip_header(ip_from("10.0.0.1"), ip_from("fd00::1"))
    with pytest.raises(ValueError, match="MAC"):
        mac("02:00")
    with pytest.raises(ValueError, match="IPv4"):
        ipv4("10.0.0")
