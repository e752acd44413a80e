"""Packet sockets (packet(7)) on network interfaces; they need CAP_NET_RAW and Linux 4.20 or later."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
import time
from collections.abc import Iterable

from p4gen.errors import InputError
from p4gen.packetio.mmsg import PACKET_AUXDATA, SO_TIMESTAMPNS, SOL_PACKET

ETHERNET_HEADER, VLAN_TAG = 14, 4
_ETH_P_ALL = 0x0003
_ADD_MEMBERSHIP, _STATISTICS, _QDISC_BYPASS, _IGNORE_OUTGOING = 1, 6, 20, 23
_MR_PROMISC = 1
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_LINK_PAUSE_S = 0.01
_SIOCGIFFLAGS, _SIOCGIFMTU, _IFF_RUNNING = 0x8913, 0x8921, 0x40
_IFREQ = struct.Struct("16sI20x")
_NAME_BYTES = 15
BUFFER = 16 << 20
"""Bytes that the kernel may queue for a socket, including its overhead; the kernel may grant less without
CAP_NET_ADMIN."""


def open_socket(interface: str, *, promiscuous: bool = True, receive_buffer: int = BUFFER) -> socket.socket:
    """A non-blocking socket that receives every frame that arrives at an interface, and none that is sent there.

    Frames have a time stamp and, as auxiliary data, the VLAN tag that the kernel removed. Raises ``InputError`` if the
    interface does not exist or CAP_NET_RAW is missing.
    """
    found = _raw_socket(f"interface {interface}: ")
    try:
        index = socket.if_nametoindex(interface)
        _enlarge(found, _SO_RCVBUFFORCE, socket.SO_RCVBUF, receive_buffer)
        _enlarge(found, _SO_SNDBUFFORCE, socket.SO_SNDBUF, BUFFER)
        found.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        found.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        found.setsockopt(SOL_PACKET, _IGNORE_OUTGOING, 1)
        found.bind((interface, _ETH_P_ALL))
        if promiscuous:
            found.setsockopt(SOL_PACKET, _ADD_MEMBERSHIP, struct.pack("=IHH8s", index, _MR_PROMISC, 0, b""))
    except OSError as problem:
        found.close()
        raise InputError(f"interface {interface}: {problem.strerror or problem}") from None
    return found


def sending_socket(*, bypass: bool = False) -> socket.socket:
    """A non-blocking socket that receives nothing and sends each frame to the interface that its address names.

    ``bypass`` skips the interface's queueing discipline: faster, but traffic control does not apply, and captures on
    this machine do not see the frames. Raises ``InputError`` without CAP_NET_RAW.
    """
    found = _raw_socket("")
    _enlarge(found, _SO_SNDBUFFORCE, socket.SO_SNDBUF, BUFFER)
    if bypass:
        found.setsockopt(SOL_PACKET, _QDISC_BYPASS, 1)
    return found


def kernel_drops(found: socket.socket) -> int:
    """Number of frames that the kernel has dropped since the last call because the socket's buffer was full."""
    _, dropped = struct.unpack("=II", found.getsockopt(SOL_PACKET, _STATISTICS, 8))
    return int(dropped)


def link_is_up(interface: str) -> bool:
    """Whether an interface of the caller's network namespace has a link: its operstate is "up" or "unknown". False if
    the interface does not exist.

    The interface flags are read instead of the operstate in sysfs, because sysfs shows the namespace in which it was
    mounted, which may be another one.
    """
    flags = _ask(interface, _SIOCGIFFLAGS)
    return flags is not None and bool(flags & _IFF_RUNNING)


def wait_for_links(interfaces: Iterable[str], timeout: float = 5.0) -> bool:
    """Wait until all interfaces have a link, at most ``timeout`` seconds. Returns whether they do.

    If an interface or its other end has just been brought up, frames are dropped silently until the kernel has noticed,
    which takes a second on a busy machine.
    """
    until = time.monotonic() + timeout
    for name in interfaces:
        while not link_is_up(name):
            if time.monotonic() > until:
                return False
            time.sleep(_LINK_PAUSE_S)
    time.sleep(_LINK_PAUSE_S)  # the transmit queue is enabled just after the link is reported
    return True


def longest_frame(interface: str) -> int:
    """The longest frame that an interface takes, with two VLAN tags, in bytes. Raises ``InputError`` if it does not
    exist."""
    mtu = _ask(interface, _SIOCGIFMTU)
    if mtu is None:
        raise InputError(f"interface {interface}: no interface with this name")
    return mtu + ETHERNET_HEADER + 2 * VLAN_TAG


def _ask(interface: str, request: int) -> int | None:
    """The number that an ioctl of netdevice(7) returns; None if the interface does not exist."""
    name = interface.encode()
    if len(name) > _NAME_BYTES:
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        try:
            answer = fcntl.ioctl(asker, request, _IFREQ.pack(name, 0))
        except OSError:
            return None
    return int(_IFREQ.unpack(answer)[1])


def _raw_socket(what: str) -> socket.socket:
    try:
        found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except PermissionError:
        raise InputError(f"{what}raw sockets need CAP_NET_RAW: run as root, or use --unix DIR") from None
    found.setblocking(False)
    return found


def _enlarge(found: socket.socket, forced: int, otherwise: int, size: int) -> None:
    try:
        found.setsockopt(socket.SOL_SOCKET, forced, size)
    except PermissionError:
        with contextlib.suppress(OSError):
            found.setsockopt(socket.SOL_SOCKET, otherwise, size)
