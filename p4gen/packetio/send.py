"""Frames out of a buffer to interfaces, as many as possible in a call."""

from __future__ import annotations

import errno
import select
import socket
import time
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from p4gen.packetio.mmsg import SOCKADDR_LL, SOCKADDR_LL_SIZE, Messages, Words

_AT_ONCE = 1024
"""The most that sendmmsg(2) takes (UIO_MAXIOV)."""
_PATIENCE_S, _PAUSE_S = 0.002, 0.0001
_FULL = {errno.EAGAIN, errno.ENOBUFS}
_GONE = {errno.ENETDOWN, errno.ENXIO, errno.ENODEV}


class Sender:
    """Sends through one socket: to the interface it is bound to, or, with ``interfaces`` (index by port), by port.

    A frame for which there is no room is tried again for 2 ms in all before it is given up; frames for an interface
    that is down, and what is too long for it, are given up at once.
    """

    def __init__(
        self, found: socket.socket, interfaces: Mapping[int, int] | None = None, *, one_by_one: bool = False
    ) -> None:
        self._socket = found
        self._messages = Messages(_AT_ONCE, one_by_one=one_by_one)
        self._addresses = np.zeros(len(interfaces or ()), SOCKADDR_LL)
        self._rows: npt.NDArray[np.int64] | None = None
        if interfaces is not None:
            self._addresses["family"] = socket.AF_PACKET
            self._addresses["index"] = list(interfaces.values())
            # One row more than there are ports, for all ports beyond the last.
            self._rows = np.full(max(interfaces, default=-1) + 2, -1)
            self._rows[list(interfaces)] = np.arange(len(interfaces))
            self._messages.headers["name_size"] = SOCKADDR_LL_SIZE

    def send(self, base: int, starts: Words, ends: Words, ports: npt.NDArray[np.int32] | None = None) -> Words:
        """Send frames that lie at ``base`` + ``starts``, in order; gives the numbers of those that were not sent."""
        chosen = np.arange(len(starts))
        failed: list[Words] = []
        if self._rows is not None:
            assert ports is not None
            rows = self._rows[np.minimum(ports, len(self._rows) - 1)]
            if (rows < 0).any():
                failed.append(chosen[rows < 0])
                chosen = chosen[rows >= 0]
        else:
            rows = np.zeros(len(starts), np.int64)
        until = 0.0
        while len(chosen):
            now = chosen[:_AT_ONCE]
            chosen = chosen[_AT_ONCE:]
            self._fill(base, starts[now], ends[now], rows[now])
            done = 0
            while done < len(now):
                try:
                    done += self._messages.send(self._socket.fileno(), done, len(now) - done)
                    continue
                except OSError as problem:
                    number = problem.errno
                if number == errno.EINTR:
                    continue
                if number in _FULL and (until := until or time.monotonic() + _PATIENCE_S) > time.monotonic():
                    self._wait(number)
                    continue
                gone = np.arange(done, done + 1)
                if number in _GONE:  # do not ask again for each frame
                    gone = done + np.flatnonzero(rows[now[done:]] == rows[now[done]])
                failed.append(now[gone])
                now = np.delete(now, gone)[done:]
                self._fill(base, starts[now], ends[now], rows[now])
                done = 0
        return np.sort(np.concatenate(failed)) if failed else np.zeros(0, np.int64)

    def _fill(self, base: int, starts: Words, ends: Words, rows: Words) -> None:
        pieces = self._messages.pieces[: len(starts)]
        pieces["base"] = base + starts
        pieces["size"] = ends - starts
        if self._rows is not None:
            self._messages.headers["name"][: len(rows)] = self._addresses.ctypes.data + SOCKADDR_LL.itemsize * rows

    def _wait(self, number: int) -> None:
        if number == errno.EAGAIN:  # the socket's own buffer is full, and it says when it is not
            poll = select.poll()
            poll.register(self._socket, select.POLLOUT)
            poll.poll(1)
        else:
            time.sleep(_PAUSE_S)
