"""CommLib on two ranks whose queue pairs face each other: a tree that reduces nothing, as two ranks need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from p4gen.errors import FailedError, InputError
from p4gen.host.collectives.commlib import (
    SYMMETRIC,
    Array,
    ChannelKey,
    Communicator,
    Connection,
    Flow,
    GroupConfig,
    Invocation,
    PsnSync,
)
from p4gen.host.collectives.control import Control
from p4gen.host.compiled.hosts import CompiledHosts
from p4gen.host.compiled.loop import CompiledLoop
from p4gen.host.compiled.nics import CompiledNic
from p4gen.host.transport.clock import SECOND, US
from p4gen.host.transport.verbs import RECOVERIES, Peer, QpConfig, Recovery, Status
from p4gen.vocabulary import DType, Op
from p4gen.vocabulary.message import MAX_PACKETS, Collective

from .fabric import Fabric, Trouble

LANES = 4


@dataclass
class Cable:
    """What one NIC sends arrives at the other, 1 us later."""

    loop: CompiledLoop
    far: CompiledNic
    frames: int = 0

    def transmit(self, frame: bytes, at: int) -> int:
        self.frames += 1
        self.loop.at(at + 1_000_000, self.far.receive, frame)
        return at + 80 * len(frame)


def keys(size: int) -> list[ChannelKey]:
    """All 2N + 1 channels."""
    asymmetric = [(kind, root) for kind in (Collective.REDUCE, Collective.BROADCAST) for root in range(size)]
    return [SYMMETRIC, *asymmetric]


def pair(
    channels: Sequence[ChannelKey] | None = None, **more: Any
) -> tuple[CompiledLoop, list[Communicator], list[Cable]]:
    hosts = CompiledHosts(256, 2)
    loop = hosts.loop
    nics = [hosts.add(0x0200_0000_0000 + r, 0x0A00_0000 + r) for r in range(2)]
    cables = [Cable(loop, nics[1 - r]) for r in range(2)]
    found = []
    for rank, nic in enumerate(nics):
        nic.line = cables[rank]
        qp = QpConfig(mtu=4 * LANES, initial_psn=0xFFFFF0, max_outstanding=8, timeout_ps=0, rnr_retry=None)
        far = nics[1 - rank]
        connections = {
            key: Connection(0x20 + 2 * i + rank, Peer(far.mac, far.ip, 0x20 + 2 * i + 1 - rank), qp)
            for i, key in enumerate(keys(2) if channels is None else channels)
        }
        config = GroupConfig(rank, 2, connections, window=4, message=2, **more)
        found.append(Communicator(nic, config))
    return loop, found, cables


def run(call: Callable[[Communicator, int], Invocation]) -> list[Invocation]:
    loop, ranks, _ = pair()
    calls = [call(communicator, rank) for rank, communicator in enumerate(ranks)]
    loop.run(until=loop.now + 100 * US)
    assert all(c.done and c.error is None for c in calls)
    return calls


def values(rank: int, size: int = 37) -> Array:
    return np.arange(size, dtype=np.int32) * (rank + 1) - 11


@pytest.mark.parametrize("root", [0, 1])
def test_reduce_gives_the_root_the_sum(root: int) -> None:
    calls = run(lambda c, rank: c.reduce(values(rank), root))
    got = calls[root].result()
    assert got is not None
    assert np.array_equal(got, values(0) + values(1))
    assert calls[1 - root].result() is None


@pytest.mark.parametrize("root", [0, 1])
def test_broadcast_gives_everyone_the_roots_values(root: int) -> None:
    for call in run(lambda c, rank: c.broadcast(values(rank), root)):
        got = call.result()
        assert got is not None
        assert np.array_equal(got, values(root))


def test_reduce_scatter_gives_each_rank_its_part() -> None:
    calls = run(lambda c, rank: c.reduce_scatter(values(rank, 24)))
    total = values(0, 24) + values(1, 24)
    for rank, call in enumerate(calls):
        got = call.result()
        assert got is not None
        assert np.array_equal(got, total[12 * rank : 12 * rank + 12])


def test_all_gather_gives_everyone_all() -> None:
    for call in run(lambda c, rank: c.all_gather(values(rank, 9))):
        got = call.result()
        assert got is not None
        assert np.array_equal(got, np.concatenate([values(0, 9), values(1, 9)]))


def test_all_reduce_keeps_shapes_and_pads_to_whole_packets() -> None:
    # Each rank is its neighbour's tree: what comes back is what the other sent.
    calls = run(lambda c, rank: c.all_reduce(values(rank, 35).reshape(5, 7)))
    for rank, call in enumerate(calls):
        got = call.result()
        assert got is not None
        assert np.array_equal(got, values(1 - rank, 35).reshape(5, 7))


def test_barrier_waits_for_the_other() -> None:
    loop, ranks, _ = pair()
    first = ranks[0].barrier()
    loop.run(until=loop.now + 100 * US)
    with pytest.raises(FailedError, match="has not ended"):
        first.result()
    second = ranks[1].barrier()
    loop.run(until=loop.now + 100 * US)
    assert first.done
    assert second.done


def test_invocations_run_one_after_the_other() -> None:
    loop, ranks, _ = pair()
    calls = [(c.all_reduce(values(r)), c.barrier(), c.all_reduce(values(r + 2))) for r, c in enumerate(ranks)]
    loop.run(until=loop.now + 100 * US)
    for rank, (a, b, c) in enumerate(calls):
        assert a.finished is not None and b.started is not None and b.finished is not None  # noqa: PT018 - one fact
        assert a.finished <= b.started <= b.finished
        got = c.result()
        assert got is not None
        assert np.array_equal(got, values(3 - rank))


def test_a_call_made_where_the_last_one_ends_takes_its_steps_one_by_one() -> None:
    loop, ranks, _ = pair([SYMMETRIC], sync=PsnSync.REFINED)
    later: list[Invocation] = []
    ranks[0]._on_done = lambda _: later.append(ranks[0].broadcast(values(0), 1)) if not later else None
    ranks[0].barrier()
    others = ranks[1].barrier(), ranks[1].broadcast(values(1), 1)  # steps: the Broadcast, and a Barrier behind it
    loop.run(until=loop.now + 200 * US)
    got = later[0].result()
    assert got is not None
    assert np.array_equal(got, values(1))
    assert all(call.done and call.error is None for call in others)


def test_what_the_program_cannot_serve_is_refused_before_a_packet_is_sent() -> None:
    loop, ranks, cables = pair([SYMMETRIC])
    attempts: list[Callable[[], Invocation]] = [
        lambda: ranks[0].reduce(values(0), 0),
        lambda: ranks[0].broadcast(values(0), 0),
        lambda: ranks[0].reduce_scatter(values(0, 24)),
        lambda: ranks[0].all_gather(values(0)),
    ]
    for refused in attempts:
        with pytest.raises(InputError, match="serves allreduce, barrier"):
            refused()
    with pytest.raises(InputError, match="does sum"):
        ranks[0].all_reduce(values(0), Op.MAX)
    with pytest.raises(InputError, match="int32"):
        ranks[0].all_reduce(values(0).astype(np.int64))
    loop.run(until=loop.now + 100 * US)
    assert cables[0].frames == 0


def test_wrong_roots_and_parts_are_refused() -> None:
    _, ranks, _ = pair()
    with pytest.raises(InputError, match="not a rank"):
        ranks[0].broadcast(values(0), 2)
    with pytest.raises(InputError, match="do not divide"):
        ranks[0].reduce_scatter(values(0, 5))


def test_ranks_that_call_different_collectives_are_told() -> None:
    loop, ranks, _ = pair()
    calls = [ranks[0].all_reduce(values(0)), ranks[1].barrier()]
    loop.run(until=loop.now + 100 * US)
    assert any("announces" in str(call.error) or call.error for call in calls)


def test_destroying_a_group_ends_what_is_under_way() -> None:
    _, ranks, _ = pair()
    call = ranks[0].barrier()
    ranks[0].destroy()
    assert call.done
    with pytest.raises(FailedError, match="flushed"):
        call.result()


@pytest.mark.parametrize("under_way", [True, False])
def test_calls_say_why_a_queue_pair_broke_though_it_only_flushes_receives(under_way: bool) -> None:
    """A rank that only receives has no send that could end with the cause, and an idle pair completes nothing."""
    _, ranks, _ = pair()
    calls = [ranks[0].broadcast(values(0), 1)] if under_way else []
    ranks[0].channels[Collective.BROADCAST, 1].pair.fail(Status.REMOTE_ACCESS_ERROR)
    calls += [ranks[0].broadcast(values(0), 1), ranks[0].barrier()]
    assert [call.error for call in calls] == [Status.REMOTE_ACCESS_ERROR] * len(calls)


@given(
    st.sampled_from(Collective),
    st.integers(0, MAX_PACKETS),
    st.integers(0, 31),
    st.sampled_from([Op.SUM, Op.MIN, Op.MAX]),
    st.sampled_from(list(DType)),
)
def test_control_messages_come_back_as_they_went(
    collective: Collective, packets: int, root: int, op: Op, dtype: DType
) -> None:
    control = Control(collective, packets, root, op, dtype)
    assert Control.decode(control.encode()) == control
    assert 0 < control.encode() < 1 << 32


def test_what_is_no_control_message() -> None:
    for value in (0, 0xFFFFFFFF, 0x3F000000):
        with pytest.raises(InputError, match="is not a control message"):
            Control.decode(value)
    with pytest.raises(ValueError, match="at most"):
        Control(Collective.ALLREDUCE, MAX_PACKETS + 1)
    with pytest.raises(ValueError, match="root"):
        replace(Control(Collective.REDUCE, 1), root=32)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    calls=st.lists(
        st.tuples(st.sampled_from(Collective), st.integers(0, 40), st.integers(0, 1)), min_size=1, max_size=6
    ),
    sync=st.sampled_from(PsnSync),
    flow=st.sampled_from(Flow),
    hop_by_hop=st.booleans(),
    recovery=st.sampled_from(RECOVERIES),
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from([0.0, 0.05, 0.15]),
    delay=st.sampled_from([0.0, 0.3]),
)
def test_two_ranks_whatever_the_lines_do(
    calls: list[tuple[Collective, int, int]],
    sync: PsnSync,
    flow: Flow,
    hop_by_hop: bool,
    recovery: Recovery,
    seed: int,
    loss: float,
    delay: float,
) -> None:
    """Between two ranks an ACK means what it does in Mode III: that the far end has it, and nothing of results."""
    note(f"seed {seed}")
    fabric = Fabric(2, Trouble(loss, 0.1, delay, 0.02), seed)
    qp = QpConfig(
        4 * LANES,
        0xFFFFF0,
        recovery,
        max_outstanding=8,
        timeout_ps=30 * US,
        retry_count=None,
        rnr_retry=None,
        selective_naks=True,
    )
    ranks = []
    for rank in range(2):
        far = fabric.nics[1 - rank]
        names = keys(2) if sync is PsnSync.SUBGROUPS else [SYMMETRIC]
        connections = {
            key: Connection(0x20 + 2 * i + rank, Peer(far.mac, far.ip, 0x20 + 2 * i + 1 - rank), qp)
            for i, key in enumerate(names)
        }
        config = GroupConfig(rank, 2, connections, 4, 2, sync=sync, flow=flow, hop_by_hop=hop_by_hop)
        ranks.append(Communicator(fabric.nics[rank], config))
    draw = np.random.default_rng(seed)
    data = [[draw.integers(-1000, 1000, 2 * n, np.int32) for _ in range(2)] for _, n, _ in calls]
    found: list[list[Invocation]] = [[], []]

    def begin(rank: int) -> None:
        for number, (collective, _, root) in enumerate(calls):
            mine = data[number][rank]
            every: dict[Collective, Callable[[], Invocation]] = {
                Collective.ALLREDUCE: partial(ranks[rank].all_reduce, mine),
                Collective.REDUCE: partial(ranks[rank].reduce, mine, root),
                Collective.BROADCAST: partial(ranks[rank].broadcast, mine, root),
                Collective.BARRIER: ranks[rank].barrier,
                Collective.REDUCE_SCATTER: partial(ranks[rank].reduce_scatter, mine),
                Collective.ALLGATHER: partial(ranks[rank].all_gather, mine),
            }
            found[rank].append(every[collective]())

    fabric.loop.at(0, begin, 0)
    fabric.loop.at(int(draw.integers(0, 50 * US)), begin, 1)
    fabric.loop.run(until=SECOND)
    for number, (collective, _, root) in enumerate(calls):
        a, b = data[number]
        half = len(a) // 2
        wanted: dict[Collective, list[Array | None]] = {
            Collective.ALLREDUCE: [b, a],
            Collective.REDUCE: [a + b if root == rank else None for rank in range(2)],
            Collective.BROADCAST: [data[number][root]] * 2,
            Collective.BARRIER: [None, None],
            Collective.REDUCE_SCATTER: [(a + b)[:half], (a + b)[half:]],
            Collective.ALLGATHER: [np.concatenate([a, b])] * 2,
        }
        for rank in range(2):
            got, expected = found[rank][number].result(), wanted[collective][rank]
            assert (got is None) == (expected is None)
            if got is not None and expected is not None:
                np.testing.assert_array_equal(got, expected)
    if sync is PsnSync.REFINED:
        assert len({rank.pair.requester.end for rank in ranks} | {rank.pair.responder.expected for rank in ranks}) == 1
