"""Ranks of one's own, without a lab: hosts, switches that run the generated program, and sockets in this process."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import pytest
from manager.cluster import Cluster
from patience import PATIENCE_S, until

from p4gen.errors import FailedError, InputError
from p4gen.families import load_collective
from p4gen.host.collectives.quantised import BLOCK
from p4gen.host.raw import RawNic
from p4gen.library.ranks import Communicator
from p4gen.library.stations import Station
from p4gen.manager.api import HostAddresses
from p4gen.manager.ranks.member import Member
from p4gen.net.collectives.kinds import Kinds
from p4gen.net.world.faults import DirectionFaults, Impairment

T = TypeVar("T")


@dataclass
class Place:
    """What a communicator needs of a ``Station``."""

    nic: RawNic
    addresses: HostAddresses
    cluster: Cluster

    @property
    def loop(self) -> Any:
        return self.nic.loop

    def leave(self, member: Member, patience: float) -> None:
        if member.rank == 0:
            self.cluster.manager.destroy(member.group)
        until(lambda: bool(member.ended))

    def release(self, group: str = "") -> None:
        """The cluster ends by itself."""


class Ranks:
    """All ranks of a group; ``together`` makes each do something in a thread of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.hosts = tuple(cluster.topology.hosts)
        cluster.manager.activate(g=self.hosts)
        self._pool = ThreadPoolExecutor(len(self.hosts))
        self.all = list(self._pool.map(self._join, self.hosts))

    def _join(self, host: str) -> Communicator:
        member = self.cluster.hosts[host].member("g", PATIENCE_S)
        until(lambda: member.program is not None)
        place = Place(self.cluster.nics[host], self.cluster.manager.addresses(host), self.cluster)
        return Communicator(cast(Station, place), member, self.hosts, owned=host == self.hosts[0])

    def together(self, act: Callable[[Communicator], T]) -> list[T]:
        return [future.result(PATIENCE_S) for future in [self._pool.submit(act, rank) for rank in self.all]]

    def lose(self, share: float, seed: int) -> None:
        for number, nic in enumerate(self.cluster.nics.values()):
            chance = random.Random(seed + number)
            faults = DirectionFaults(chance, [Impairment(loss=share)], [], [], Kinds({}, {}))
            nic.outgoing = faults.fate


def cluster_of(mode: str, **more: Any) -> Cluster:
    fields = {"mode": mode, "lanes": 8, "window": 8, "message": 2, "groups": 4} | more
    return Cluster(load_collective(None, fields))


@pytest.fixture(scope="module", params=["II", "III"])
def ranks(request: pytest.FixtureRequest) -> Iterator[Ranks]:
    with cluster_of(request.param) as cluster:
        yield Ranks(cluster)


def drawn(rank: int, size: int, kind: type = np.int32) -> Any:
    chance = np.random.default_rng([rank, size])
    if np.issubdtype(kind, np.floating):
        return chance.standard_normal(size).astype(kind)
    return chance.integers(-1000, 1000, size).astype(kind)


@pytest.mark.parametrize("size", [4, 60, 4000])
def test_collectives_are_numpys(ranks: Ranks, size: int) -> None:
    every = [drawn(rank, size) for rank in range(4)]
    total = np.sum(every, axis=0)
    for rank, found in enumerate(ranks.together(lambda r: r.all_reduce(every[r.rank].reshape(2, -1)))):
        assert (found == total.reshape(2, -1)).all(), rank
    for rank, part in enumerate(ranks.together(lambda r: r.reduce_scatter(every[r.rank]))):
        assert (part == np.split(total, 4)[rank]).all(), rank
    at_root = ranks.together(lambda r: r.reduce(every[r.rank], 2))
    assert [found is None for found in at_root] == [True, True, False, True]
    assert (at_root[2] == total).all()
    ranks.together(lambda r: r.barrier())


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.float16, np.float64, np.complex128, np.bool_])
def test_what_only_moves_data_takes_any_type(ranks: Ranks, kind: type) -> None:
    every = [(drawn(rank, 13) % 2).astype(kind) for rank in range(4)]
    for found in ranks.together(lambda r: r.all_gather(every[r.rank])):
        assert found.dtype == kind
        assert (found == np.concatenate(every)).all()
    for found in ranks.together(lambda r: r.broadcast(every[r.rank].reshape(1, 13), 3)):
        assert found.dtype == kind
        assert (found == every[3].reshape(1, 13)).all()


