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
"""Bytes that the kernel may queue for a socket, its own book-keeping included; less without CAP_NET_ADMIN."""


def open_socket(interface: str, *, promiscuous: bool = True, receive_buffer: int = BUFFER) -> socket.socket:
    """A non-blocking socket that gets every frame which arrives at an interface, and none that leaves there.

    Its frames come with a time stamp and, as auxiliary data, the VLAN tag that the kernel has taken out of them.
    Raises ``InputError`` where there is no such interface, and without CAP_NET_RAW.
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
    """A non-blocking socket that receives nothing and sends to whatever interface each frame's address names.

    ``bypass`` goes past the interface's queueing discipline: quicker, but then no traffic control applies, and captures
    on this machine do not see what is sent. Raises ``InputError`` without CAP_NET_RAW.
    """
    found = _raw_socket("")
    _enlarge(found, _SO_SNDBUFFORCE, socket.SO_SNDBUF, BUFFER)
    if bypass:
        found.setsockopt(SOL_PACKET, _QDISC_BYPASS, 1)
    return found


def kernel_drops(found: socket.socket) -> int:
    """Frames that the kernel has dropped since the last call since the socket's buffer was full."""
    _, dropped = struct.unpack("=II", found.getsockopt(SOL_PACKET, _STATISTICS, 8))
    return int(dropped)


def link_is_up(interface: str) -> bool:
    """Whether an interface of the caller's network namespace has a link: its operstate is up, or it does not say
    (unknown). False for one that is not there.

    The kernel is asked for its flags, and not sysfs for its operstate: sysfs shows the namespace that it was mounted
    in, which need not be the caller's.
    """
    flags = _ask(interface, _SIOCGIFFLAGS)
    return flags is not None and bool(flags & _IFF_RUNNING)


def wait_for_links(interfaces: Iterable[str], timeout: float = 5.0) -> bool:
    """Wait until interfaces have a link, seconds at most; false if one has none.

    An interface that has just been brought up, or whose other end has, drops what it is given without a word until the
    kernel has noticed, which takes a second on a busy machine.
    """
    until = time.monotonic() + timeout
    for name in interfaces:
        while not link_is_up(name):
            if time.monotonic() > until:
                return False
            time.sleep(_LINK_PAUSE_S)
    time.sleep(_LINK_PAUSE_S)  # the queue is opened just after the link is reported
    return True


def longest_frame(interface: str) -> int:
    """Bytes of the longest frame that an interface takes, with two VLAN tags. InputError: no such interface."""
    mtu = _ask(interface, _SIOCGIFMTU)
    if mtu is None:
        raise InputError(f"interface {interface}: no interface with this name")
    return mtu + ETHERNET_HEADER + 2 * VLAN_TAG


def _ask(interface: str, request: int) -> int | None:
    """The number that an ioctl of netdevice(7) answers with; None for an interface that is not there."""
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
