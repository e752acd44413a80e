"""Groups of ranks that write to each other: a context for each source, placed and installed by the manager."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from p4gen.groups.group import Memory, SwitchConfig
from p4gen.host.transport.memory import ProtectionDomain
from p4gen.manager.api import Code, GroupSpec, GroupState, HostInfo, ManagerError, RankConfig
from p4gen.manager.remote.messages import from_message, to_message
from p4gen.net.world.faults import Faults
from p4gen.net.world.network import Network
from p4gen.papers.multiwrite.placing import Addresses, End
from p4gen.papers.multiwrite.ranks.hosts import Member
from p4gen.papers.multiwrite.ranks.layout import Layout
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.program.compilation import compile_spec
from p4gen.vocabulary.message import Collective

from .rig import Rig, group, small

ALL = tuple(f"h{i}" for i in range(8))
PACKETS = 8


def program(**fields: Any) -> MultiwriteSpec:
    return MultiwriteSpec.model_validate({"payload": 128, "contexts": 20, "slots": 8, "edges": 8, "ports": 8} | fields)


def memories(layout: Layout, count: int) -> tuple[Memory, ...]:
    """What the ranks' NICs give their windows, each its first."""
    region = ProtectionDomain().register(bytearray(layout.size))
    return (Memory(region.address, region.rkey, layout.size),) * count


def writes(name: str, ranks: Sequence[str], spec: MultiwriteSpec, **fields: Any) -> GroupSpec:
    broadcasts = {"collectives": frozenset({Collective.BROADCAST})}
    offered = memories(Layout(spec, len(ranks), PACKETS), len(ranks))
    return group(name, *ranks, memories=offered, **broadcasts, **fields)


def connected(rig: Rig, configs: Sequence[RankConfig], hosts: Sequence[str]) -> tuple[Network, list[Member]]:
    """The ranks of a group on a virtual network, whose switches hold what those of the rig do."""
    spec = configs[0].spec
    assert isinstance(spec, MultiwriteSpec)
    plain = Addresses.of(rig.topology, spec)
    held = {name: switch.holds() for name, switch in rig.switches.items()}
    addresses = Addresses(plain.mac, plain.ip, held, plain.architectures, {})
    programs = dict.fromkeys(rig.topology.switches, compile_spec(spec).program)
    network = Network(rig.topology, addresses, programs, Faults(), 1, "jit", payload=spec.payload)
    layout = Layout(spec, len(hosts), PACKETS)
    members = [Member(network.nics[host], rank, layout) for rank, host in enumerate(hosts)]
    for rank, (member, config) in enumerate(zip(members, configs, strict=True)):
        ends = {channel.key[1]: End(channel.qp, channel.peer) for channel in config.channels}
        assert {channel.key[0] for channel in config.channels} == {Collective.BROADCAST}
        first = dict.fromkeys(range(len(hosts)), config.first_psn)
        member.connect(ends[rank], {source: end for source, end in ends.items() if source != rank}, first)
    return network, members


def configs_of(rig: Rig, name: str, hosts: Sequence[str]) -> list[RankConfig]:
    """What each rank is told."""
    record = rig.manager._ledger.records[name]
    return [rig.manager._ledger.rank_config(record, rank) for rank in range(len(hosts))]


def check_dispatch(
    network: Network, members: list[Member], chance: np.random.Generator, tokens: int, experts: int
) -> None:
    """Each rank dispatches so many tokens, each to so many experts drawn, and gets what is for it."""
    ranks = len(members)
    data = chance.integers(0, 256, (ranks, tokens, 100), np.uint8)
    topk = chance.integers(0, ranks, (ranks, tokens, experts))
    for member in members:
        member.dispatch(data[member.rank], topk[member.rank])
    network.loop.run()
    for member in members:
        source, index = np.nonzero((topk == member.rank).any(axis=2))
        assert np.array_equal(member.received(100).tokens, data[source, index])
    assert not network.lost({})


@pytest.mark.parametrize("fields", [{}, {"place": "append"}, {"replicate": "prune", "receivers": 64}], ids=str)
@pytest.mark.long
def test_a_group_is_placed_and_its_writes_arrive(fields: dict[str, Any]) -> None:
    spec = program(**fields)
    hosts = ("h1", "h4", "h0", "h6", "h7")  # of three leaves, in another order than the network's
    rig = Rig("leaf-spine", spec)
    with rig.register() as manager:
        for host in ALL:
            manager.register_host(HostInfo(host))
        status = manager.init_group(writes("g", hosts, spec))
        assert (status.state, set(status.contexts.values())) == (GroupState.ACTIVE, {len(hosts)})
        assert set(status.tree) == {"spine0", "leaf0", "leaf3"}  # leaf2 has one rank, and only forwards
        rig.check()
        network, members = connected(rig, configs_of(rig, "g", hosts), hosts)
        chance = np.random.default_rng(3)
        blocks = [chance.bytes(128 * PACKETS) for _ in hosts]
        for member in members:
            member.all_gather(blocks[member.rank])
        network.loop.run()
        assert all(member.done and member.gathered() == b"".join(blocks) for member in members)
        check_dispatch(network, members, chance, PACKETS, 2)
        manager.destroy_group("g")
        rig.check_empty()