def test_nothing_is_reduced_and_moved_too(ranks: Ranks) -> None:
    """Shards of small models are empty at some ranks."""
    nothing = np.zeros((0, 3), np.float32)
    assert [found.shape for found in ranks.together(lambda r: r.all_reduce(nothing, scale="auto"))] == [(0, 3)] * 4
    assert [found.shape for found in ranks.together(lambda r: r.all_reduce(nothing, scale=2.0))] == [(0, 3)] * 4
    assert [found.shape for found in ranks.together(lambda r: r.reduce_scatter(nothing, scale="auto"))] == [(0,)] * 4
    assert [found.shape for found in ranks.together(lambda r: r.all_gather(nothing))] == [(0,)] * 4
    assert [found.shape for found in ranks.together(lambda r: r.broadcast(nothing, 1))] == [(0, 3)] * 4
    assert [found.shape for found in ranks.together(lambda r: r.all_to_all(nothing))] == [(0,)] * 4
    for found in ranks.together(lambda r: r.all_reduce(np.array(r.rank, np.float32), scale="auto")):
        assert (found.shape, float(found)) == ((), 6.0)


@pytest.mark.parametrize("size", [1, BLOCK, 5 * BLOCK + 4])
def test_agreed_exponents_are_as_good_as_float32(ranks: Ranks, size: int) -> None:
    every = [drawn(rank, size, np.float32) * 10.0 ** (rank * 3 - 6) for rank in range(4)]
    every = [each.astype(np.float32) for each in every]
    right = np.sum(every, axis=0, dtype=np.float64)
    largest = max(np.abs(each).max() for each in every)
    for found in ranks.together(lambda r: r.all_reduce(every[r.rank], scale="auto")):
        assert found.dtype == np.float32
        assert np.abs(found - right).max() <= largest * 2.0**-23
    if size % 4 == 0:
        for rank, part in enumerate(ranks.together(lambda r: r.reduce_scatter(every[r.rank], scale="auto"))):
            assert np.abs(part - np.split(right, 4)[rank]).max() <= largest * 2.0**-23


def test_a_fixed_factor_counts_what_it_saturates(ranks: Ranks) -> None:
    before = [rank.saturated for rank in ranks.all]
    values = np.array([0.25, 1e30, -1e30, np.nan], np.float32)
    for found in ranks.together(lambda r: r.all_reduce(values, scale=4.0)):
        limit = float((2**31 - 1) // 4)
        assert found.tolist() == pytest.approx([1.0, limit, -limit, limit])
    assert [rank.saturated - old for rank, old in zip(ranks.all, before, strict=True)] == [3] * 4


def test_calls_that_are_begun_end_in_their_order(ranks: Ranks) -> None:
    """Quantised ones, which are two calls of the group each, between others."""

    def act(rank: Communicator) -> list[Any]:
        futures = [
            rank.begin("allreduce", np.full(40, n, np.float32), scale="auto")
            if n % 2
            else rank.begin("allreduce", np.full(40, n, np.int32))
            for n in range(12)
        ]
        return [np.unique(cast(Any, future.result(PATIENCE_S))).tolist() for future in futures]

    for found in ranks.together(act):
        assert found == [[4 * n] for n in range(12)]


def test_exchanges_have_parts_of_any_sizes(ranks: Ranks) -> None:
    """Rank r has 10 * q bytes more for rank q than r; nobody has any for rank 0."""

    def act(rank: Communicator) -> list[Any]:
        send = [np.full((rank.rank + 10 * to) * (to > 0), rank.rank, np.uint8) for to in range(4)]
        rooms = [np.empty((source + 10 * rank.rank) * (rank.rank > 0), np.uint8) for source in range(4)]
        rank.begin_exchange(send, rooms).result(PATIENCE_S)
        return rooms

    for rank, rooms in enumerate(ranks.together(act)):
        for source, room in enumerate(rooms):
            assert room.tolist() == [source] * ((source + 10 * rank) if rank else 0)
    for rank, found in enumerate(ranks.together(lambda r: r.all_to_all(np.arange(8.0) + 100 * r.rank))):
        assert found.tolist() == [100.0 * source + 2 * rank + n for source in range(4) for n in range(2)]


def test_messages_come_in_order_and_whole(ranks: Ranks) -> None:
    texts = [np.arange(size, dtype=np.uint16) for size in (1, 1024, 100_000, 3)]

    def act(rank: Communicator) -> None:
        left, right = (rank.rank - 1) % 4, (rank.rank + 1) % 4
        sent = [rank.begin_send(text, right, tag) for tag, text in enumerate(texts)]
        for tag, text in enumerate(texts):
            room = np.zeros_like(text)
            rank.receive(room, left, tag, timeout=PATIENCE_S)
            assert (room == text).all()
        for future in sent:
            future.result(PATIENCE_S)

    ranks.together(act)


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        (lambda r: r.all_reduce(np.zeros(4, np.float32)), "give a scale, 'auto' or a factor"),
        (lambda r: r.all_reduce(np.zeros(4, np.int32), scale=2.0), "the program adds int32 itself, and needs no scale"),
        (lambda r: r.all_reduce(np.zeros(4, np.float32), "max", scale=2.0), "has only sums"),
        (lambda r: r.all_reduce(np.zeros(4, np.int32), "max"), "op max: the program on the tree does sum"),
        (lambda r: r.all_reduce(np.zeros(4, np.int32), "mean"), "there is no op 'mean'"),
        (lambda r: r.begin("allredoce"), "there is no collective 'allredoce'"),
        (lambda r: r.all_reduce(np.zeros(4, np.int64)), "int64"),
        (lambda r: r.reduce_scatter(np.zeros(5, np.int32)), "5"),
        (lambda r: r.broadcast(np.zeros(4), 9), "9"),
        (lambda r: r.send(np.zeros(4), r.rank), "is not another one of 4"),
        (lambda r: r.receive(np.zeros((4, 4))[:, 1], (r.rank + 1) % 4), "not contiguous"),
        (lambda r: r.begin_exchange([], []), "has as many parts"),
    ],
)
def test_wrong_calls_are_refused_and_others_go_on(ranks: Ranks, call: Callable[[Any], Any], cause: str) -> None:
    for rank in ranks.all:
        with pytest.raises(InputError, match=cause):
            call(rank)
    assert [int(found[0]) for found in ranks.together(lambda r: r.all_reduce(np.ones(4, np.int32)))] == [4] * 4


