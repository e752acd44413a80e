"""First PSNs of connections that have their own: Mode I ends every connection in the switch."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.families import load_collective
from p4gen.groups.psns import stream_psn
from p4gen.groups.ranks import host_config
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.clock import US
from p4gen.net.collectives.config import SimConfig, Work
from p4gen.net.collectives.simulation import Simulation, simulate
from p4gen.papers.epic.spec import Mode
from p4gen.plan.placement.network import Placement, place
from p4gen.plan.placement.placed import GroupRequest
from p4gen.vocabulary.topology import load_topology

from .runs import all_six, star, tiny, trouble

TREE = load_topology("tree-3-2")


def placed(first_psn: int) -> Placement:
    spec = tiny(mode=Mode.I)
    return place(TREE, spec, [GroupRequest(TREE.rank_hosts, first_psn=first_psn)])


@given(a=st.integers(0, (1 << 24) - 1), b=st.integers(0, (1 << 24) - 1), first=st.integers(0, (1 << 24) - 1))
def test_a_psn_has_24_bits_and_belongs_to_a_direction(a: int, b: int, first: int) -> None:
    assert 0 <= stream_psn(a, b, first) < 1 << 24
    assert stream_psn(a, b, first) == stream_psn(a, b, first)
    if a != b:
        assert stream_psn(a, b, first) != stream_psn(b, a, first)


def test_neighbours_do_not_begin_side_by_side() -> None:
    psns = [stream_psn(0x100 + n, 0x200 + n, 7) for n in range(1000)]
    assert len(set(psns)) > 990
    assert all(abs(a - b) > 1 for a, b in pairwise(psns))


@pytest.mark.parametrize("first_psn", [0, 0xFFFFFF, 0x123456])
def test_connections_of_a_group_begin_with_psns_of_their_own(first_psn: int) -> None:
    """Both directions of each edge, and all edges of a switch; the two ends of an edge agree."""
    edges = [edge.edge for edge in placed(first_psn).edges]
    assert all(edge.first_received != edge.first_sent for edge in edges)
    assert len({edge.first_received for edge in edges}) == len(edges)
    ends = {(edge.local.ip, edge.local.qp): edge for edge in edges}
    between = [(edge, ends[edge.remote.ip, edge.remote.qp]) for edge in edges if not edge.first_hop]
    assert between
    assert all((a.first_received, a.first_sent) == (b.first_sent, b.first_received) for a, b in between)


def test_another_first_psn_is_other_connections() -> None:
    one, two = ([edge.edge.first_received for edge in placed(psn).edges] for psn in (5, 6))
    assert all(a != b for a, b in zip(one, two, strict=True))


def test_ranks_begin_with_the_psns_that_their_switches_expect() -> None:
    spec, placement = tiny(mode=Mode.I), placed(0xABCDEF)
    (group,) = placement.groups
    edges = {(placed.edge.local.ip, placed.edge.local.qp): placed.edge for placed in placement.edges}
    for rank in range(len(group.request.ranks)):
        ends = {channel.key: channel.ends[rank] for channel in group.channels}
        channels = {key: (end.qp, end.peer) for key, end in ends.items()}
        config = host_config(spec, rank, 4, channels, 0xABCDEF, PsnSync.SUBGROUPS, timeout_ps=US)
        for key, end in ends.items():
            mine, edge = config.channels[key].qp_config, edges[end.peer.ip, end.peer.qp]
            assert (mine.initial_psn, mine.received_psn) == (edge.first_received, edge.first_sent)


def test_other_modes_have_one_first_psn() -> None:
    spec = load_collective(None, {"mode": "III", "groups": 64})
    placement = place(TREE, spec, [GroupRequest(TREE.rank_hosts, first_psn=77)])
    assert {(edge.edge.first_received, edge.edge.first_sent) for edge in placement.edges} == {(0, 0)}
    assert {context.first_psn for c in placement.groups[0].channels for context in c.contexts.values()} == {77}


@pytest.mark.parametrize("first_psn", [0, 1, 0x7FFFFF, 0x800000, 0xFFFFF0, 0xFFFFFF])
def test_a_rank_with_any_first_psn_works(first_psn: int) -> None:
    """All six collectives under loss, whatever the placement's first PSN."""
    config = SimConfig(
        star(3), tiny(mode=Mode.I), work=(Work(all_six(3)),), initial_psn=first_psn, seed=first_psn, engine="jit",
        faults=trouble(loss=0.03, reorder=0.05, duplicate=0.05),
    )  # fmt: skip
    result = simulate(config)
    assert result.ok, (result.errors, result.diagnosis and result.diagnosis.lines())


@pytest.mark.parametrize("behind", [0, 1, 3, 9])
def test_a_connection_may_wrap_anywhere(behind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each connection's PSNs pass zero after other counts of packets, in each direction."""

    def near_the_end(source: int, destination: int, _: int) -> int:
        return (1 << 24) - 1 - (behind + 3 * source + destination) % 11

    monkeypatch.setattr("p4gen.groups.ranks.stream_psn", near_the_end)
    monkeypatch.setattr("p4gen.plan.placement.placer.stream_psn", near_the_end)
    config = SimConfig(
        TREE, tiny(mode=Mode.I), work=(Work(all_six(len(TREE.rank_hosts))),), seed=behind, engine="jit",
        faults=trouble(loss=0.02),
    )  # fmt: skip
    simulation = Simulation(config)
    result = simulation.run()
    assert result.ok, (result.errors, result.diagnosis and result.diagnosis.lines())
    assert any(pair.requester.psn(pair.requester.una) < 1 << 12 for pair in simulation.pairs)
