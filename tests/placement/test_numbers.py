"""Simulations, recorded runs and drawings rely on the numbers that ``place`` gives out: they stay what they are."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

import pytest

from p4gen.groups import SwitchConfig
from p4gen.host.collectives.plan import PsnSync
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.plan.placement.network import Placement, place
from p4gen.plan.placement.placed import GroupRequest
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import load_topology

NAMES = re.compile(r"\b[A-Za-z_.]+(?==|\()")


def without_entrances(config: SwitchConfig) -> SwitchConfig:
    return replace(config, entries=tuple(entry for entry in config.entries if entry.table != "entrances"))


def digest(placement: Placement) -> str:
    """Of every number: groups with their channels and contexts, tables, multicast groups, clone sessions, addresses.
    Names of classes and fields do not count, nor entrances, which repeat endpoints and the ports of edges."""
    said = [
        [(g.request, g.tree, dict(g.addresses)) for g in placement.groups],
        [(c.serves, c.ends, list(c.contexts.items())) for g in placement.groups for c in g.channels],
        [(name, without_entrances(config)) for name, config in placement.switches.items()],
        placement.edges,
        [list(m.items()) for m in (placement.mac, placement.ip, placement.gateway)],
    ]
    # Sets have no order of their own.
    text = repr(said).replace(", more_ports=()", "")
    for collectives in {g.request.collectives for g in placement.groups}:
        text = text.replace(repr(collectives), repr(sorted(collectives)))
    return hashlib.sha256(NAMES.sub("", text).encode()).hexdigest()[:16]


KNOWN: dict[tuple[str, Mode, int], str] = {
    ("star-8", Mode.II, 1): "5448503d95858484",
    ("star-8", Mode.II, 2): "5448503d95858484",
    ("star-8", Mode.III, 1): "6383f29c3be756b4",
    ("star-8", Mode.III, 2): "6383f29c3be756b4",
    ("tree-3-4", Mode.II, 1): "ac77f5d30c0deb8e",
    ("tree-3-4", Mode.II, 2): "ac77f5d30c0deb8e",
    ("tree-3-4", Mode.III, 1): "e0e8586492215c56",
    ("tree-3-4", Mode.III, 2): "e0e8586492215c56",
    ("tree-5-2", Mode.II, 1): "3a909f3306680e31",
    ("tree-5-2", Mode.II, 2): "3a909f3306680e31",
    ("tree-5-2", Mode.III, 1): "f7155300d269bd8b",
    ("tree-5-2", Mode.III, 2): "f7155300d269bd8b",
    ("leaf-spine", Mode.II, 1): "1045d9d88a4beecf",
    ("leaf-spine", Mode.II, 2): "1045d9d88a4beecf",
    ("leaf-spine", Mode.III, 1): "fdd34bdf99d4ad2a",
    ("leaf-spine", Mode.III, 2): "fdd34bdf99d4ad2a",
    ("fat-tree-k4", Mode.II, 1): "42acfb32bf22cfde",
    ("fat-tree-k4", Mode.II, 2): "42acfb32bf22cfde",
    ("fat-tree-k4", Mode.III, 1): "9d05bf4db97bd5c4",
    ("fat-tree-k4", Mode.III, 2): "9d05bf4db97bd5c4",
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