@pytest.mark.long
def test_wide_bitmaps_are_for_more_ranks_than_immediate_data_has_bits() -> None:
    """33 ranks on three leaves, each a source; programs with 32 bits refuse them."""
    fields = {"contexts": 33, "edges": 12, "ports": 12}
    spec, few = program(**fields, receivers=64), program(**fields)
    hosts = tuple(f"h{(number * 7 + 3) % 33}" for number in range(33))
    with (
        Rig("clos:3x1x11", few).register() as manager,
        pytest.raises(ManagerError, match="33 ranks offer memory; switches address that of 32"),
    ):
        manager.init_group(writes("g", hosts, few))
    rig = Rig("clos:3x1x11", spec)
    with rig.register() as manager:
        for host in hosts:
            manager.register_host(HostInfo(host))
        status = manager.init_group(writes("g", hosts, spec))
        assert (len(status.contexts), set(status.contexts.values())) == (4, {33})
        rig.check()
        network, members = connected(rig, configs_of(rig, "g", hosts), hosts)
        check_dispatch(network, members, np.random.default_rng(5), 2, 6)
        manager.destroy_group("g")
        rig.check_empty()


def test_contexts_are_the_sources_of_all_groups(tmp_path: Path) -> None:
    """Groups share a switch; what is free goes to the next one, in an epoch of its own; a new manager goes on."""
    spec = program()
    rig = Rig("star-8", spec, tmp_path / "store")
    with rig.register() as manager:
        manager.init_group(writes("a", ALL, spec))
        manager.init_group(writes("b", ALL, spec))
        with pytest.raises(ManagerError, match=r"s0: 8 contexts are needed; 4 of 20 are free \(groups\)"):
            manager.init_group(writes("c", ALL, spec))
        manager.init_group(writes("c", ALL[:4], spec))
        rig.check()
        epochs = {
            entry.action.args["epoch"] for entry in rig.switches["s0"].holds().entries if "epoch" in entry.action.args
        }
        assert epochs == {1}
        manager.destroy_group("b")
        manager.init_group(writes("b", ALL, spec))
        held = rig.switches["s0"].holds()
        of_contexts = [entry.action.args["epoch"] for entry in held.entries if "epoch" in entry.action.args]
        assert sorted(of_contexts) == [1] * 12 + [2] * 8
        before = manager.groups()
        rig.die()
    again = rig.again()
    with again:
        rig.register()
        rig.check()
        assert again.groups() == before
        for name in "abc":
            again.destroy_group(name)
        rig.check_empty()


def test_what_is_refused() -> None:
    spec = program(receivers=32)
    rig = Rig("star-4", spec)
    hosts = ALL[:4]
    with rig.register() as manager:
        for asked, reason in (
            (group("g", *hosts), f"{spec.program} needs the memory of each rank"),
            (writes("g", hosts, spec, slots=16), "16 slots; each context of the program has 8"),
            (group("g", *hosts, memories=memories(Layout(spec, 4, 4), 3)), "it has the memory of 3 ranks; there are 4"),
        ):
            with pytest.raises(ManagerError, match=reason) as caught:
                manager.init_group(asked)
            assert caught.value.code is Code.INVALID
        rig.check_empty()
    other = Rig("star-4", small())
    with other.register() as manager, pytest.raises(ManagerError, match="knows no memory of ranks"):
        manager.init_group(writes("g", hosts, spec))


def test_edges_toward_destinations_have_ticks() -> None:
    spec = program(repair="hop", contexts=4)
    rig = Rig("star-4", spec)
    with rig.register() as manager:
        manager.init_group(writes("g", ALL[:4], spec))
        rig.wait(lambda: len(rig.agents["s0"].ticking) == 4 * 3)
        at = {(edge.context, edge.edge.ranks) for edge in rig.agents["s0"].ticking}
        placed = rig.manager._ledger.records["g"].placed
        assert placed is not None
        sources = {(context.context, 1 << context.patterns[0].root) for _, context in placed.contexts}
        assert not at & sources
        manager.destroy_group("g")
        rig.check_empty()


def test_messages_have_the_memory_of_ranks() -> None:
    asked = writes("g", ALL, program())
    assert from_message(GroupSpec, to_message(asked)) == asked


def test_switches_without_groups_hold_routes_alone() -> None:
    config: SwitchConfig = Rig("star-4", program()).switches["s0"].holds()
    assert not config.entries
