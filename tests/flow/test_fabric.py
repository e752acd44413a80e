"""Fat trees: names of links and switches, the trees of groups, and the choice of one."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from p4gen.plan.flow.fabric import FABRICS, FatTree, Tree
from p4gen.plan.flow.placing import Placing, Routes

SMALL = FatTree(pods=2, leaves=2, spines=2, cores=2, hosts=4)


def all_trees(fabric: FatTree, hosts: Sequence[int]) -> list[Tree]:
    trees = fabric.trees(hosts)
    return [trees.tree(number) for number in range(len(trees))]


@pytest.mark.parametrize(
    ("name", "gpus", "switches"),
    [("epic-128", 128, 16 + 16 + 16), ("epic-2048", 2048, 128 + 128 + 128), ("epic-2048-half-core", 2048, 256 + 64)],
)
def test_fabrics_of_the_paper_have_its_sizes(name: str, gpus: int, switches: int) -> None:
    assert (FABRICS[name].gpus, FABRICS[name].switches) == (gpus, switches)


def test_a_group_has_the_lowest_trees_that_reach_it() -> None:
    def shapes(*hosts: int) -> list[tuple[int, int]]:
        return [(len(tree.links), len(tree.switches)) for tree in all_trees(SMALL, hosts)]

    assert shapes(0, 1, 3) == [(3, 1)]
    assert shapes(0, 4) == [(4, 3)] * 2  # two hosts' links, two leaves' uplinks; one tree for each spine
    assert shapes(0, 4, 8) == [(3 + 3 + 2, 3 + 2 + 1)] * 4  # one tree for each core


def test_links_of_switches_and_trees_are_the_same_ones() -> None:
    for tree in all_trees(SMALL, (0, 4, 8, 12)):
        for link in tree.links:
            assert any(link in SMALL.links_of(switch) for switch in tree.switches)
    counts = [0] * len(SMALL.capacity)
    for switch in range(SMALL.switches):
        for link in SMALL.links_of(switch):
            counts[link] += 1
    assert counts == [1] * 16 + [2] * (len(counts) - 16)  # hosts' links have one switch, the others two


def test_links_have_names() -> None:
    assert SMALL.link_named("h5-leaf1") == 5
    assert SMALL.link_named("leaf1-spine1") in set(SMALL.links_of(1)) & set(SMALL.links_of(5))
    assert SMALL.link_named("spine3-core2") in set(SMALL.links_of(7)) & set(SMALL.links_of(10))
    for wrong in ("h5-leaf0", "leaf0-spine2", "spine0-core2", "leaf9-spine0", "x", "core0-spine0"):
        with pytest.raises(ValueError, match=r"there is no|is not a switch"):
            SMALL.link_named(wrong)


def test_gpus_of_a_server_need_no_link_and_servers_need_one_each() -> None:
    fabric = FatTree(pods=1, leaves=2, spines=1, cores=1, hosts=4, scale_up=2)
    (inside,) = all_trees(fabric, (2, 3))
    assert (inside.switches, [fabric.capacity[link] for link in inside.links]) == ((), [1e12, 1e12])
    (between,) = all_trees(fabric, (0, 1, 2, 3))
    assert between.links == (0, 2)


def test_a_group_gets_the_first_tree_whose_fullest_link_has_the_fewest_groups(seed: int) -> None:
    source = random.Random(seed)
    fabric = FatTree(pods=3, leaves=2, spines=3, cores=2, hosts=4)
    routes, load = Routes(fabric, Placing()), [0] * len(fabric.capacity)
    down: np.ndarray = np.zeros(len(load), np.int64)
    kept: list[Tree] = []
    for _ in range(400):
        hosts = sorted(source.sample(range(fabric.gpus), source.randint(1, 6)))
        down[:] = 0
        down[source.sample(range(len(load)), source.choice([0, 0, 1, 6]))] = 1
        trees = all_trees(fabric, hosts)
        whole = [tree for tree in trees if not any(down[link] for link in tree.links)]
        kept.append(routes.choose(hosts, down))
        assert kept[-1] == min(
            whole or trees, key=lambda tree: max((load[link] for link in tree.links if link >= fabric.gpus), default=0)
        )
        for link in kept[-1].links:
            load[link] += 1
        if len(kept) > 20:
            dropped = kept.pop(source.randrange(20))
            routes.drop(dropped)
            for link in dropped.links:
                load[link] -= 1
