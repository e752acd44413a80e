"""A worker: it sends a vector packet by packet, gets the sums, and sends again what brings none (Algorithm 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from p4gen.host.collectives.workers import WorkerStats
from p4gen.host.transport.nic import Nic
from p4gen.papers.switchml.control import MlJob
from p4gen.papers.switchml.frames import Update
from p4gen.rocev2.headers import Ethernet, IPv4

Vector = npt.NDArray[np.int32]
_NOTHING: Final[Vector] = np.zeros(0, np.int32)


class MlWorker:
    """The worker of a job that a host's NIC is.

    The packets of all its vectors are counted on: packet k has slot k mod s in version k / s mod 2, and goes when the
    sum of packet k - s has come. ``timeout`` is in ps.
    """

    STATE: ClassVar = ("_base", "_end", "_waits", "_timed", "_vector", "_result", "_left", "stats")

    def __init__(self, job: MlJob, lanes: int, nic: Nic, timeout: int) -> None:
        self._job = job
        self._own = next(worker for worker in job.workers if worker.ip == nic.ip)
        self._lanes, self._nic, self._timeout = lanes, nic, timeout
        self._ethernet, self._ip = Ethernet(job.mac, self._own.mac), IPv4(self._own.ip, job.ip)
        self.on_sum: Callable[[Vector], None] = lambda _: None
        """Called with the sum of a vector, once all of it has come."""
        self.stats = WorkerStats()
        self._base = self._end = 0
        self._waits: dict[int, tuple[int, int]] = {}
        """By slot: the packet that waits for its sum, and when it is sent again. Those sent last are the last ones."""
        self._timed = False
        """Whether the timer runs."""
        self._vector = self._result = _NOTHING
        self._left = 0
        nic.datagrams.append(self.receive)

    def add(self, vector: Vector) -> None:
        """Begin with a vector, whose size is a multiple of a packet's lanes and not 0. The one before has its sum."""
        self._vector, self._result = vector.reshape(-1, self._lanes), np.zeros_like(vector).reshape(-1, self._lanes)
        self._base, self._left = self._end, len(self._vector)
        self._end += self._left
        for packet in range(self._base, min(self._base + self._job.slots, self._end)):
            self._begin(packet)

    def receive(self, frame: bytes) -> bool:
        """Take a frame. Returns whether it is a result of this worker's job."""
        update = Update.parse(frame, self._job.ip, self._own.ip)
        if update is None or (update.job, update.epoch) != (self._job.number, self._job.epoch):
            return False
        packet, _ = self._waits.get(update.slot, (None, 0))
        if packet is None or not self._update(packet).matches(update):
            self.stats.strays += 1
            return True
        del self._waits[update.slot]
        self.stats.results += 1
        self._result[packet - self._base] = np.frombuffer(update.data, ">i4")
        self._left -= 1
        if packet + self._job.slots < self._end:
            self._begin(packet + self._job.slots)
        if not self._left:
            self.on_sum(self._result.reshape(-1))
        return True

    @property
    def progress(self) -> float:
        """The fraction of the vector whose sums have come, from 0 to 1."""
        return 1 - self._left / max(1, len(self._vector))

    def close(self) -> None:
        """Send nothing any more, and take no frames."""
        self._nic.datagrams.remove(self.receive)
        self._waits.clear()

    def counts(self) -> Counter[str]:
        """What it has counted, as queue pairs have it."""
        stats = self.stats
        return Counter(sent=stats.sent + stats.resent, resent=stats.resent, timeouts=stats.resent)

    def waiting(self) -> Iterator[str]:
        """What it waits for, a line a slot."""
        for slot, (packet, _) in self._waits.items():
            yield f"waits for the sum of packet {packet - self._base} in slot {slot}, version {self._version(packet)}"

    def forget_times(self) -> None:
        """Forget what has been counted; what is sent again, is so after the whole timeout."""
        self.stats = WorkerStats()
        self._waits = {slot: (packet, self._timeout) for slot, (packet, _) in self._waits.items()}

    def _version(self, packet: int) -> int:
        return packet // self._job.slots % 2

    def _update(self, packet: int) -> Update:
        job, offset = self._job, packet * self._lanes % (1 << 32)
        data = self._vector[packet - self._base].astype(">i4").tobytes()
        return Update(job.number, job.epoch, self._version(packet), packet % job.slots, offset, data)

    def _begin(self, packet: int) -> None:
        self.stats.sent += 1
        self._send(packet)

    def _send(self, packet: int) -> None:
        due = self._nic.clock.now + self._timeout
        self._waits.pop(packet % self._job.slots, None)
        self._waits[packet % self._job.slots] = packet, due
        self._nic.send(self._update(packet).frame(self._ethernet, self._ip))
        if not self._timed:
            self._timed = True
            self._nic.clock.at(due, self._expire)

    def _expire(self, _: object) -> None:
        now = self._nic.clock.now
        for packet, due in list(self._waits.values()):
            if due <= now:
                self.stats.resent += 1
                self._send(packet)
        self._timed = bool(self._waits)
        if self._timed:
            _, due = next(iter(self._waits.values()))
            self._nic.clock.at(due, self._expire)
