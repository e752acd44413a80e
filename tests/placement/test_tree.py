"""IncTrees: what they are on known networks, and what holds on any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.errors import InputError
from p4gen.plan.placement.tree import IncTree, NodeKey, Role, build_tree
from p4gen.vocabulary.topology import TopologySpec, load_topology

from .networks import topologies


def roles(tree: IncTree) -> dict[str, Role]:
    return {node.key.switch: node.role for node in tree.nodes}


def test_a_star_has_rank_i_behind_edge_i() -> None:
    topology = load_topology("star-8")
    tree = build_tree(topology, topology.rank_hosts)
    (node,) = tree.nodes
    assert [edge.path for edge in node.edges] == [("s0", f"h{i}") for i in range(8)]
    assert (node.parent, node.role) == (None, Role.ROOT)


@pytest.mark.parametrize(
    ("name", "count"),
    [("tree-3-2", (0, 2)), ("tree-3-4", (0, 4)), ("tree-5-2", (6, 8)), ("fat-tree-k4", (4, 8)), ("leaf-spine", (0, 4))],
)
def test_roles_on_the_networks_that_come_along(name: str, count: tuple[int, int]) -> None:
    topology = load_topology(name)
    found = list(roles(build_tree(topology, topology.rank_hosts)).values())
    assert (found.count(Role.INTERMEDIATE), found.count(Role.LEAF)) == count
    assert found.count(Role.ROOT) == 1


def test_children_come_by_rank_and_the_parent_last() -> None:
    topology = load_topology("tree-3-2")
    tree = build_tree(topology, ("h2", "h0", "h3", "h1"))
    assert [edge.path for edge in tree.root.edges] == [("s0", "s2"), ("s0", "s1")]
    leaf = tree.node(NodeKey("s1", 0))
    assert [edge.path[-1] for edge in leaf.edges] == ["h0", "h1", "s0"]
    assert leaf.parent == 2
    assert [leaf.toward(rank) for rank in range(4)] == [2, 0, 2, 1]
    assert tree.opposite(leaf, 2) == (tree.root, 1)
    assert tree.first_hop(3) == (leaf, 1)
    deep = load_topology("tree-5-2")
    assert [build_tree(deep, deep.rank_hosts).depth(s) for s in ("s0", "s2", "s6", "s14")] == [0, 1, 2, 3]


def test_an_edge_may_span_switches_where_nothing_meets() -> None:
    topology = load_topology("fat-tree-k4")
    (root,) = build_tree(topology, ("h0", "h15")).nodes
    assert [edge.path for edge in root.edges] == [
        ("core0", "agg0", "edge0", "h0"),
        ("core0", "agg6", "edge7", "h15"),
    ]
    every = build_tree(topology, ("h0", "h15"), every_switch=True)
    assert roles(every) == {
        "core0": Role.ROOT,
        "agg0": Role.INTERMEDIATE, "edge0": Role.LEAF, "agg6": Role.INTERMEDIATE, "edge7": Role.LEAF,
    }  # fmt: skip


def test_the_root_is_where_the_ranks_part() -> None:
    topology = load_topology("tree-3-2")
    assert build_tree(topology, ("h2", "h3"), "s0").root.key.switch == "s2"
    assert build_tree(topology, ("h2", "h3", "h0"), "s2").root.key.switch == "s2"


def test_without_a_root_it_is_the_nearest_switch() -> None:
    topology = load_topology("tree-3-2").model_copy(update={"root": None})
    assert build_tree(topology, topology.rank_hosts).root.key.switch == "s0"
    assert build_tree(topology, ("h2", "h3", "h0")).root.key.switch == "s2"


def test_a_switch_is_a_node_for_each_pipeline_with_edges() -> None:
    topology = load_topology("star-8")
    tree = build_tree(topology, topology.rank_hosts, pipelines=4, ports=12)
    assert [(node.key.pipeline, node.parent) for node in tree.nodes] == [(0, None), (1, 3), (2, 2)]
    assert [edge.ranks for edge in tree.root.edges] == [{0}, {1}, {2}, {3, 4, 5}, {6, 7}]
    assert [edge.port for edge in tree.root.edges] == [0, 1, 2, None, None]
    uneven = build_tree(topology, topology.rank_hosts[2:], pipelines=4, ports=12)
    assert uneven.root.key.pipeline == 1, "the pipeline with most children"
    assert [edge.ranks for edge in uneven.root.edges] == [{0}, {1}, {2}, {3}, {4, 5}]


def test_below_the_root_the_parents_pipeline_leads() -> None:
    topology = load_topology("tree-3-2")
    tree = build_tree(topology, topology.rank_hosts, pipelines=4, ports=4)
    assert [node.key for node in tree.nodes if node.key.switch == "s1"] == [("s1", 0), ("s1", 1), ("s1", 2)]
    led = tree.node(NodeKey("s1", 0))
    assert [tree.depth(switch) for switch in topology.switches] == [0, 1, 1]
    assert (led.role, led.parent, led.edges[2].far) == (Role.INTERMEDIATE, 2, ("s0", 0))


def test_a_server_is_at_the_root_and_racks_are_right_below() -> None:
    topology = load_topology("leaf-spine")
    tree = build_tree(topology, ("h0", "h2", "h1", "h5", "h4"), server=True)
    assert [(node.key.switch, [edge.path for edge in node.edges]) for node in tree.nodes] == [
        ("leaf2", [("leaf2", "spine0", "leaf0"), ("leaf2", "spine0", "leaf1"), ("leaf2", "h5"), ("leaf2", "h4")]),
        ("leaf0", [("leaf0", "h0"), ("leaf0", "h1"), ("leaf0", "spine0", "leaf2")]),
        ("leaf1", [("leaf1", "h2"), ("leaf1", "spine0", "leaf2")]),
    ]
    down = dict.fromkeys((link.name for link in topology.links if "spine0" in link.ends), "it is down")
    other = build_tree(topology, ("h0", "h4"), server=True, down=down)
    assert other.root.edges[0].path == ("leaf2", "spine1", "leaf0")
    with pytest.raises(
        InputError, match="leaf0 is not the switch of h4, the last rank, which has the server: leaf2 is"
    ):
        build_tree(topology, ("h0", "h4"), "leaf0", server=True)


def test_no_rack_sends_through_another_one() -> None:
    links = [["a", "b"], ["b", "c"], ["h0", "a"], ["h1", "b"], ["h2", "c"]]
    topology = TopologySpec.model_validate(
        {"name": "row", "switches": ["a", "b", "c"], "hosts": ["h0", "h1", "h2"], "links": links}
    )
    with pytest.raises(InputError, match="b has ranks, and those of a send through it"):
        build_tree(topology, ("h0", "h1", "h2"), server=True)
    assert build_tree(topology, ("h0", "h2"), server=True).root.edges[0].path == ("c", "b", "a")


@pytest.mark.parametrize(
    ("ranks", "root", "reason"),
    [
        ((), None, "0 ranks"),
        (("h0", "h9"), None, "no host 'h9'"),
        (("h0", "h0"), None, "only one rank of a group"),
        (("h0",), "h1", "no switch 'h1'"),
    ],
)
def test_what_cannot_be_a_tree(ranks: tuple[str, ...], root: str | None, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        build_tree(load_topology("star-8").model_copy(update={"hosts": ("h0", "h1")}), ranks, root)


@given(data=st.data(), topology=topologies(), pipelines=st.sampled_from([1, 2, 4]), every=st.booleans())
def test_any_tree(data: st.DataObject, topology: TopologySpec, pipelines: int, every: bool) -> None:
    ranks = tuple(data.draw(st.lists(st.sampled_from(topology.hosts), min_size=1, unique=True)))
    widest = max(len(links) for links in topology.ports.values())
    ports = -(-widest // pipelines) * pipelines
    root = data.draw(st.none() | st.sampled_from(topology.switches))
    tree = build_tree(topology, ranks, root, pipelines=pipelines, ports=ports, every_switch=every)
    everyone = set(range(len(ranks)))
    for node in tree.nodes:
        assert sorted(rank for edge in node.edges for rank in edge.ranks) == sorted(everyone), "each behind one edge"
        assert all(edge.ranks for edge in node.edges), "nobody would contribute"
        assert len(node.edges) > 1 or len(ranks) == 1
        for i, edge in enumerate(node.edges):
            check_edge(topology, tree, node.key, i)
            if edge.port is not None:
                assert edge.port // (ports // pipelines) == node.key.pipeline
            assert not every or len(edge.path) <= 2
    # Connected, with one edge less than ends: a tree.
    ends = sum(len(node.edges) for node in tree.nodes)
    assert (ends + len(ranks)) // 2 == len(tree.nodes) + len(ranks) - 1
    reached = {tree.root.key}
    for node in tree.nodes:
        assert node.key in reached
        reached |= {edge.far for edge in node.children if edge.far is not None}
    assert len(reached) == len(tree.nodes) == len({node.key for node in tree.nodes})
    # Up the parents every rank comes to the root.
    for rank in everyone:
        node, _ = tree.first_hop(rank)
        for _ in tree.nodes:
            if node.parent is not None:
                assert rank not in node.edges[node.parent].ranks
                node, _ = tree.opposite(node, node.parent)
        assert node is tree.root


def check_edge(topology: TopologySpec, tree: IncTree, key: NodeKey, index: int) -> None:
    """An edge follows links, leaves by the right port, and looks the same from its other end."""
    node = tree.node(key)
    edge = node.edges[index]
    assert edge.path[0] == key.switch
    for here, there in zip(edge.path, edge.path[1:], strict=False):
        assert any(set(link.ends) == {here, there} for link in topology.links)
    if edge.port is not None:
        assert topology.ports[key.switch][edge.port].other(key.switch) == edge.path[1]
    if edge.far is None:
        assert edge.ranks == {tree.ranks.index(edge.path[-1])}
        return
    other, back = tree.opposite(node, index)
    assert tree.opposite(other, back) == (node, index)
    assert other.edges[back].path == edge.path[::-1]
    assert other.edges[back].ranks == set(range(len(tree.ranks))) - edge.ranks
    assert (index == node.parent) != (back == other.parent), "one is the other's parent"
