"""The addresses of endpoints in table entries.

A program that takes RoCEv2 over IPv6 knows each address as IPv6's, an IPv4 address as ::ffff:a.b.c.d (RFC 4291,
2.5.5.2), which is the endpoint's GID, too (InfiniBand A17.5.1); the other programs know IPv4 addresses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from p4gen.model.entries import Action, Entry, Exact
from p4gen.rocev2.headers import ip_text, is_ipv6
from p4gen.rocev2.layouts import IPV4_BITS, IPV6_BITS
from p4gen.vocabulary import ProgramSpec

MAPPED: Final = 0xFFFF
"""What precedes the 32 bits of an IPv4 address in the IPv6 address that stands for it."""


def address(spec: ProgramSpec, ip: int) -> int:
    """The address of an endpoint as a program of ``spec`` knows it."""
    return MAPPED << IPV4_BITS | ip if spec.roce_ipv6 and not is_ipv6(ip) else ip


def at(spec: ProgramSpec, ip: int) -> dict[str, Exact]:
    """The key of packets to an endpoint's address."""
    return {"local" if spec.roce_ipv6 else "hdr.ipv4.dst_addr": Exact(address(spec, ip))}


def prefix(ip: int, bits: int) -> str:
    """A network of hosts for a route: all but the last ``bits`` bits of an address.

    >>> prefix(0x0A000100, 8)
    '10.0.1.0/24'
    """
    return f"{ip_text(ip)}/{(IPV6_BITS if is_ipv6(ip) else IPV4_BITS) - bits}"


def own(spec: ProgramSpec, ips: Iterable[int]) -> Iterator[Entry]:
    """The entries of the addresses that a switch has endpoints at."""
    return (Entry("addresses", at(spec, ip), Action("NoAction")) for ip in sorted(set(ips)))


def neighbours(macs: Mapping[int, int]) -> Iterator[Entry]:
    """The entries that answer for addresses, of either kind, with MAC addresses."""
    for ip, mac in sorted(macs.items()):
        table, asked = ("ipv6_neighbours", "hdr.ndp.target") if is_ipv6(ip) else ("neighbours", "hdr.arp.dst_addr")
        yield Entry(table, {asked: Exact(ip)}, Action("answer", {"mac": mac}))


def problems(spec: ProgramSpec, ips: Collection[int]) -> Iterator[str]:
    """What is wrong with the addresses of a group, a sentence each. Its packets keep their IP header, so all are of one
    kind, one of the program's."""
    known = [*(["IPv4"] if spec.ipv4 else []), *(["IPv6"] if spec.roce_ipv6 else [])]
    found = {"IPv6" if is_ipv6(ip) else "IPv4": ip for ip in sorted(ips)}
    if len(found) > 1:
        yield f"it has addresses of two kinds: {' and '.join(map(ip_text, found.values()))}"
    for kind, ip in found.items():
        if kind not in known:
            yield f"{ip_text(ip)} is an address of {kind}; the program takes RoCEv2 over {' and '.join(known)} only"
    yield from (f"{ip_text(ip)} stands for an IPv4 address" for ip in ips if ip >> IPV4_BITS == MAPPED)
