"""Groups' trees: the optimum against all trees, plans as files, and what switches then forward."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p4gen.errors import InputError
from p4gen.families import load_collective
from p4gen.net.collectives.config import Call, SimConfig, Work
from p4gen.net.collectives.simulation import Simulation
from p4gen.plan.placement.network import place
from p4gen.plan.placement.placed import GroupRequest
from p4gen.plan.placement.placer import separate_ports
from p4gen.plan.placement.tree import build_tree
from p4gen.plan.route.confirm import USUAL, confirm, draw_fabric, measure, program
from p4gen.plan.route.exact import fastest
from p4gen.plan.route.fabric import Fabric, Shape
from p4gen.plan.route.greedy import quick
from p4gen.plan.route.planfile import TreePlan, tree_of
from p4gen.plan.route.present import as_shape, one_root, present
from p4gen.plan.route.stripeplan import read_striped
from p4gen.plan.route.trees import compare
from p4gen.vocabulary.topology import TopologySpec, load_topology


def drawn(seed: int, form: str, ranks: int, inc: int) -> Fabric:
    chance = random.Random(seed)
    topology = load_topology(form)
    return Fabric(
        topology, tuple(chance.sample(topology.hosts, ranks)), frozenset(chance.sample(topology.switches, inc))
    )


def all_shapes(fabric: Fabric) -> Iterator[Shape]:
    """Every tree: any nodes, joined in any way, and each rank to any of them. Only the ways are the fabric's."""
    fixed = [(host, leaf) for leaf in fabric.required for host in fabric.under[leaf]]
    hosts = [(host, leaf) for leaf in fabric.forwarding for host in fabric.under[leaf]]
    others = sorted(fabric.inc - set(fabric.required))
    for count in range(len(others) + 1):
        for more in itertools.combinations(others, count):
            nodes = {*fabric.required, *more}
            between = [way.nodes for node in sorted(nodes) for way in fabric.ways[node] if way.end in nodes]
            once = [nodes_ for nodes_ in between if nodes_[0] < nodes_[-1]]
            up = [[(host, *way.nodes) for way in fabric.ways[leaf] if way.end in nodes] for host, leaf in hosts]
            for edges in itertools.combinations(once, max(0, len(nodes) - 1)):
                for chosen in itertools.product(*up):
                    if nodes:
                        yield Shape(min(nodes), (*fixed, *edges, *chosen))


def possible(shape: Shape, fabric: Fabric) -> bool:
    if list(shape.problems(fabric)):
        return False
    try:
        separate_ports(tree_of(fabric.topology, fabric.ranks, shape, 32))
    except InputError:
        return False
    return True


def test_the_optimum_is_that_of_all_trees(seed: int) -> None:
    for number in range(6):
        fabric = drawn(seed * 1000 + number, ("clos:2x2x2", "clos:3x2x1")[number % 2], 3, 1 + number % 3)
        found = fastest(fabric)
        assert possible(found.shape, fabric)
        rates = [shape.rate(fabric) for shape in all_shapes(fabric) if possible(shape, fabric)]
        assert found.rate == pytest.approx(max(rates))
        assert found.gap == pytest.approx(0, abs=1e-9)


def test_the_program_proves_what_the_quick_search_cannot() -> None:
    """One spine aggregates: both ranks of a leaf go to it over one link, though two would be there."""
    topology = load_topology("clos:2x2x2")
    fabric = Fabric(topology, topology.hosts, frozenset({"spine0"}))
    found = fastest(fabric)
    assert fabric.limit == pytest.approx(50e9)
    assert found.rate == pytest.approx(50e9)
    assert found.gap == 0
    fabric = drawn(6, "clos:4x4x8", 10, 2)
    found = fastest(fabric)
    assert found.bound <= fabric.limit
    assert found.gap == 0


