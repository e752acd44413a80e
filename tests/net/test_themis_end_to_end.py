"""Themis end to end: whatever links do to packets, data is as without Themis, and no QP dies that lives without it.

``--seed N`` draws other cases; ``--full`` draws more of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import Recovery, Status
from p4gen.net.traffic.traffic import Pattern, Traffic, TrafficConfig, by_position
from p4gen.net.traffic.traffic_simulation import TrafficResult, TrafficSimulation
from p4gen.net.world.faults import Faults, Impairment
from p4gen.papers.themis.spec import Blocked, Evidence, Spread, ThemisSpec
from p4gen.vocabulary.clos import clos_fields
from p4gen.vocabulary.topology import TopologySpec

SAMPLE, FULL = 12, 1_000
RETRIES = 7
"""Timeouts in a row, without an ACK between them, after which a QP is in error."""


@dataclass(frozen=True)
class Case:
    """What is drawn of a run."""

    paths: int
    tiers: Literal[2, 3]
    evidence: Evidence
    blocked: Blocked
    recovery: Recovery
    writes: bool
    pattern: Pattern
    packets: int
    """Of each flow, or of each host's array."""
    faults: Faults
    seed: int
    ip: Literal["4", "6", "both"] = "4"


@lru_cache
def leaf(tiers: Literal[2, 3], evidence: Evidence, blocked: Blocked, ip: Literal["4", "6", "both"] = "4") -> ThemisSpec:
    """One program for all numbers of paths: it is compiled once."""
    return ThemisSpec(
        paths=8, path_sets=2, connections=16, tiers=tiers, evidence=evidence, blocked=blocked, ports=16, ip=ip
    )


ECMP = ThemisSpec(spread=Spread.ECMP, paths=8, path_sets=2, connections=16, ports=16)


def places(tiers: int) -> list[str]:
    """Some links, single directions, and switches with all their links; the first one is every link."""
    there = ["", "leaf0", "h0", "h1>leaf0", "leaf1>h2"]
    above = ["spine0", "leaf0-spine0", "spine0>leaf1"] if tiers == 2 else ["agg0", "agg0-core0", "agg0>core0"]
    return there + above


@st.composite
def cases(draw: Callable[..., object]) -> Case:
    tiers = draw(st.sampled_from([2, 2, 3]))
    share = st.sampled_from([0, 0, 0.002, 0.01, 0.05])
    faults = st.builds(
        Impairment,
        st.sampled_from(places(tiers)),  # type: ignore[arg-type]
        loss=share,
        burst=st.sampled_from([1, 3]),
        reorder=share,
        jitter=st.sampled_from([1 * US, 4 * US, 20 * US]),
        duplicate=share,
    )
    return Case(
        draw(st.integers(1, 8)) if tiers == 2 else draw(st.sampled_from([1, 2, 4, 8])),  # type: ignore[arg-type]
        tiers,  # type: ignore[arg-type]
        draw(st.sampled_from(Evidence)),  # type: ignore[arg-type]
        draw(st.sampled_from(Blocked)),  # type: ignore[arg-type]
        draw(st.sampled_from([Recovery.SELECTIVE_REPEAT, Recovery.SELECTIVE_REPEAT, Recovery.GO_BACK_N])),  # type: ignore[arg-type]
        draw(st.booleans()),  # type: ignore[arg-type]
        draw(st.sampled_from(Pattern)),  # type: ignore[arg-type]
        draw(st.integers(1, 64)),  # type: ignore[arg-type]
        Faults(tuple(draw(st.lists(faults, max_size=3)))),  # type: ignore[arg-type]
        draw(st.integers(0, 1 << 16)),  # type: ignore[arg-type]
        draw(st.sampled_from(["4", "6", "both"])),  # type: ignore[arg-type]
    )


def network(case: Case) -> TopologySpec:
    """Three leaves with two hosts each below spines, or three pods of a leaf each; ``paths`` paths between them."""
    if case.tiers == 2:
        name = f"clos:3x{case.paths}x2"
    else:
        aggs = min(2, case.paths)
        name = f"clos3:3x1x{aggs}x{case.paths // aggs}x2"
    return TopologySpec.model_validate(clos_fields(name) | {"defaults": {"queue": "4M"}})


def mild(case: Case) -> bool:
    """Whether no QP should die. With more loss some die by chance, with and without Themis; and Go-Back-N NICs, whose
    NACKs Themis misjudges after the sender has gone back, time out more often with it (docs/themis.md, Limits)."""
    return case.recovery is Recovery.SELECTIVE_REPEAT and all(each.loss <= 0.01 for each in case.faults.impairments)


def run(case: Case, program: ThemisSpec) -> TrafficResult:
    topology = network(case)
    size = case.packets * 1024 // 12 * 12
    config = TrafficConfig(
        topology,
        program,
        tuple(Traffic(case.pattern, hosts, size) for hosts in by_position(topology)),
        core=ECMP.model_copy(update={"ip": case.ip}),
        faults=case.faults,
        seed=case.seed,
        recovery=case.recovery,
        spray_gbn=True,
        timeout=200 * US,
        retry_count=RETRIES if mild(case) else None,
        message=8 * 1024,
        writes=case.writes,
        arrays=not case.writes,
    )
    return TrafficSimulation(config).run()


def holds(case: Case) -> None:
    """Themis's run and the one without it."""
    plain = run(case, ECMP.model_copy(update={"ip": case.ip}))
    mine = run(case, leaf(case.tiers, case.evidence, case.blocked, case.ip))
    assert mine.ok or not plain.ok, mine.errors
    assert all(str(Status.RETRY_EXCEEDED) in error or "progress" in error for error in mine.errors), mine.errors
    if not any(fault.loss or fault.reorder or fault.duplicate for fault in case.faults.impairments):
        assert mine.ok
        if case.recovery is Recovery.SELECTIVE_REPEAT:
            assert (mine.total("resent"), mine.total("naks"), mine.total("timeouts")) == (0, 0, 0)


@pytest.mark.long
def test_data_is_as_without_themis(pytestconfig: pytest.Config) -> None:
    @settings(
        max_examples=FULL if pytestconfig.getoption("--full") else SAMPLE,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def every(case: Case) -> None:
        holds(case)

    every()


@pytest.mark.sample(4)
@pytest.mark.parametrize("ip", ["4", "6", "both"])
@pytest.mark.parametrize("writes", [False, True], ids=["send", "write"])
@pytest.mark.parametrize("evidence", Evidence)
@pytest.mark.parametrize("tiers", [2, 3])
def test_each_kind_once(tiers: Literal[2, 3], evidence: Evidence, writes: bool, ip: Literal["4", "6", "both"]) -> None:
    """Loss-free, then with everything that links may do."""
    everything = Impairment("", loss=0.02, burst=2, reorder=0.05, duplicate=0.05)
    case = Case(4, tiers, evidence, Blocked.DROP, Recovery.SELECTIVE_REPEAT, writes, Pattern.NEXT, 64, Faults(), 7, ip)
    holds(case)
    holds(replace(case, faults=Faults((everything,))))
