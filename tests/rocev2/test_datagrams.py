"""Datagrams that are not RoCEv2's: who may have sent them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from p4gen.rocev2.datagrams import datagram, is_datagram
from p4gen.rocev2.headers import UDP, Ethernet, IPv4

PORT = 0xBEE0
ENDS = Ethernet(3, 4), IPv4(1, 2)


def test_lengths_and_checksum_are_filled_in() -> None:
    frame = datagram(*ENDS, (1, PORT), b"abc")
    ip = IPv4.unpack(frame[14:34])
    assert (ip.total_length, ip.checksum) == (31, ip.right_checksum())
    assert UDP.unpack(frame[34:42]) == UDP(1, PORT, 11)
    assert frame[42:] == b"abc"


def test_datagrams_to_the_port_are_known() -> None:
    ethernet, ip = ENDS
    assert is_datagram(datagram(*ENDS, (1, PORT), b""), PORT)
    assert is_datagram(datagram(ethernet, replace(ip, flags=2), (1, PORT), b""), PORT)  # must not be fragmented
    assert not is_datagram(datagram(*ENDS, (PORT, 1), b""), PORT)


@pytest.mark.parametrize("fields", [{"flags": 1}, {"fragment_offset": 1}, {"protocol": 6}, {"version": 5}, {"ihl": 6}])
def test_what_a_switch_routes_as_ordinary_traffic_is_none(fields: dict[str, Any]) -> None:
    """Anybody may have sent it, in another's name."""
    ethernet, ip = ENDS
    frame = datagram(ethernet, replace(ip, **fields), (1, PORT), bytes(128))
    assert not is_datagram(frame, PORT)


def test_other_frames_are_none() -> None:
    frame = datagram(*ENDS, (1, PORT), bytes(128))
    assert not is_datagram(frame[:12] + b"\x86\xdd" + frame[14:], PORT)
    assert not any(is_datagram(frame[:size], PORT) for size in range(42))
