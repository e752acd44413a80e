"""Groups on several trees: all or nothing, read back edge by edge, kept over restarts and failures of one tree."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p4gen.errors import InputError
from p4gen.groups.ranks import ACK_EVERY
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.collectives.striped import StripedCommunicator, divided
from p4gen.manager.api import Code, GroupSpec, ManagerError, RankConfig
from p4gen.model import EngineName
from p4gen.model.entries import Entry
from p4gen.net.collectives.config import Call
from p4gen.plan.placement.policy import Candidate, FabricView, Stripe
from p4gen.plan.placement.tree import IncTree, build_tree
from p4gen.plan.route.policy import Aro
from p4gen.plan.route.stripeplan import StripedPlan
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec, load_topology

from .collectives import Wires, news_of
from .plans import pair, passing, spines
from .rig import Rig, Switch, group, small
from .test_aro import view

CALL = Call(Collective.ALLREDUCE, 32 * 40)
FEW = (Call(Collective.ALLREDUCE, 32 * 5), Call(Collective.REDUCE, 32 * 5, root=1))


def rig_of(
    plan: StripedPlan,
    folder: Path,
    spec: CollectiveSpec | None = None,
    store: Path | str = ":memory:",
    engine: EngineName = "interp",
    **options: Any,
) -> Rig:
    file = folder / "plan.json"
    file.write_text(json.dumps(plan.to_json()))
    return Rig(plan.first.topology, spec or small(), store, policy=Aro(file), engine=engine, **options)


def config_of(rig: Rig, host: str, name: str = "g") -> RankConfig:
    config = news_of(rig, host)[name].config
    assert config is not None
    return config


class Entries:
    """What the switches hold, read back: tables by their keys, and ports of copies by the edge that they are for."""

    def __init__(self, switches: Mapping[str, Switch]) -> None:
        self.tables: dict[str, defaultdict[str, dict[tuple[int, ...], Mapping[str, int]]]] = {}
        self.ports: dict[str, dict[int, int]] = {}
        for name, switch in switches.items():
            held = switch.holds()
            tables = self.tables[name] = defaultdict(dict)
            for entry in held.entries:
                tables[entry.table.rpartition(".")[2]][_key(entry)] = entry.action.args
            self.ports[name] = {r.rid: r.port for each in held.multicast_groups for r in each.replicas}

    def way(self, topology: TopologySpec, start: str, port: int, address: int) -> tuple[str, ...]:
        """The nodes that a packet to an address passes from a port on, up to the switch that answers to it, or a
        host."""
        link, way = topology.ports[start][port], [start]
        while True:
            here = link.other(way[-1])
            way.append(here)
            if here in topology.hosts or (address,) in self.tables[here]["addresses"]:
                return tuple(way)
            route = self.tables[here]["routes"][address,]
            assert route.get("count", 1) == 1
            hop = self.tables[here]["next_hops"][route.get("id", route.get("first", 0)),]
            link = topology.ports[here][hop["port"]]

    def edges(self, topology: TopologySpec, host: str, address: int, qp: int) -> Counter[tuple[str, ...]]:
        """The ways of all edges of the tree of which a host knows the first endpoint, either way."""
        first = self.way(topology, host, 0, address)
        found, todo, seen = Counter([first]), [(first[-1], address, qp)], set()
        while todo:
            switch, address, qp = todo.pop()
            tables = self.tables[switch]
            context = tables["endpoints"][address, qp]["context"]
            if (switch, context) in seen:
                continue
            seen.add((switch, context))
            for end in tables["endpoints"].values():
                if end["context"] == context:
                    edge = tables["edges"][end["edge"],]
                    way = self.way(topology, switch, self.ports[switch][end["edge"]], edge["dst_address"])
                    found[way] += 1
                    if way[-1] in topology.switches:
                        todo.append((way[-1], edge["dst_address"], edge["dest_qp"]))
        return found


def _key(entry: Entry) -> tuple[int, ...]:
    return tuple(cast("Any", match).value for match in entry.match.values())


def ways_of(tree: IncTree, host: str) -> Counter[tuple[str, ...]]:
    """The paths of a plan's tree, each from both ends; of a host's own edge from the host's end too."""
    found = Counter(edge.path for node in tree.nodes for edge in node.edges)
    found.update(edge.path[::-1] for node in tree.nodes for edge in node.edges if edge.path[-1] == host)
    return found


