"""What a host hears of its switch: the checks of ``p4gen doctor --host``, in the order in which things are needed.

The probes are a group's calls. A group of this host alone has its switch answer what the host sends, so it tells link,
addresses, path MTU, ICRCs of both directions, order and loss from each other, and the counters of both ends say why.
"""

from __future__ import annotations

import os
import struct
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from p4gen.errors import FailedError, P4genError
from p4gen.library.ranks import Communicator, join
from p4gen.library.stations import interface_with
from p4gen.manager.api import HostAddresses, HostInfo
from p4gen.manager.remote.client import ManagerClient
from p4gen.packetio import PacketSocket, link_is_up, longest_frame
from p4gen.packetio.sockets import ETHERNET_HEADER, VLAN_TAG
from p4gen.plan.placement.placer import gateway
from p4gen.rocev2.codes import ETHERTYPE_ARP, arp_form
from p4gen.rocev2.headers import ip_text, is_ipv6, mac_text
from p4gen.rocev2.ndp import advertised, solicitation
from p4gen.rocev2.places import places_for

HEADERS: Final = 60
"""Bytes that a RoCE packet has beside its payload at most, for an interface's MTU: IPv4, UDP, BTH, RETH, ICRC."""
_REQUEST, _REPLY = 1, 2
_ARP: Final = struct.Struct("!6s6sHQ6sI6sI")
_ARP_S, _ARP_TRIES = 1.0, 3
_CALLS, _PACKETS = 50, 64
"""Of the last check: the number of calls, and the packets of each."""


@dataclass(frozen=True)
class Check:
    """What one check has found. The checks after one that is not ``ok`` cannot be made."""

    what: str
    ok: bool
    found: str


@dataclass(frozen=True)
class Place:
    """The host that is checked, and its manager, as ``p4gen.join`` takes them."""

    host: str
    manager: str
    interface: str | None = None
    verbs: str | None = None
    tls: str | None = None
    timeout: float = 10.0
    """Seconds for the group to be there, and for each call."""


def checks(place: Place) -> Iterator[Check]:
    """Check a host on which no rank runs: to its first check that fails."""
    what = "manager"
    try:
        with ManagerClient(place.manager, tls=place.tls, timeout=place.timeout) as manager:
            yield Check(what, True, f"{place.manager} answers, and has {len(manager.groups())} groups")
            what = "host"
            addresses = manager.register_host(HostInfo(place.host, out_of_order=not place.verbs))
            yield Check(what, True, f"{place.host} is {ip_text(addresses.ip)}, {mac_text(addresses.mac)}")
            what = "interface"
            device = place.interface or interface_with(addresses, place.host)
            yield (check := _link(device))
            if check.ok:
                yield (check := _gateway(device, addresses))
            if not check.ok:
                return
            what = "group"
            name = f"doctor-{place.host}-{os.getpid()}"
            with join(
                name, ranks=[place.host], manager=place.manager, host=place.host, interface=place.interface,
                verbs=place.verbs, tls=place.tls, timeout=place.timeout,
            ) as group:  # fmt: skip
                yield Check(what, True, f"{group.spec.program} serves a group of {place.host} alone")
                yield (check := _mtu(device, addresses, group.payload))
                if check.ok:
                    yield (check := _answer(group, manager, place.timeout))
                what = "loss, order"
                if check.ok:
                    yield _loss(group, place.timeout)
    except P4genError as error:
        yield Check(what, False, error.reason)


def _link(device: str) -> Check:
    up = link_is_up(device)
    return Check("link", up, f"{device} has {'a link' if up else f'no link: ip link set {device} up, or a cable'}")


