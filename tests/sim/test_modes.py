"""All six collectives in both modes, on trees and over pipelines, whatever links do; groups at the same time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from p4gen.errors import InputError
from p4gen.host.collectives.plan import Flow, PsnSync
from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import Recovery
from p4gen.net.collectives.config import Call, SimConfig, Work
from p4gen.net.collectives.simulation import Simulation, simulate
from p4gen.net.world.faults import Faults, Impairment, Outage
from p4gen.papers.epic.spec import Congestion, EpicSpec, Fold, Mode
from p4gen.vocabulary import DType, Op, Reliability
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec, load_topology

from .runs import CASES, all_six, star, tiny, trouble

TOPOLOGIES = {name: load_topology(name) for name in ("star-8", "tree-3-2", "tree-3-4", "tree-5-2")}
ROUGH = trouble(loss=0.03, reorder=0.1, duplicate=0.05, corrupt=0.02)


def good(config: SimConfig) -> None:
    """The run ends, and every rank's result equals NumPy's."""
    result = simulate(config)
    assert result.ok, (config.seed, result.errors, result.diagnosis and result.diagnosis.lines())


@pytest.mark.sample(10)
@pytest.mark.parametrize("sync", PsnSync)
@pytest.mark.parametrize("pipelines", [1, 2, 4])
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_all_six_collectives(
    topology: str, mode: Mode, pipelines: int, sync: PsnSync, pytestconfig: pytest.Config
) -> None:
    """On large trees without --full only where much goes wrong."""
    spec = tiny(mode=mode, pipelines=pipelines)
    ranks = len(TOPOLOGIES[topology].rank_hosts)
    config = SimConfig(
        TOPOLOGIES[topology], spec, work=(Work(all_six(ranks)),), sync=sync, seed=5, skew=5 * US, engine="jit"
    )
    if mode.stores and sync is not PsnSync.SUBGROUPS:
        with pytest.raises(InputError, match="a queue pair for each collective and root"):
            Simulation(config)
        return
    if pipelines > 1 and topology == "star-8":
        assert len(Simulation(config).placement.groups[0].tree.nodes) == pipelines
    if topology in ("star-8", "tree-3-2") or pytestconfig.getoption("--full"):
        good(config)
    good(replace(config, faults=ROUGH))


PROGRAMS = [
    tiny(mode=Mode.I),
    tiny(mode=Mode.I, op=Op.MAX, fold=Fold.ARRIVAL, pipelines=2),
    tiny(mode=Mode.I, dtype=DType.UINT32, congestion=Congestion.NONE),
    tiny(mode=Mode.II),
    tiny(mode=Mode.II, reliability=Reliability.GBN, pipelines=2),
    tiny(mode=Mode.II, op=Op.DYNAMIC, dtype=DType.FLOAT32),
    tiny(mode=Mode.III, pipelines=2),
    tiny(mode=Mode.III, congestion=Congestion.NONE, op=Op.DYNAMIC),
    tiny(mode=Mode.III, reliability=Reliability.SR),
    tiny(mode=Mode.III, reliability=Reliability.SACK, pipelines=4),
    *(tiny(mode=mode, ip=ip, pipelines=2) for mode in Mode for ip in ("6", "both")),
]


@st.composite
def calls(draw: st.DrawFn, spec: EpicSpec, ranks: int) -> Call:
    """One collective that a group of so many ranks can do."""
    collective = draw(st.sampled_from(Collective))
    elements = draw(st.integers(1, 150))
    if collective in (Collective.REDUCE_SCATTER, Collective.ALLGATHER):
        elements = -(-elements // ranks) * ranks
    dynamic = spec.op is Op.DYNAMIC
    return Call(
        collective,
        0 if collective is Collective.BARRIER else 4 * elements,
        draw(st.integers(0, ranks - 1)),
        draw(st.sampled_from([Op.SUM, Op.MIN, Op.MAX])) if dynamic else None,
        draw(st.sampled_from(sorted({numbers.dtype for numbers in spec.choices}))) if dynamic else None,
    )


@st.composite
def works(draw: st.DrawFn, spec: EpicSpec, topology: TopologySpec) -> Work:
    """A group of some hosts, and one to four collectives."""
    hosts = tuple(draw(st.permutations(topology.rank_hosts)))[: draw(st.integers(2, len(topology.rank_hosts)))]
    return Work(tuple(draw(st.lists(calls(spec, len(hosts)), min_size=1, max_size=4))), hosts)


@st.composite
def configs(draw: st.DrawFn) -> SimConfig:
    """A run: anything that programs serve, under anything that links do."""
    topology = draw(st.sampled_from(list(TOPOLOGIES.values())))
    spec = draw(st.sampled_from(PROGRAMS))
    impairment = Impairment(
        loss=draw(st.floats(0, 0.15)),
        burst=draw(st.sampled_from([1.0, 3.0])),
        reorder=draw(st.sampled_from([0.0, 0.1, 0.3])),
        duplicate=draw(st.sampled_from([0.0, 0.1])),
        corrupt=draw(st.sampled_from([0.0, 0.05])),
    )
    outages = [
        Outage(draw(st.sampled_from(topology.links)).name, start * US, (start + draw(st.integers(1, 150))) * US)
        for start in draw(st.lists(st.integers(0, 100), max_size=2))
    ]
    return SimConfig(
        topology,
        spec,
        faults=Faults((impairment,), tuple(outages)),
        seed=draw(st.integers(0, 2**32 - 1)),
        initial_psn=draw(st.none() | st.integers(0xFFFFE0, 0xFFFFFF)),
        skew=draw(st.sampled_from([0, 20 * US, 200 * US])),
        engine="jit",
        overflowing=draw(st.booleans()),
        sync=PsnSync.SUBGROUPS if spec.mode.stores else draw(st.sampled_from(PsnSync)),
        work=tuple(draw(st.lists(works(spec, topology), min_size=1, max_size=3))),
    )


@settings(max_examples=CASES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), print_blob=True)
@given(config=configs())
@pytest.mark.long
def test_whatever_links_do_results_are_numpys(config: SimConfig) -> None:
    note(f"seed {config.seed}")
    good(config)


@pytest.mark.parametrize("mode", Mode)
def test_groups_at_once_with_roots_and_values_of_their_own(mode: Mode) -> None:
    topology = TOPOLOGIES["tree-3-4"]
    hosts = topology.rank_hosts
    work = (
        Work((Call(Collective.REDUCE, 600, root=2),) * 2, hosts[:5], tree_root="s1"),
        Work((Call(Collective.ALLREDUCE, 400), Call(Collective.BROADCAST, 300, root=7)), hosts),
        Work((Call(Collective.ALLGATHER, 240),), hosts[12:6:-2]),
    )
    config = SimConfig(topology, tiny(mode=mode), faults=ROUGH, seed=11, work=work, engine="jit")
    simulation = Simulation(config)
    assert [group.placed.tree.root.key.switch for group in simulation.groups] == ["s1", "s0", "s0"]
    assert simulation.run().ok


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("where", ["h3-s0", "s1-s0"])
def test_a_link_that_flaps(mode: Mode, where: str) -> None:
    topology = TOPOLOGIES["tree-3-4"] if where == "s1-s0" else TOPOLOGIES["star-8"]
    outages = tuple(Outage(where, at * US, (at + 40) * US) for at in (3, 60, 130))
    config = SimConfig(topology, tiny(mode=mode), size=4096, faults=Faults(outages=outages), seed=2, engine="jit")
    result = simulate(config)
    assert result.ok
    assert sum(count for reason, count in result.drops.items() if "link_down" in reason) > 0


def test_without_faults_mode_iii_sends_nothing_twice_and_is_done_hop_by_hop() -> None:
    def once(mode: Mode) -> Any:
        spec = tiny(mode=mode, window=16)
        return simulate(SimConfig(TOPOLOGIES["star-8"], spec, Collective.BARRIER, 0, repeat=5, seed=1, engine="jit"))

    two, three = once(Mode.II), once(Mode.III)
    assert two.ok
    assert three.ok
    assert (three.resent, three.timeouts, three.naks) == (0, 0, 0)
    # EPIC's Table 30: a barrier takes one round trip in Mode III, two in Mode II.
    assert 1.5 < two.duration / three.duration < 2.5


def test_ranks_that_run_ahead_are_held_back() -> None:
    # Windows move with ACKs, so that all but the slow rank run ahead, and out of the pipe's range.
    links = [f"h{i}" for i in range(4)]
    slow = {"ends": ["h3", "s0"], "bandwidth": "1G"}
    topology = TopologySpec.model_validate(
        {"name": "slow", "switches": ["s0"], "hosts": links, "links": [*([h, "s0"] for h in links[:3]), slow]}
    )
    config = SimConfig(topology, tiny(mode=Mode.III), size=8192, seed=3, flow=Flow.ACKS, engine="jit")
    told, not_told = (
        simulate(config),
        simulate(replace(config, program=tiny(mode=Mode.III, congestion=Congestion.NONE))),
    )
    assert told.ok
    assert not_told.ok
    assert told.cnps > 0
    assert not_told.cnps == 0
    assert told.drops["s0 CheckOrder.ahead"] > 0


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        (Call(Collective.REDUCE, 64, root=8), "root 8 is not a rank"),
        (Call(Collective.ALLGATHER, 36), "multiple of 32"),
        (Call(Collective.BARRIER, 4), "0 for a barrier"),
        (Call(Collective.ALLREDUCE, 64, op=Op.MAX), "need --op dynamic"),
        (Call(Collective.BROADCAST, 64, dtype=DType.UINT32), "need --op dynamic"),
    ],
)
def test_calls_that_make_no_sense_are_refused(call: Call, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        Simulation(SimConfig(star(8), tiny(), work=(Work((call,)),)))


@pytest.mark.parametrize("reliability", [Reliability.GBN, Reliability.SR])
def test_nics_that_say_what_switches_do_not_know_are_refused(reliability: Reliability) -> None:
    """Such a switch reads a selective NAK as an ACK of all before it: with these two, seeds of the soak hung."""
    program = tiny(mode=Mode.III, reliability=reliability)
    with pytest.raises(InputError, match=f"ideal needs switches that know selective NAKs.* reliability {reliability}"):
        Simulation(SimConfig(star(3), program, recovery=Recovery.IDEAL))


def test_a_group_that_calls_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="must be at least 1"):
        Simulation(SimConfig(star(3), tiny(), repeat=0))
