"""A worker: it sends a vector packet by packet, gets the sums, and sends again what brings none (Algorithm 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from p4gen.host.collectives.workers import Resending
from p4gen.host.transport.nic import Nic
from p4gen.papers.switchml.control import MlJob
from p4gen.papers.switchml.frames import Update, received, sent
from p4gen.papers.switchml.spec import SwitchmlSpec

Vector = npt.NDArray[np.int32]
_NOTHING: Final[Vector] = np.zeros(0, np.int32)


class MlWorker(Resending):
    """The worker of a job that a host's NIC is.

    The packets of all its vectors are counted on: packet k has slot k mod s in version k / s mod 2, and goes when the
    sum of packet k - s has come. ``timeout`` is in ps.
    """

    STATE: ClassVar = (*Resending.STATE, "_first", "_next", "_slots", "_vector", "_result", "_left")

    def __init__(self, spec: SwitchmlSpec, job: MlJob, nic: Nic, timeout: int) -> None:
        super().__init__(nic.clock, timeout)
        self._spec, self._job = spec, job
        self._number = next(number for number, each in enumerate(job.workers, start=1) if each.ip == nic.ip)
        self._lanes, self._nic = spec.lanes, nic
        self.on_sum: Callable[[Vector], None] = lambda _: None
        """Called with the sum of a vector, once all of it has come."""
        self._first = self._next = 0
        """The numbers of the vector's first packet, and of the next vector's."""
        self._slots: dict[int, int] = {}
        """By slot: the packet that waits for its sum."""
        self._vector = self._result = _NOTHING
        self._left = 0
        nic.datagrams.append(self.receive)

    def add(self, vector: Vector) -> None:
        """Begin with a vector, whose size is a multiple of a packet's lanes and not 0. The one before has its sum."""
        self._vector, self._result = vector.reshape(-1, self._lanes), np.zeros_like(vector).reshape(-1, self._lanes)
        self._first, self._left = self._next, len(self._vector)
        self._next += self._left
        for packet in range(self._first, min(self._first + self._job.slots, self._next)):
            self._begin(packet)

    def receive(self, frame: bytes) -> bool:
        """Take a frame. Returns whether it is a result of this worker's job."""
        found = received(self._spec, self._job, self._number, frame)
        if found is None:
            return False
        slot, offset, data = found
        packet = self._slots.get(slot)
        if packet is None or (offset, len(data)) != (self._offset(packet), 4 * self._lanes):
            self.stats.strays += 1
            return True
        del self._slots[slot]
        self._end(packet)
        self._result[packet - self._first] = np.frombuffer(data, ">i4")
        self._left -= 1
        if packet + self._job.slots < self._next:
            self._begin(packet + self._job.slots)
        if not self._left:
            self.on_sum(self._result.reshape(-1))
        return True

    @property
    def progress(self) -> float:
        """The fraction of the vector whose sums have come, from 0 to 1."""
        return 1 - self._left / max(1, len(self._vector))

    @override
    def close(self) -> None:
        """Take no frames, too."""
        super().close()
        self._nic.datagrams.remove(self.receive)
        self._slots.clear()

    def waiting(self) -> Iterator[str]:
        """What it waits for, a line a slot."""
        for packet in self._waits:
            slot = packet % self._job.slots
            yield f"waits for the sum of packet {packet - self._first} in slot {slot}, version {self._version(packet)}"

    def _version(self, packet: int) -> int:
        return packet // self._job.slots % 2

    def _offset(self, packet: int) -> int:
        return packet * self._lanes % (1 << 32)

    def _frame(self, packet: int) -> bytes:
        job, data = self._job, self._vector[packet - self._first].astype(">i4").tobytes()
        version, slot = self._version(packet), packet % job.slots
        update = Update(job.number, job.epoch, version, slot, self._offset(packet), data)
        return sent(self._spec, job, self._number, update, packet // job.slots)

    @override
    def _send(self, number: int) -> None:
        self._slots[number % self._job.slots] = number
        self._nic.send(self._frame(number))