def test_the_quick_search_makes_trees_that_are_forwarded(seed: int) -> None:
    for number in range(8):
        fabric = drawn(seed * 1000 + number, ("clos:4x4x2", "clos:4x3x4", "fat-tree-k4")[number % 3], 6, 2 + number % 4)
        shape, other = quick(fabric), one_root(fabric)
        if shape is None:  # leaves of a fat tree divide results among ways
            with pytest.raises(InputError, match="no switch that aggregates is reached"):
                fabric.check()
            continue
        assert possible(shape, fabric)
        assert shape.rate(fabric) <= fabric.limit * (1 + 1e-9)
        if other is not None:
            assert possible(other, fabric)


def test_where_everything_aggregates_the_present_tree_is_optimal() -> None:
    topology = load_topology("fat-tree-k4")
    found = compare(Fabric(topology, topology.rank_hosts, frozenset(topology.switches)), 2, 32, 10.0)
    assert found.present_is_best
    assert found.plan.algorithm == "lcs"
    assert found.plan.tree == present(found.fabric, dict.fromkeys(topology.switches, 16))


def test_a_tree_and_its_paths_are_the_same(seed: int) -> None:
    for number, form in enumerate(("leaf-spine", "fat-tree-k4", "tree-3-2", "star-8")):
        topology = load_topology(form)
        ranks = tuple(random.Random(seed + number).sample(topology.hosts, 4))
        tree = build_tree(topology, ranks, pipelines=2)
        assert tree_of(topology, ranks, as_shape(tree), 16).nodes[0] == tree.nodes[0]
        assert set(tree_of(topology, ranks, as_shape(tree), 16).nodes) == set(tree.nodes)


def plan_of(fabric: Fabric, pipelines: int = 1) -> TreePlan:
    shape = quick(fabric)
    assert shape is not None
    return TreePlan(fabric.topology, fabric.ranks, fabric.inc, shape, pipelines, 32, shape.rate(fabric), "quick")


def split_fabric() -> Fabric:
    """Leaf 1 forwards, and its ranks' flows reach leaf 0 over different spines."""
    topology = load_topology("clos:2x2x2")
    return Fabric(topology, topology.hosts, frozenset({"leaf0"}))


def test_ports_that_flows_part_for_have_addresses_of_their_own() -> None:
    plan = plan_of(split_fabric())
    assert plan.rate == 100e9  # a flow on each link
    assert separate_ports(plan.tree) == [("leaf0", 0), ("leaf0", 1)]
    spec = load_collective(None, {"groups": 8})
    request = GroupRequest(plan.ranks, collectives=frozenset({Call().collective}))
    placement = place(plan.topology, spec, [request], trees={0: plan.tree})
    (group,) = placement.groups
    addresses = {group.addresses["leaf0"], *(each.address for each in group.port_addresses)}
    assert len(addresses) == 3
    assert addresses == set(placement.tree_depths)
    with pytest.raises(InputError, match="leaf0: 3 addresses are needed; the program has 2"):
        place(plan.topology, load_collective(None, {"groups": 2}), [request], trees={0: plan.tree})


def test_flows_to_one_port_that_would_part_are_refused() -> None:
    """Both of leaf 1's flows reach spine 0's port to leaf 0, one by way of another spine."""
    topology = TopologySpec.model_validate(
        {
            "name": "diamond",
            "switches": ["top", "a", "b", "mid", "low"],
            "hosts": ["h0", "h1", "h2"],
            "links": [["low", "a"], ["low", "b"], ["a", "mid"], ["b", "mid"], ["mid", "top"], ["h0", "low"],
                      ["h1", "low"], ["h2", "top"]],
        }
    )  # fmt: skip
    paths = (("h0", "low", "a", "mid", "top"), ("h1", "low", "b", "mid", "top"), ("h2", "top"))
    tree = tree_of(topology, ("h0", "h1", "h2"), Shape("top", paths), 32)
    with pytest.raises(InputError, match=r"low would have to forward to port 0 of top by way of both a and b"):
        separate_ports(tree)
    fabric = Fabric(topology, ("h0", "h1", "h2"), frozenset({"top"}))
    assert quick(fabric) is None  # mid divides what goes back to low over both
    with pytest.raises(InputError, match="from low, no switch that aggregates is reached over a path that results"):
        fastest(fabric)


