"""Timers against round trips of microseconds to fractions of a second, and links of 1 to 400 Gb/s, without losses.

Switches of Modes I and III do not know round trips: one that lasts longer than 2^k ticks sees k + 1 bursts before its
answers come. That is the share that may be sent again; what is sent twice must not make more be sent twice.
"""

from __future__ import annotations

import math

import pytest

from p4gen.host.transport.clock import SECOND, US
from p4gen.net.config import SimConfig
from p4gen.net.simulation import simulate
from p4gen.spec import units
from p4gen.spec.topology import TopologySpec

from .runs import tiny

SIZE = 64 << 10
LANES = 64
WINDOW = 64
"""Packets."""
TICK = 20 * US


@pytest.mark.sample(8)
@pytest.mark.parametrize("delay", ["250ns", "5us", "50us", "1ms", "50ms"])
@pytest.mark.parametrize("rate", ["1G", "25G", "100G", "400G"])
@pytest.mark.parametrize(
    ("mode", "reliability"), [("I", "gbn"), ("II", "sr"), ("II", "gbn"), ("III", "gbn"), ("III", "sr")]
)
def test_what_is_sent_again_is_bounded(mode: str, reliability: str, rate: str, delay: str) -> None:
    topology = TopologySpec.model_validate(
        {
            "name": "two",
            "switches": ["s0"],
            "hosts": ["h0", "h1"],
            "defaults": {"bandwidth": rate, "delay": delay},
            "links": [["h0", "s0"], ["h1", "s0"]],
        }
    )
    spec = tiny(mode=mode, reliability=reliability, lanes=LANES, window=16, message=4, groups=1, fan_in=2, ports=2)
    wire = 2 * WINDOW * (4 * LANES + 100) * 8 * SECOND // units.bandwidth(rate)  # of two windows
    round_trip = 4 * units.duration(delay) + 2 * US
    timeout = 2 * (round_trip + wire)
    result = simulate(SimConfig(topology, spec, size=SIZE, timeout=timeout, engine="jit"))
    assert result.ok, result.diagnosis and result.diagnosis.lines()
    packets = SIZE // (4 * LANES) + 1
    windows = -(-packets // WINDOW)
    assert result.duration < 3 * windows * (round_trip + wire)
    told = sum(link.packets for link in result.links if link.name.startswith("s0>"))
    needed = 2 * packets + 2 * packets // 4  # results, and an ACK for a message
    repeats = max(0.0, math.log2(round_trip / TICK)) if mode != "II" else 0.0
    assert told < needed * (2 + 1.5 * repeats)
