"""Ranks of groups that have their switches by leases: rank 0 asks before each call, and every generation is right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from patience import until

from p4gen.errors import InputError
from p4gen.host.collectives.arrays import array_type
from p4gen.manager.api import Code, ManagerError
from p4gen.net.collectives.config import Call
from p4gen.vocabulary import DType
from p4gen.vocabulary.message import Collective

from .cluster import Cluster
from .test_member import ALL, begin, check, members, run, spec_of, values

CALL = Call(Collective.ALLREDUCE, 4 * 50)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(spec_of("III")) as found:
        found.manager.leased = True
        found.manager.groups_ranks["g"] = tuple(found.topology.hosts)
        found.manager.ring("g")
        yield found


def test_a_call_is_made_where_the_manager_says(cluster: Cluster) -> None:
    manager, ranks = cluster.manager, members(cluster)
    (first,) = {result.begun for result in run(cluster, ranks, CALL)}  # refused: on the ring
    assert (first, manager.begun) == (1, [(1, 0)])
    until(lambda: sorted(manager.ended) == [(1, rank, 1) for rank in range(4)])

    def grant(generation: int, call: int) -> bool:
        manager.activate()
        return False

    manager.on_begin = grant
    run(cluster, ranks, CALL)
    assert manager.begun[1:] == [(1, 1)]
    until(lambda: len(manager.ended) == 8)
    assert sorted(manager.ended)[4:] == [(2, rank, 2) for rank in range(4)]
    manager.on_begin = lambda generation, call: True
    for number, call in enumerate(ALL):
        run(cluster, ranks, call, number)
    assert manager.begun[2:] == [(2, 2 + number) for number in range(len(ALL))]


def test_many_calls_at_once_are_asked_about_one_after_the_other(cluster: Cluster) -> None:
    manager, ranks = cluster.manager, members(cluster)

    def alternate(generation: int, call: int) -> bool:
        if call % 3 == 0:
            manager.activate()
        elif call % 3 == 1:
            manager.ring("g")
        return call % 3 == 2

    manager.on_begin = alternate
    data = [values(cluster, call, number) for number, call in enumerate(ALL)]
    futures = [begin(ranks, call, mine) for call, mine in zip(ALL, data, strict=True)]
    for call, mine, made in zip(ALL, data, futures, strict=True):
        check(spec_of("III"), call, mine, made)
    assert [call for _, call in manager.begun] == [*range(len(ALL))]


def test_calls_go_on_without_a_manager_and_in_the_next_generation(cluster: Cluster) -> None:
    manager, ranks = cluster.manager, members(cluster)

    def away(generation: int, call: int) -> bool:
        raise ManagerError(Code.UNREACHABLE, "the manager does not answer")

    manager.on_begin = away
    run(cluster, ranks, CALL)

    def over(generation: int, call: int) -> bool:
        if generation == 1:  # its lease has just been given to others
            manager.ring("g")
            raise ManagerError(Code.REFUSED, "the generation is over")
        return True

    manager.on_begin = over
    run(cluster, ranks, CALL)
    assert manager.begun == [(1, 0), (1, 1), (2, 1)]


def test_a_rank_that_repeats_a_call_says_that_it_has_ended(cluster: Cluster) -> None:
    manager, ranks = cluster.manager, members(cluster)

    def grant(generation: int, call: int) -> bool:
        until(lambda: ranks[1].completed == 1)  # on the ring, before rank 0 has begun
        manager.activate()
        return False

    manager.on_begin = grant
    call = Call(Collective.BROADCAST, 4 * 20, root=1)
    run(cluster, ranks, call)
    until(lambda: {rank for generation, rank, _ in manager.ended if generation == 2} == {0, 1, 2, 3})


def test_a_call_that_no_program_serves_is_refused_and_the_next_one_made(cluster: Cluster) -> None:
    ranks = members(cluster)
    run(cluster, ranks, CALL)
    wrong = [mine.astype(array_type(DType.UINT32)) for mine in values(cluster, CALL, 1)]
    with pytest.raises(InputError, match="uint32"):
        begin(ranks, CALL, wrong)
    run(cluster, ranks, CALL)
