"""Batches of frames, which machine code carries between the interfaces of a switch and its program."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from p4gen.compiled.carrying import CARRIER, COUNTS, PORTS, RUN, SENT, Why, carry
from p4gen.compiled.sockets import EVENT_SIZE, MOST_EVENTS, TIME_SIZE, functions
from p4gen.model.jit import Engine
from p4gen.model.jit import exchange as x
from p4gen.model.state import WallClock
from p4gen.packetio import Receiver, Sender
from p4gen.packetio.mmsg import AT_ONCE, SOCKADDR_LL_SIZE, Messages

_NO_PORT: Final = -1


class Batches:
    """Carries frames of ``sockets`` (ports by descriptor), which are registered at ``poll`` together with ``woken``.

    Frames are received into the places of ``receiver``, and sent through the socket ``out`` of ``sender``. ``wake``
    makes ``woken`` readable, from any thread, and so ends ``carry``.
    """

    def __init__(
        self,
        receiver: Receiver,
        sender: Sender,
        out: socket.socket,
        poll: select.epoll,
        woken: socket.socket,
        wake: Callable[[], None],
        sockets: Mapping[int, int],
    ) -> None:
        self._sender = sender
        self.ports, self.wake = frozenset(sockets.values()), wake
        assert sender.names is not None
        self._names = sender.names
        slots, most = receiver.free, max(sockets) + 1
        self._carrier: Any = np.zeros(1, CARRIER)
        self._row = self._carrier[0]
        self._counts: Any = np.zeros(PORTS, COUNTS)
        self._messages = Messages(AT_ONCE)
        self._messages.headers["name_size"] = SOCKADDR_LL_SIZE
        ports_of = np.zeros(most, np.int32)
        for file, port in sockets.items():
            ports_of[file] = port
        arrays: dict[str, Any] = {
            "events": np.zeros(MOST_EVENTS * EVENT_SIZE, np.uint8),
            "ports_of": ports_of,
            "headers": receiver.messages.headers,
            "controls": receiver.controls,
            "places": receiver.places,
            "data": receiver.data,
            "runs": np.zeros(MOST_EVENTS, RUN),
            "starts": np.zeros(slots, np.int64),
            "ends": np.zeros(slots, np.int64),
            "ports": np.zeros(slots, np.int32),
            "time": np.zeros(TIME_SIZE, np.uint8),
            "names": self._names,
            "out_headers": self._messages.headers,
            "out_pieces": self._messages.pieces,
            "out_numbers": np.zeros(AT_ONCE, np.int32),
            "counts": self._counts,
        }
        self._arrays = arrays
        numbers = {"poll": poll.fileno(), "woken": woken.fileno(), "out": out.fileno()}
        numbers |= {"slots": slots, "named": len(self._names)} | functions()
        for name, value in (numbers | {name: array.ctypes.data for name, array in arrays.items()}).items():
            self._row[name] = value

    def carry(self, engine: Engine, cpu_port: int, seconds: float) -> list[bytes]:
        """Carry frames until there is something else to do, at most for so long. Returns frames for controllers.

        Digests and messages are in the engine's state then. Raises ``ValueError`` for an engine with another clock.
        """
        clock = engine.state.clock
        if not isinstance(clock, WallClock):
            raise ValueError("machine code knows the time of the machine only")
        engine.state.flush()
        row = self._row
        row["state"] = engine.state.block.address
        row["exchange"], row["temporary"], row["program"] = engine.places
        row["began"], row["until"] = clock.start, time.monotonic_ns() + int(seconds * 1e9)
        row["cpu_port"] = cpu_port or _NO_PORT
        why = carry(self._carrier.ctypes.data)
        if why & Why.EVENTS:
            engine.take_events()
        if why & (Why.NOT_SENT | Why.CONTROLLER):
            return self._finish(engine, cpu_port, why)
        return []

    def _finish(self, engine: Engine, cpu_port: int, why: int) -> list[bytes]:
        """Send what has not been sent of the last batch, as far as possible. Returns frames for controllers."""
        records, data = engine.output()
        if why & Why.NOT_SENT:
            rest = records[self._row["unsent"] :]
            rest = rest[self._names.take(rest["port"], mode="clip") != 0]
            starts, ports = rest["start"], rest["port"]
            lost = self._sender.send(data.ctypes.data, starts, starts + rest["size"], ports)
            np.add.at(self._counts["undelivered"], ports[lost], 1)
        whole = data.data
        here = records[records["port"] == cpu_port] if why & Why.CONTROLLER else records[:0]
        return [whole[start : start + size].tobytes() for start, size, _, _ in here.tolist()]

    def counts(self, name: str) -> dict[int, int]:
        """A counter of ``COUNTS`` by port, where it is above 0."""
        column = self._counts[name]
        return {port: int(column[port]) for port in np.flatnonzero(column).tolist()}


assert SENT.itemsize == x.RECORD
