"""Simulations, recorded runs and drawings rely on the numbers that ``place`` gives out: they stay what they are."""

from __future__ import annotations

import hashlib
import re

import pytest

from p4gen.families.epic.spec import EpicSpec, Mode
from p4gen.host.collectives.control import Collective
from p4gen.host.collectives.plan import PsnSync
from p4gen.placement.network import Placement, place
from p4gen.placement.placed import GroupRequest
from p4gen.spec.topology import load_topology

NAMES = re.compile(r"\b[A-Za-z_.]+(?==|\()")


def digest(placement: Placement) -> str:
    """Of every number: groups with their channels and contexts, tables, multicast groups, clone sessions, addresses.
    Names of classes and fields do not count."""
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
    return hashlib.sha256(NAMES.sub("", text).encode()).hexdigest()[:16]


KNOWN: dict[tuple[str, Mode, int], str] = {
    ("star-8", Mode.II, 1): "a752fd4bbf6e9cdc",
    ("star-8", Mode.II, 2): "a752fd4bbf6e9cdc",
    ("star-8", Mode.III, 1): "9d1905eeff2b3f9c",
    ("star-8", Mode.III, 2): "9d1905eeff2b3f9c",
    ("tree-3-4", Mode.II, 1): "e0f6ea57b7f6cec9",
    ("tree-3-4", Mode.II, 2): "e0f6ea57b7f6cec9",
    ("tree-3-4", Mode.III, 1): "44af08f16b6e9a23",
    ("tree-3-4", Mode.III, 2): "44af08f16b6e9a23",
    ("tree-5-2", Mode.II, 1): "d9ebbd14e53d7fb4",
    ("tree-5-2", Mode.II, 2): "d9ebbd14e53d7fb4",
    ("tree-5-2", Mode.III, 1): "1c473f22bb7846f7",
    ("tree-5-2", Mode.III, 2): "1c473f22bb7846f7",
    ("leaf-spine", Mode.II, 1): "b0dffef01b76b436",
    ("leaf-spine", Mode.II, 2): "b0dffef01b76b436",
    ("leaf-spine", Mode.III, 1): "ed03405794823ef2",
    ("leaf-spine", Mode.III, 2): "ed03405794823ef2",
    ("fat-tree-k4", Mode.II, 1): "a98ddcb6a1a49f19",
    ("fat-tree-k4", Mode.II, 2): "a98ddcb6a1a49f19",
    ("fat-tree-k4", Mode.III, 1): "95a16fe693d39040",
    ("fat-tree-k4", Mode.III, 2): "95a16fe693d39040",
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
