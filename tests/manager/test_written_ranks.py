"""Ranks in real time whose results switches write to memory that they have offered (EPIC, verb write)."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from patience import PATIENCE_S, until

from p4gen.errors import FailedError
from p4gen.families import load_collective
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.clock import MS
from p4gen.manager.api import GroupState
from p4gen.manager.ranks.host import Member
from p4gen.net.collectives.kinds import Kinds
from p4gen.net.world.faults import DirectionFaults, Impairment
from p4gen.vocabulary.message import Collective

from .cluster import Cluster


@pytest.fixture(params=["I", "II", "III"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    fields = {"mode": request.param, "lanes": 8, "window": 4, "message": 2, "groups": 32, "verb": "write"}
    with Cluster(load_collective(None, fields)) as found:
        found.manager.sync = PsnSync.SUBGROUPS
        yield found


def activate(cluster: Cluster) -> list[Member]:
    """All hosts have offered memory, and the group ``g`` of them is active."""
    names = cluster.topology.hosts
    cluster.manager.ask("g", names, (1 + 2 * len(names)) * cluster.spec.channel_memory)
    cluster.manager.activate(g=tuple(names))
    return [cluster.hosts[name].member("g", PATIENCE_S) for name in names]


def summed(members: list[Member], seed: int) -> None:
    """An AllReduce is right at all ranks."""
    values = np.random.default_rng(seed).integers(-(1 << 20), 1 << 20, (len(members), 500), np.int32)
    futures = [member.begin(Collective.ALLREDUCE, mine) for member, mine in zip(members, values, strict=True)]
    for future in futures:
        np.testing.assert_array_equal(future.result(PATIENCE_S).value, values.sum(0))


def test_results_are_numpys_under_faults_and_in_the_next_generation(cluster: Cluster, seed: int) -> None:
    members = activate(cluster)
    faults = [Impairment(loss=0.03, duplicate=0.02, reorder=0.02, jitter=3 * MS)]
    for i, nic in enumerate(cluster.nics.values()):
        nic.outgoing = DirectionFaults(random.Random(f"{seed} {i}>"), faults, (), (), Kinds({}, {})).fate
        nic.incoming = DirectionFaults(random.Random(f"{seed} >{i}"), faults, (), (), Kinds({}, {})).fate
    for number in range(3):
        summed(members, seed + number)
    cluster.manager.break_group("g", "no path")
    until(lambda: all(member.state is GroupState.BROKEN for member in members))
    cluster.manager.activate()
    summed(members, seed)
    assert {member.generation for member in members} == {2}


def test_memory_that_a_rank_has_registered_anew_is_not_written(cluster: Cluster) -> None:
    """The switch has the old key: the call ends with the reason."""
    members = activate(cluster)
    summed(members, 1)
    nic = cluster.nics["h1"].nic

    def anew() -> None:
        (memory,) = members[1]._regions
        nic.domain.deregister(memory)
        members[1]._regions[0] = nic.domain.register(memory.buffer)

    cluster.loops["h1"].run_there(anew)
    call = members[1].begin(Collective.ALLREDUCE, np.ones(500, np.int32))
    for member in (*members[:1], *members[2:]):
        member.begin(Collective.ALLREDUCE, np.ones(500, np.int32), deadline=0.5)
    with pytest.raises(FailedError, match="a queue pair failed: local access violation"):
        call.result(PATIENCE_S)


def test_a_host_that_has_offered_nothing_does_not_join(cluster: Cluster) -> None:
    activate(cluster)
    cluster.manager.activate(other=tuple(cluster.topology.hosts))
    member = cluster.hosts["h0"].member("other", PATIENCE_S)
    until(lambda: bool(member.ended))
    assert member.ended == "group other: this process of the host has not offered the memory for results"


def test_memory_is_given_back_with_the_group(cluster: Cluster) -> None:
    members = activate(cluster)
    summed(members, 2)
    memory = cluster.manager.memories[0]
    nic = cluster.nics["h0"].nic
    assert nic.domain.for_write(memory.rkey, memory.address, 4) is not None
    members[0]._loop.run_there(lambda: members[0].end("it is over"))
    assert nic.domain.for_write(memory.rkey, memory.address, 4) is None
