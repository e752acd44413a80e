"""Groups on topologies: who sends what to whom, followed entry by entry through all switches."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.errors import InputError
from p4gen.host.collectives.plan import PsnSync
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.plan.placement.network import Placement, contexts_needed, place
from p4gen.plan.placement.placed import Channel, GroupRequest, PlacedGroup
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec, load_topology

from .networks import Fabric, spec_for, topologies

ALLREDUCE, REDUCE, BROADCAST = Collective.ALLREDUCE, Collective.REDUCE, Collective.BROADCAST
ONLY_ALLREDUCE = frozenset({ALLREDUCE})


def test_groups_that_share_blocks_have_epochs_of_their_own() -> None:
    spec = EpicSpec(lanes=8, groups=4, locks=2, window=1, message=1, ports=8, fan_in=4)
    requests = [GroupRequest(("h0", "h1"), collectives=ONLY_ALLREDUCE) for _ in range(4)]
    found = [group.channels[0].contexts for group in place(load_topology("star-2"), spec, requests).groups]
    contexts = [next(iter(each.values())) for each in found]
    assert [each.block for each in contexts] == [0, 1, 0, 1]
    assert len({each.epoch for each in contexts}) == 4
    assert [each.base for each in contexts] == [16, 18, 16, 18]


def check_group(fabric: Fabric, group: PlacedGroup, mode: Mode) -> None:
    """Every pattern brings everyone's data, once, to those who are to have it, and to nobody else."""
    ranks = range(len(group.tree.ranks))
    whole = Counter(dict.fromkeys(ranks, 1))
    nobody: dict[int, list[Counter[int]]] = {rank: [] for rank in ranks}
    for collective in (ALLREDUCE, Collective.BARRIER):
        got = fabric.walk(group.channel(collective), collective, 0, ranks)
        assert got == {rank: [whole] for rank in ranks}
    alone = len(ranks) == 1
    for root in ranks:
        others = [rank for rank in ranks if rank != root]
        reduced = fabric.walk(group.channel(REDUCE, root), REDUCE, root, others)
        assert reduced == nobody | {root: [] if alone else [Counter(dict.fromkeys(others, 1))]}
        if not alone:
            sent = fabric.walk(group.channel(BROADCAST, root), BROADCAST, root, [root])
            assert sent == {rank: [] if rank == root else [Counter({root: 1})] for rank in ranks}
    if mode is Mode.II:
        check_answers(fabric, group)


def check_answers(fabric: Fabric, group: PlacedGroup) -> None:
    """Mode II: a receiver's ACK comes to all whose data it has (EPIC §A)."""
    ranks = range(len(group.tree.ranks))
    for rank in ranks:
        got = fabric.walk(group.channel(ALLREDUCE), ALLREDUCE, 0, [rank], answers=True)
        assert got == {r: [Counter({rank: 1})] if r == rank else [] for r in ranks}
    for root in ranks if len(ranks) > 1 else ():
        others = [rank for rank in ranks if rank != root]
        to_senders = fabric.walk(group.channel(REDUCE, root), REDUCE, root, [root], answers=True)
        assert to_senders == {rank: [] if rank == root else [Counter({root: 1})] for rank in ranks}
        to_root = fabric.walk(group.channel(BROADCAST, root), BROADCAST, root, others, answers=True)
        assert to_root == {r: [Counter(dict.fromkeys(others, 1))] if r == root else [] for r in ranks}


def check_pipes(placement: Placement) -> None:
    """Mode III: whoever a pipe sends to acknowledges that pipe, whole."""
    for config in placement.switches.values():
        entries = [entry for entry in config.entries if entry.table == "flows"]
        reached = {tree.group_id: {replica.rid for replica in tree.replicas} for tree in config.multicast_groups}
        bits = {
            entry.action.args["edge"]: entry.action.args["edge_bit"]
            for entry in config.entries
            if entry.table == "endpoints"
        }
        shared = ("base", "mask", "source_mask", "pipe", "sync")

        def pipe(args: object, names: tuple[str, ...] = shared) -> tuple[int, ...]:
            assert isinstance(args, dict)
            return tuple(args[name] for name in names)

        for entry in entries:
            same = [e for e in entries if list(e.match.values())[:2] == list(entry.match.values())[:2]]
            other = "acknowledge" if entry.action.name == "accept" else "accept"
            (partner,) = [e for e in same if e.action.name == other and pipe(e.action.args) == pipe(entry.action.args)]
            if entry.action.name == "accept":
                outputs = reached[entry.action.args["out_group"]]
                assert sum(bits[edge] for edge in outputs) == partner.action.args["out_mask"]
                group = partner.action.args["answer_group"]
                sources = sum(bits[edge] for edge in reached[group]) if group else 0
                assert sources == (entry.action.args["source_mask"] if entry.action.args["sync"] else 0)


