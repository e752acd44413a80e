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
    ("star-8", Mode.II, 1): "2adb514d972f7e7c",
    ("star-8", Mode.II, 2): "2adb514d972f7e7c",
    ("star-8", Mode.III, 1): "5117391bfbfd33e3",
    ("star-8", Mode.III, 2): "5117391bfbfd33e3",
    ("tree-3-4", Mode.II, 1): "c22165433b41175a",
    ("tree-3-4", Mode.II, 2): "c22165433b41175a",
    ("tree-3-4", Mode.III, 1): "951affd8725f105a",
    ("tree-3-4", Mode.III, 2): "951affd8725f105a",
    ("tree-5-2", Mode.II, 1): "e9969b3fe5a13280",
    ("tree-5-2", Mode.II, 2): "e9969b3fe5a13280",
    ("tree-5-2", Mode.III, 1): "1a46b533bdf5c574",
    ("tree-5-2", Mode.III, 2): "1a46b533bdf5c574",
    ("leaf-spine", Mode.II, 1): "7cac8893b914c7b1",
    ("leaf-spine", Mode.II, 2): "7cac8893b914c7b1",
    ("leaf-spine", Mode.III, 1): "30333213e632235f",
    ("leaf-spine", Mode.III, 2): "30333213e632235f",
    ("fat-tree-k4", Mode.II, 1): "e993f63d93763b8b",
    ("fat-tree-k4", Mode.II, 2): "e993f63d93763b8b",
    ("fat-tree-k4", Mode.III, 1): "3813750db5189a2d",
    ("fat-tree-k4", Mode.III, 2): "3813750db5189a2d",
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
