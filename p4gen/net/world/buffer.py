"""The memory for packets that a switch's output queues share (``p4gen.vocabulary.topology.Buffer``)."""

from __future__ import annotations

from typing import ClassVar, Final, Protocol

from p4gen.host.transport.clock import SECOND
from p4gen.vocabulary.topology import Buffer

_BYTE: Final = 8 * SECOND
"""Bit/s times ps that make a byte."""


class Queue(Protocol):
    """A queue, as the shared memory sees it."""

    busy_until: int
    """The time, in ps, at which its transmitter will have sent everything that waits."""

    @property
    def bandwidth(self) -> int:
        """The rate of its transmitter, bit/s."""
        ...


class SharedBuffer:
    """The queues of one switch. A packet is counted until it has left."""

    STATE: ClassVar = ("latest",)

    def __init__(self, limits: Buffer) -> None:
        self.limits = limits
        self.queues: list[Queue] = []
        self.latest = 0
        """The time, in ps, at which all queues will be empty if no more packets come."""
        self._bandwidth = 0

    def add(self, queue: Queue) -> None:
        """Count ``queue`` among those whose packets are in this memory."""
        self.queues.append(queue)
        self._bandwidth += queue.bandwidth

    def used(self, at: int) -> int:
        """Bytes in all queues together."""
        return sum((queue.busy_until - at) * queue.bandwidth for queue in self.queues if queue.busy_until > at) // _BYTE

    def takes(self, queue: Queue, at: int) -> bool:
        """Whether there is room for one more packet in ``queue``."""
        size, alpha = self.limits.size, self.limits.alpha
        own = (queue.busy_until - at) * queue.bandwidth // _BYTE
        # No queue is busy longer than the last one; if even that leaves room, no other needs to be checked.
        bound = (self.latest - at) * self._bandwidth // _BYTE
        return own < alpha * (size - bound) or own < alpha * (size - self.used(at))