@given(
    data=st.data(),
    topology=topologies(),
    mode=st.sampled_from(Mode),
    sync=st.sampled_from(PsnSync),
    pipelines=st.sampled_from([1, 2, 4]),
)
def test_every_collective_on_any_network(
    data: st.DataObject, topology: TopologySpec, mode: Mode, sync: PsnSync, pipelines: int
) -> None:
    members = st.lists(st.sampled_from(topology.hosts), min_size=1, max_size=6, unique=True)
    if mode.stores:
        sync = PsnSync.SUBGROUPS  # Mode I has no other
    requests = [
        GroupRequest(tuple(data.draw(members)), sync=sync, every_switch=data.draw(st.booleans()))
        for _ in range(data.draw(st.integers(1, 2)))
    ]
    spec = spec_for(topology, requests, mode, pipelines)
    placement = place(topology, spec, requests)
    fabric = Fabric(topology, spec, placement)
    for group in placement.groups:
        check_group(fabric, group, mode)
    if mode is Mode.III:
        check_pipes(placement)
    check_numbers(placement)


def check_numbers(placement: Placement) -> None:
    """Queue pairs tell everything apart, and both ends of an edge agree on who they are."""
    ends = [
        (host, channel.ends[rank].qp)
        for group in placement.groups
        for channel in group.channels
        for rank, host in enumerate(group.tree.ranks)
    ]
    assert len(set(ends)) == len(ends)
    edges = [placed.edge for placed in placement.edges]
    local = {(edge.local.ip, edge.local.qp): edge for edge in edges}
    assert len(local) == len(edges)
    for edge in edges:
        far = local.get((edge.remote.ip, edge.remote.qp))
        assert edge.first_hop == (far is None)
        if far is not None:
            assert (far.remote.ip, far.remote.qp) == (edge.local.ip, edge.local.qp)
            assert (far.to_pipeline is None) == (edge.to_pipeline is None)


@pytest.mark.parametrize("name", ["star-8", "tree-3-2", "tree-3-4", "tree-5-2", "leaf-spine", "fat-tree-k4"])
@pytest.mark.parametrize("pipelines", [1, 2, 4])
def test_the_networks_that_come_along(name: str, pipelines: int) -> None:
    topology = load_topology(name)
    for mode, sync in ((Mode.II, PsnSync.SUBGROUPS), (Mode.III, PsnSync.REFINED)):
        requests = [GroupRequest(topology.rank_hosts, sync=sync)]
        spec = spec_for(topology, requests, mode, pipelines)
        placement = place(topology, spec, requests)
        check_group(Fabric(topology, spec, placement), placement.groups[0], mode)


def test_a_star_is_numbered_by_rank() -> None:
    topology = load_topology("star-8")
    placement = place(topology, EpicSpec(), [GroupRequest(topology.rank_hosts, collectives=ONLY_ALLREDUCE)])
    assert placement.root == "s0"
    (channel,) = placement.groups[0].channels
    assert channel.contexts == {("s0", 0): placement.group}
    for rank, edge in enumerate(placement.group.edges):
        assert (edge.port, edge.edge_id, edge.first_hop) == (rank, rank + 1, True)
        assert (edge.remote.ip, edge.remote.qp) == (placement.ip[f"h{rank}"], channel.ends[rank].qp)
        assert (edge.local.ip, edge.local.qp) == (channel.ends[rank].peer.ip, channel.ends[rank].peer.qp)
    assert placement.tree_depths == {0x0AFF0001: 0}


def test_hosts_reach_each_other_as_ever() -> None:
    topology = load_topology("fat-tree-k4")
    requests = [GroupRequest(topology.rank_hosts, collectives=ONLY_ALLREDUCE)]
    spec = spec_for(topology, requests)
    placement = place(topology, spec, requests)
    fabric = Fabric(topology, spec, placement)
    for src, dst in combinations(topology.hosts, 2):
        assert fabric.travel(src, 0, placement.gateway[src], placement.ip[dst]) == {(dst, 0)}


