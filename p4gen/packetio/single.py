"""A socket on one interface, with frames as lists of bytes: what a host needs."""

from __future__ import annotations

import contextlib
import select
from collections.abc import Sequence

import numpy as np

from p4gen.packetio.receive import Receiver
from p4gen.packetio.send import Sender
from p4gen.packetio.sockets import kernel_drops, open_socket

_FEW = 4
"""Up to this number of frames, sending one by one is faster."""


class PacketSocket:
    """Sends and receives whole Ethernet frames on an interface, many per call, including VLAN tags.

    ``slots`` is the most frames that ``receive`` returns, ``frame_room`` the most bytes of a frame. One thread may send
    while another receives. Raises ``InputError`` if the interface does not exist or CAP_NET_RAW is missing.
    """

    def __init__(
        self,
        interface: str,
        *,
        slots: int = 256,
        frame_room: int = 2048,
        promiscuous: bool = True,
        one_by_one: bool = False,
    ) -> None:
        self._socket = open_socket(interface, promiscuous=promiscuous)
        self._receiver = Receiver(slots, frame_room, one_by_one=one_by_one)
        self._sender = Sender(self._socket, one_by_one=one_by_one)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._kernel_drops = 0
        self.undelivered = 0
        """Number of frames that could not be sent."""

    def __enter__(self) -> PacketSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """A descriptor that is readable while frames wait; it never blocks."""
        return self._socket.fileno()

    def receive(self, timeout: float | None = 0.0) -> list[bytes]:
        """The waiting frames, up to ``slots``, in order. Waits up to ``timeout`` seconds for one (None: without
        limit)."""
        if not self._receive_pending() and timeout != 0.0:
            self._poll.poll(None if timeout is None else timeout * 1000)
            self._receive_pending()
        if self._receiver.waiting <= _FEW:
            return [frame for _, frame in self._receiver.listed()]
        return self._receiver.take().listed()

    def _receive_pending(self) -> int:
        with contextlib.suppress(OSError):  # the interface is down; it may come up again
            return self._receiver.receive(self._socket.fileno(), 0, self._receiver.free)
        return 0

    def send(self, frames: Sequence[bytes]) -> int:
        """Send frames in order. Returns how many the kernel accepted; the others are counted in ``undelivered``."""
        if len(frames) <= _FEW:
            sent = self._send_until_full(frames)
            if sent == len(frames):
                return sent
            return sent + self._send_many(frames[sent:])
        return self._send_many(frames)

    def _send_until_full(self, frames: Sequence[bytes]) -> int:
        """Send frames one by one until one cannot be sent. Returns how many were sent."""
        for number, frame in enumerate(frames):
            try:
                self._socket.send(frame)
            except OSError:
                return number
        return len(frames)

    def _send_many(self, frames: Sequence[bytes]) -> int:
        data = np.frombuffer(b"".join(frames), np.uint8)
        ends = np.cumsum(np.fromiter(map(len, frames), np.int64, len(frames)))
        lost = len(self._sender.send(data.ctypes.data, np.concatenate(([0], ends[:-1])), ends))
        self.undelivered += lost
        return len(frames) - lost

    @property
    def truncated(self) -> int:
        """Number of frames dropped because they were longer than ``frame_room``."""
        return self._receiver.truncated.get(0, 0)

    def kernel_drops(self) -> int:
        """Number of frames that the kernel has dropped so far because too many waited for ``receive``."""
        self._kernel_drops += kernel_drops(self._socket)
        return self._kernel_drops

    def close(self) -> None:
        """Close the socket. Frames that wait in it are lost."""
        self._socket.close()
