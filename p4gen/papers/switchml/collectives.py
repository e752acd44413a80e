"""A worker as a rank of a group of the manager: it adds vectors, and makes all other collectives of that.

What a rank does not contribute is 0, so Reduce, Broadcast, ReduceScatter and AllGather cost an AllReduce of all
elements.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import cast

import numpy as np
from typing_extensions import override

from p4gen.errors import InputError
from p4gen.host.collectives.arrays import Array, check_root, divide, dtype_of
from p4gen.host.collectives.collectives import Collectives
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import SYMMETRIC, Connection, GroupConfig, PsnSync
from p4gen.host.raw import kernel_sink
from p4gen.host.transport.nic import Nic, VerbsNic
from p4gen.host.transport.rc import VerbsPair
from p4gen.host.transport.verbs import QpConfig
from p4gen.manager.api import RankConfig
from p4gen.manager.ranks.own import OwnCollectives
from p4gen.papers.switchml.control import MlJob, Worker
from p4gen.papers.switchml.headers import PORT
from p4gen.papers.switchml.member import MlWorker, Vector
from p4gen.papers.switchml.spec import SwitchmlSpec
from p4gen.vocabulary import Op, Overflow
from p4gen.vocabulary.message import Collective

_NOTHING = np.zeros(0, np.int32)


class Adding(Invocation):
    """A call: the vector that the worker adds for it, and this rank's result, of the sum of all vectors."""

    def __init__(
        self, collective: Collective, worker: MlWorker, vector: Vector, value: Callable[[Vector], Array | None]
    ):
        super().__init__(collective)
        self.vector, self.value, self._worker = vector, value, worker

    @property
    @override
    def progress(self) -> float:
        return 0.0 if self.started is None or self.done else self._worker.progress


class AddingRank(Collectives):
    """A rank of a group, which makes one call after the other."""

    def __init__(
        self,
        spec: SwitchmlSpec,
        nic: VerbsNic,
        config: RankConfig,
        timeout: int,
        on_end: Callable[[Invocation], None],
    ) -> None:
        if not nic.compiled:
            raise InputError(f"{spec.program}: its workers send UDP, which verbs do not: take p4gen's own NIC")
        own, (channel,) = cast("Nic", nic), config.channels
        worker, switch = Worker(0, own.mac, own.ip), channel.peer
        job = MlJob(channel.context, (worker,), 0, config.slots, switch.mac, switch.ip, channel.epoch)
        self._config, self._lanes, self._clock, self._on_end = program(spec, config), spec.lanes, own.clock, on_end
        self._worker = MlWorker(job, 0, spec.lanes, own, timeout)
        self._worker.on_sum = self._end
        self._calls: deque[Adding] = deque()
        self._sink = kernel_sink(PORT)

    @property
    @override
    def pairs(self) -> list[VerbsPair]:
        return []

    @override
    def counts(self) -> Counter[str]:
        stats = self._worker.stats
        return Counter(sent=stats.sent + stats.resent, resent=stats.resent, timeouts=stats.resent)

    @override
    def all_reduce(self, values: Array, op: Op | None = None) -> Invocation:
        return self._add(Collective.ALLREDUCE, values, lambda total: total.reshape(values.shape), op)

    @override
    def reduce(self, values: Array, root: int, op: Op | None = None) -> Invocation:
        check_root(root, self._config.size)
        mine = self._config.rank == root
        return self._add(Collective.REDUCE, values, lambda total: total.reshape(values.shape) if mine else None, op)

    @override
    def broadcast(self, values: Array, root: int) -> Invocation:
        check_root(root, self._config.size)
        given = values if self._config.rank == root else np.zeros_like(values)
        return self._add(Collective.BROADCAST, given, lambda total: total.reshape(values.shape))

    @override
    def reduce_scatter(self, values: Array, op: Op | None = None) -> Invocation:
        divide(values, self._config.size)
        return self._add(
            Collective.REDUCE_SCATTER, values, lambda total: divide(total, self._config.size)[self._config.rank], op
        )

    @override
    def all_gather(self, values: Array) -> Invocation:
        every = np.zeros((self._config.size, values.size), values.dtype)
        every[self._config.rank] = values.reshape(-1)
        return self._add(Collective.ALLGATHER, every, lambda total: total)

    @override
    def barrier(self) -> Invocation:
        return self._add(Collective.BARRIER, _NOTHING, lambda _: None)

    @override
    def destroy(self) -> None:
        self._worker.close()
        self._sink.close()
        for call in self._calls:
            call.end(self._clock.now, error="the rank has left")

    def _add(
        self, collective: Collective, values: Array, value: Callable[[Vector], Array | None], op: Op | None = None
    ) -> Invocation:
        """A call that adds values, filled up with zeros to whole packets, one at least."""
        self._config.kind(dtype_of(values), op)
        size = values.size
        vector = np.zeros(max(1, -(-size // self._lanes)) * self._lanes, np.int32)
        vector[:size] = values.reshape(-1)
        call = Adding(collective, self._worker, vector, lambda total: value(total[:size]))
        self._calls.append(call)
        if len(self._calls) == 1:
            self._begin()
        return call

    def _begin(self) -> None:
        call = self._calls[0]
        call.started = self._clock.now
        self._worker.add(call.vector)

    def _end(self, total: Vector) -> None:
        call, now = self._calls.popleft(), self._clock.now
        call.last_result = now
        call.end(now, call.value(total))
        if self._calls:
            self._begin()
        self._on_end(call)


def program(spec: SwitchmlSpec, config: RankConfig) -> GroupConfig:
    """The calls that a group can make: sums of int32, which wrap."""
    (channel,) = config.channels
    connection = Connection(channel.qp, channel.peer, QpConfig(mtu=spec.payload))
    return GroupConfig(
        config.rank,
        config.size,
        {SYMMETRIC: connection},
        window=config.slots,
        message=1,
        overflow=Overflow.WRAP,
        sync=PsnSync.REFINED,
    )


FACET: OwnCollectives[SwitchmlSpec] = OwnCollectives(program, AddingRank)
