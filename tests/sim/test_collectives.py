"""Collectives through the generated program, end to end, against NumPy."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from p4gen.errors import InputError
from p4gen.host.transport.clock import US
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.verbs import RECOVERIES, Recovery
from p4gen.model import ENGINES, EngineName
from p4gen.net.collectives.simulation import SimConfig, Simulation, simulate
from p4gen.net.world.faults import Faults, parse_outage
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.vocabulary import DType, Op, Overflow
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec, load_topology, packaged_folder

from .runs import CASES, SMALL, run, scripted, star, trouble

ENGINE: EngineName = "jit" if CASES > 60 else "interp"


@settings(max_examples=CASES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), print_blob=True)
@given(
    ranks=st.integers(2, 16),
    elements=st.integers(1, 150),
    seed=st.integers(0, 2**32 - 1),
    loss=st.floats(0, 0.15),
    burst=st.sampled_from([1.0, 3.0]),
    reorder=st.floats(0, 0.3),
    duplicate=st.floats(0, 0.2),
    corrupt=st.floats(0, 0.1),
    recovery=st.sampled_from(RECOVERIES),
    overflowing=st.booleans(),
    skew=st.sampled_from([0, 30 * US]),
)
@pytest.mark.long
def test_allreduce_is_numpys_sum_on_every_rank_and_ends(
    ranks: int,
    elements: int,
    seed: int,
    loss: float,
    burst: float,
    reorder: float,
    duplicate: float,
    corrupt: float,
    recovery: Recovery,
    overflowing: bool,
    skew: int,
) -> None:
    note(f"seed {seed}")
    result = run(
        ranks,
        size=4 * elements,
        seed=seed,
        faults=trouble(loss=loss, burst=burst, reorder=reorder, duplicate=duplicate, corrupt=corrupt),
        recovery=recovery,
        overflowing=overflowing,
        skew=skew,
        engine=ENGINE,
    )
    assert result.ok, (result.errors, result.diagnosis and result.diagnosis.lines())


@pytest.mark.sample(6)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("topology", sorted(file.stem for file in packaged_folder().glob("*.yaml")))
def test_every_topology_carries_an_allreduce(topology: str, engine: EngineName) -> None:
    program = SMALL.model_copy(update={"ports": 16})
    result = simulate(SimConfig(load_topology(topology), program, size=256, seed=4, engine=engine))
    assert result.ok, result.errors
    assert not result.drops


def test_without_faults_nothing_is_sent_twice() -> None:
    result = run(8, size=4096)
    assert result.ok
    assert (result.resent, result.timeouts, result.naks, dict(result.drops)) == (0, 0, 0, {})
    # Each rank sends a control message, its data, and an ACK a message; each gets as much back.
    packets, messages = 4096 // 32, 4096 // 64
    assert result.packet_hops == 8 * 2 * (1 + packets) + 8 * 2 * (1 + messages)


@pytest.mark.parametrize("recovery", RECOVERIES)
def test_barriers_hold_under_loss(recovery: Recovery) -> None:
    result = run(
        5, collective=Collective.BARRIER, size=0, repeat=6, faults=trouble(loss=0.1), recovery=recovery, skew=20 * US
    )
    assert result.ok, result.errors


def test_same_seed_same_run_to_the_bit() -> None:
    def once(seed: int, engine: EngineName = "interp") -> tuple[object, ...]:
        config = SimConfig(star(4), SMALL, size=700, seed=seed, faults=trouble(loss=0.1, reorder=0.2), engine=engine)
        simulation = Simulation(config)
        seen: list[object] = []
        simulation.network.watch(seen.append)
        result = simulation.run()
        return seen, result.duration, result.drops, result.links

    assert once(1) == once(1)
    assert once(1) == once(1, "jit")
    assert once(1) != once(2)


@pytest.mark.parametrize(
    "fields",
    [
        {"op": Op.MIN},
        {"op": Op.MAX, "dtype": DType.UINT32},
        {"overflow": Overflow.WRAP},
        {"dtype": DType.UINT32},
    ],
    ids=str,
)
def test_other_arithmetic(fields: dict[str, object]) -> None:
    program = EpicSpec.model_validate(SMALL.model_dump(exclude_unset=True) | fields)
    assert run(4, program=program, faults=trouble(loss=0.05)).ok


@pytest.mark.parametrize("lanes", [512, 1024])
@pytest.mark.parametrize("mode", [Mode.II, Mode.III])
def test_packets_of_the_largest_path_mtus(mode: Mode, lanes: int) -> None:
    fields = {"window": 4, "message": 2, "groups": 1, "fan_in": 4, "ports": 4}
    program = EpicSpec.model_validate(fields | {"mode": mode, "lanes": lanes})
    assert run(3, program=program, size=5 * program.payload_bytes - 12, faults=trouble(loss=0.05)).ok


def test_a_stream_across_the_psn_wrap() -> None:
    assert run(3, size=4096, initial_psn=0xFFFFF0, faults=trouble(loss=0.05)).ok


def test_several_collectives_in_a_row_reuse_the_slots() -> None:
    assert run(3, size=300, repeat=5, faults=trouble(loss=0.05, duplicate=0.1)).ok


def test_a_link_that_goes_down_and_comes_back() -> None:
    result = run(4, size=4096, faults=Faults(outages=(parse_outage("h1-s0@5us-80us"),)))
    assert result.ok
    assert result.drops["h1>s0 link_down"] > 0


@pytest.mark.parametrize("mode", Mode)
def test_congestion_notifications_slow_ranks_down(mode: Mode) -> None:
    # Two ranks share a link a tenth as fast as their own: its queue fills, and packets are marked.
    links = [["h0", "s1"], ["h1", "s1"], {"ends": ["s1", "s0"], "bandwidth": "10G"}, ["h2", "s0"], ["h3", "s0"]]
    topology = TopologySpec.model_validate(
        {
            "name": "narrow",
            "switches": ["s0", "s1"],
            "root": "s0",
            "hosts": [f"h{i}" for i in range(4)],
            "defaults": {"ecn": {"low": "4K", "high": "16K"}},
            "links": links,
        }
    )
    program = EpicSpec(mode=mode, lanes=64, window=16, message=4, groups=1, ports=16)
    result = simulate(SimConfig(topology, program, size=1 << 17, dcqcn=DcqcnConfig(), engine="jit"))
    assert result.ok
    assert result.cnps > 0
    assert sum(link.marked for link in result.links) > 0


def test_what_the_program_cannot_serve_is_refused_before_a_packet_is_sent() -> None:
    with pytest.raises(InputError, match="17 links"):
        run(17)


def test_a_scripted_loss_costs_what_it_must() -> None:
    result = run(3, faults=scripted("drop the 3rd UP_DATA of rank 2", "drop the 1st DOWN_CONTROL of rank 0"))
    assert result.ok
    lost = {reason: count for reason, count in result.drops.items() if "script" in reason}
    assert lost == {
        "h2>s0 script: drop the 3rd UP_DATA of rank 2": 1,
        "s0>h0 script: drop the 1st DOWN_CONTROL of rank 0": 1,
    }
    assert result.resent > 0


def test_mismatched_ranks_are_diagnosed() -> None:
    config = SimConfig(star(3), SMALL, size=256, timeout=50 * US, retry_count=3)
    simulation = Simulation(config)
    rank = simulation.groups[0].ranks[2]
    rank.values[0] = rank.values[0][:3]
    result = simulation.run()
    assert not result.ok
    assert result.drops["s0 TrackInvocation.mixed_control"] > 0
    assert any("transport retry counter exceeded" in error for error in result.errors)
