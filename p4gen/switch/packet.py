"""Switch ports on network interfaces (veth, tap, real ones) through AF_PACKET sockets; needs CAP_NET_RAW.

Frames go in and out as they are on the wire, VLAN tags included, whatever the interface's MTU. Frames are handled
in the order of the kernel's time stamps, also across ports. What an interface cannot send is counted and dropped.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from p4gen.errors import InputError

Send = Callable[[int, bytes], list[tuple[int, bytes]]]

MAX_FRAME = 65536
_ETH_P_ALL = 0x0003
_SOL_PACKET, _ADD_MEMBERSHIP, _AUXDATA, _IGNORE_OUTGOING = 263, 1, 8, 23
_MR_PROMISC = 1
_PACKET_OUTGOING = 4
_SO_TIMESTAMPNS = 35
_AUX = struct.Struct("=IIIHHHH")
_STATUS_VLAN_VALID, _STATUS_VLAN_TPID_VALID = 1 << 4, 1 << 6
_LINK_CHECK_S = 0.2
_RECEIVE_BUFFER = 4 << 20


class PacketPorts:
    """Carries frames between interfaces and ``send`` until stopped; the interface of ``UnixPorts``.

    ``interfaces`` are by port number. ``link`` is told when an interface loses its link, or gets it back. Raises
    ``InputError`` for an interface that is not there, and without CAP_NET_RAW.
    """

    def __init__(
        self, send: Send, interfaces: Mapping[int, str], link: Callable[[int, bool], None] | None = None
    ) -> None:
        self._send, self._link = send, link
        self._names = dict(interfaces)
        self._sockets: dict[int, socket.socket] = {}
        self._up = dict.fromkeys(interfaces, True)
        self._injected: deque[tuple[int, bytes]] = deque()
        self._stopping = False
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self.undelivered: dict[int, int] = {}
        """Frames by port that could not be sent."""
        try:
            for port, name in interfaces.items():
                self._sockets[port] = _open(name)
                self._selector.register(self._sockets[port], selectors.EVENT_READ, port)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> PacketPorts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self) -> None:
        """Carry frames until ``stop`` is called, from any thread or a signal handler."""
        checked = 0.0
        while not self._stopping:
            if time.monotonic() - checked > _LINK_CHECK_S:
                self._check_links()
                checked = time.monotonic()
            self.step(_LINK_CHECK_S)

    def step(self, timeout: float | None) -> None:
        """Wait up to ``timeout`` seconds for something to do, and do it."""
        frames: list[tuple[int, int, bytes]] = []
        for key, _ in self._selector.select(timeout):
            if key.data is None:
                with contextlib.suppress(BlockingIOError):
                    self._woken.recv(4096)
            else:
                frames += ((when, key.data, frame) for when, frame in _drain(self._sockets[key.data]))
        while self._injected:
            frames.append((time.time_ns(), *self._injected.popleft()))
        frames.sort(key=lambda frame: frame[0])
        for _, port, frame in frames:
            for out, data in self._send(port, frame):
                self._transmit(out, data)

    def inject(self, port: int, frame: bytes) -> None:
        """Have ``frame`` handled as if it had arrived at ``port``; from any thread."""
        self._injected.append((port, frame))
        with contextlib.suppress(OSError):
            self._waker.send(b"x")

    def send(self, port: int, frame: bytes) -> None:
        """Send a frame out of a port; what cannot be sent is counted in ``undelivered``."""
        self._transmit(port, frame)

    @property
    def wakeup(self) -> int:
        """A descriptor that ends waiting when something is written to it: for ``signal.set_wakeup_fd``."""
        return self._waker.fileno()

    def stop(self) -> None:
        """Make ``run`` return soon."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._waker.send(b"x")

    def close(self) -> None:
        """Release the interfaces."""
        for port in self._sockets.values():
            port.close()
        self._sockets.clear()
        self._selector.close()
        self._woken.close()
        self._waker.close()

    def _transmit(self, port: int, frame: bytes) -> None:
        found = self._sockets.get(port)
        try:
            if found is not None:
                found.send(frame)
                return
        except OSError:  # too long for the interface, its queue full, or the interface down
            pass
        self.undelivered[port] = self.undelivered.get(port, 0) + 1

    def _check_links(self) -> None:
        for port, name in self._names.items():
            up = link_is_up(name)
            if up != self._up[port]:
                self._up[port] = up
                if self._link is not None:
                    self._link(port, up)


def link_is_up(name: str) -> bool:
    """Whether an interface has a link. Interfaces that do not say (``unknown``) have one."""
    try:
        return Path(f"/sys/class/net/{name}/operstate").read_text(encoding="ascii").strip() in ("up", "unknown")
    except OSError:
        return False


def _open(name: str) -> socket.socket:
    try:
        found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except PermissionError:
        raise InputError(f"interface {name}: raw sockets need CAP_NET_RAW: run as root, or use --unix DIR") from None
    try:
        index = socket.if_nametoindex(name)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        found.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        found.setsockopt(_SOL_PACKET, _AUXDATA, 1)
        with contextlib.suppress(OSError):  # kernels before 4.20; _drain looks at the packet type, too
            found.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
        found.bind((name, _ETH_P_ALL))
        found.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, struct.pack("=IHH8s", index, _MR_PROMISC, 0, b""))
        found.setblocking(False)
    except OSError as problem:
        found.close()
        raise InputError(f"interface {name}: {problem.strerror or problem}") from None
    return found


def _drain(found: socket.socket) -> Iterator[tuple[int, bytes]]:
    """All frames that have arrived, with their time stamps; each select tells of more."""
    while True:
        try:
            frame, extra, _, address = found.recvmsg(MAX_FRAME, 256)
        except BlockingIOError:
            return
        except OSError:
            return  # the interface has gone down; it may come back
        if address[2] != _PACKET_OUTGOING:
            yield _completed(frame, extra)


def _completed(frame: bytes, extra: list[tuple[int, int, bytes]]) -> tuple[int, bytes]:
    """A frame with the VLAN tag that the kernel took out of it, and when it came."""
    when = 0
    for level, kind, data in extra:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(data) >= 16:
            seconds, nanoseconds = struct.unpack_from("=qq", data)
            when = seconds * 1_000_000_000 + nanoseconds
        elif level == _SOL_PACKET and kind == _AUXDATA and len(data) >= _AUX.size:
            status, _, _, _, _, tci, tpid = _AUX.unpack_from(data)
            if status & _STATUS_VLAN_VALID:
                tpid = tpid if status & _STATUS_VLAN_TPID_VALID else 0x8100
                frame = frame[:12] + struct.pack(">HH", tpid, tci) + frame[12:]
    return when, frame