def test_results_are_right_under_loss(pytestconfig: pytest.Config) -> None:
    seed = int(pytestconfig.option.seed)
    chance = random.Random(seed)
    with cluster_of("III") as cluster:
        ranks = Ranks(cluster)
        ranks.lose(0.05, seed)
        for _ in range(5):
            size = chance.randrange(1, 3000) * 4
            every = [drawn(rank, size, np.float32) for rank in range(4)]
            right = np.sum(every, axis=0)
            for found in ranks.together(lambda r: r.all_reduce(every[r.rank], scale="auto")):  # noqa: B023
                assert np.allclose(found, right, atol=1e-5)
            for found in ranks.together(lambda r: r.all_gather(every[r.rank])):  # noqa: B023
                assert (found == np.concatenate(every)).all()
            for rank, found in enumerate(ranks.together(lambda r: r.all_to_all(every[r.rank]))):  # noqa: B023
                assert (found == np.concatenate([np.split(each, 4)[rank] for each in every])).all()


def test_the_end_of_a_group_ends_what_waits_with_the_reason() -> None:
    with cluster_of("II") as cluster:
        ranks = Ranks(cluster)
        first = ranks.all[0]
        reduced = first.begin("allreduce", np.zeros(4, np.int32))
        message = first.begin_receive(np.zeros(4), 1)
        exchange = first.begin_exchange([np.zeros(4)] * 4, [np.zeros(4) for _ in range(4)])
        cluster.manager.destroy("g")
        for future in (reduced, message, exchange):
            with pytest.raises(FailedError, match="group g was destroyed"):
                future.result(PATIENCE_S)
        with pytest.raises(FailedError, match="destroyed"):
            first.all_reduce(np.zeros(4, np.int32))


@pytest.mark.parametrize(("size", "tag", "cause"), [(3, 5, "a message of 32 bytes"), (4, 6, "a message with tag 5")])
def test_another_message_than_expected_is_an_error(size: int, tag: int, cause: str) -> None:
    with cluster_of("II") as cluster:
        ranks = Ranks(cluster)
        ranks.all[1].begin_send(np.zeros(4), 0, 5)
        expected = cause if size == 4 else "the connection has failed"
        with pytest.raises(FailedError, match=expected):
            ranks.all[0].receive(np.zeros(size), 1, tag, timeout=PATIENCE_S)


def test_a_rank_that_abandons_its_group_waits_for_nobody() -> None:
    """Not even for a call whose exponents others have to agree on."""
    with cluster_of("II") as cluster:
        first = Ranks(cluster).all[0]
        waiting = first.begin("allreduce", np.zeros(4, np.float32), scale="auto")
        message = first.begin_receive(np.zeros(4), 1)
        first.abandon()
        for future in (waiting, message):
            with pytest.raises(FailedError, match="h0 has left"):
                future.result(PATIENCE_S)


def test_what_is_called_when_a_message_has_come_may_make_calls(ranks: Ranks) -> None:
    def act(rank: Communicator) -> int:
        room = np.zeros(4, np.int32)
        sent = rank.begin_send(np.ones(4, np.int32), (rank.rank + 1) % 4)
        received = rank.begin_receive(room, (rank.rank - 1) % 4)
        then: Future[int] = Future()
        received.add_done_callback(
            lambda _: rank.begin("allreduce", room).add_done_callback(
                lambda total: then.set_result(int(cast(Any, total.result()).sum()))
            )
        )
        sent.result(PATIENCE_S)
        return then.result(PATIENCE_S)

    assert ranks.together(act) == [16] * 4


def test_all_leave_together_and_the_group_is_gone() -> None:
    with cluster_of("III") as cluster:
        ranks = Ranks(cluster)
        ranks.together(lambda r: r.close())
        assert cluster.manager.groups_ranks == {}
        with pytest.raises(FailedError, match="this rank has left group g"):
            ranks.all[2].all_reduce(np.zeros(4, np.int32))
