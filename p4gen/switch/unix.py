"""Switch ports as AF_UNIX sockets: one frame per message, no root, no capabilities.

Port N listens at ``<dir>/port<N>.sock`` (SOCK_SEQPACKET) for one peer at a time; a new connection replaces an old one.
Frames are handled in the order in which they were sent, also across ports, by the kernel's time stamps; only frames
that a peer sends before its connection is accepted have none. Frames for a slow peer wait for it; frames for a port
without a peer are counted and dropped, as on a link that is down.

``<dir>/fence.sock`` is not a port: a message to it is returned once everything sent to any port before has been handled
and all output has been passed to the peers. So the sender knows when the output is complete, whatever the program does.
Behind the message is the most passes through ingress that one of these frames has caused, 2 bytes. Some messages are
requests, too (``p4gen.model.recirculation``).
"""

from __future__ import annotations

import contextlib
import heapq
import os
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from p4gen.errors import InputError
from p4gen.switch.carrier import Carrier

Send = Callable[[int, bytes], list[tuple[int, bytes]]]
Fence = Callable[[bytes], tuple[list[tuple[int, bytes]], int]]
"""Handles a message to the fence. Returns the output that it causes, and the most passes of a frame since the last
message."""

MAX_FRAME = 65536
"""The largest frame that ports carry, in bytes."""
_SO_TIMESTAMPNS = 35
_FENCE = -1
_MAX_PATH = 107  # sun_path of Linux, without its final NUL


def fence_path(directory: Path) -> Path:
    """The path of the fence's socket."""
    return directory / "fence.sock"


def socket_path(directory: Path, port: int) -> Path:
    """The path of the socket of port ``port``."""
    return directory / f"port{port}.sock"


def check_path(path: Path) -> None:
    """Raises ``InputError`` if ``path`` is too long for the address of a socket."""
    if len(os.fsencode(path)) > _MAX_PATH:
        raise InputError(f"{path}: too long for a socket's address ({_MAX_PATH} bytes); use a shorter directory")


def connect(directory: Path, port: int) -> socket.socket:
    """A connection to port ``port`` of the switch at ``directory``: ``send`` and ``recv`` one frame each.

    Raises ``OSError`` when nothing listens there.
    """
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        client.connect(str(socket_path(directory, port)))
    except OSError:
        client.close()
        raise
    return client


@dataclass(eq=False)
class _Port:
    number: int
    listener: socket.socket
    path: Path
    peer: socket.socket | None = None
    waiting: deque[bytes] = field(default_factory=deque)
    """Frames that wait because the peer's buffer is full."""
    held: list[tuple[int, bytes]] = field(default_factory=list)
    """A frame that was received too early, with its time stamp."""


