"""Timers against round trips of microseconds to fractions of a second, and links of 1 to 400 Gb/s, without losses.

Switches of Modes I and III, and those of MultiWrite that repair hop by hop, have to learn round trips: one that lasts
longer than 2^k ticks sees k + 1 bursts before its first answers come. That is what may be sent again; what is sent
twice must not make more be sent twice.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from p4gen.host.transport.clock import SECOND, US
from p4gen.net.collectives.config import SimConfig
from p4gen.net.collectives.simulation import simulate
from p4gen.net.order import RunOrder
from p4gen.net.traffic.traffic import Pattern, Traffic, TrafficConfig, by_position
from p4gen.net.traffic.traffic_simulation import TrafficSimulation
from p4gen.net.world.faults import Faults
from p4gen.papers.multiwrite.running import WriteRun
from p4gen.papers.multiwrite.runs import FACET as WRITES
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.papers.scin.running import PullRun
from p4gen.papers.scin.runs import FACET as PULLS
from p4gen.papers.scin.spec import ScinSpec
from p4gen.papers.themis.spec import Evidence, Spread, ThemisSpec
from p4gen.switch.drops import dropped
from p4gen.vocabulary import ProgramSpec, units
from p4gen.vocabulary.clos import clos_fields
from p4gen.vocabulary.topology import TopologySpec

from .runs import tiny

SIZE = 64 << 10
LANES = 64
PACKETS = SIZE // (4 * LANES)
WINDOW = 64
"""Packets."""
TICK = 20 * US
DELAYS = pytest.mark.parametrize("delay", ["250ns", "5us", "50us", "1ms", "50ms"])
RATES = pytest.mark.parametrize("rate", ["1G", "25G", "100G", "400G"])


def two(rate: str, delay: str) -> TopologySpec:
    """Two hosts at a switch."""
    return TopologySpec.model_validate(
        {
            "name": "two",
            "switches": ["s0"],
            "hosts": ["h0", "h1"],
            "defaults": {"bandwidth": rate, "delay": delay},
            "links": [["h0", "s0"], ["h1", "s0"]],
        }
    )


def windows_of(rate: str, delay: str) -> int:
    """The time of a round trip between hosts behind two windows on the wire, ps."""
    wire = 2 * WINDOW * (4 * LANES + 100) * 8 * SECOND // units.bandwidth(rate)
    return 4 * units.duration(delay) + 2 * US + wire


def bursts(delay: str) -> float:
    """How often a timer that starts with one tick and doubles expires within a round trip between hosts."""
    return max(0.0, math.log2((4 * units.duration(delay) + 2 * US) / TICK))


def own(rate: str, delay: str, spec: ProgramSpec, collective: str, options: dict[str, Any]) -> RunOrder[Any]:
    """Two calls of a family whose ranks are its own."""
    return RunOrder(
        two(rate, delay), spec, collective, SIZE, repeat=2, faults=Faults(), seed=1, recovery=None,
        timeout=2 * windows_of(rate, delay), retry_count=None, dcqcn=None, engine="jit", options=options,
    )  # fmt: skip


@pytest.mark.sample(8)
@DELAYS
@RATES
@pytest.mark.parametrize(
    ("mode", "reliability"), [("I", "gbn"), ("II", "sr"), ("II", "gbn"), ("III", "gbn"), ("III", "sr")]
)
def test_what_is_sent_again_is_bounded(mode: str, reliability: str, rate: str, delay: str) -> None:
    spec = tiny(mode=mode, reliability=reliability, lanes=LANES, window=16, message=4, groups=1, fan_in=2, ports=2)
    timeout = 2 * windows_of(rate, delay)
    result = simulate(SimConfig(two(rate, delay), spec, size=SIZE, timeout=timeout, engine="jit"))
    assert result.ok, result.diagnosis and result.diagnosis.lines()
    packets = PACKETS + 1
    assert result.duration < 3 * -(-packets // WINDOW) * windows_of(rate, delay)
    told = sum(link.packets for link in result.links if link.name.startswith("s0>"))
    needed = 2 * packets + 2 * packets // 4  # results, and an ACK for a message
    repeats = bursts(delay) if mode != "II" else 0.0
    assert told < 2 * needed + 2 * WINDOW * repeats


@pytest.mark.sample(8)
@DELAYS
@RATES
@pytest.mark.parametrize("completion", ["strict", "ordered"])
def test_pulls_are_hardly_repeated(completion: str, rate: str, delay: str) -> None:
    """Ticks are no faster than round trips; where a window takes longer than they do, a little comes again."""
    fields = {"lanes": LANES, "waves": 4, "wave": 16, "contexts": 1, "edges": 2, "ports": 2}
    spec = ScinSpec.model_validate(fields | {"completion": completion})
    options = {name: option.parse(option.default) for name, option in PULLS.options.items()}
    result = PullRun(own(rate, delay, spec, "allreduce", options)).run()
    assert (result.stuck, result.errors, result.silent) == ((), (), ())
    assert result.duration < 2 * 3 * (PACKETS // WINDOW) * windows_of(rate, delay)
    again = result.values["again"]
    assert isinstance(again, int)
    assert again < 0.1 * 4 * PACKETS


@pytest.mark.sample(8)
@DELAYS
@RATES
@pytest.mark.parametrize("repair", ["source", "hop"])
def test_writes_are_repeated_within_bounds(repair: str, rate: str, delay: str) -> None:
    spec = MultiwriteSpec.model_validate(
        {"payload": 4 * LANES, "slots": WINDOW, "edges": 4, "ports": 4, "contexts": 4, "repair": repair}
    )
    options = {name: option.parse(option.default) for name, option in WRITES.options.items()}
    result = WriteRun(own(rate, delay, spec, "allgather", options)).run()
    assert (result.stuck, result.errors, result.silent, result.timeouts) == ((), (), (), 0)
    between = 10 * TICK  # calls: the second one begins when nothing but ticks is left of the first
    assert result.duration < 2 * 3 * (PACKETS // WINDOW) * windows_of(rate, delay) + between
    needed = 2 * 2 * (PACKETS // 2 + 1) * 2 * 2  # over two links, each with its ACK, if every packet has one
    once = 4 * WINDOW * (1 + bursts(delay)) if repair == "hop" else 0  # over two links, with ACKs
    assert result.packet_hops <= needed + once


@pytest.mark.sample(8)
@DELAYS
@RATES
@pytest.mark.parametrize("evidence", Evidence)
def test_nothing_sprayed_is_repeated(evidence: Evidence, rate: str, delay: str) -> None:
    """One of two spines is twice as far, so that most packets are overtaken."""
    fields = clos_fields("clos:2x2x1") | {"defaults": {"bandwidth": rate, "delay": delay, "queue": "4M"}}
    far = f"{2 * units.duration(delay) // 1000}ns"
    links = [{"ends": ends, **({"delay": far} if "spine1" in ends else {})} for ends in fields["links"]]
    topology = TopologySpec.model_validate({**fields, "links": links})
    program: dict[str, object] = {"paths": 2, "path_sets": 1, "connections": 4, "ports": 4, "evidence": evidence}
    config = TrafficConfig(
        topology,
        ThemisSpec.model_validate(program | ({"queue": 512} if evidence is Evidence.QUEUE else {})),
        tuple(Traffic(Pattern.NEXT, hosts, 4 * SIZE) for hosts in by_position(topology)),
        core=ThemisSpec(spread=Spread.ECMP, paths=2, ports=4),
        timeout=16 * windows_of(rate, delay),
        seed=1,
    )
    simulation = TrafficSimulation(config)
    result = simulation.run()
    assert result.ok, result.errors
    assert (result.total("resent"), result.total("timeouts")) == (0, 0)
    blocked = dropped(config.program, simulation.network.switches["leaf1"].counters)["BlockedNack.blocked"]
    assert blocked > 0 or (rate, delay) == ("1G", "250ns"), "packets that follow too slowly to be overtaken"