@pytest.mark.parametrize("plan", [passing(), spines(6e9, 4e9)], ids=["passing", "spines"])
def test_switches_hold_exactly_the_plans_trees(tmp_path: Path, plan: StripedPlan) -> None:
    topology = plan.first.topology
    rig = rig_of(plan, tmp_path)
    with rig.register() as manager:
        status = manager.init_group(group("g", *topology.hosts))
        roots = [next(name for name, above in each.tree.items() if above is None) for each in status.trees]
        assert roots == [each.shape.root for each in plan.plans]
        assert [each.rate for each in status.trees] == pytest.approx(plan.rates)
        assert dict(status.tree) == dict(status.trees[0].tree)
        nodes = Counter(node.key.switch for each in plan.plans for node in each.tree.nodes)
        assert status.contexts == nodes
        assert set(status.switches) == set(nodes)
        rig.check()
        entries = Entries(rig.switches)
        for host in topology.hosts:
            config = config_of(rig, host)
            assert not config.channels
            for tree, each in zip(config.trees, plan.plans, strict=True):
                peer = tree.channels[0].peer
                assert entries.edges(topology, host, peer.ip, peer.qp) == ways_of(each.tree, host)
        qps = [qp for host in topology.hosts for qp in config_of(rig, host).qps]
        assert len(set(qps)) == len(qps)
        Wires(rig).run("g", FEW)
        manager.destroy_group("g")
        rig.check_empty()
        assert not manager._store.counts()["trees"]


def test_calls_are_carried_by_all_trees_as_their_rates_are(tmp_path: Path) -> None:
    rig = rig_of(passing(), tmp_path)
    with rig.register() as manager:
        manager.init_group(group("g", *rig.topology.hosts))
        wires = Wires(rig)
        wires.run("g", [CALL])
        for member in wires.join("g"):
            assert isinstance(member, StripedCommunicator)
            sent = [sum(pair.counts()["sent"] for pair in each.pairs) for each in member.communicators]
            assert sent[0] / sum(sent) == pytest.approx(0.75, abs=0.02)
            works = passing().work((CALL,), small(), ACK_EVERY)
            assert [pair.config.pace for pair in member.pairs] == [work.pace for work in works]


def test_trees_have_a_context_for_each_pattern(tmp_path: Path) -> None:
    rig = rig_of(pair(), tmp_path, small(groups=16))
    with rig.register() as manager:
        status = manager.init_group(group("g", "h0", "h1", sync=PsnSync.SUBGROUPS))
        assert status.contexts == {"spine0": 5, "spine1": 5}
        Wires(rig).run("g")
        rig.check()


@pytest.fixture(scope="module")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Rig, Wires]]:
    rig = rig_of(spines(5e9, 3e9, 2e9), tmp_path_factory.mktemp("plan"), small(window=4, message=2), engine="jit")
    with rig.register() as manager:
        manager.init_group(group("g", "h3", "h0", "h2", "h1"))
        yield rig, Wires(rig)


calls = st.builds(
    lambda collective, size, root: Call(
        collective, 0 if collective is Collective.BARRIER else 4 * 4 * size, root
    ),
    st.sampled_from(Collective), st.one_of(st.integers(1, 12), st.integers(1, 300)), st.integers(0, 3),
)  # fmt: skip


def test_each_collective_is_numpys(wires: tuple[Rig, Wires]) -> None:
    wires[1].run("g")


@given(st.lists(calls, min_size=1, max_size=4), st.integers(0, 99))
@settings(max_examples=10)
def test_any_calls_are_numpys(wires: tuple[Rig, Wires], some: list[Call], seed: int) -> None:
    wires[1].run("g", some, seed)