class UnixPorts(Carrier):
    """Carries frames between peers and ``send`` (such as ``Model.process``) until stopped.

    Raises ``InputError`` for a directory whose path is too long, ``OSError`` if sockets cannot be created. Use as a
    context manager, or call ``close``.
    """

    def __init__(
        self, send: Send, directory: Path, ports: Iterable[int], fence: Fence = lambda _message: ([], 0)
    ) -> None:
        super().__init__()
        self._send = send
        self._fence = fence
        self._selector = selectors.DefaultSelector()
        self._ports: dict[int, _Port] = {}
        self._injected: deque[tuple[int, int, bytes]] = deque()
        self._fences: deque[bytes] = deque()
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self.undelivered: dict[int, int] = {}
        """Number of frames for ports without a peer, by port."""
        try:
            for port in ports:
                self._listen(port, socket_path(directory, port))
            self._listen(_FENCE, fence_path(directory))  # last, because among equal time stamps ports come first
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> UnixPorts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _listen(self, number: int, path: Path) -> None:
        check_path(path)
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        port = self._ports[number] = _Port(number, listener, path)
        listener.bind(str(path))
        listener.listen(8)
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ, port)

    def run(self) -> None:
        """Carry frames until ``stop`` is called, from any thread or a signal handler."""
        while not self._stopping:
            if self.before_waiting is not None:
                self.before_waiting()
            self.step(None)

    def step(self, timeout: float | None) -> None:
        """Wait up to ``timeout`` seconds (None: without limit) for frames or requests, and handle them."""
        ready = self._selector.select(0 if any(port.held for port in self._ports.values()) else timeout)
        # Everything sent up to now is in the sockets' queues, so it can be put in order.
        horizon = time.time_ns()
        for key, _ in ready:
            if key.data is None:
                self._awake()
            elif key.fileobj is key.data.listener:
                self._accept(key.data)
        for key, events in ready:
            if key.data is not None and key.fileobj is key.data.peer and events & selectors.EVENT_WRITE:
                self._flush(key.data)
        self._receive(horizon)

    def inject(self, port: int, frame: bytes) -> None:
        """Handle ``frame`` as if it had arrived at ``port``, which need not be one of these ports. Call it from any
        thread."""
        self._injected.append((time.time_ns(), port, frame))
        self.wake()

    def close(self) -> None:
        """Close all connections and remove the sockets."""
        for port in self._ports.values():
            self._drop_peer(port)
            port.listener.close()
            port.path.unlink(missing_ok=True)
        self._ports.clear()
        self._selector.close()
        self._close_waker()

    # --- peers ---

    def _accept(self, port: _Port) -> None:
        while True:
            try:
                peer, _ = port.listener.accept()
            except BlockingIOError:
                return
            self._drop_peer(port)
            peer.setblocking(False)
            with contextlib.suppress(OSError):  # without time stamps, the order across ports is not kept
                peer.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            port.peer = peer
            self._selector.register(peer, selectors.EVENT_READ, port)

    def _drop_peer(self, port: _Port) -> None:
        if port.peer is not None:
            self._selector.unregister(port.peer)
            port.peer.close()
            port.peer = None
            port.waiting.clear()

    # --- frames in ---

    def _receive(self, horizon: int) -> None:
        taken = [self._drain(port, horizon) for port in self._ports.values()]
        taken.append([self._injected.popleft() for _ in range(len(self._injected))])
        # A merge, not a sort: frames of the same port are never reordered, whatever their time stamps.
        for _, number, frame in heapq.merge(*taken, key=lambda item: item[0]):
            if number == _FENCE:
                outputs, passes = self._fence(frame)
                self._fences.append(frame + passes.to_bytes(2, "big"))
            else:
                outputs = self._send(number, frame)
            for out, data in outputs:
                self._transmit(out, data)
        self._return_fences()

    def _return_fences(self) -> None:
        """Return fence messages, unless output still waits for a peer."""
        if not any(port.waiting for port in self._ports.values()):
            while self._fences:
                token = self._fences.popleft()
                if self._ports[_FENCE].peer is not None:
                    self._transmit(_FENCE, token)

    def _drain(self, port: _Port, horizon: int) -> list[tuple[int, int, bytes]]:
        """Frames that ``port`` has received up to time ``horizon``, as (time stamp, port, frame). The first later frame
        is kept for the next round, in which it is ordered among the other ports' frames."""
        taken = [(sent, port.number, frame) for sent, frame in port.held]
        port.held.clear()
        while port.peer is not None:
            try:
                frame, extra, flags, _ = port.peer.recvmsg(MAX_FRAME, 64)
            except BlockingIOError:
                break
            except OSError:
                frame, extra, flags = b"", [], 0
            if not frame:
                self._drop_peer(port)
            elif not flags & socket.MSG_TRUNC:  # too large to be a frame
                sent = _time_stamp(extra)
                if sent > horizon:
                    port.held.append((sent, frame))
                    break
                taken.append((sent, port.number, frame))
        return taken

    # --- frames out ---

    def _transmit(self, number: int, frame: bytes) -> None:
        port = self._ports.get(number)
        if port is not None and port.peer is None:
            self._accept(port)  # a peer that has just connected
        if port is None or port.peer is None:
            self.undelivered[number] = self.undelivered.get(number, 0) + 1
            return
        if port.waiting or not self._try_send(port, frame):
            port.waiting.append(frame)
            if port.peer is not None:
                self._selector.modify(port.peer, selectors.EVENT_READ | selectors.EVENT_WRITE, port)

    def _try_send(self, port: _Port, frame: bytes) -> bool:
        """Send a frame. Returns False if the socket's buffer is full and the frame has to wait."""
        assert port.peer is not None
        try:
            port.peer.send(frame)
        except BlockingIOError:
            return False
        except OSError:
            self._drop_peer(port)
        return True

    def _flush(self, port: _Port) -> None:
        while port.waiting and port.peer is not None:
            if not self._try_send(port, port.waiting[0]):
                return
            if port.waiting:
                port.waiting.popleft()
        if port.peer is not None:
            self._selector.modify(port.peer, selectors.EVENT_READ, port)


def _time_stamp(extra: list[tuple[int, int, bytes]]) -> int:
    """The time, in nanoseconds since the epoch, at which the kernel took the frame; 0 if unknown."""
    for level, kind, data in extra:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(data) >= 16:
            seconds, nanoseconds = struct.unpack_from("=qq", data)
            return int(seconds) * 1_000_000_000 + int(nanoseconds)
    return 0
