"""A worker: it sends a gradient packet by packet, gets the server's results, and sends again what brings none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, Final

import numpy as np
from typing_extensions import override

from p4gen.host.collectives.workers import Resending
from p4gen.host.transport.clock import Clock
from p4gen.papers.atp.frames import JobKey, Packet
from p4gen.papers.atp.headers import GRADIENTS, Message
from p4gen.papers.atp.numbers import FACTOR, Array, packed, unpacked, whole

LATER: Final = 3
"""So many results of later packets say that a result has been lost."""


class AtpWorker(Resending):
    """Worker ``number``, from 0, of a job.

    At most a window of packets is on the way, counted from the first one without a result: ``window`` at first and at
    most. It grows by a packet for each window of results, and is halved if one of them has met a long queue.
    ``send`` sends a packet to the server; ``timeout`` is in ps.
    """

    STATE: ClassVar = (
        *Resending.STATE, "_gradient", "_result", "_base", "_next", "_later", "_floats", "_window", "_round",
        "_congested",
    )  # fmt: skip

    def __init__(
        self, job: JobKey, number: int, lanes: int, clock: Clock, send: Callable[[Packet], None], timeout: int,
        window: int,
    ) -> None:  # fmt: skip
        super().__init__(clock, timeout)
        self._job, self._own, self._lanes, self._send_packet, self._most = job, 1 << number, lanes, send, window
        self.on_sum: Callable[[Array], None] = lambda _: None
        """Called with the sum of a gradient, once all of it has come."""
        self._gradient = self._result = np.zeros((0, lanes), np.float32)
        self._base = self._next = 0
        """The sequence numbers of the gradient's first packet, and of the next one to be sent."""
        self._later: dict[int, int] = {}
        """For each packet without a result, the number of later ones' results: it is sent again at once, but once."""
        self._floats: set[int] = set()
        """Those of them that the server wants as float32."""
        self._window, self._round, self._congested = window, 0, False

    def add(self, gradient: Array) -> None:
        """Begin with a gradient, float32 or int32, whose size is a multiple of a packet's lanes and not 0. The one
        before has its sum."""
        self._gradient, self._base = gradient.reshape(-1, self._lanes), self._next
        self._result = np.zeros_like(self._gradient)
        self._go_on()

    def take(self, packet: Packet) -> bool:
        """Take what has come from the job's server. Returns whether it is for this worker."""
        if not packet.fits(self._job, self._lanes) or packet.message in GRADIENTS:
            return False
        if packet.sequence not in self._waits:
            self.stats.strays += 1
        elif packet.message == Message.ASK:
            if packet.sequence not in self._floats:
                self._floats.add(packet.sequence)
                self._again(packet.sequence)
        else:
            self._take_result(packet)
        return True

    @property
    def progress(self) -> float:
        """The fraction of the gradient whose sums have come, from 0 to 1."""
        return (self._next - self._base - len(self._waits)) / max(1, len(self._gradient))

    def waiting(self) -> Iterator[str]:
        """What it waits for, a line a packet."""
        for sequence in self._waits:
            yield f"waits for the result of packet {sequence - self._base}"

    def _take_result(self, packet: Packet) -> None:
        floats = packet.message == Message.FLOAT_RESULT
        row = unpacked(packet.data, floats=floats)
        scaled = not floats and self._result.dtype == np.float32
        self._result[packet.sequence - self._base] = row / FACTOR if scaled else row
        self._end(packet.sequence)
        del self._later[packet.sequence]
        self._floats.discard(packet.sequence)
        for sequence in [each for each in self._waits if each < packet.sequence]:
            self._later[sequence] += 1
            if self._later[sequence] == LATER:
                self._again(sequence)
        self._adjust(congested=bool(packet.congested))
        self._go_on()
        if not self._waits and self._next == self._base + len(self._gradient):
            self.on_sum(self._result.reshape(-1))

    def _first(self) -> int:
        """The first packet without a result."""
        return min(self._waits, default=self._next)

    def _adjust(self, *, congested: bool) -> None:
        """AIMD, once for each window of results."""
        self._congested |= congested
        if self._first() >= self._round:
            self._window = max(1, self._window // 2) if self._congested else min(self._most, self._window + 1)
            self._round, self._congested = self._next, False

    def _go_on(self) -> None:
        end = self._base + len(self._gradient)
        while self._next < min(end, self._first() + self._window):
            self._later[self._next] = 0
            self._next += 1
            self._begin(self._next - 1)

    @override
    def _send(self, number: int) -> None:
        message, row = Message.GRADIENT if number in self._sent else Message.RESEND, self._gradient[number - self._base]
        if number in self._floats:
            message = Message.FLOATS
        data = packed(row if message == Message.FLOATS else whole(row))
        self._send_packet(Packet(*self._job, message, number, self._own, data))
