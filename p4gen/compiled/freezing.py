"""The state of a world as bytes, which can be compared, and copied back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from p4gen.compiled.memory import (
    BUFFER,
    DIRECTION,
    GLOBALS,
    INBOX,
    MESSAGE,
    PAIR,
    POOL,
    RECEIVE,
    RUN,
    SWITCH,
    Pool,
    World,
)


def _places(dtype: np.dtype[Any], *names: str) -> list[int]:
    """The positions of columns in a record of them."""
    assert dtype.names is not None
    return [dtype.names.index(name) for name in names]


_STATE: Final = _places(GLOBALS, "error")[0]
"""Number of columns of the first array that are state."""
_OF_DIRECTIONS: Final = _places(DIRECTION, "busy_until", "busy", "packets", "bytes", "marked", "drawn")
_OF_BUFFERS: Final = _places(BUFFER, "latest")
_OF_SWITCHES: Final = _places(SWITCH, "waiting", "number", "wake_at", "received", "lost_ports")
_OF_POOLS: Final = _places(POOL, "free", "used")
_ADDRESSES: Final = {
    "messages": _places(MESSAGE, "data"),
    "receives": _places(RECEIVE, "room"),
    "pairs": _places(PAIR, "room", "taken_room"),
    "runs": _places(RUN, "send", "receive"),
}
"""Columns with addresses of Python's memory, which has other addresses when it is made again."""


@dataclass(frozen=True)
class Snapshot:
    """The state of a world: the bytes of each array, as far as it is used, and of the frames."""

    arrays: tuple[bytes, ...]
    frames: bytes


class State:
    """The state of a world as a part of a run (``p4gen.net.world.freezing.Freezable``). What is remembered only to save
    time, such as the starts of frames, is no part of it."""

    def __init__(self, of: World) -> None:
        self._world = of

    def freeze(self) -> Snapshot:
        """The present state."""
        arrays = []
        for name, array, part in self._used():
            state = array[part].copy()
            columns = _ADDRESSES.get(name, [])
            state[:, columns] = np.minimum(state[:, columns], 0)
            arrays.append(state.tobytes())
        pool = self._world.pool
        return Snapshot(tuple(arrays), b"".join(pool[start:end].tobytes() for start, end in self._frames()))

    def restore(self, frozen: Snapshot) -> None:
        """Return to a state of this world, or of one with the same arrays. The addresses of messages and receives have
        to be set again."""
        for (_, array, part), state in zip(self._used(), frozen.arrays, strict=True):
            array[part] = np.frombuffer(state, array.dtype).reshape(array[part].shape)
        at = 0
        for start, end in self._frames():
            self._world.pool[start:end] = np.frombuffer(frozen.frames, np.uint8, end - start, at)
            at += end - start

    def _frames(self) -> Iterator[tuple[int, int]]:
        """Where each frame begins and ends in the pool."""
        of = self._world
        slot = int(of.all["slot"][0])
        for i, size in enumerate(of.lengths["value"][: int(of.all["frames_used"][0])].tolist()):
            yield i * slot, i * slot + size

    def _used(self) -> Iterator[tuple[str, npt.NDArray[Any], Any]]:
        """The arrays with state: name, a row for each record, and the part that is used. A part may depend on the
        arrays before it, so that ``restore`` can go through them."""
        of, every = self._world, self._world.all[0]
        yield "all", _rows(of.all), np.s_[:, :_STATE]
        yield "switches", _rows(of.switches), np.s_[:, _OF_SWITCHES]
        yield "directions", _rows(of.directions), np.s_[:, _OF_DIRECTIONS]
        yield "buffers", _rows(of.buffers), np.s_[:, _OF_BUFFERS]
        yield "hosts", _rows(of.hosts), np.s_[:]
        yield "heap", _rows(of.heap), np.s_[: every["events"]]
        for i, waiting in enumerate(of.switches["waiting"]):
            yield "inboxes", _rows(of.inboxes), np.s_[i * INBOX : i * INBOX + int(waiting)]
        yield "lengths", _rows(of.lengths), np.s_[: every["frames_used"]]
        yield "free", _rows(of.free), np.s_[: every["frames_free"]]
        yield "left", _rows(of.left), np.s_[: every["left_used"]]
        yield "flags", _rows(of.flags), np.s_[: every["flags_used"]]
        yield "moments", _rows(of.moments), np.s_[: every["moments_used"]]
        yield "pairs", _rows(of.pairs), np.s_[: every["pairs_used"]]
        yield "rates", _rows(of.rates), np.s_[: every["pairs_used"]]
        yield "pools", _rows(of.pools), np.s_[:, _OF_POOLS]
        for pool in Pool:
            name = pool.name.lower()
            yield name, _rows(getattr(of, name)), np.s_[: of.pools["used"][pool]]
        yield "table", _rows(of.table), of.pairs["cell"][: every["pairs_used"]]


def _rows(records: Any) -> npt.NDArray[Any]:
    """Records whose columns have one size, as an array with a row for each."""
    kind = records.dtype[0]
    return records.view(kind).reshape(len(records), -1)
