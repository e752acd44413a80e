"""Switch ports on network interfaces (veth, tap, real ones) through packet sockets; needs CAP_NET_RAW.

Frames are received and sent as they are on the wire, including VLAN tags, whatever the interface's MTU. All frames that
wait at any port form a batch, in the order of the kernel's time stamps, which machine code handles (``batches``) if the
switch can, and Python otherwise. Frames that an interface cannot send are counted and dropped.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from p4gen.packetio import (
    Frames,
    Receiver,
    Sender,
    kernel_drops,
    link_is_up,
    longest_frame,
    open_socket,
    sending_socket,
)
from p4gen.switch.carrier import Carrier

if TYPE_CHECKING:
    from p4gen.switch.batches import Batches

__all__ = ["Carry", "PacketPorts", "Send", "link_is_up"]

Send = Callable[[int, bytes], list[tuple[int, bytes]]]
Carry = Callable[["Batches", float], bool]
"""Has frames carried in machine code, at most for so many seconds. Returns False if ``Send`` must get them."""

SLOTS = 1024
"""The most frames of a batch."""
_ROOM = 2048
"""The least size limit of frames, in bytes; larger if an interface's MTU is larger."""
_LINK_CHECK_S = 0.2


class PacketPorts(Carrier):
    """Carries frames between interfaces and a switch until stopped; has the interface of ``UnixPorts``.

    ``interfaces`` are by port number. ``carry`` has frames carried in machine code. If it is missing, or cannot,
    ``send`` gets them one by one. ``link`` is called when an interface loses its link or gets it back. Raises
    ``InputError`` if an interface does not exist or CAP_NET_RAW is missing.
    """

    def __init__(
        self,
        send: Send,
        interfaces: Mapping[int, str],
        link: Callable[[int, bool], None] | None = None,
        *,
        carry: Carry | None = None,
    ) -> None:
        super().__init__()
        self._send, self._carry, self._link = send, carry, link
        self._names = dict(interfaces)
        self._up = dict.fromkeys(interfaces, True)
        self._injected: list[tuple[int, bytes]] = []
        self._injecting = threading.Lock()
        self._sockets: dict[int, tuple[int, socket.socket]] = {}
        self._by_port: dict[int, socket.socket] = {}
        self._poll = select.epoll()
        self._poll.register(self._woken, select.EPOLLIN)
        self._out: socket.socket | None = None
        self._sender: Sender | None = None
        self._sending = threading.Lock()
        self._batches: Batches | None = None
        self._undelivered: Counter[int] = Counter()
        self._missed: dict[int, int] = {}
        try:
            room = max((longest_frame(name) for name in interfaces.values()), default=_ROOM)
            self._receiver = Receiver(SLOTS, max(room, _ROOM))
            if interfaces:
                self._out = sending_socket()
                self._sender = Sender(self._out, {p: socket.if_nametoindex(name) for p, name in interfaces.items()})
            for port, name in interfaces.items():
                found = open_socket(name)
                self._sockets[found.fileno()] = port, found
                self._by_port[port] = found
                self._poll.register(found, select.EPOLLIN)
            if carry is not None and self._sender is not None:
                self._batches = self._new_batches(self._sender)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> PacketPorts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _new_batches(self, sender: Sender) -> Batches:
        from p4gen.switch.batches import Batches  # noqa: PLC0415 - Numba takes a while to load

        assert self._out is not None
        ports = {file: port for file, (port, _) in self._sockets.items()}
        return Batches(self._receiver, sender, self._out, self._poll, self._woken, self.wake, ports)

    @property
    def undelivered(self) -> dict[int, int]:
        """Number of frames that could not be sent, by port."""
        return self._with_batches(self._undelivered, "undelivered")

    @property
    def truncated(self) -> dict[int, int]:
        """Number of frames, by port, that were dropped because they are longer than any interface takes."""
        return self._with_batches(self._receiver.truncated, "truncated")

    def _with_batches(self, found: Mapping[int, int], name: str) -> dict[int, int]:
        return dict(Counter(found) + Counter(self._batches.counts(name) if self._batches is not None else {}))

    @property
    def missed(self) -> dict[int, int]:
        """Number of frames, by port, that the kernel dropped because too many waited for the switch."""
        for port, found in self._by_port.items():
            if number := kernel_drops(found):
                self._missed[port] = self._missed.get(port, 0) + number
        return self._missed

    def run(self) -> None:
        """Carry frames until ``stop`` is called, from any thread or a signal handler."""
        checked = 0.0
        while not self._stopping:
            if time.monotonic() - checked > _LINK_CHECK_S:
                self._check_links()
                checked = time.monotonic()
            if self.before_waiting is not None:
                self.before_waiting()
            if self._injected or not self._carried():
                self.step(_LINK_CHECK_S)

    def _carried(self) -> bool:
        """Whether machine code has carried frames for a while."""
        if self._batches is None or self._carry is None or not self._carry(self._batches, _LINK_CHECK_S):
            return False
        self._awake()
        return True

    def step(self, timeout: float | None) -> None:
        """Wait up to ``timeout`` seconds for frames or requests, and handle them."""
        ready = [file for file, _ in self._poll.poll(0 if self._injected else timeout)]
        if self._woken.fileno() in ready:
            ready.remove(self._woken.fileno())
            self._awake()
        with self._injecting:
            injected, self._injected = self._injected, []
        for port, frame in injected:
            self._one(port, frame)
        for number, file in enumerate(ready):
            # All ports share the places; remaining frames are received at the next call.
            most = max(self._receiver.free // (len(ready) - number), 1)
            with contextlib.suppress(OSError):  # the interface is down; it may come up again
                self._receiver.receive(file, self._sockets[file][0], most)
        for port, frame in self._receiver.listed():
            self._one(port, frame)

    def _one(self, port: int, frame: bytes) -> None:
        for out, data in self._send(port, frame):
            self.send(out, data)

    def inject(self, port: int, frame: bytes) -> None:
        """Handle ``frame`` as if it had arrived at ``port``, which need not be one of these ports. Call it from any
        thread."""
        with self._injecting:
            self._injected.append((port, frame))
            first = len(self._injected) == 1
        if first:  # who has put another one there has woken the loop
            self.wake()

    def send(self, port: int, frame: bytes) -> None:
        """Send a frame out of a port, from any thread. Frames that cannot be sent are counted in ``undelivered``."""
        found = self._by_port.get(port)
        if found is not None:
            with contextlib.suppress(OSError):
                found.send(frame)
                return
        with self._sending:
            frames, lost = Frames.of([(port, frame)]), 1
            if self._sender is not None:
                lost = len(self._sender.send(frames.data.ctypes.data, frames.starts, frames.ends, frames.ports))
            self._undelivered[port] += lost

    def close(self) -> None:
        """Close the sockets of all interfaces."""
        for _, found in self._sockets.values():
            found.close()
        self._sockets.clear()
        if self._out is not None:
            self._out.close()
        self._poll.close()
        self._close_waker()

    def _check_links(self) -> None:
        for port, name in self._names.items():
            up = link_is_up(name)
            if up != self._up[port]:
                self._up[port] = up
                if self._link is not None:
                    self._link(port, up)
