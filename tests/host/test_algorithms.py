"""AllReduces between hosts against NumPy, over lines that lose, reorder, duplicate and corrupt; and their form."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from p4gen.errors import InputError
from p4gen.host.collectives.algorithms import Algorithm, links, member
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import Connection
from p4gen.host.collectives.steps import StepCollectives
from p4gen.host.transport.clock import MS, SECOND, US
from p4gen.host.transport.verbs import Peer, QpConfig, Recovery
from p4gen.vocabulary import Op
from p4gen.vocabulary.message import Collective

from .fabric import Fabric, Trouble

NEW = (Algorithm.TREE, Algorithm.DOUBLING, Algorithm.HALVING)


def make(fabric: Fabric, algorithm: Algorithm, recovery: Recovery = Recovery.SELECTIVE_REPEAT) -> list[StepCollectives]:
    qp = QpConfig(64, 0xFFFFF0, recovery, timeout_ps=30 * US, retry_count=None, rnr_retry=None)
    nics = fabric.nics
    numbers = {link: 0x10 + number for number, link in enumerate(links(algorithm, len(nics)))}

    def end(rank: int, number: int) -> Connection:
        return Connection(number, Peer(nics[rank].mac, nics[rank].ip, number), qp)

    return [
        member(
            algorithm,
            nic,
            rank,
            len(nics),
            {link: end(link.to(rank), number) for link, number in numbers.items() if rank in (link.a, link.b)},
            chunk=128,
        )
        for rank, nic in enumerate(nics)
    ]


@pytest.mark.parametrize("algorithm", Algorithm)
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    calls=st.lists(st.tuples(st.integers(0, 300), st.sampled_from(list(Op)[:3])), min_size=1, max_size=4),
    size=st.integers(2, 9),
    recovery=st.sampled_from([Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT]),
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from([0.0, 0.1]),
    duplicate=st.sampled_from([0.0, 0.2]),
    delay=st.sampled_from([0.0, 0.3]),
    corrupt=st.sampled_from([0.0, 0.05]),
    skew=st.sampled_from([0, 40 * US]),
)
def test_allreduces_and_barriers_are_numpys(
    algorithm: Algorithm,
    calls: list[tuple[int, Op]],
    size: int,
    recovery: Recovery,
    seed: int,
    loss: float,
    duplicate: float,
    delay: float,
    corrupt: float,
    skew: int,
) -> None:
    note(f"seed {seed}")
    fabric = Fabric(size, Trouble(loss, duplicate, delay, corrupt), seed)
    ranks = make(fabric, algorithm, recovery)
    draw = np.random.default_rng(seed)
    data = [draw.integers(-(2**26), 2**26, (size, elements), np.int32) for elements, _ in calls]
    begun = [int(draw.integers(0, skew + 1)) for _ in ranks]
    found: dict[tuple[int, int], Invocation] = {}

    def begin(rank: int) -> None:
        for number, (_, op) in enumerate(calls):
            found[number, rank] = ranks[rank].all_reduce(data[number][rank], op)
        found[len(calls), rank] = ranks[rank].barrier()

    for rank, time in enumerate(begun):
        fabric.loop.at(time, begin, rank)
    fabric.loop.run(until=SECOND)
    for number, (_, op) in enumerate(calls):
        wanted = {Op.SUM: np.add, Op.MIN: np.minimum, Op.MAX: np.maximum}[op].reduce(data[number], axis=0)
        for rank in range(size):
            np.testing.assert_array_equal(found[number, rank].result(), wanted)
    barriers = [found[len(calls), rank] for rank in range(size)]
    assert all(each.finished is not None and each.finished >= max(begun) for each in barriers)


@pytest.mark.parametrize("size", [*range(2, 20), 64, 100])
def test_a_rank_is_inside_of_one_tree_at_most(size: int) -> None:
    trees = [{link.a: link.b for link in links(Algorithm.TREE, size) if link.channel == tree} for tree in range(2)]
    inside = [set(tree.values()) for tree in trees]
    for tree in trees:
        (root,) = set(range(size)) - set(tree)
        assert max(Counter(tree.values()).values()) <= 2
        for rank in range(size):
            at, steps = rank, 0
            while at != root:
                at, steps = tree[at], steps + 1
            assert steps <= size.bit_length()
    # A root has one child, and may be inside of the other tree.
    roots = {root for tree in trees for root in set(range(size)) - set(tree)}
    assert inside[0] & inside[1] <= roots


@pytest.mark.parametrize(
    ("algorithm", "size", "messages", "packets"),
    [
        (Algorithm.DOUBLING, 4, 2, 2 * 4),  # the whole array, twice
        (Algorithm.HALVING, 4, 4, 2 + 1 + 1 + 2),  # half, a quarter, and back
        (Algorithm.RING, 4, 6, 6),
    ],
)
def test_what_a_rank_sends(algorithm: Algorithm, size: int, messages: int, packets: int) -> None:
    fabric = Fabric(size)
    calls = [rank.all_reduce(np.zeros(64, np.int32)) for rank in make(fabric, algorithm)]
    fabric.loop.run(until=MS)
    assert {call.messages_sent for call in calls} == {messages}
    assert sum(len(frame) == 54 + 64 + 4 for frame in fabric.frames) == size * packets


@pytest.mark.parametrize("algorithm", NEW)
def test_other_collectives_are_the_rings(algorithm: Algorithm) -> None:
    one = make(Fabric(3), algorithm)[0]
    values = np.zeros(3, np.int32)
    for collective in set(Collective) - {Collective.ALLREDUCE, Collective.BARRIER}:
        with pytest.raises(InputError, match=f"{algorithm} makes AllReduce and Barrier, no {collective}"):
            one.invoke(collective, values, 0, None)
    with pytest.raises(InputError, match="int64"):
        one.all_reduce(np.zeros(4, np.int64))
