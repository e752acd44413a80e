"""What storing whole messages costs: the latency of Mode I against Mode III's (EPIC 5.2, F.1)."""

from __future__ import annotations

import pytest

from p4gen.families.epic.spec import EpicSpec, Mode
from p4gen.host.transport.clock import SECOND
from p4gen.net.config import SimConfig
from p4gen.net.simulation import simulate
from p4gen.spec.topology import load_topology

LANES = 64
PAYLOAD = 4 * LANES
ON_THE_WIRE = PAYLOAD + 58 + 24
"""U: headers and ICRC, preamble and gap included."""
TIERS = {"star-4": 2, "tree-3-2": 3}


def latency(topology: str, mode: Mode, message: int) -> int:
    """Time of an AllReduce of one message until the last result has arrived, in ps."""
    spec = EpicSpec(mode=mode, lanes=LANES, window=2, message=message, groups=1, fan_in=4, ports=8)
    result = simulate(SimConfig(load_topology(topology), spec, size=PAYLOAD * message, engine="jit", seed=1, timeout=0))
    assert result.ok, (result.errors, result.diagnosis and result.diagnosis.lines())
    assert result.last_result is not None
    return result.last_result


@pytest.mark.parametrize("message", [1, 4, 16, 64])
@pytest.mark.parametrize("topology", TIERS)
def test_each_switch_on_the_way_waits_for_the_rest_of_a_message(topology: str, message: int) -> None:
    """(2H - 3)(M - 1)U/B: a result passes 2H - 3 switches of a tree of H tiers, up and down. (The paper's F.1 says
    2H - 1, which counts two more.)"""
    packet = ON_THE_WIRE * 8 * SECOND / load_topology(topology).defaults.bandwidth
    expected = (2 * TIERS[topology] - 3) * (message - 1) * packet
    extra = latency(topology, Mode.I, message) - latency(topology, Mode.III, message)
    assert extra == pytest.approx(expected, rel=0.1)