@given(st.integers(0, 1 << 40), st.integers(1, 1 << 20), st.lists(st.floats(1, 1e12), min_size=1, max_size=6))
def test_data_is_divided_by_whole_units(size: int, unit: int, rates: list[float]) -> None:
    parts = divided(size, unit, rates)
    assert sum(parts) == size
    assert parts[0] > 0 or not size
    for part, rate in zip(parts[1:], rates[1:], strict=True):
        assert part % unit == 0
        assert 0 <= part <= size * rate / sum(rates)
    assert parts[0] - len(rates) * unit <= size * rates[0] / sum(rates)


def test_trees_outlive_their_manager_and_change_together(tmp_path: Path) -> None:
    rig = rig_of(spines(6e9, 4e9), tmp_path, store=tmp_path / "db")
    rig.register()
    before = rig.manager.init_group(group("g", "h0", "h1", "h2", "h3"))
    told = config_of(rig, "h2")
    rig.kill()
    with rig.again() as manager:
        rig.check()
        assert manager.group("g") == before
        assert config_of(rig, "h2") == told
        wires = Wires(rig)
        wires.run("g", FEW)
        status = manager.resize_group("g", 8)
        assert [tuple(each.tree) for each in status.trees] == [tuple(each.tree) for each in before.trees]
        assert {context.slots for _, p in manager._ledger.live() for _, context in p.contexts} == {8}
        wires.run("g", FEW)
        status = manager.move_group("g", "spine1")  # a request that names its root has one tree
        assert (dict(status.tree)["spine1"], status.trees) == (None, ())
        wires.run("g", FEW)
        rig.check()
        assert manager.move_group("g").trees == before.trees
        wires.run("g", FEW)
        rig.check()


def test_trees_that_remain_go_on_when_a_link_of_one_fails(tmp_path: Path) -> None:
    rig = rig_of(spines(5e9, 3e9, 2e9), tmp_path)
    topology = rig.topology

    def cut(leaf: str, spine: str, up: bool = False) -> None:
        port = next(i for i, link in enumerate(topology.ports[leaf]) if link.other(leaf) == spine)
        rig.manager.report_links(leaf, {port: up})
        rig.wait(rig.settled)

    with rig.register() as manager:
        wires = Wires(rig)
        assert len(manager.init_group(group("g", *topology.hosts)).trees) == 3
        cut("leaf1", "spine1")
        status = manager.group("g")
        assert status.generation == 2
        assert [each.rate for each in status.trees] == pytest.approx([10e9 * 5 / 7, 10e9 * 2 / 7])
        assert set(status.switches) == {"leaf0", "leaf1", "spine0", "spine2"}
        wires.run("g", FEW)
        rig.check()
        cut("leaf0", "spine0")
        status = manager.group("g")
        assert (status.generation, status.trees, dict(status.tree)["spine2"]) == (3, (), None)
        wires.run("g", FEW)
        cut("leaf0", "spine0", up=True)
        assert manager.group("g").generation == 3, "a group stays where it is"
        assert len(manager.move_group("g").trees) == 2
        rig.check()


def test_a_group_moves_to_several_trees_when_there_is_room(tmp_path: Path) -> None:
    """Over the best tree alone it has 5 Gb/s, over both 6.67."""
    rig = rig_of(passing(), tmp_path, small(groups=4), replan=True)
    with rig.register() as manager:
        manager.init_group(group("other", "h3", "h4", root="leaf1", slots=4))
        manager.init_group(group("more", "h3", "h5", root="leaf1", slots=2))
        assert not manager.init_group(group("g", *rig.topology.hosts)).trees
        manager.destroy_group("other")
        manager.destroy_group("more")
        rig.wait(lambda: manager.group("g").trees)
        assert manager.group("g").generation == 2
        Wires(rig).run("g", FEW)
        rig.check()


