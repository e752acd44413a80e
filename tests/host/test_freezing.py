"""Hosts alone, frozen with their clock: what a model checker of host automata does thousands of times."""

from __future__ import annotations

import numpy as np

from p4gen.host.collectives.plan import Connection
from p4gen.host.collectives.ring import Ring, RingConfig
from p4gen.host.compiled.loop import CompiledLoop
from p4gen.host.transport.verbs import Peer, QpConfig
from p4gen.net.world.freezing import Frozen, freeze, restore

from .fabric import Fabric


class Two:
    """Two ranks of a ring on a network that does no harm, and all that they remember."""

    def __init__(self) -> None:
        self.fabric = Fabric(2)
        qp = QpConfig(mtu=64)

        def connection(number: int, to: int, their: int) -> Connection:
            nic = self.fabric.nics[to]
            return Connection(number, Peer(nic.mac, nic.ip, their), qp)

        self.ranks = [
            Ring(
                nic,
                RingConfig(
                    rank,
                    2,
                    connection(1, 1 - rank, 2),
                    connection(2, 1 - rank, 1),
                    {1 - rank: connection(3, 1 - rank, 3)},
                ),
            )
            for rank, nic in enumerate(self.fabric.nics)
        ]
        self.parts: dict[str, object] = {"loop": self.fabric.loop, "world": self.fabric.hosts.state()}
        for rank, (nic, ring) in enumerate(zip(self.fabric.nics, self.ranks, strict=True)):
            self.parts |= {f"{rank} {name}": part for name, part in (nic.parts() | ring.parts()).items()}

    @property
    def loop(self) -> CompiledLoop:
        return self.fabric.loop

    def restore(self, frozen: Frozen) -> None:
        restore(self.parts, frozen)
        self.fabric.hosts.restored()

    def end(self) -> Frozen:
        """What they remember when nothing happens any more."""
        self.loop.run()
        return freeze(self.parts)


def test_hosts_go_on_from_every_event() -> None:
    values = [np.arange(90, dtype=np.int32) * (rank + 1) for rank in range(2)]
    whole = Two()
    calls = [ring.all_reduce(mine) for ring, mine in zip(whole.ranks, values, strict=True)]
    states = [freeze(whole.parts)]
    while not whole.loop.idle:
        whole.loop.run(count=1)
        states.append(freeze(whole.parts))
    assert len(set(states)) == len(states) > 20
    for call in calls:
        result = call.result()
        assert result is not None
        assert (result == values[0] + values[1]).all()
    for other in (whole, Two()):
        for frozen in states:
            other.restore(frozen)
            assert freeze(other.parts) == frozen
            assert other.end() == states[-1]


def test_memory_that_is_shared_stays_shared() -> None:
    """What arrives in a frozen receive's room is in the result that the room belongs to."""
    values = [np.full(90, rank + 1, np.int32) for rank in range(2)]
    begun, other = Two(), Two()
    for ring, mine in zip(begun.ranks, values, strict=True):
        ring.broadcast(mine, 0)
    other.restore(freeze(begun.parts))
    (run,) = other.ranks[1]._queue
    assert (run.room == 2).all()
    other.loop.run()
    assert (run.room == 1).all()
    assert (values[1] == 2).all()
