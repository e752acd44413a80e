"""Configuration of a host's interface and sockets, from inside its namespace."""

from __future__ import annotations

import array
import contextlib
import fcntl
import socket
import struct
import time
from pathlib import Path

from p4gen.errors import FailedError
from p4gen.manager.api import HostAddresses
from p4gen.packetio.ip import ip
from p4gen.plan.placement.placer import gateway
from p4gen.rocev2.headers import ip_text, is_ipv6, mac_text
from p4gen.rocev2.layouts import IPV4_BITS, IPV6_BITS
from p4gen.switch.address import listens

MTU = 9000
"""Of every interface in a lab."""
MANAGER_SOCKET = "inc-manager.sock"
"""The name of the manager's socket in the lab's scratch folder."""
FRAME_ROOM = MTU + 64
_SIOCETHTOOL = 0x8946
_SETTX, _SETTSO, _SETGSO = 0x17, 0x1F, 0x24  # ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO


def configure(device: str, addresses: HostAddresses) -> None:
    """Configure an interface's addresses and default routes through the switch, whose MAC address is found by ARP or
    NDP.

    Raises ``FailedError`` with the message of ``ip``.
    """
    if any(map(is_ipv6, addresses.ips)):
        # Labs disable it in their hosts. Without a link-local address the kernel solicits no routers.
        ip(f"link set {device} addrgenmode none")
        for name in (device, "lo"):  # by which a host reaches its own address
            _enable_ipv6(name)
    ip(
        f"link set {device} address {mac_text(addresses.mac)}",
        *(command for address in addresses.ips for command in _routed(device, address)),
    )
    _checksum_in_full(device)


def _enable_ipv6(device: str) -> None:
    """Raises ``FailedError`` if the kernel has no IPv6."""
    try:
        Path("/proc/sys/net/ipv6/conf", device, "disable_ipv6").write_text("0", encoding="ascii")
    except OSError as error:
        raise FailedError(f"{device} cannot have IPv6: {error.strerror}") from None


def _routed(device: str, address: int) -> tuple[str, str]:
    """The commands that give an interface an address, at once, and a default route from it."""
    own, by = ip_text(address), ip_text(gateway(address))
    bits, all_others, at_once = (IPV6_BITS, "::/0", " nodad") if is_ipv6(address) else (IPV4_BITS, "default", "")
    return (
        f"addr replace {own}/{bits} dev {device}{at_once}",
        f"route replace {all_others} via {by} dev {device} onlink src {own}",
    )


def _checksum_in_full(device: str) -> None:
    """Disable checksum offload: veth does not compute TCP and UDP checksums, and hosts drop such packets after a
    switch."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in (_SETTSO, _SETGSO, _SETTX):
            value = array.array("B", struct.pack("=II", command, 0))
            request = struct.pack("@16sP", device.encode(), value.buffer_info()[0])
            with contextlib.suppress(OSError):  # kernels differ in what they can disable
                fcntl.ioctl(control, _SIOCETHTOOL, request)


def wait_for(path: Path, patience: float) -> str:
    """The gRPC address of a unix socket, once a process listens there. Raises ``FailedError`` when none does within
    ``patience`` seconds."""
    address = f"unix:{path}"
    deadline = time.monotonic() + patience
    while not listens(address):
        if time.monotonic() > deadline:
            raise FailedError(f"the manager does not listen at {address} after {patience:.0f} s")
        time.sleep(0.02)
    return address
