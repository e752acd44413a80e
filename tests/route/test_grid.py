"""GRID, as ARO's evaluation has it: what its relaxed program permits, its routes against all others, its mean."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from p4gen.plan.route.grid import SERVER, SERVER_TAKES, Route, SingleAggregation, candidates, grid, shares
from p4gen.plan.route.instance import Instance, LeafSpine, draw
from p4gen.plan.route.study import PAPER, Effort, solve, summary


def small(number: int, pipelines: int) -> Instance:
    """An instance whose routes can be counted."""
    source = random.Random(number)
    fabric = LeafSpine(3, 2, 3, pipelines=pipelines, mapping=source.choice(["mod", "block"]))
    return draw(fabric, source.randint(2, 6), source.randint(1, 4), number)


def walked(instance: Instance, plan: SingleAggregation) -> int:
    """The most flows on a link, counted along the paths: flows meet in a pipeline of what adds them, nowhere else."""
    node_of = {route.worker: route.node for route in plan.routes}
    loads: dict[tuple[str, str], set[object]] = {}
    for (leaf, port), path in plan.paths(instance).items():
        flow: object = (leaf, port)
        node = node_of[leaf, port]
        for place, (switch, after) in enumerate(itertools.pairwise([*path, "server"])):
            if switch == f"{node[0]}{node[1]}":
                if place == 0:
                    entered = instance.fabric.leaf_pipeline(port)
                elif place == 1:
                    entered = instance.fabric.spine_pipeline(leaf)
                else:
                    entered = instance.entry(int(path[1].removeprefix("spine")))
                flow = (switch, entered)
            loads.setdefault((switch, after), set()).add(flow)
    return max(len(flows) for flows in loads.values())


def test_shares_are_an_optimum_of_the_relaxed_program(seed: int) -> None:
    """Every worker's data is added as a whole, so that it has its full rate, and the server takes what it is given."""
    source = random.Random(seed)
    for number in range(40):
        instance = draw(LeafSpine(), source.choice([1, 50, 200, 500]), source.randint(1, 40), seed * 100 + number)
        parts = shares(instance)
        for leaf, nodes in parts.items():
            assert list(nodes) == candidates(instance, leaf)
            assert sum(nodes.values()) == pytest.approx(1)
            assert min(nodes.values()) >= 0
        largest = {
            node: max(nodes.get(node, 0) for nodes in parts.values()) for nodes in parts.values() for node in nodes
        }
        direct = sum(len(ports) * parts[leaf][SERVER] for leaf, ports in instance.by_leaf.items())
        assert direct + sum(part for node, part in largest.items() if node != SERVER) <= SERVER_TAKES + 1e-9


def test_the_server_adds_less_where_it_would_be_too_much() -> None:
    instance = draw(LeafSpine(), 500, 1, 1)
    assert sum(
        len(ports) * shares(instance)[leaf][SERVER] for leaf, ports in instance.by_leaf.items()
    ) == pytest.approx(99)


def test_loads_are_those_of_the_paths(seed: int) -> None:
    for number in range(60):
        instance = small(seed * 1000 + number, 1 + number % 3)
        plan = grid(instance, number)
        assert isinstance(plan, SingleAggregation)
        assert list(plan.problems(instance)) == []
        assert set(plan.paths(instance)) == set(instance.workers)
        assert plan.fullest(instance) == walked(instance, plan)


def test_routes_are_the_best_to_the_chosen_aggregators(seed: int) -> None:
    """With one pipeline, as routes are chosen: no others to the same nodes have fewer flows on their fullest link."""
    for number in range(30):
        instance = small(seed * 1000 + number, 1)
        plan = grid(instance, number)
        assert isinstance(plan, SingleAggregation)
        free = [route for route in plan.routes if route.node[0] != "spine" and route.worker[0] != instance.server[0]]
        fixed = tuple(route for route in plan.routes if route not in free)
        for spines in itertools.product(range(2), repeat=len(free)):
            routes = fixed + tuple(Route(r.worker, r.node, s) for r, s in zip(free, spines, strict=True))
            together = {
                (r.worker[0], r.spine) for r in routes if r.node == ("leaf", r.worker[0]) and r.spine is not None
            }
            if max(Counter(leaf for leaf, _ in together).values(), default=1) > 1:
                continue  # what a leaf adds goes on over one spine
            other = SingleAggregation("other", {}, routes=routes)
            assert walked(instance, plan) <= walked(instance, other)


def test_what_breaks_a_plan_is_named() -> None:
    instance = draw(LeafSpine(3, 2, 3), 3, 1, seed=1)
    first, second, third = instance.workers
    routes = (Route(first, ("leaf", 2), 0), Route(second, SERVER, 0), Route(second, SERVER, 1))
    found = list(SingleAggregation("bad", {}, routes=routes).problems(instance))
    assert f"worker {second} has 2 routes" in found
    assert f"worker {third} has 0 routes" in found
    assert f"leaf2 cannot add what worker {first} sends" in found


def test_it_has_the_papers_mean() -> None:
    solved = [solve(LeafSpine(), 200, 9, seed, ["grid"], Effort()) for seed in range(40)]
    assert summary(solved, "grid").mean == pytest.approx(PAPER["grid"], rel=0.05)
