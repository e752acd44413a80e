"""AlltoAll against NumPy, over lines that lose, reorder, duplicate and corrupt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from p4gen.errors import FailedError, InputError
from p4gen.host.collectives.alltoall import AllToAll, AllToAllConfig
from p4gen.host.collectives.plan import Connection
from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import Peer, QpConfig, Recovery, Status

from .fabric import Fabric, Trouble


def make(fabric: Fabric, recovery: Recovery, ahead: int = 1, **fields: Any) -> list[AllToAll]:
    qp = replace(QpConfig(64, 0xFFFFF0, recovery, timeout_ps=30 * US, retry_count=None, rnr_retry=None), **fields)
    nics = fabric.nics
    return [
        AllToAll(
            nic,
            AllToAllConfig(
                rank,
                len(nics),
                {
                    other: Connection(0x10 + other, Peer(nics[other].mac, nics[other].ip, 0x10 + rank), qp)
                    for other in range(len(nics))
                    if other != rank
                },
                ahead,
            ),
        )
        for rank, nic in enumerate(nics)
    ]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(2, 6), st.integers(1, 60), st.integers(1, 7), st.sampled_from(["gbn", "sr"]), st.integers(0, 99),
    st.booleans(),
)  # fmt: skip
def test_everybody_has_its_part_of_everybodys(
    size: int, each: int, ahead: int, recovery: str, seed: int, troubled: bool
) -> None:
    trouble = Trouble(loss=0.05, duplicate=0.05, delay=0.1, corrupt=0.02) if troubled else None
    fabric = Fabric(size, trouble, seed)
    values = np.random.default_rng(seed).integers(-1000, 1000, (size, size * each), np.int32)
    ranks = make(fabric, Recovery(recovery), ahead)
    runs = [member.exchange(mine) for member, mine in zip(ranks, values, strict=True)]
    fabric.loop.run()
    parts = values.reshape(size, size, each)
    for rank, run in enumerate(runs):
        assert np.array_equal(run.result(), parts[:, rank].reshape(-1))


def test_a_step_begins_when_the_one_before_has_ended() -> None:
    fabric = Fabric(4)
    for member in make(fabric, Recovery.SELECTIVE_REPEAT):
        member.exchange(np.arange(4, dtype=np.int32))
    fabric.loop.run(until=US)
    assert sorted((f[29], f[33]) for f in fabric.frames) == [
        (1, 2),
        (2, 3),
        (3, 4),
        (4, 1),
    ]  # one peer each, by address


def test_a_broken_connection_ends_it() -> None:
    fabric = Fabric(2, Trouble(loss=1))
    ranks = make(fabric, Recovery.SELECTIVE_REPEAT, retry_count=1)
    runs = [member.exchange(np.zeros(2, np.int32)) for member in ranks]
    with pytest.raises(FailedError, match="has not ended"):
        runs[0].result()
    fabric.loop.run()
    assert {run.error for run in runs} == {Status.RETRY_EXCEEDED}
    with pytest.raises(FailedError, match="retry counter"):
        runs[0].result()


def test_parts_are_of_one_size() -> None:
    with pytest.raises(InputError, match="do not divide"):
        make(Fabric(3), Recovery.SELECTIVE_REPEAT)[0].exchange(np.zeros(4, np.int32))


def test_a_place_has_a_connection_to_every_other() -> None:
    with pytest.raises(ValueError, match="every other"):
        AllToAllConfig(0, 3, {})
