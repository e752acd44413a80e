"""A NIC on a network interface, in real time.

Frames are received in batches and sent in batches, at the end of each turn of the loop. ACKs that become due while a
batch is processed are combined (``rc.QueuePair.acknowledge``). Faults can be inserted in front of the NIC, in both
directions: loss, delay and duplication without help from the kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from p4gen.host.transport.nic import Nic
from p4gen.host.transport.realtime import RealTimeLoop

BURST: Final = 64
"""Number of packets sent in one turn before received packets are processed."""


class FramePort(Protocol):
    """Receives and sends whole frames; ``p4gen.packetio.PacketSocket`` is one."""

    def fileno(self) -> int:
        """A descriptor that is readable while frames wait."""
        ...

    def receive(self) -> list[bytes]:
        """The frames that wait, in order, at most a bounded number of them. Never blocks."""
        ...

    def send(self, frames: Sequence[bytes]) -> int:
        """Send frames in order. Frames that cannot be sent are lost. Returns how many were sent."""
        ...


class Fate(Protocol):
    """What happens to a frame; ``p4gen.net.world.faults.Fate`` is one."""

    @property
    def copies(self) -> Sequence[tuple[int, bytes]]:
        """Each copy with its extra delay in ps; none when the frame is lost."""
        ...

    @property
    def reason(self) -> str:
        """Why the frame is lost; "" if it is not."""
        ...


Trouble = Callable[[bytes, int], Fate]
"""A function from (frame, now) to the frame's fate; ``p4gen.net.world.faults.DirectionFaults.fate`` is one."""


class RawNic:
    """Connects ``nic`` to ``port``. Both belong to ``loop`` until ``close``, which leaves the port open.

    Set ``outgoing`` and ``incoming``, the faults of each direction, on the loop or before anything is sent; None means
    no faults.
    """

    def __init__(self, loop: RealTimeLoop, port: FramePort, mac: int, ip: int, *, burst: int = BURST) -> None:
        self.loop = loop
        self.nic = Nic(mac, ip, loop, burst=burst)
        self.nic.line = self
        self.outgoing: Trouble | None = None
        self.incoming: Trouble | None = None
        self.lost: Counter[str] = Counter()
        """Number of frames lost by faults, by direction and reason: ``out loss``, ``in link_down``."""
        self.undelivered = 0
        """Number of frames that the port did not send."""
        self._port = port
        self._frames: list[bytes] = []
        self._descriptor = port.fileno()
        loop.add_reader(self._descriptor, self._receive)
        loop.add_end(self._flush)

    def close(self) -> None:
        """Remove the NIC from the loop. Call it on the loop, or after the loop has ended."""
        self.loop.remove_reader(self._descriptor)
        self.loop.remove_end(self._flush)

    def transmit(self, frame: bytes, at: int) -> int:
        """Collect a frame (``nic.Line``). The line is free again at once; the burst limits how much is sent in a
        turn."""
        if self.outgoing is None:
            self._frames.append(frame)
        else:
            self._suffer(self.outgoing(frame, at), "out", self._frames.append)
        return at

    def _receive(self) -> None:
        # Broadcasts and multicasts are handled by the kernel; reliable connections do not use them.
        frames = [frame for frame in self._port.receive() if frame and not frame[0] & 1]
        self.loop.refresh()  # a frame is not handled before its time of arrival
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
