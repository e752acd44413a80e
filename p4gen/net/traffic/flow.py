"""A flow: bytes from one host to another over a connection, as SENDs of one size that are checked when they arrive; or
as RDMA WRITEs with immediate data, each of which notifies the receiver.

However long it is, a flow needs the memory of a few messages. All messages are stretches of one random pattern, each at
its own place. A receive buffer, or a place in the memory that is written to, is used again once its message has been
compared.

Flows can wait for each other, as the ranks of a ring do: a flow of blocks sends a block when the flow before it has
delivered its previous block.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar, Final

import numpy as np

from p4gen.host.transport.memory import MemoryRegion
from p4gen.host.transport.rc import QueuePair
from p4gen.host.transport.verbs import Completion, RecvWr, SendWr, Status

MESSAGE: Final = 1 << 20
"""Bytes of a message; the last one may be shorter."""
POSTED: Final = 4
"""Receives that wait for messages."""
_STRIDE: Final = 4099
"""The distance between the places of two messages in the pattern: a prime, so that messages near each other differ."""


class Flow:
    """``size`` bytes from the end ``source`` of a connection to the other; both are set before it is started
    (``p4gen.net.job.Task``).

    ``pattern`` is twice as long as a message.
    """

    STATE: ClassVar = (
        "started", "arrived_at", "finished", "arrived", "acknowledged", "problem", "_rooms", "_region", "_sent",
        "_released",
    )  # fmt: skip

    source: QueuePair
    destination: QueuePair

    def __init__(
        self, name: str, size: int, pattern: bytes | memoryview, blocks: int = 0, *, writes: bool = False
    ) -> None:
        """``blocks`` is the number of equal blocks of whole messages into which the flow is divided; 0: the flow waits
        for no other. ``writes``: it consists of RDMA WRITEs."""
        self.name = name
        self.size = size
        self.next: Flow | None = None
        """The flow that may send one more block when this flow has delivered one."""
        self.started: int | None = None
        self.arrived_at: int | None = None
        """The time, in ps, at which the last message had arrived."""
        self.finished: int | None = None
        """The time at which it was acknowledged, too, or at which the flow failed."""
        self.arrived = 0
        """Number of messages that have arrived."""
        self.acknowledged = 0
        self.problem = ""
        """The error; "" if there is none."""
        self._rooms: deque[bytearray] = deque()
        """The receives that are posted, in order."""
        self._writes = writes
        self._region: MemoryRegion | None = None
        """The memory that WRITEs fill; it has a place for each message that may be under way."""
        self._pattern = memoryview(pattern)
        self._message = len(pattern) // 2
        self._count = -(-size // self._message)
        if (blocks and self._count * self._message != size) or self._count % max(1, blocks):
            raise ValueError(f"{size} bytes are not {blocks} blocks of messages of {self._message}")
        self._block = self._count // max(1, blocks)
        """Number of messages of a block."""
        self._sent = 0
        self._released = self._block
        """Number of messages that may be sent."""

    def start(self) -> None:
        """Send everything or, of a flow of blocks, the first block."""
        self.started = self.source.clock.now
        if self._writes:
            config = self.source.config
            packets = -(-self._message // config.mtu)
            places = config.max_outstanding // packets + 2
            self._region = self.destination.domain.register(bytearray(places * self._message))
        for number in range(min(POSTED, self._count)):
            self._post(number)
        self._send()

    @property
    def done(self) -> bool:
        """Whether all has been acknowledged, or the flow has failed."""
        return self.finished is not None and self.started is not None

    def parts(self) -> dict[str, object]:
        """The parts that have state, by name."""
        return {"messages": self}

    def _send(self) -> None:
        """Post the sends of all blocks that are released."""
        while self.started is not None and self._sent < self._released:
            content, region = self._content(self._sent), self._region
            if region is None:
                self.source.post_send(SendWr(self._sent, content))
            else:
                address = region.address + self._place(self._sent, region)
                self.source.post_send(SendWr(self._sent, content, self._sent, region.rkey, address))
            self._sent += 1

    def _place(self, number: int, region: MemoryRegion) -> int:
        """The address to which a message is written."""
        return number * self._message % len(region.buffer)

    def _content(self, number: int) -> memoryview:
        start = number * _STRIDE % self._message
        return self._pattern[start : start + min(self._message, self.size - number * self._message)]

    def _post(self, number: int) -> None:
        size = 0 if self._writes else min(self._message, self.size)
        room = self._rooms.popleft() if len(self._rooms) == POSTED else bytearray(size)
        self._rooms.append(room)
        self.destination.post_recv(RecvWr(number, room))

    def on_sent(self, completion: Completion) -> None:
        """A message has been acknowledged; or the connection has failed."""
        if completion.status is not Status.SUCCESS:
            self._fail(f"sending: {completion.status}")
            return
        self.acknowledged += 1
        self._end()

    def on_arrival(self, completion: Completion) -> None:
        """Compare a message with the pattern, and post a receive for another one."""
        if completion.status is not Status.SUCCESS:
            self._fail(f"receiving: {completion.status}")
            return
        content, room = self._content(completion.wr_id), memoryview(self._rooms[0])
        if self._region is not None:
            room = self._region.buffer[self._place(completion.wr_id, self._region) :]
        if completion.length != len(content) or not _same(room[: completion.length], content):
            self._fail(f"message {completion.wr_id} is not what was sent")
            return
        self.arrived += 1
        self.arrived_at = self.source.clock.now
        if completion.wr_id + POSTED < self._count:
            self._post(completion.wr_id + POSTED)
        else:
            self._rooms.popleft()
        if self.next is not None and self.arrived % self._block == 0:
            self.next.release()
        self._end()

    def release(self) -> None:
        """Allow one more block to be sent."""
        self._released = min(self._released + self._block, self._count)
        self._send()

    def _end(self) -> None:
        if self.acknowledged == self.arrived == self._count and self.finished is None:
            self.finished = self.source.clock.now

    def _fail(self, problem: str) -> None:
        self.problem = self.problem or problem
        if self.finished is None:
            self.finished = self.source.clock.now


def _same(one: memoryview, other: memoryview) -> bool:
    """Whether two stretches of memory are equal; views compare themselves item by item, which takes much longer."""
    return np.array_equal(np.frombuffer(one, np.uint8), np.frombuffer(other, np.uint8))
