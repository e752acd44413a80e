"""Simulations, recorded runs and drawings rely on the numbers that ``place`` gives out: they stay what they are."""

from __future__ import annotations

import hashlib

import pytest

from p4gen.families.epic.spec import EpicSpec, Mode
from p4gen.host.collectives.control import Collective
from p4gen.host.collectives.plan import PsnSync
from p4gen.placement.network import Placement, place
from p4gen.placement.placed import GroupRequest
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
    ("star-8", Mode.II, 1): "1ebc0ea0e7bc0915",
    ("star-8", Mode.II, 2): "1ebc0ea0e7bc0915",
    ("star-8", Mode.III, 1): "f131b5489e7e34f8",
    ("star-8", Mode.III, 2): "f131b5489e7e34f8",
    ("tree-3-4", Mode.II, 1): "778b310429c84463",
    ("tree-3-4", Mode.II, 2): "778b310429c84463",
    ("tree-3-4", Mode.III, 1): "6295c03666ab1561",
    ("tree-3-4", Mode.III, 2): "6295c03666ab1561",
    ("tree-5-2", Mode.II, 1): "317afb3c8384cb9c",
    ("tree-5-2", Mode.II, 2): "317afb3c8384cb9c",
    ("tree-5-2", Mode.III, 1): "38c44dee0e24f3df",
    ("tree-5-2", Mode.III, 2): "38c44dee0e24f3df",
    ("leaf-spine", Mode.II, 1): "af70012f553e09ff",
    ("leaf-spine", Mode.II, 2): "af70012f553e09ff",
    ("leaf-spine", Mode.III, 1): "7f145ac72e075947",
    ("leaf-spine", Mode.III, 2): "7f145ac72e075947",
    ("fat-tree-k4", Mode.II, 1): "16a922f1199c434d",
    ("fat-tree-k4", Mode.II, 2): "16a922f1199c434d",
    ("fat-tree-k4", Mode.III, 1): "31279710cba2372a",
    ("fat-tree-k4", Mode.III, 2): "31279710cba2372a",
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
    spec = EpicSpec.model_validate({"mode": mode, "groups": 64, "pipelines": pipelines})
    assert digest(place(topology, spec, requests)) == KNOWN[name, mode, pipelines]
