"""The ring's collectives against NumPy, over lines that lose, reorder, duplicate and corrupt."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from p4gen.errors import FailedError, InputError
from p4gen.host.collectives.arrays import Array
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import Connection
from p4gen.host.collectives.ring import Ring, RingConfig
from p4gen.host.transport.clock import MS, SECOND, US
from p4gen.host.transport.verbs import Peer, QpConfig, Recovery, Status
from p4gen.rocev2.headers import ip_from
from p4gen.vocabulary import Op, Overflow
from p4gen.vocabulary.message import Collective

from .fabric import Fabric, Trouble

LEFT, RIGHT, STAR = 0x10, 0x11, 0x20


def make(
    fabric: Fabric,
    recovery: Recovery = Recovery.SELECTIVE_REPEAT,
    *,
    mtu: int = 64,
    chunk: int = 128,
    overflow: Overflow | None = None,
) -> list[Ring]:
    qp = QpConfig(mtu, 0xFFFFF0, recovery, timeout_ps=30 * US, retry_count=None, rnr_retry=None)
    nics = fabric.nics
    size = len(nics)

    def to(rank: int, own: int, far: int) -> Connection:
        return Connection(own, Peer(nics[rank % size].mac, nics[rank % size].ip, far), qp)

    return [
        Ring(
            nic,
            RingConfig(
                rank,
                size,
                to(rank - 1, LEFT, RIGHT),
                to(rank + 1, RIGHT, LEFT),
                {r: to(r, STAR + r, STAR) for r in range(1, size)} if rank == 0 else {0: to(0, STAR, STAR + rank)},
                overflow=overflow,
                chunk=chunk,
            ),
        )
        for rank, nic in enumerate(nics)
    ]


def call(ring: Ring, collective: Collective, values: Array, root: int, op: Op) -> Invocation:
    calls: dict[Collective, Callable[[], Invocation]] = {
        Collective.ALLREDUCE: lambda: ring.all_reduce(values, op),
        Collective.REDUCE: lambda: ring.reduce(values, root, op),
        Collective.BROADCAST: lambda: ring.broadcast(values, root),
        Collective.BARRIER: ring.barrier,
        Collective.REDUCE_SCATTER: lambda: ring.reduce_scatter(values, op),
        Collective.ALLGATHER: lambda: ring.all_gather(values),
    }
    return calls[collective]()


def wanted(collective: Collective, values: list[Array], root: int, op: Op) -> list[Array | None]:
    """What NumPy makes of it, rank by rank."""
    reduction = {Op.SUM: np.add, Op.MIN: np.minimum, Op.MAX: np.maximum}[op].reduce(np.stack(values), axis=0)
    ranks = range(len(values))
    match collective:
        case Collective.ALLREDUCE:
            return [reduction for _ in ranks]
        case Collective.REDUCE:
            return [reduction if rank == root else None for rank in ranks]
        case Collective.BROADCAST:
            return [values[root] for _ in ranks]
        case Collective.REDUCE_SCATTER:
            return list(np.split(reduction.reshape(-1), len(values)))
        case Collective.ALLGATHER:
            return [np.concatenate([v.reshape(-1) for v in values]) for _ in ranks]
        case Collective.BARRIER:
            return [None for _ in ranks]


def check(invocation: Invocation, expected: Array | None) -> None:
    got = invocation.result()
    assert (got is None) == (expected is None)
    if expected is not None:
        np.testing.assert_array_equal(got, expected)
    assert invocation.messages_sent + invocation.messages_received == invocation.messages


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    plan=st.lists(
        st.tuples(st.sampled_from(Collective), st.integers(0, 120), st.integers(0, 7), st.sampled_from(list(Op)[:3])),
        min_size=1,
        max_size=4,
    ),
    size=st.integers(2, 8),
    recovery=st.sampled_from([Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT]),
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from([0.0, 0.05, 0.15]),
    duplicate=st.sampled_from([0.0, 0.2]),
    delay=st.sampled_from([0.0, 0.3]),
    corrupt=st.sampled_from([0.0, 0.05]),
    skew=st.sampled_from([0, 40 * US]),
    ip=st.sampled_from([ip_from("10.0.0.1"), ip_from("fd00::1")]),
)
def test_collectives_are_numpys(
    plan: list[tuple[Collective, int, int, Op]],
    size: int,
    recovery: Recovery,
    seed: int,
    loss: float,
    duplicate: float,
    delay: float,
    corrupt: float,
    skew: int,
    ip: int,
) -> None:
    note(f"seed {seed}")
    fabric = Fabric(size, Trouble(loss, duplicate, delay, corrupt), seed, ip)
    rings = make(fabric, recovery)
    draw = np.random.default_rng(seed)
    data: list[list[Array]] = []
    for collective, elements, _, _ in plan:
        whole = elements * size if collective is Collective.REDUCE_SCATTER else elements
        data.append([draw.integers(-(2**27), 2**27, whole, np.int32) for _ in range(size)])
    found: dict[tuple[int, int], Invocation] = {}

    def begin(rank: int) -> None:
        for number, (collective, _, root, op) in enumerate(plan):
            found[number, rank] = call(rings[rank], collective, data[number][rank], root % size, op)

    for rank in range(size):
        fabric.loop.at(int(draw.integers(0, skew + 1)), begin, rank)
    fabric.loop.run(until=SECOND)
    for number, (collective, _, root, op) in enumerate(plan):
        expected = wanted(collective, data[number], root % size, op)
        started = [found[number, rank].started for rank in range(size)]
        for rank in range(size):
            invocation = found[number, rank]
            check(invocation, expected[rank])
            if collective is Collective.BARRIER:
                assert invocation.finished is not None
                assert all(s is not None and invocation.finished >= s for s in started)


def test_shapes_stay_and_callers_keep_their_arrays() -> None:
    fabric = Fabric(3)
    rings = make(fabric)
    values = [np.arange(12, dtype=np.int32).reshape(3, 4) * (r + 1) for r in range(3)]
    before = [v.copy() for v in values]
    calls = [ring.all_reduce(v) for ring, v in zip(rings, values, strict=True)]
    fabric.loop.run(until=MS)
    for invocation, mine, kept in zip(calls, values, before, strict=True):
        check(invocation, sum(before[1:], before[0]))
        np.testing.assert_array_equal(mine, kept)


@pytest.mark.parametrize(("overflow", "expected"), [(None, 2**31 - 1), (Overflow.WRAP, -(2**31) + 2**30 - 2)])
def test_sums_saturate_or_wrap(overflow: Overflow | None, expected: int) -> None:
    fabric = Fabric(2)
    rings = make(fabric, overflow=overflow)
    values = [np.array([2**31 - 1], np.int32), np.array([2**30 - 1], np.int32)]
    calls = [ring.all_reduce(v) for ring, v in zip(rings, values, strict=True)]
    fabric.loop.run(until=MS)
    for invocation in calls:
        check(invocation, np.array([expected], np.int32))


def test_an_allreduce_takes_two_times_ranks_less_one_steps() -> None:
    # Each step is one message of a packet: 2 us on the way, and 80 ps a byte; the ACK of the step before goes ahead.
    fabric = Fabric(4)
    calls = [ring.all_reduce(np.zeros(64, np.int32)) for ring in make(fabric)]
    fabric.loop.run(until=MS)
    steps = 6
    packet, ack = 80 * (54 + 64 + 4 + 24), 80 * (62 + 24)
    assert {c.last_result for c in calls} == {steps * (2 * US + packet) + (steps - 1) * ack}
    assert all((c.messages_sent, c.messages_received) == (steps, steps) for c in calls)


def test_reduce_and_broadcast_go_on_before_they_have_all() -> None:
    # 8 chunks of two packets over 3 hops: pipelined it takes 8 + 2 chunk times, step by step it would take 24.
    fabric = Fabric(4)
    rings = make(fabric)
    calls = [ring.broadcast(np.ones(256, np.int32), 1) for ring in rings]
    fabric.loop.run(until=MS)
    chunk = 2 * 80 * (54 + 64 + 4 + 24)
    last = calls[0].last_result
    assert last is not None
    assert 3 * 2 * US + 10 * chunk <= last <= 3 * 2 * US + 16 * chunk
    assert calls[1].last_result is None


def test_only_a_reduces_root_gets_a_result() -> None:
    fabric = Fabric(3)
    calls = [ring.reduce(np.ones(4, np.int32), 1) for ring in make(fabric)]
    fabric.loop.run(until=MS)
    assert [c.last_result is not None for c in calls] == [False, True, False]
    assert all(c.done for c in calls)


def test_a_barrier_is_two_ways_to_rank_0_and_back() -> None:
    fabric = Fabric(5)
    calls = [ring.barrier() for ring in make(fabric)]
    fabric.loop.run(until=MS)
    assert all(c.last_result is not None and 4 * US <= c.last_result < 5 * US for c in calls[1:])
    assert len(fabric.frames) == 4 * 4  # four messages to rank 0, four from it, an ACK for each


def test_what_it_refuses() -> None:
    rings = make(Fabric(3))
    with pytest.raises(InputError, match="not a rank"):
        rings[0].reduce(np.zeros(3, np.int32), 3)
    with pytest.raises(InputError, match="do not divide"):
        rings[0].reduce_scatter(np.zeros(4, np.int32))
    with pytest.raises(InputError, match="int64"):
        rings[0].all_reduce(np.zeros(4, np.int64))
    with pytest.raises(InputError, match="each call must name one of"):
        rings[0].all_reduce(np.zeros(4, np.int32), Op.DYNAMIC)
    config = rings[1].config
    with pytest.raises(ValueError, match="one to rank 0"):
        RingConfig(0, 3, config.left, config.right, config.star)


@pytest.mark.parametrize("under_way", [True, False])
def test_calls_say_why_a_queue_pair_broke_though_it_only_flushes_receives(under_way: bool) -> None:
    """The last rank of a Broadcast has no send that could end with the cause, and an idle pair completes nothing."""
    rings = make(Fabric(2))
    array = np.zeros(5, np.int32)
    calls = [rings[0].broadcast(array, 1)] if under_way else []
    rings[0].pairs[0].fail(Status.REMOTE_ACCESS_ERROR)
    calls += [rings[0].broadcast(array, 1), rings[0].barrier()]
    assert [call.error for call in calls] == [Status.REMOTE_ACCESS_ERROR] * len(calls)


def test_destroying_a_ring_ends_what_is_under_way() -> None:
    fabric = Fabric(2)
    rings = make(fabric)
    under_way = rings[0].barrier()
    rings[0].destroy()
    with pytest.raises(FailedError, match="flushed"):
        under_way.result()
    assert not fabric.nics[0].pairs
    after = rings[0].barrier()
    assert after.done
