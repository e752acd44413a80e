"""Solicitations and advertisements; labs have them answered by the generated program."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from p4gen.rocev2.codes import NDP_ADVERTISEMENT, NDP_TARGET_MAC
from p4gen.rocev2.headers import Ethernet, IPv6, ip_from, ones_complement_sum
from p4gen.rocev2.layouts import NDP
from p4gen.rocev2.ndp import advertised, solicitation

HOST, GATEWAY = ip_from("fd00:0:0:1::7"), ip_from("fe80::1")
MAC, SWITCH = 0x0200_0000_0007, 0x0200_0001_0001


def test_a_solicitation_is_as_rfc_4861_has_it() -> None:
    frame = solicitation(MAC, HOST, GATEWAY)
    eth, ip, body = Ethernet.unpack(frame), IPv6.unpack(frame, Ethernet.SIZE), frame[Ethernet.SIZE + IPv6.SIZE :]
    assert (eth.dst, eth.src, eth.ethertype) == (0x3333_FF00_0001, MAC, 0x86DD)
    assert (ip.src, ip.dst, ip.protocol, ip.ttl) == (HOST, ip_from("ff02::1:ff00:1"), 58, 255)
    assert ip.payload_length == len(body) == 32
    pseudo = ip.src.to_bytes(16) + ip.dst.to_bytes(16) + (32).to_bytes(4) + (58).to_bytes(4)
    assert ones_complement_sum((pseudo, body)) == 0xFFFF
    assert body[:2] == bytes((135, 0))
    assert body[8:24] == GATEWAY.to_bytes(16)
    assert body[24:] == bytes((1, 1)) + MAC.to_bytes(6)


def answer(**changed: int) -> bytes:
    fields = {"form": NDP_ADVERTISEMENT, "checksum": 0, "flags": 0, "target": GATEWAY, "option": NDP_TARGET_MAC}
    body = NDP.word.pack(**(fields | {"mac": SWITCH} | changed)).to_bytes(NDP.size)
    return Ethernet(MAC, SWITCH, 0x86DD).pack() + IPv6(GATEWAY, HOST, protocol=58, ttl=255).pack() + body


def test_only_the_advertisement_that_was_asked_for_counts() -> None:
    assert advertised(answer(), GATEWAY) == SWITCH
    assert advertised(answer(), HOST) is None
    assert advertised(answer(target=HOST), GATEWAY) is None
    assert advertised(answer(option=0x0101), GATEWAY) is None
    assert advertised(solicitation(MAC, HOST, GATEWAY), GATEWAY) is None


@given(st.binary(max_size=100) | st.integers(0, 86).map(lambda size: answer()[:size]))
def test_any_bytes_are_read(frame: bytes) -> None:
    assert advertised(frame, GATEWAY) == (SWITCH if frame == answer() else None)
