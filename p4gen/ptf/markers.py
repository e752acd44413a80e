"""The markers of a switch that has no fence of its own (``p4gen.switch.fence``), and the routes that they take.

A marker enters by one port and leaves by the next one, by a route to an address of its own. The routes are ordinary
entries of the program under test.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from p4gen.groups.config import routing
from p4gen.groups.group import NextHop, Route
from p4gen.model.entries import Entry
from p4gen.rocev2.headers import UDP, Ethernet, IPv4, ipv4, ipv4_text
from p4gen.switch.fence import NUMBER_SIZE, Marker

_NETWORK: Final = ipv4("198.18.0.0")
"""For tests of routers (RFC 2544); no scenario uses it."""
_FIRST_HOP: Final = 0xFF00
"""From here on, the ids of next hops are those of markers."""
_ROUTER, _HOST = 0x02DD00000000, 0x02DD01000000
_DISCARD: Final = 9
_SIGN: Final = b"a marker of p4gen from port "


def of_ports(ports: Iterable[int]) -> dict[int, Marker]:
    """A marker for each port, which leaves by the next one, as that of the last port does by the first."""
    return {enters: _marker(enters, leaves) for enters, leaves in _ring(ports)}


def routes(ports: Iterable[int]) -> tuple[Entry, ...]:
    """The entries by which the markers of these ports are forwarded."""
    ring = list(_ring(ports))
    return routing(
        [Route(f"{ipv4_text(_NETWORK | leaves)}/32", _FIRST_HOP + leaves) for _, leaves in ring],
        [NextHop(_FIRST_HOP + leaves, leaves, _ROUTER | leaves, _HOST | leaves) for _, leaves in ring],
    )


def _ring(ports: Iterable[int]) -> Iterable[tuple[int, int]]:
    ordered = sorted(ports)
    return zip(ordered, (*ordered[1:], *ordered[:1]), strict=True)


def _marker(enters: int, leaves: int) -> Marker:
    sign = _SIGN + enters.to_bytes(2)
    size = UDP.SIZE + len(sign) + NUMBER_SIZE
    header = IPv4(_NETWORK | 0x10000 | enters, _NETWORK | leaves, total_length=IPv4.SIZE + size)
    header = replace(header, checksum=header.right_checksum())
    frame = Ethernet(_ROUTER | enters, _HOST | enters).pack() + header.pack() + UDP(_DISCARD, _DISCARD, size).pack()
    return Marker(frame + sign, leaves, sign)
