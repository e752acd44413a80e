"""Links between switches that have faults: a process that forwards frames between the two halves of each such link.

Links without faults have a kernel bridge in the middle instead (``network``).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from p4gen.host.transport.realtime import RealTimeLoop
from p4gen.labs.hosts.requests import Request, serve
from p4gen.labs.network import faults
from p4gen.labs.network.hostnet import FRAME_ROOM
from p4gen.net.world.faults import Fate
from p4gen.packetio import PacketSocket
from p4gen.records import from_plain

_WAYS = ("there", "back")


class Wire:
    """A link: frames that arrive at one of two interfaces leave at the other, as far as faults permit. Use it on
    ``loop``."""

    def __init__(self, loop: RealTimeLoop, interfaces: Sequence[str]) -> None:
        self.faults: list[Callable[[bytes, int], Fate] | None] = [None, None]
        """Of each direction: from the first interface to the second, and back."""
        self.lost: Counter[str] = Counter()
        self._loop = loop
        self._ports = [PacketSocket(name, frame_room=FRAME_ROOM) for name in interfaces]
        self._frames: tuple[list[bytes], list[bytes]] = [], []
        """By interface: frames that leave at the end of this turn."""
        for side, port in enumerate(self._ports):
            loop.add_reader(port.fileno(), self._reader(side))
        loop.add_end(self._flush)

    def close(self) -> None:
        """Stop forwarding, and close the sockets of both interfaces."""
        self._loop.remove_end(self._flush)
        for port in self._ports:
            self._loop.remove_reader(port.fileno())
            port.close()
        self._ports = []

    def _reader(self, side: int) -> Callable[[], None]:
        def read() -> None:
            frames = self._ports[side].receive()
            self._loop.refresh()
            out, fate = self._frames[1 - side], self.faults[side]
            if fate is None:
                out += frames
                return
            for frame in frames:
                found = fate(frame, self._loop.now)
                if not found.copies:
                    self.lost[found.reason] += 1
                for delay, copy in found.copies:
                    if delay:
                        self._loop.at(self._loop.now + delay, out.append, copy)
                    else:
                        out.append(copy)

        return read

    def _flush(self) -> None:
        for port, frames in zip(self._ports, self._frames, strict=True):
            if frames:
                port.send(frames)
                frames.clear()


class Wires:
    """All links that have faults, and the requests that the lab may send."""

    def __init__(self) -> None:
        self.loop = RealTimeLoop()
        self._wires: dict[str, Wire] = {}
        self._lost: dict[str, Counter[str]] = {}
        self.loop.start()

    def set(self, request: Request) -> dict[str, Any]:
        """Set the faults of a link, in both directions. Without any it is forwarded no more."""
        troubles = from_plain(faults.Troubles, request["troubles"])
        name, seed = request["link"], f"{request['seed']} {request['link']}"
        directions = [faults.direction(troubles, f"{seed} {way}", in_order=request["in_order"]) for way in _WAYS]
        self.loop.run_there(lambda: self._set(name, request["interfaces"], directions))
        return {}

    def counters(self, _request: Request) -> dict[str, Any]:
        """Number of frames lost, by link and reason."""
        return {name: dict(lost) for name, lost in self._lost.items()}

    def _set(self, name: str, interfaces: Sequence[str], directions: list[Callable[[bytes, int], Fate] | None]) -> None:
        if not any(directions):
            wire = self._wires.pop(name, None)
            if wire is not None:
                wire.close()
            return
        if name not in self._wires:
            self._wires[name] = Wire(self.loop, interfaces)
            self._wires[name].lost = self._lost.setdefault(name, Counter())
        self._wires[name].faults = directions


def run() -> int:
    """Serve requests until standard input ends."""
    wires = Wires()
    serve({"set": wires.set, "counters": wires.counters}, {}, iter(sys.stdin.readline, ""))
    wires.loop.close()
    return 0
