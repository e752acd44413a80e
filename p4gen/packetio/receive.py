"""Receives frames from many packet sockets into one buffer, with arrays that give each frame's position."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p4gen.packetio.mmsg import (
    CONTROL,
    MSG_TRUNC,
    TPID_VALID,
    VLAN_VALID,
    Bytes,
    Messages,
    Words,
)

_HEADROOM = 16
"""Bytes before each frame: its addresses are moved there when a VLAN tag is inserted again."""
_ADDRESSES, _TAG, _TPID = 12, 4, 0x8100


@dataclass(frozen=True)
class Frames:
    """A batch of frames. Frame i is ``data[starts[i]:ends[i]]`` and arrived at ``ports[i]``."""

    data: Bytes
    starts: Words
    ends: Words
    ports: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.ports)

    @classmethod
    def of(cls, frames: Iterable[tuple[int, bytes]]) -> Frames:
        """A batch with copies of (port, frame) pairs."""
        listed = list(frames)
        data = np.frombuffer(b"".join(frame for _, frame in listed), np.uint8)
        ends = np.cumsum([0, *(len(frame) for _, frame in listed)], dtype=np.int64)
        return cls(data, ends[:-1], ends[1:], np.array([port for port, _ in listed], np.int32))

    def chosen(self, which: npt.NDArray[Any]) -> Frames:
        """The frames that a mask or an array of indices selects."""
        return Frames(self.data, self.starts[which], self.ends[which], self.ports[which])

    def listed(self) -> list[bytes]:
        """Copies of the frames, without ports."""
        data = self.data.data
        return [data[a:b].tobytes() for a, b in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]


class Receiver:
    """A buffer of ``slots`` places for frames of up to ``room`` bytes. Call ``receive`` for each socket, then ``take``.

    The next ``receive`` overwrites what ``take`` returned.
    """

    def __init__(self, slots: int, room: int, *, one_by_one: bool = False) -> None:
        self._room = room
        self._stride = -(-(_HEADROOM + room) // 64) * 64
        self._data = np.zeros((slots, self._stride), np.uint8)
        self.data = self._data.reshape(-1)
        self.controls = np.zeros(slots, CONTROL)
        self._ports = np.zeros(slots, np.int32)
        self.places = np.arange(slots, dtype=np.int64) * self._stride + _HEADROOM
        self.messages = Messages(slots, one_by_one=one_by_one)
        self.messages.pieces["base"] = (self._data.ctypes.data + self.places).astype(np.uint64)
        self.messages.pieces["size"] = room
        headers = self.messages.headers
        headers["control"] = self.controls.ctypes.data + CONTROL.itemsize * np.arange(slots, dtype=np.uint64)
        headers["control_size"] = CONTROL.itemsize
        # Views of single fields, kept because making one takes as long as receiving a frame.
        self._sizes, self._flags, self._control_sizes = headers["size"], headers["flags"], headers["control_size"]
        self._status, self._seconds = self.controls["status"], self.controls["seconds"]
        self._nanoseconds = self.controls["nanoseconds"]
        self._used = 0
        self._begins: list[int] = []
        self.truncated: dict[int, int] = {}
        """Number of frames dropped because they were longer than ``room``, by port."""

    @property
    def free(self) -> int:
        """Number of places that are free until the next ``take``."""
        return len(self._ports) - self._used

    def receive(self, file: int, port: int, most: int) -> int:
        """Receive up to ``most`` waiting frames of a socket. Returns their number. Raises ``OSError`` when the
        interface is gone."""
        used = self._used
        count = self.messages.recv(file, used, min(most, self.free))
        if count:
            self._ports[used : used + count] = port
            self._begins.append(used)
            self._used += count
        return count

    def put(self, frame: bytes, port: int) -> bool:
        """Add ``frame`` as if it had just arrived at ``port``. Returns False if there is no free place."""
        used, size = self._used, len(frame)
        if not self.free or size > self._room:
            return False
        self._data[used, _HEADROOM : _HEADROOM + size] = np.frombuffer(frame, np.uint8)
        self.messages.headers["size"][used] = size
        self.messages.headers["flags"][used] = 0
        self._seconds[used], self._nanoseconds[used] = divmod(time.time_ns(), 1_000_000_000)
        self._ports[used] = port
        self._begins.append(used)
        self._used += 1
        return True

    @property
    def waiting(self) -> int:
        """Number of frames that the next ``take`` returns."""
        return self._used

    def listed(self) -> list[tuple[int, bytes]]:
        """Like ``take``, but as (port, frame) pairs: faster for a few frames, slower for many."""
        count, begins = self._used, self._begins
        flags, status = self._flags[:count].tolist(), self._status[:count].tolist()
        if any(flag & MSG_TRUNC for flag in flags) or any(bits & VLAN_VALID for bits in status):
            frames = self.take()
            return list(zip(frames.ports.tolist(), frames.listed(), strict=True))
        self._used, self._begins = 0, []
        self._control_sizes[:count] = CONTROL.itemsize
        data, at = self.data.data, self._stride
        sizes, ports = self._sizes[:count].tolist(), self._ports[:count].tolist()
        order = range(count) if len(begins) < 2 else self._order(begins, count).tolist()
        return [(ports[i], data[at * i + _HEADROOM : at * i + _HEADROOM + sizes[i]].tobytes()) for i in order]

    def take(self) -> Frames:
        """The received frames: those of each port in order, all of them in the order of the kernel's time stamps."""
        count, begins = self._used, self._begins
        if not count:
            return _NOTHING
        self._used, self._begins = 0, []
        starts, ports = self.places[:count], self._ports[:count]
        ends, status = starts + self._sizes[:count], self._status[:count]
        found = np.bitwise_or.reduce(status)
        if found & VLAN_VALID:
            starts = starts.copy()
            self._put_back(np.flatnonzero(status & VLAN_VALID), starts)
        if found:
            status[:] = 0
        order = self._order(begins, count) if len(begins) > 1 else None
        if np.bitwise_or.reduce(self._flags[:count]) & MSG_TRUNC:
            cut = self._flags[:count] & MSG_TRUNC != 0
            for port, number in zip(*np.unique(ports[cut], return_counts=True), strict=True):
                self.truncated[int(port)] = self.truncated.get(int(port), 0) + int(number)
            order = np.flatnonzero(~cut) if order is None else order[~cut[order]]
        self._control_sizes[:count] = CONTROL.itemsize
        if order is not None:
            starts, ends, ports = starts.take(order), ends.take(order), ports.take(order)
        return Frames(self.data, starts, ends, ports)

    def _put_back(self, which: Words, starts: Words) -> None:
        """Insert the VLAN tags that the kernel removed."""
        tags = self.controls[which]
        tpid = np.where(tags["status"] & TPID_VALID != 0, tags["tpid"], _TPID)
        data, at = self._data, _HEADROOM - _TAG
        data[which, at : at + _ADDRESSES] = data[which, _HEADROOM : _HEADROOM + _ADDRESSES]
        both = np.stack([tpid, tags["tci"]], axis=1).astype(">u2")
        data[which, at + _ADDRESSES : at + _ADDRESSES + _TAG] = np.ascontiguousarray(both).view(np.uint8)
        starts[which] -= _TAG

    def _order(self, begins: list[int], count: int) -> Words:
        times = self._seconds[:count] * 1_000_000_000
        times += self._nanoseconds[:count]
        # Frames of the same port are never reordered, whatever their time stamps.
        for begin, end in zip(begins, [*begins[1:], count], strict=True):
            if end - begin > 1:
                np.maximum.accumulate(times[begin:end], out=times[begin:end])
        return times.argsort(kind="stable")


_NOTHING = Frames.of([])
