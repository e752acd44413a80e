"""A NIC on a network interface, in real time.

Frames come in batches and leave in batches, at the end of each turn of the loop. ACKs that fall due while a batch is
taken become one (``rc.QueuePair.acknowledge``). Faults can be put before the NIC, in both directions: a laboratory's
loss, delay, duplication, without any help from the kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from p4gen.host.transport.nic import Nic
from p4gen.host.transport.realtime import RealTimeLoop

BURST: Final = 64
"""Packets that leave in one turn, before what has come in is looked at."""


class FramePort(Protocol):
    """Whole frames in and out; ``p4gen.packetio.PacketSocket`` is one."""

    def fileno(self) -> int:
        """Readable while frames wait."""
        ...

    def receive(self) -> list[bytes]:
        """A batch of bounded size of what waits, in order; never blocks."""
        ...

    def send(self, frames: Sequence[bytes]) -> int:
        """Send in order; what cannot be sent is lost. How many were."""
        ...


class Fate(Protocol):
    """What becomes of a frame, as ``p4gen.net.faults.Fate`` says it."""

    @property
    def copies(self) -> Sequence[tuple[int, bytes]]:
        """Each with an extra delay, ps; none when it is lost."""
        ...

    @property
    def reason(self) -> str:
        """Why it is lost."""
        ...


Trouble = Callable[[bytes, int], Fate]
"""(frame, now) to its fate; ``p4gen.net.faults.DirectionFaults.fate`` is one."""


class RawNic:
    """``nic`` on ``port``; both belong to ``loop`` until ``close``, which leaves the port open.

    Set ``outgoing`` and ``incoming`` on the loop, or before anything is sent; None does no harm to any frame.
    """

    def __init__(self, loop: RealTimeLoop, port: FramePort, mac: int, ip: int, *, burst: int = BURST) -> None:
        self.loop = loop
        self.nic = Nic(mac, ip, loop, burst=burst)
        self.nic.line = self
        self.outgoing: Trouble | None = None
        self.incoming: Trouble | None = None
        self.lost: Counter[str] = Counter()
        """Frames that faults have taken, by direction and reason: ``out loss``, ``in link_down``."""
        self.undelivered = 0
        """Frames that the port did not take."""
        self._port = port
        self._frames: list[bytes] = []
        self._descriptor = port.fileno()
        loop.add_reader(self._descriptor, self._receive)
        loop.add_end(self._flush)

    def close(self) -> None:
        """Take the NIC off the loop; call it on the loop, or when that has ended."""
        self.loop.remove_reader(self._descriptor)
        self.loop.remove_end(self._flush)

    def transmit(self, frame: bytes, at: int) -> int:
        """Collect a frame (``nic.Line``). The line is free at once: what leaves in a turn is bounded by the burst."""
        if self.outgoing is None:
            self._frames.append(frame)
        else:
            self._suffer(self.outgoing(frame, at), "out", self._frames.append)
        return at

    def _receive(self) -> None:
        # Broadcasts and multicasts are for the kernel's stack; reliable connections have none.
        frames = [frame for frame in self._port.receive() if frame and not frame[0] & 1]
        self.loop.refresh()  # nothing is said to have happened before it was there
        if self.incoming is None:
            self.nic.receive_all(frames)
            return
        for frame in frames:
            self._suffer(self.incoming(frame, self.loop.now), "in", self.nic.receive)

    def _suffer(self, fate: Fate, direction: str, go_on: Callable[[bytes], None]) -> None:
        if not fate.copies:
            self.lost[f"{direction} {fate.reason}"] += 1
        for delay, frame in fate.copies:
            if delay:
                self.loop.at(self.loop.now + delay, go_on, frame)
            else:
                go_on(frame)

    def _flush(self) -> None:
        if self._frames:
            frames, self._frames = self._frames, []
            self.undelivered += len(frames) - self._port.send(frames)