def test_contexts() -> None:
    topology = load_topology("tree-3-2")
    ranks = topology.rank_hosts
    assert contexts_needed(topology, [GroupRequest(ranks)]) == 9
    assert contexts_needed(topology, [GroupRequest(ranks, sync=PsnSync.REFINED)]) == 1
    assert contexts_needed(topology, [GroupRequest(ranks, collectives=ONLY_ALLREDUCE)]) == 1
    scatter = frozenset({Collective.REDUCE_SCATTER})
    assert contexts_needed(topology, [GroupRequest(ranks, collectives=scatter)]) == 5
    assert contexts_needed(topology, [GroupRequest(ranks, collectives=scatter, roots=frozenset({2}))]) == 2
    two = [GroupRequest(ranks[:2]), GroupRequest(ranks, sync=PsnSync.REFINED)]
    assert contexts_needed(topology, two) == 6, "s1 serves both"
    assert contexts_needed(topology, [GroupRequest(ranks)], pipelines=4, ports=4) == 27, "three ports, three pipelines"


def test_channels_are_found_by_what_they_carry() -> None:
    topology = load_topology("star-4")
    requests = [GroupRequest(topology.rank_hosts), GroupRequest(topology.rank_hosts, sync=PsnSync.REFINED)]
    subgroups, refined = place(topology, spec_for(topology, requests), requests).groups

    def keys(channels: tuple[Channel, ...]) -> list[tuple[Collective, int]]:
        return [channel.key for channel in channels]

    assert keys(subgroups.channels) == [(ALLREDUCE, 0), *((c, r) for c in (REDUCE, BROADCAST) for r in range(4))]
    assert keys(refined.channels) == [(ALLREDUCE, 0)]
    assert subgroups.channel(Collective.REDUCE_SCATTER, 3).key == (REDUCE, 3)
    assert subgroups.channel(Collective.ALLGATHER, 2).key == (BROADCAST, 2)
    assert subgroups.channel(Collective.BARRIER, 2).key == (ALLREDUCE, 0)
    assert refined.channel(Collective.BROADCAST, 1) is refined.channels[0]
    with pytest.raises(InputError, match="not placed for reduce with root 4"):
        subgroups.channel(REDUCE, 4)


def test_groups_of_one_switch_share_nothing() -> None:
    topology = load_topology("tree-3-2")
    hosts = topology.rank_hosts
    requests = [GroupRequest(hosts, epoch=3), GroupRequest(hosts[::-1], "s1", first_psn=0xFFFFFF, slots=4)]
    placement = place(topology, spec_for(topology, requests, Mode.III).model_copy(update={"groups": 64}), requests)
    first, second = placement.groups
    assert (first.tree.root.key.switch, second.tree.root.key.switch) == ("s0", "s1")
    assert not set(first.addresses.values()) & set(second.addresses.values())
    contexts = [group for channel in second.channels for group in channel.contexts.values()]
    assert {(group.epoch, group.first_psn, group.slots) for group in contexts} == {(1, 0xFFFFFF, 4)}
    assert {g.epoch for channel in first.channels for g in channel.contexts.values()} == {3}


def refused(topology: TopologySpec, spec: EpicSpec, *requests: GroupRequest) -> list[str]:
    with pytest.raises(InputError) as caught:
        place(topology, spec, requests)
    return [diagnostic.message for diagnostic in caught.value.diagnostics]


def test_refused_with_all_reasons() -> None:
    topology = load_topology("tree-3-2")
    hosts = topology.rank_hosts
    assert refused(topology, EpicSpec(), GroupRequest(hosts), GroupRequest(hosts[:2])) == [
        "s0: 9 contexts are needed; the program has 4 (groups)",
        "s1: 14 contexts are needed; the program has 4 (groups)",
        "s2: 9 contexts are needed; the program has 4 (groups)",
    ]
    assert refused(topology, EpicSpec(ports=2), GroupRequest(("h0", "h7")), GroupRequest(hosts, "s9")) == [
        "s1 has 3 links; the program has 2 ports",
        "s2 has 3 links; the program has 2 ports",
        "group 0: there is no host 'h7'",
        "group 1: there is no switch 's9'",
    ]
    assert refused(topology, EpicSpec(), GroupRequest(hosts, collectives=frozenset(), roots=frozenset({4}))) == [
        "group 0: it has no collectives",
        "group 0: rank 4 cannot be a root, which are ranks 0 to 3",
    ]
    narrow = refused(topology, EpicSpec(fan_in=2), GroupRequest(hosts, sync=PsnSync.REFINED, slots=64, epoch=256))
    assert "s1: group 0: 3 edges; the program takes 1 to 2" in narrow
    assert "s0: group 0: 64 slots; it takes a power of two of at least 2 x W x M = 128" in narrow
    assert "s2: group 0: epoch 256 is not in 1 to 255" in narrow
