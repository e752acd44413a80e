"""Ranks in real time that write to each other's memory: bytes as NumPy has them, whatever happens to packets and to the
group.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from patience import PATIENCE_S, until

from p4gen.errors import FailedError
from p4gen.host.transport.clock import MS
from p4gen.manager.api import GroupState
from p4gen.net.collectives.kinds import Kinds
from p4gen.net.world.faults import DirectionFaults, Impairment
from p4gen.papers.multiwrite.lab import Rank
from p4gen.papers.multiwrite.ranks.calls import Dispatch, Gather
from p4gen.papers.multiwrite.spec import MultiwriteSpec

from .cluster import Cluster
from .offered import PACKETS, activate, begin, offer, right

SPEC = MultiwriteSpec(payload=128, contexts=8, slots=8, edges=4, ports=4)


@pytest.fixture(params=[{}, {"place": "append"}, {"repair": "hop"}], ids=str)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(SPEC.model_copy(update=request.param)) as found:
        yield found


@pytest.fixture
def plain() -> Iterator[Cluster]:
    with Cluster(SPEC) as found:
        yield found


def gather(seed: int) -> Gather:
    return Gather(np.random.default_rng(seed).integers(0, 256, (4, 128 * PACKETS), np.uint8))


def dispatch(seed: int) -> Dispatch:
    chance = np.random.default_rng(seed)
    return Dispatch(chance.integers(0, 256, (4, PACKETS, 100), np.uint8), chance.integers(0, 4, (4, PACKETS, 2)))


def test_bytes_are_numpys_under_faults(cluster: Cluster, seed: int) -> None:
    members = activate(cluster)
    right(begin(members, gather(seed)))
    faults = [Impairment(loss=0.05, duplicate=0.02, reorder=0.05, jitter=3 * MS)]
    for i, nic in enumerate(cluster.nics.values()):
        nic.outgoing = DirectionFaults(random.Random(f"{seed} {i}>"), faults, (), (), Kinds({}, {})).fate
        nic.incoming = DirectionFaults(random.Random(f"{seed} >{i}"), faults, (), (), Kinds({}, {})).fate
    for call in (dispatch(seed), gather(seed + 1), dispatch(seed + 2)):
        right(begin(members, call))
    assert [member.report().invocations for member in members] == [4] * 4
    assert sum(member.report().resent for member in members) > 0


def test_calls_are_repeated_when_the_group_is_placed_again(cluster: Cluster) -> None:
    members = activate(cluster)
    right(begin(members, gather(1)))
    cluster.manager.break_group("g", "no path")
    for member in members:
        with pytest.raises(FailedError, match=r"has not ended in 0\.05 s: the group is broken: no path"):
            begin([member], gather(2), deadline=0.05)[0].result(PATIENCE_S)
    cluster.manager.activate()
    until(lambda: {member.completed for member in members} == {2})  # calls that failed keep their place
    cluster.manager.break_group("g", "no path")
    until(lambda: all(member.state is GroupState.BROKEN for member in members))
    waiting = begin(members, dispatch(3))
    cluster.manager.activate()
    assert {result.begun for result in right(waiting)} == {1}
    assert {member.generation for member in members} == {3}
    # One rank says that it has not completed the last call: all repeat it.
    members[1].completed -= 1
    members[1]._queue.append(members[1]._kept.pop())
    cluster.manager.activate()
    right(begin(members, dispatch(4)))
    assert cluster.manager.agreed[-1] == (4, {0: 3, 1: 2, 2: 3, 3: 3}, 2)
    assert {member.completed for member in members} == {4}


def test_a_wrong_byte_anywhere_in_the_memory_is_found(plain: Cluster) -> None:
    members = activate(plain)
    right(begin(members, gather(1)))
    rank = members[2]._mine
    assert isinstance(rank, Rank)
    rank._member.memory[-1] ^= 1
    problems = [future.result(PATIENCE_S).value for future in begin(members, gather(2))]
    assert [bool(problem) for problem in problems] == [False, False, True, False]
    assert "1 are wrong" in problems[2]
    assert "bytes of its window" in problems[2]


def test_what_memory_has_no_room_for_is_refused(plain: Cluster) -> None:
    members = activate(plain)
    for future in begin(members, Gather(np.zeros((4, 128 * (PACKETS + 1)), np.uint8))):
        with pytest.raises(FailedError, match="2176 bytes take more packets than the 16 that windows have room for"):
            future.result(PATIENCE_S)


def test_memory_that_is_not_offered_or_taken_back_is_not_written_to(plain: Cluster) -> None:
    member, *others = offer(plain)
    host = plain.hosts["h0"]
    with pytest.raises(FailedError, match="h0 is still in a group g"):
        host.offer("g", lambda nic, changed: Rank(SPEC, 0, 4, 1, nic, changed), 0.01)
    domain = plain.nics["h0"].nic.domain
    assert domain.for_write(member.memory.rkey, member.memory.address, 8) is not None
    host.withdraw("g")
    assert domain.for_write(member.memory.rkey, member.memory.address, 8) is None
    with pytest.raises(FailedError, match="group g: h0 has withdrawn its memory"):
        begin([member], gather(1))[0].result(PATIENCE_S)
    with pytest.raises(FailedError, match="h0 is not in group g"):
        host.memory_member("g")
    # Then the manager creates it all the same: this host knows no memory for it.
    plain.manager.activate(g=tuple(plain.topology.hosts))
    assert host.follower("g", PATIENCE_S) is not member
    with pytest.raises(FailedError, match="h0 has offered no memory to group g"):
        host.memory_member("g")
    with pytest.raises(FailedError, match="the ranks of group g have offered their memory"):
        plain.hosts["h1"].member("g")
    with pytest.raises(FailedError, match="not all ranks have joined generation 1"):
        begin(others, gather(1), deadline=0.2)[0].result(PATIENCE_S)


def test_a_destroyed_group_ends_calls_and_its_name_is_free(plain: Cluster) -> None:
    members = activate(plain)
    right(begin(members, gather(1)))
    waiting = begin(members[:3], gather(2))  # the last rank does not call
    plain.manager.destroy("g")
    for future in waiting:
        with pytest.raises(FailedError, match="group g was destroyed"):
            future.result(PATIENCE_S)
    again = activate(plain)
    assert all(new.memory.rkey != old.memory.rkey for new, old in zip(again, members, strict=True))
    right(begin(again, dispatch(3)))
