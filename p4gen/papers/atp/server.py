"""A parameter server: it adds what switches have not added, and sends results to all workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from p4gen.papers.atp.frames import JobKey, Packet
from p4gen.papers.atp.headers import GRADIENTS, Message
from p4gen.papers.atp.numbers import GREATEST, LEAST, Array, packed, saturated, unpacked


@dataclass
class ServerStats:
    """What a server has counted: packets by what became of them."""

    packets: int = 0
    collisions: int = 0
    """Those whose aggregator was another packet's."""
    whole: int = 0
    """Those with a sum of all workers that send through switches."""
    useless: int = 0
    """Those with nothing new, or only together with what the server has."""
    asked: int = 0
    """How often floats were asked for."""
    again: int = 0
    """Results that were sent again."""


@dataclass
class Sum:
    """What a server has of a sequence number."""

    data: Array
    workers: int = 0
    congested: int = 0
    floats: bool = False
    """Whether the sum does not fit into int32, so that workers' float32 are added."""


class AtpServer:
    """The server of a job with so many workers, as many of which send ``through`` switches. ``send`` sends a packet to
    all; ``window`` is their largest window. Sums that do not fit into int32 are made of ``floats``, or saturate."""

    STATE: ClassVar = ("_sums", "_results", "_newest", "stats")

    def __init__(
        self, job: JobKey, workers: int, through: int, lanes: int, send: Callable[[Packet], None], window: int, *,
        floats: bool,
    ) -> None:  # fmt: skip
        self._job, self._everyone, self._through = job, (1 << workers) - 1, (1 << through) - 1
        self._lanes, self._send, self._window, self._floats = lanes, send, window, floats
        self._sums: dict[int, Sum] = {}
        self._results: dict[int, Packet] = {}
        """Those that a worker may still lack."""
        self._newest = -1
        """The largest sequence number with a result: all workers have those of a window before it."""
        self.stats = ServerStats()

    def take(self, packet: Packet) -> bool:
        """Take what has come from the job's workers. Returns whether it is for the server."""
        if not packet.fits(self._job, self._lanes) or packet.message not in GRADIENTS:
            return False
        if not 0 < packet.workers <= self._everyone:
            return False
        self.stats.packets += 1
        self.stats.collisions += packet.collision
        self.stats.whole += packet.workers == self._through
        if packet.sequence in self._results:
            if packet.message != Message.GRADIENT:  # its sender lacks the result
                self.stats.again += 1
                self._send(self._results[packet.sequence])
        elif self._newest - self._window < packet.sequence <= self._newest + self._window:
            self._add(packet)
        return True

    def forget_times(self) -> None:
        """Forget what has been counted."""
        self.stats = ServerStats()

    def _add(self, packet: Packet) -> None:
        held = self._sums.setdefault(packet.sequence, Sum(np.zeros(self._lanes, np.int64)))
        held.congested |= packet.congested
        if held.floats != (packet.message == Message.FLOATS):
            if held.floats and packet.message == Message.RESEND:  # its sender does not know yet
                self._ask(packet.sequence)
            return
        data = unpacked(packet.data, floats=held.floats)
        if held.workers & packet.workers == 0:
            held.data, held.workers = held.data + data, held.workers | packet.workers
        elif held.workers & ~packet.workers == 0 and held.workers != packet.workers:
            held.data, held.workers = data.astype(held.data.dtype), packet.workers
        else:
            self.stats.useless += 1
            return
        if self._floats and not held.floats and (saturated(data) or saturated(held.data)):
            self._sums[packet.sequence] = Sum(np.zeros(self._lanes, np.float64), congested=held.congested, floats=True)
            self._ask(packet.sequence)
        elif held.workers == self._everyone:
            self._complete(packet.sequence, held)

    def _complete(self, sequence: int, held: Sum) -> None:
        message = Message.FLOAT_RESULT if held.floats else Message.RESULT
        elements = np.clip(held.data, LEAST, GREATEST).astype(np.int32)
        if held.floats:
            elements = held.data.astype(np.float32)
        result = self._packet(message, sequence, packed(elements), held.congested)
        del self._sums[sequence]
        self._newest = max(self._newest, sequence)
        self._results = {each: sent for each, sent in self._results.items() if each > self._newest - self._window}
        self._results[sequence] = result
        self._send(result)

    def _ask(self, sequence: int) -> None:
        self.stats.asked += 1
        self._send(self._packet(Message.ASK, sequence, bytes(4 * self._lanes), 0))

    def _packet(self, message: Message, sequence: int, data: bytes, congested: int) -> Packet:
        return Packet(*self._job, message, sequence, self._everyone, data, congested)
