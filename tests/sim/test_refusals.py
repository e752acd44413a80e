"""Ranks that begin late: what comes too early is refused, and sent again soon after there is room."""

from __future__ import annotations

import pytest

from p4gen.host.transport.clock import MS, US
from p4gen.net.collectives.config import SimConfig
from p4gen.net.collectives.simulation import simulate
from p4gen.vocabulary import Reliability
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import load_topology

from .runs import tiny

SKEW = 300 * US
"""The time within which ranks begin."""


@pytest.mark.parametrize("reliability", Reliability)
@pytest.mark.parametrize(
    ("topology", "pipelines", "collective", "seed"),
    [
        ("tree-3-2", 1, Collective.REDUCE, 1),  # between switches
        ("tree-3-2", 1, Collective.REDUCE, 3),
        ("star-8", 4, Collective.REDUCE, 1),  # over internal edges
        ("star-8", 4, Collective.REDUCE, 2),
        ("star-8", 4, Collective.BROADCAST, 2),
    ],
)
def test_a_refused_window_is_one_refusal(
    reliability: Reliability, topology: str, pipelines: int, collective: Collective, seed: int
) -> None:
    """Each packet of a window is refused. The switch before waits for one refusal, and not for as many."""
    spec = tiny(mode="III", reliability=reliability, pipelines=pipelines, groups=64)
    config = SimConfig(
        load_topology(topology), spec, collective=collective, root=1, size=1024, skew=SKEW, seed=seed, engine="jit"
    )
    result = simulate(config)
    assert result.ok, result.diagnosis and result.diagnosis.lines()
    assert result.drops, "nothing was refused"
    assert result.duration < 1 * MS
    assert result.resent < 4 * (result.sent - result.resent)