def test_without_room_for_all_trees_a_group_has_the_best_one(tmp_path: Path) -> None:
    plan = spines(6e9, 4e9)
    rig = rig_of(plan, tmp_path, small(groups=2))
    with rig.register() as manager:
        manager.init_group(group("other", "h0", "h1", root="leaf0"))
        status = manager.init_group(group("g", "h0", "h1", "h2", "h3"))
        assert (status.trees, dict(status.tree)["spine0"]) == ((), None)
        more = (manager.init_group(group(f"more{number}", "h0", "h1", "h2", "h3")) for number in range(9))
        with pytest.raises(ManagerError) as full:
            list(more)
        assert full.value.code is Code.NO_ROOM
        assert "root spine0 and spine1: leaf0: 1 context is needed; 0 of 2 are free (groups)" in str(full.value)
        for each in manager.groups():
            rig.check()
            manager.destroy_group(each.spec.name)
        rig.check_empty()
        assert len(manager.init_group(group("g", "h0", "h1", "h2", "h3")).trees) == 2
        rig.check()


class Stripes:
    """Proposes these trees."""

    def __init__(self, *stripes: Stripe, leased: bool = False) -> None:
        self._stripes, self._leased = stripes, leased

    def candidates(self, view: FabricView, spec: GroupSpec) -> Iterator[Candidate]:
        yield Candidate("s0", stripes=self._stripes, leased=self._leased)


@pytest.mark.parametrize(
    ("rates", "ranks", "leased", "why"),
    [
        ((0.0,), ("h0", "h1"), False, "the rates of its trees are positive numbers"),
        ((1e9, 0.0), ("h0", "h1"), False, "the rates of its trees are positive numbers"),
        ((1e9, float("inf")), ("h0", "h1"), False, "the rates of its trees are positive numbers"),
        ((1e9, 1e9), ("h1", "h0"), False, "its trees are not of the group's ranks"),
        ((1e9, 1e9), ("h0", "h1"), True, "a group that has its switches by leases has one tree"),
    ],
)
def test_trees_that_make_no_group_are_refused(
    rates: tuple[float, ...], ranks: tuple[str, ...], leased: bool, why: str
) -> None:
    topology = load_topology("star-4")
    tree = build_tree(topology, ranks)
    policy = Stripes(*(Stripe(tree, rate) for rate in rates), leased=leased)
    with Rig(topology, small(), policy=policy).register() as manager:
        with pytest.raises(ManagerError, match=why):
            manager.init_group(group("g", "h0", "h1"))
        assert not manager.groups()


def test_the_trees_of_a_group_need_programs_that_are_alike(tmp_path: Path) -> None:
    plan = spines(6e9, 4e9)
    topology = plan.first.topology
    specs = dict.fromkeys(topology.switches, small()) | {"spine1": small(message=2)}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan.to_json()))
    with Rig(topology, specs, policy=Aro(file)).register() as manager:
        status = manager.init_group(group("g", *topology.hosts))
        assert (status.trees, dict(status.tree)["spine0"]) == ((), None)


def test_the_policy_proposes_what_can_be_used(tmp_path: Path) -> None:
    plan = spines(5e9, 3e9, 2e9)
    topology, file = plan.first.topology, tmp_path / "plan.json"
    file.write_text(json.dumps(plan.to_json()))
    policy = Aro(file)

    def roots(*down: str) -> list[tuple[str, ...]]:
        proposed = policy.candidates(view(topology, dict.fromkeys(down, "down")), GroupSpec("g", topology.hosts[::-1]))
        return [tuple(stripe.tree.root.key.switch for stripe in each.stripes) or (each.root,) for each in proposed]

    assert roots()[:2] == [("spine0", "spine1", "spine2"), ("spine0",)]
    assert roots("leaf0-spine0")[:2] == [("spine1", "spine2"), ("spine1",)]
    assert roots("leaf0-spine0", "leaf1-spine2")[0] == ("spine1",)
    other = GroupSpec("g", topology.hosts[:3])
    assert not any(each.stripes for each in policy.candidates(view(topology), other))
    with pytest.raises(InputError, match="it is for the topology"):
        list(policy.candidates(view(load_topology("clos:2x3x2")), other))
