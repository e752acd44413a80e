"""One direction of a link: a queue, a transmitter and a wire."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from p4gen.host.transport.clock import SECOND, Clock
from p4gen.host.transport.wire import MIN_FRAME, OVERHEAD
from p4gen.net.world.buffer import SharedBuffer
from p4gen.net.world.faults import DirectionFaults
from p4gen.rocev2.codes import ECN_CE, ECN_ECT0, ECN_ECT1, ETHERTYPE_IPV4
from p4gen.rocev2.layouts import ROCE
from p4gen.vocabulary.topology import Ecn

_ETHER_TYPE: Final = ROCE.bytes("ethernet.ether_type")
_TOS_AT: Final = ROCE.at("ipv4.ecn")
_CHECKSUM: Final = ROCE.bytes("ipv4.checksum")
_IPV4: Final = ETHERTYPE_IPV4.to_bytes(2)

Deliver = Callable[[int, Any], None]
"""A function that takes the time of arrival, which may be in the future, and the frame."""


@dataclass(frozen=True, slots=True)
class Passage:
    """The passage of a frame over a link, for watchers. ``arrived`` is None when the frame was lost; ``reason`` says
    why."""

    src: str
    dst: str
    sent: int
    arrived: int | None
    frame: bytes
    reason: str = ""


Watcher = Callable[[Passage], None]


@dataclass(frozen=True)
class LinkTraits:
    """The properties of a direction, in bit/s, ps and bytes."""

    bandwidth: int
    delay: int
    queue: int
    ecn: Ecn | None = None


class Direction:
    """A link's direction from ``src`` to ``dst``. Set ``deliver`` before anything is sent.

    The queue is not a list of packets. The transmitter is busy until ``busy_until``, which determines the length of the
    queue; so a packet needs only one event.
    """

    STATE: ClassVar[tuple[str, ...]] = ("packets", "bytes", "busy_until", "busy", "marked", "drawn")

    deliver: Deliver

    def __init__(
        self, src: str, dst: str, traits: LinkTraits, loop: Clock, faults: DirectionFaults | None, seed: str
    ) -> None:
        self.src, self.dst, self.traits = src, dst, traits
        self.packets = self.bytes = 0
        """Bytes sent, including the overhead on the wire."""
        self.busy_until = 0
        self.busy = 0
        """Time spent transmitting."""
        self.marked = 0
        self.faults = faults
        self.watcher: Watcher | None = None
        self.on_drop: Callable[[Passage], None] | None = None
        self.buffer: SharedBuffer | None = None
        """The switch's memory that the queue shares; None where the queue has its own."""
        self._loop = loop
        self.drawn = 0
        """Frames whose marks chance has decided."""
        self._key = random.Random(seed).getrandbits(63)  # noqa: S311 - a simulation, to be repeatable
        self._delay = traits.delay
        self._durations: dict[int, int] = {}
        self._room = traits.queue * 8 * SECOND // traits.bandwidth

    @property
    def name(self) -> str:
        """The name of the direction: ``src>dst``."""
        return f"{self.src}>{self.dst}"

    @property
    def bandwidth(self) -> int:
        """The rate of the transmitter, bit/s."""
        return self.traits.bandwidth

    def backlog(self, at: int) -> int:
        """Bytes that wait or are being sent at ``at``."""
        return max(0, self.busy_until - at) * self.traits.bandwidth // (8 * SECOND)

    def transmit(self, frame: bytes, at: int) -> int:
        """Queue a frame at time ``at``, which is not before now. Returns when the line is free again."""
        size = len(frame)
        duration = self._durations.get(size)
        if duration is None:
            wire = max(size, MIN_FRAME) + OVERHEAD
            duration = self._durations[size] = wire * 8 * SECOND // self.traits.bandwidth
        busy = self.busy_until
        if busy > at:
            if busy - at > self._room or (self.buffer is not None and not self.buffer.takes(self, at)):
                self._lose(frame, at, "queue_full")
                return busy
            if self.traits.ecn is not None:
                frame = self._mark(frame, busy - at, self.traits.ecn)
            start = busy
        else:
            start = at
        self.busy_until = end = start + duration
        if self.buffer is not None and end > self.buffer.latest:
            self.buffer.latest = end
        self.busy += duration
        self.packets += 1
        self.bytes += size + OVERHEAD
        arrival = end + self._delay
        if self.faults is not None:
            fate = self.faults.fate(frame, start)
            if not fate.copies:
                self._lose(frame, start, fate.reason)
            for extra, copy in fate.copies:
                if self.watcher is not None:
                    self.watcher(Passage(self.src, self.dst, start, arrival + extra, copy))
                self.deliver(arrival + extra, copy)
            return end
        if self.watcher is not None:
            self.watcher(Passage(self.src, self.dst, start, arrival, frame))
        self.deliver(arrival, frame)
        return end

    def _lose(self, frame: bytes, at: int, reason: str) -> None:
        passage = Passage(self.src, self.dst, at, None, frame, reason)
        if self.watcher is not None:
            self.watcher(passage)
        if self.on_drop is not None:
            self.on_drop(passage)

    def _mark(self, frame: bytes, waiting: int, ecn: Ecn) -> bytes:
        """The frame. It is marked "congestion experienced" if the queue is long and the sender supports ECN."""
        backlog = waiting * self.traits.bandwidth // (8 * SECOND)
        if backlog <= ecn.low or frame[_ETHER_TYPE] != _IPV4 or frame[_TOS_AT] & ECN_CE not in (ECN_ECT0, ECN_ECT1):
            return frame
        if backlog < ecn.high:
            chance = ecn.share * (backlog - ecn.low) / (ecn.high - ecn.low)
            # Numba takes a while to load, and only marked packets need it.
            from p4gen.compiled.draws import uniform  # noqa: PLC0415

            self.drawn += 1
            if uniform(self._key, self.drawn - 1) >= chance:
                return frame
        self.marked += 1
        marked = bytearray(frame)
        old, new = frame[_TOS_AT], frame[_TOS_AT] | ECN_CE
        marked[_TOS_AT] = new
        # The checksum is updated as in a router (RFC 1624, equation 3).
        total = (int.from_bytes(frame[_CHECKSUM]) ^ 0xFFFF) + (old ^ 0xFFFF) + new
        total = (total & 0xFFFF) + (total >> 16)
        marked[_CHECKSUM] = ((total & 0xFFFF) + (total >> 16) ^ 0xFFFF).to_bytes(2)
        return bytes(marked)
