"""AlltoAll over connections between each two ranks, pairwise: in step s, rank r sends to rank r + s and receives from
rank r - s.

Every rank has an array with a part for each rank. Afterwards rank r has the r-th part of every rank's array, in order
of rank. Switches only forward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from p4gen.errors import FailedError
from p4gen.host.collectives.arrays import Array, divide
from p4gen.host.collectives.plan import Connection
from p4gen.host.transport.nic import VerbsNic
from p4gen.host.transport.rc import VerbsPair
from p4gen.host.transport.verbs import Completion, RecvWr, SendWr, Status


@dataclass(frozen=True)
class AllToAllConfig:
    """The place of one rank, and its connections to all others."""

    rank: int
    size: int
    peers: Mapping[int, Connection]
    """By rank: a connection to every other."""
    ahead: int = 1
    """The most steps that run at the same time: step s begins when step s - ``ahead`` has ended at this rank."""

    def __post_init__(self) -> None:
        if self.peers.keys() != set(range(self.size)) - {self.rank}:
            raise ValueError("a rank has a connection to every other one")
        if self.size < 2 or self.ahead < 1:
            raise ValueError("an AlltoAll needs at least two ranks, and at least one step at a time")


@dataclass(eq=False)
class Exchange:
    """One AlltoAll, as one rank sees it."""

    values: Array
    received: Array
    started: int
    finished: int | None = None
    """The time, in ps, at which everything had arrived and everything sent was acknowledged."""
    error: Status | None = None

    @property
    def done(self) -> bool:
        """Whether it has ended, successfully or not."""
        return self.finished is not None

    def result(self) -> Array:
        """The parts that all ranks have sent to this one. Raises ``FailedError`` unless the exchange ended
        successfully."""
        if not self.done or self.error is not None:
            raise FailedError(f"alltoall {'failed: ' + str(self.error) if self.error else 'has not ended'}")
        return self.received


class AllToAll:
    """One rank of an AlltoAll. All ranks call ``exchange`` equally often; a rank calls it again when its last exchange
    has ended."""

    STATE: ClassVar = ("current", "_sent", "_arrived", "_posted")

    def __init__(
        self, nic: VerbsNic, config: AllToAllConfig, on_done: Callable[[Exchange], None] | None = None
    ) -> None:
        self.config = config
        self.current: Exchange | None = None
        self.pairs: dict[int, VerbsPair] = {
            peer: nic.create_pair(each.qp, each.peer, each.qp_config, self._completed)
            for peer, each in config.peers.items()
        }
        """By rank of the peer."""
        self._nic = nic
        self._on_done = on_done
        self._sent: set[int] = set()
        """Steps of which the part sent has been acknowledged."""
        self._arrived: set[int] = set()
        self._posted = 0
        """Number of steps begun."""

    def parts(self) -> dict[str, object]:
        """The parts that have state, by name, without the queue pairs, which belong to the NIC."""
        return {"alltoall": self}

    def exchange(self, values: Array) -> Exchange:
        """Send every rank its part of ``values``. Raises ``InputError`` if the parts cannot be equally long."""
        config = self.config
        if self.current is not None and not self.current.done:
            raise ValueError("the last exchange has not ended")
        self._sent, self._arrived, self._posted = set(), set(), 0
        parts = divide(values, config.size)
        run = self.current = Exchange(values.flatten(), np.zeros(values.size, values.dtype), self._nic.clock.now)
        self._part(run.received, config.rank)[:] = parts[config.rank]
        for step in range(1, config.size):
            peer = (config.rank - step) % config.size
            room = self._part(run.received, peer).view(np.uint8).data
            self.pairs[peer].post_recv(RecvWr(step, room))
        self._go_on(run)
        return run

    def progress(self) -> float:
        """The fraction of the current exchange's steps whose messages have arrived, from 0 to 1."""
        return len(self._arrived) / (self.config.size - 1)

    def destroy(self) -> None:
        """Destroy the queue pairs. An exchange that has not ended fails."""
        if self.current is not None:
            self._end(self.current, Status.FLUSHED)
        for pair in self.pairs.values():
            pair.fail(Status.FLUSHED)
            self._nic.destroy_pair(pair)

    def _part(self, values: Array, rank: int) -> Array:
        each = values.size // self.config.size
        return values[rank * each : (rank + 1) * each]

    def _go_on(self, run: Exchange) -> None:
        """Begin the steps whose turn it is; end the exchange after the last."""
        config = self.config
        done = self._sent & self._arrived
        ended = next(step for step in range(1, config.size + 1) if step not in done) - 1
        while self._posted < min(ended + config.ahead, config.size - 1):
            self._posted += 1
            peer = (config.rank + self._posted) % config.size
            self.pairs[peer].post_send(SendWr(self._posted, self._part(run.values, peer).view(np.uint8).data))
        if ended == config.size - 1:
            self._end(run, None)

    def _completed(self, completion: Completion) -> None:
        run = self.current
        assert run is not None
        if completion.status is not Status.SUCCESS:
            causes = (pair.broken for pair in self.pairs.values() if pair.broken is not None)
            self._end(run, next(causes, completion.status))
            return
        (self._arrived if completion.receive else self._sent).add(completion.wr_id)
        self._go_on(run)

    def _end(self, run: Exchange, error: Status | None) -> None:
        if run.done:
            return
        run.finished, run.error = self._nic.clock.now, error
        for pair in self.pairs.values() if error is not None else ():
            pair.fail(Status.FLUSHED)
        if self._on_done is not None:
            self._on_done(run)
