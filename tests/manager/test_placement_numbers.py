"""Simulations, recorded runs and drawings rely on the numbers that ``place`` gives out: they stay what they are."""

from __future__ import annotations

import hashlib

import pytest

from p4gen.host.control import Collective
from p4gen.host.plan import PsnSync
from p4gen.manager.placement import GroupRequest, Placement, place
from p4gen.spec import Mode, ProgramSpec
from p4gen.spec.topology import load_topology


def digest(placement: Placement) -> str:
    """Of every number: groups with their channels and contexts, tables, multicast groups, clone sessions, addresses."""
    said = [
        [(g.request, g.tree, dict(g.addresses)) for g in placement.groups],
        [(c.serves, c.ends, list(c.contexts.items())) for g in placement.groups for c in g.channels],
        [(name, config) for name, config in placement.switches.items()],
        placement.edges,
        [list(m.items()) for m in (placement.mac, placement.ip, placement.gateway)],
    ]
    # Sets have no order of their own.
    text = repr(said)
    for collectives in {g.request.collectives for g in placement.groups}:
        text = text.replace(repr(collectives), repr(sorted(collectives)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


KNOWN: dict[tuple[str, Mode, int], str] = {
    ("star-8", Mode.II, 1): "502952b47c53ee13",
    ("star-8", Mode.II, 2): "502952b47c53ee13",
    ("star-8", Mode.III, 1): "93ab37a903916a7d",
    ("star-8", Mode.III, 2): "93ab37a903916a7d",
    ("tree-3-4", Mode.II, 1): "1863a82aa10ef802",
    ("tree-3-4", Mode.II, 2): "1863a82aa10ef802",
    ("tree-3-4", Mode.III, 1): "ce3dd33ef253537d",
    ("tree-3-4", Mode.III, 2): "ce3dd33ef253537d",
    ("tree-5-2", Mode.II, 1): "652573836a2e69b8",
    ("tree-5-2", Mode.II, 2): "652573836a2e69b8",
    ("tree-5-2", Mode.III, 1): "da447b6369b50910",
    ("tree-5-2", Mode.III, 2): "da447b6369b50910",
    ("leaf-spine", Mode.II, 1): "ad34a8df1d708013",
    ("leaf-spine", Mode.II, 2): "ad34a8df1d708013",
    ("leaf-spine", Mode.III, 1): "443d33adf7fd1ff4",
    ("leaf-spine", Mode.III, 2): "443d33adf7fd1ff4",
    ("fat-tree-k4", Mode.II, 1): "83a94d30ef06f439",
    ("fat-tree-k4", Mode.II, 2): "83a94d30ef06f439",
    ("fat-tree-k4", Mode.III, 1): "a963e3fb4f5c0c0b",
    ("fat-tree-k4", Mode.III, 2): "a963e3fb4f5c0c0b",
}


@pytest.mark.parametrize(("name", "mode", "pipelines"), KNOWN)
def test_numbers_stay(name: str, mode: Mode, pipelines: int) -> None:
    topology = load_topology(name)
    hosts = topology.rank_hosts
    requests = [
        GroupRequest(hosts[:4], sync=PsnSync.REFINED, first_psn=77),
        GroupRequest(hosts[::-1][:6], collectives=frozenset({Collective.ALLREDUCE, Collective.REDUCE}), epoch=9),
        GroupRequest(hosts[1:4], every_switch=True, slots=256),
    ]
    spec = ProgramSpec.model_validate({"mode": mode, "groups": 64, "pipelines": pipelines})
    assert digest(place(topology, spec, requests)) == KNOWN[name, mode, pipelines]
