"""Sends frames from a buffer to interfaces, as many as possible per call."""

from __future__ import annotations

import errno
import select
import socket
import time
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from p4gen.packetio.mmsg import AT_ONCE, SOCKADDR_LL, SOCKADDR_LL_SIZE, Messages, Words

_PATIENCE_S, _PAUSE_S = 0.002, 0.0001
_FULL = {errno.EAGAIN, errno.ENOBUFS}
_GONE = {errno.ENETDOWN, errno.ENXIO, errno.ENODEV}


class Sender:
    """Sends through one socket: to the interface it is bound to or, with ``interfaces`` (indices by port), by port.

    If there is no room for a frame, sending is tried again for 2 ms in all. Frames for an interface that is down and
    frames that are too long are given up at once.
    """

    def __init__(
        self, found: socket.socket, interfaces: Mapping[int, int] | None = None, *, one_by_one: bool = False
    ) -> None:
        self._socket = found
        self._messages = Messages(AT_ONCE, one_by_one=one_by_one)
        headers, pieces = self._messages.headers, self._messages.pieces
        self._names, self._bases, self._sizes = headers["name"], pieces["base"], pieces["size"]
        self.names: npt.NDArray[np.uint64] | None = None
        """By port the place of the address (sockaddr_ll) of its interface, 0 where there is none; the last one is for
        all ports beyond."""
        if interfaces is not None:
            self._addresses = np.zeros(len(interfaces), SOCKADDR_LL)
            self._addresses["family"] = socket.AF_PACKET
            self._addresses["index"] = list(interfaces.values())
            self.names = np.zeros(max(interfaces, default=-1) + 2, np.uint64)
            rows = self._addresses.ctypes.data + SOCKADDR_LL.itemsize * np.arange(len(interfaces))
            self.names[list(interfaces)] = rows
            headers["name_size"] = SOCKADDR_LL_SIZE

    def send(self, base: int, starts: Words, ends: Words, ports: npt.NDArray[np.int32] | None = None) -> Words:
        """Send the frames at ``base`` + ``starts``, in order. Returns the indices of those that were not sent."""
        names = _NAMELESS[: len(starts)] if len(starts) <= AT_ONCE else np.ones(len(starts), np.uint64)
        if self.names is not None:
            assert ports is not None
            names = self.names.take(ports, mode="clip")
        todo, failed = np.arange(len(starts)), []
        if not names.all():
            todo, failed = np.flatnonzero(names), [np.flatnonzero(names == 0)]
        sizes, bases, patience = ends - starts, starts + base, _Patience()
        while len(todo):
            now, todo = todo[:AT_ONCE], todo[AT_ONCE:]
            self._fill(bases[now], sizes[now], names[now])
            done, gone = self._push(len(now), patience)
            if done < len(now):
                # The next frame cannot be sent. If its interface is down, all frames for that interface are given up.
                rest = now[done:]
                lost = names[rest] == names[rest[0]] if gone else np.arange(len(rest)) == 0
                failed.append(rest[lost])
                todo = np.concatenate([rest[~lost], todo])
        return np.sort(np.concatenate(failed)) if failed else _NONE

    def _push(self, count: int, patience: _Patience) -> tuple[int, bool]:
        """Send the first ``count`` messages. Returns how many were sent, and whether the interface of the next one is
        down."""
        done = 0
        while done < count:
            try:
                done += self._messages.send(self._socket.fileno(), done, count - done)
            except OSError as problem:
                if problem.errno == errno.EINTR:
                    continue
                if problem.errno not in _FULL or patience.over():
                    return done, problem.errno in _GONE
                self._wait(problem.errno)
        return done, False

    def _fill(self, bases: Words, sizes: Words, names: npt.NDArray[np.uint64]) -> None:
        count = len(bases)
        self._bases[:count], self._sizes[:count] = bases, sizes
        if self.names is not None:
            self._names[:count] = names

    def _wait(self, number: int) -> None:
        if number == errno.EAGAIN:  # the socket's own buffer is full; select tells when it has room
            poll = select.poll()
            poll.register(self._socket, select.POLLOUT)
            poll.poll(1)
        else:
            time.sleep(_PAUSE_S)


class _Patience:
    """A time limit that starts when it is first queried."""

    def __init__(self) -> None:
        self._until = 0.0

    def over(self) -> bool:
        now = time.monotonic()
        self._until = self._until or now + _PATIENCE_S
        return now > self._until


_NONE = np.zeros(0, np.int64)
_NAMELESS = np.ones(AT_ONCE, np.uint64)
"""Used instead of an address if all messages go to the same interface."""
