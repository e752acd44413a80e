"""Groups of more ranks than control messages can name as roots."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from p4gen.errors import InputError
from p4gen.families import load_collective
from p4gen.host.collectives.plan import PsnSync
from p4gen.model.entries import Match, Ternary
from p4gen.net.collectives.config import SimConfig
from p4gen.net.collectives.simulation import simulate
from p4gen.net.world.faults import Faults, Impairment
from p4gen.plan.placement.network import place
from p4gen.vocabulary.message import MAX_RANKS, ROOTS, Collective
from p4gen.vocabulary.topology import load_topology

LOSSY = Faults((Impairment(loss=0.01),))


def config(topology: str, mode: str, collective: Collective, root: int = 0) -> SimConfig:
    spec = load_collective(None, {"mode": mode, "lanes": 8, "ports": 32, "window": 4, "message": 2})
    return SimConfig(
        load_topology(topology), spec, collective, 0 if collective is Collective.BARRIER else 4 * 8 * 20, root=root,
        faults=LOSSY, seed=1, engine="jit",
    )  # fmt: skip


@pytest.mark.sample(2)
@pytest.mark.parametrize("mode", ["II", "III"])
@pytest.mark.parametrize(
    ("collective", "root"),
    [(Collective.ALLREDUCE, 0), (Collective.BARRIER, 0), (Collective.REDUCE, 7), (Collective.BROADCAST, ROOTS - 1)],
)
def test_a_tree_of_64_ranks_calls_under_loss(mode: str, collective: Collective, root: int) -> None:
    result = simulate(config("clos3:4x4x1x1x4", mode, collective, root))
    assert result.ok, result.errors


@pytest.mark.long
def test_a_tree_of_1024_ranks_calls_under_loss() -> None:
    for collective, root in ((Collective.ALLREDUCE, 0), (Collective.BROADCAST, 9)):
        result = simulate(config("clos3:8x8x1x1x16", "III", collective, root))
        assert result.ok, result.errors


@pytest.mark.parametrize("mode", ["II", "III"])
@pytest.mark.parametrize(
    ("collective", "root"),
    [
        (Collective.REDUCE, 63),
        (Collective.BROADCAST, 40),
        (Collective.ALLGATHER, 0),
        (Collective.REDUCE_SCATTER, 0),
    ],
)
def test_every_rank_of_64_is_a_root(mode: str, collective: Collective, root: int) -> None:
    asked = config("clos3:4x4x1x1x4", mode, collective, root)
    program = load_collective(None, asked.program.model_dump(mode="json", exclude_unset=True) | {"roots": 64})
    result = simulate(replace(asked, program=program, size=64 * 4 * 8))
    assert result.ok, result.errors


@pytest.mark.long
def test_4096_ranks_are_placed_with_few_entries() -> None:
    topology = load_topology("clos3:16x16x1x1x16")
    spec = load_collective(None, {"mode": "III", "roots": MAX_RANKS})
    placed = place(topology, spec, sync=PsnSync.REFINED)
    assert len(topology.rank_hosts) == MAX_RANKS
    (group,) = placed.groups
    assert len({*group.addresses.values()}) == len(topology.switches) == 273
    for name, switch in placed.switches.items():
        count = Counter(entry.table for entry in switch.entries)
        ends = len(topology.ports[name])
        assert (count["endpoints"], count["contexts"]) == (ends, 1)
        assert count["patterns"] <= 4 * ends, name
        roots = {code for entry in switch.entries if entry.table == "patterns" for code in matched(entry.match["code"])}
        collectives = (Collective.REDUCE, Collective.BROADCAST)
        assert roots >= {each.code << 12 | root for each in collectives for root in range(MAX_RANKS)}


def matched(key: Match) -> range:
    """The codes that a key of the table ``patterns`` matches."""
    assert isinstance(key, Ternary)
    size = (1 << 15) - key.mask
    assert size & size - 1 == 0
    return range(key.value, key.value + size)


@pytest.mark.parametrize(
    ("collective", "root", "why"),
    [
        (Collective.BROADCAST, ROOTS, "root 32: control messages of the program name ranks 0 to 31 as roots"),
        (Collective.ALLGATHER, 0, "allgather by 64 ranks: each is a root, and control messages have 32"),
        (Collective.REDUCE_SCATTER, 0, "reducescatter by 64 ranks: each is a root, and control messages have 32"),
    ],
)
def test_what_needs_more_roots_is_refused(collective: Collective, root: int, why: str) -> None:
    asked = config("clos3:4x4x1x1x4", "II", collective, root)
    size = 4 * 64 * 8
    with pytest.raises(InputError) as caught:
        simulate(replace(asked, size=size))
    assert why in caught.value.reason