def test_packets_take_the_paths_of_the_plan_and_no_others() -> None:
    plan = plan_of(split_fabric(), 2)
    spec = load_collective(None, {"lanes": 8, "pipelines": 2, "message": 2, "window": 2})
    size = 8 * 32
    work = (Work((Call(size=size),), plan.ranks, None, plan.tree),)
    result = Simulation(SimConfig(plan.topology, spec, size=size, seed=1, work=work)).run()
    assert result.ok
    assert not result.drops
    loads = plan.shape.loads(plan.fabric)
    packets = Counter({use.name: use.packets for use in result.links})
    for link in plan.topology.links:
        for one, other in (link.ends, link.ends[::-1]):
            sent, flows = packets[f"{one}>{other}"], loads[link.name]
            assert flows * (8 + 1) <= sent <= flows * 2 * (8 + 1)  # data and control, and at most as many ACKs


def test_a_plan_comes_back_from_its_file(tmp_path: Path) -> None:
    plan = plan_of(split_fabric(), 2)
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan.to_json()))
    assert read_striped(file, plan.topology).plans == (plan,)


def _without_link(content: dict[str, Any]) -> None:
    content["paths"][-1] = [content["paths"][-1][0], "leaf0"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda c: c.update(digest="0"), "it is for the topology 'clos-2x2x2' with digest 0; clos-2x2x2 has"),
        (lambda c: c.update(plan="x"), "it has no IncTree"),
        (_without_link, "there is no link between h"),
        (lambda c: c.update(rate_bps=1e9), "its rate is 1 Gb/s; that of its paths is 100"),
        (lambda c: c["nodes"].pop(), "its nodes are not those of its paths"),
        (lambda c: c["paths"].pop(), "has 0 edges"),
        (lambda c: c.pop("ports"), "is no plan with an IncTree: KeyError"),
        (lambda c: c["ranks"].append("h77"), "there is no host 'h77'"),
    ],
)
def test_plans_that_do_not_fit_are_refused(tmp_path: Path, change: Any, reason: str) -> None:
    plan = plan_of(split_fabric(), 2)
    content = json.loads(json.dumps(plan.to_json()))
    change(content)
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(content))
    with pytest.raises(InputError) as refused:
        read_striped(file, plan.topology)
    assert reason in str(refused.value)
    assert str(file) in str(refused.value)


def test_fabrics_without_a_tree_are_refused() -> None:
    fabric = split_fabric()
    for wrong, reason in (
        (replace(fabric, inc=frozenset({"leaf9"})), "there is no switch 'leaf9'"),
        (replace(fabric, inc=frozenset()), "no switch aggregates"),
        (replace(fabric, ranks=("h0", "h0")), "a host can be only one rank"),
        (replace(fabric, topology=load_topology("clos:30x2x9")), "270 hosts; trees are planned for 250 at most"),
    ):
        with pytest.raises(InputError, match=reason):
            wrong.check()


@pytest.mark.long
def test_goodput_is_what_the_plan_promises() -> None:
    """A fabric of `p4gen route confirm`, whose optimum takes HiGHS to prove; and shortest paths to one root."""
    found = confirm(6, "II", 512 << 10)
    assert found.best.plan.gap == 0
    assert found.one_root is not None
    assert found.ok
    assert found.best.hottest == pytest.approx(1, abs=0.06)


@pytest.mark.long
def test_goodput_in_mode_iii_is_what_the_plan_promises() -> None:
    fabric, pipelines = draw_fabric(6)
    plan = compare(fabric, pipelines, 32, 60.0).plan
    assert measure(plan, program(plan, "III", *USUAL["III"]), 256 << 10, 1, "jit").ok