def _gateway(device: str, addresses: HostAddresses) -> Check:
    """Whether the switch answers ARP or NDP for the gateway, with the address that the manager gives."""
    asked, mac, ip = gateway(addresses.ip), addresses.mac, addresses.ip
    kind, answer = ("NDP", advertised) if is_ipv6(ip) else ("ARP", _replied)
    request = solicitation(mac, ip, asked) if is_ipv6(ip) else _arp_request(mac, ip, asked)
    wanted = mac_text(addresses.gateway)
    port = PacketSocket(device)
    try:
        for _ in range(_ARP_TRIES):
            port.send([request])
            until = time.monotonic() + _ARP_S
            while time.monotonic() < until:
                for frame in port.receive():
                    if (sender := answer(frame, asked)) is not None:
                        found = mac_text(sender)
                        told = f"{ip_text(asked)} is at {found}"
                        return Check("gateway", found == wanted, told if found == wanted else f"{told}, not {wanted}")
                time.sleep(0.005)
    finally:
        port.close()
    why = "the cable leads to another port or switch, or this MAC or IP address is not the manager's"
    return Check("gateway", False, f"nobody answers {kind} for {ip_text(asked)} on {device}: {why}")


def _arp_request(mac: int, ip: int, asked: int) -> bytes:
    here, nowhere = mac.to_bytes(6), bytes(6)
    return _ARP.pack(b"\xff" * 6, here, ETHERTYPE_ARP, arp_form(_REQUEST), here, ip, nowhere, asked)


def _replied(frame: bytes, asked: int) -> int | None:
    """The MAC address of an address, if the frame is an ARP reply that gives it."""
    if len(frame) < _ARP.size:
        return None
    _, _, kind, form, sender, ip, _, _ = _ARP.unpack_from(frame)
    return int.from_bytes(sender) if (kind, form, ip) == (ETHERTYPE_ARP, arp_form(_REPLY), asked) else None


def _mtu(device: str, addresses: HostAddresses, payload: int) -> Check:
    needed = payload + HEADERS + places_for(addresses.ip).shift
    found = longest_frame(device) - ETHERNET_HEADER - 2 * VLAN_TAG
    told = f"{device} has an MTU of {found}; payloads of {payload} bytes need {needed}"
    return Check("path MTU", found >= needed, told if found >= needed else f"{told}: ip link set {device} mtu {needed}")


def _answer(group: Communicator, manager: ManagerClient, timeout: float) -> Check:
    """Whether a call of one packet ends right; if it does not, what each end has counted meanwhile."""
    drops, dropped = _drops(manager), Counter(group.dropped)
    try:
        _call(group, 1, timeout)
    except P4genError as error:
        said = [error.reason]
        if own := Counter(group.dropped) - dropped:
            said.append(f"this NIC has dropped {_counted(own)}")
        if theirs := _drops(manager) - drops:
            said.append(f"switches have dropped {_counted(theirs)}")
        if not own and not theirs:
            said.append(f"{group.report()['sent']} packets were sent, and nobody has counted any")
        return Check("answer", False, "; ".join(said))
    icrc = "a right ICRC" if group.spec.icrc.right else "an ICRC that this program leaves wrong, unchecked"
    return Check("answer", True, f"a packet was sent, and its result came back with {icrc}")


def _loss(group: Communicator, timeout: float) -> Check:
    """Whether all packets of some calls arrive once, and in order."""
    before = group.report()
    for _ in range(_CALLS):
        _call(group, _PACKETS, timeout)
    after = Counter(group.report())
    after.subtract(before)
    sent, resent = after["sent"], after["resent"]
    told = f"{resent:,} of {sent:,} packets were sent again ({after['naks']} NAKs, {after['timeouts']} timeouts)"
    if group.dropped:
        told += f"; this NIC has dropped {_counted(Counter(group.dropped))}"
    return Check("loss, order", not resent, told)


def _call(group: Communicator, packets: int, timeout: float) -> None:
    """An AllReduce of this many packets, whose result has to be what was sent."""
    values = np.arange(packets * group.payload // group.dtype.itemsize).astype(group.dtype)
    if not np.array_equal(group.all_reduce(values, timeout=timeout), values):
        raise FailedError("the result is not what was sent")


def _drops(manager: ManagerClient) -> Counter[str]:
    """What all switches have dropped, by switch, module and reason."""
    return Counter({f"{s.name} {why}": n for s in manager.status().switches for why, n in s.drops.items()})


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} by {reason}" for reason, count in sorted(counts.items()))
