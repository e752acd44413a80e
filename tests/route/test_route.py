"""Aggregator-aware routing: plans against the constraints, the optimum against brute force, the paper's Figure 7a."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import highspy
import pytest

from p4gen.errors import InputError
from p4gen.plan.route.baselines import aggregation_tree, random_spine
from p4gen.plan.route.drawing import plot_plans
from p4gen.plan.route.instance import MAPPINGS, Instance, LeafSpine, draw
from p4gen.plan.route.plan import Plan
from p4gen.plan.route.pruning import solve_accelerated
from p4gen.plan.route.solve import optimum, route, solve_raw
from p4gen.plan.route.study import PAPER, Effort, solve, summary


def small(seed: int, *, pipelines: int = 2) -> Instance:
    """An instance whose plans can be counted."""
    source = random.Random(seed)
    fabric = LeafSpine(3, 3, 3, pipelines=pipelines, mapping=source.choice(["mod", "block"]))
    return draw(fabric, source.randint(2, 6), source.randint(1, 5), seed)


def all_plans(instance: Instance) -> list[Plan]:
    """Every way to divide the flows of each leaf among the spines."""
    spines = range(instance.fabric.spines)
    ways = [
        [Counter((leaf, s) for s in chosen) for chosen in itertools.combinations_with_replacement(spines, flows)]
        for leaf, flows in instance.sends.items()
    ]
    return [Plan("some", dict(sum(chosen, Counter()))) for chosen in itertools.product(*ways)]


def walked(instance: Instance, plan: Plan) -> int:
    """The most flows on a link, counted along the workers' paths and not by the plan's own sums: flows join where they
    enter the same pipeline of an aggregator."""
    loads: Counter[tuple[str, str]] = Counter()
    first: set[tuple[int, int, int]] = set()
    at_spine: Counter[int] = Counter()
    entered: dict[int, set[int]] = {}
    for (leaf, port), path in plan.paths(instance).items():
        if len(path) == 1:
            continue
        spine = int(path[1].removeprefix("spine"))
        if leaf in instance.aggregating_leaves:
            key = (leaf, instance.fabric.leaf_pipeline(port), spine)
            if key in first:
                continue
            first.add(key)
        loads[path[0], path[1]] += 1
        if spine in instance.aggregating_spines:
            entered.setdefault(spine, set()).add(instance.fabric.spine_pipeline(leaf))
        else:
            at_spine[spine] += 1
    for spine, kinds in entered.items():
        at_spine[spine] = len(kinds)
    final = {instance.entry(spine) for spine in at_spine} | instance.own
    return max([1, len(final), *loads.values(), *at_spine.values()])


def test_the_optimum_is_that_of_all_plans(seed: int) -> None:
    for number in range(25):
        instance = small(seed * 1000 + number)
        least = min(each.fullest(instance) for each in all_plans(instance))
        for plan in (optimum(instance), solve_raw(instance)):
            assert list(plan.problems(instance)) == []
            assert plan.fullest(instance) == least
            assert plan.gap(instance) == 0


def test_the_optimum_is_that_of_the_integer_program(seed: int) -> None:
    """On fabrics of many shapes, with up to eight pipelines."""
    source = random.Random(seed)
    for number in range(60):
        leaves, spines, hosts = source.randint(2, 9), source.randint(1, 9), source.randint(2, 12)
        fabric = LeafSpine(
            leaves, spines, hosts, pipelines=source.choice([1, 2, 3, 4, 8]), mapping=source.choice(MAPPINGS)
        )
        workers, aggregators = source.randint(1, leaves * hosts - 1), source.randint(1, leaves + spines)
        instance = draw(fabric, workers, aggregators, number)
        plan = optimum(instance)
        assert list(plan.problems(instance)) == []
        assert plan.gap(instance) == 0
        assert plan.fullest(instance) == solve_raw(instance).fullest(instance)


def test_another_user_of_the_solver_in_the_process_is_not_in_the_way() -> None:
    other = highspy.Highs()
    other.setOptionValue("output_flag", False)
    other.setOptionValue("threads", 2)
    other.addVar(0.0, 1.0)
    other.run()
    instance = small(5)
    assert optimum(instance).gap(instance) == 0


def test_accelerations_are_no_better_than_the_optimum_and_keep_its_rules(seed: int) -> None:
    for number in range(15):
        instance = small(seed * 1000 + number)
        best, quick = optimum(instance), solve_accelerated(instance)
        assert list(quick.problems(instance)) == []
        assert quick.fullest(instance) >= best.fullest(instance)
        assert quick.gap(instance) is None


def test_loads_are_those_of_the_paths(seed: int) -> None:
    for number in range(100):
        instance = small(seed * 1000 + number, pipelines=1 + number % 3)
        for plan in (random_spine(instance, number), aggregation_tree(instance, number)):
            assert list(plan.problems(instance)) == []
            found = plan.paths(instance)
            assert set(found) == set(instance.workers)
            assert walked(instance, plan) == plan.fullest(instance)


def test_what_breaks_a_plan_is_named() -> None:
    instance = draw(LeafSpine(3, 2, 3, pipelines=1), 6, 1, seed=1)
    leaf, flows = next(iter(instance.sends.items()))
    lost = Plan("bad", {(leaf, 0): flows - 1} if flows > 1 else {})
    assert f"leaf{leaf} sends {max(flows - 1, 0)} flows up; {flows} come out of it" in list(lost.problems(instance))
    assert "there is no spine7" in list(Plan("bad", {(leaf, 7): flows}).problems(instance))


def test_aggregators_join_what_enters_the_same_pipeline() -> None:
    fabric = LeafSpine(5, 2, 4, pipelines=2)
    workers = ((1, 0), (1, 2), (2, 0), (3, 0), (4, 0), (0, 0))
    instance = Instance(fabric, frozenset({0, 1}), frozenset({0}), (0, 3), workers)
    assert dict(instance.sends) == {1: 1, 2: 1, 3: 1, 4: 1}  # both workers of leaf 1 enter its pipeline 0
    plan = Plan("by hand", {(leaf, 0): 1 for leaf in (1, 2, 3, 4)})
    assert plan.down(instance) == {0: 2}  # leaves 1 and 3 enter pipeline 1, leaves 2 and 4 pipeline 0
    assert plan.last(instance) == 1  # the spine's port is in the pipeline of the server's own worker
    assert plan.throughput(instance) == 50e9
    plain = Plan("by hand", {(leaf, 1): 1 for leaf in (1, 2, 3, 4)})
    assert plain.down(instance) == {1: 4}


def figure_1(leaves: set[int], spines: set[int]) -> Instance:
    """The paper's example: four leaves, two spines, five workers, the server under leaf 0."""
    workers = ((1, 0), (1, 1), (2, 0), (2, 1), (3, 0))
    return Instance(LeafSpine(4, 2, 2, pipelines=1), frozenset(leaves), frozenset(spines), (0, 0), workers)


def test_the_papers_example_has_its_rates() -> None:
    """Figures 1 and 3: a fifth without aggregation, the whole with it; what ATP and AggTree make of it."""
    plain, best = figure_1(set(), set()), figure_1({1, 2}, {1})
    assert optimum(plain).throughput(plain) == plain.fabric.bandwidth / 5
    found = optimum(best)
    assert found.throughput(best) == best.fabric.bandwidth
    assert dict(found.up) == {(1, 1): 1, (2, 1): 1, (3, 1): 1}
    assert found.gap(best) == 0
    atp = figure_1({0, 1, 2, 3}, set())
    assert Plan("atp", {(1, 0): 1, (2, 1): 1, (3, 1): 1}).throughput(atp) == atp.fabric.bandwidth / 2
    assert Plan("aggtree", {(1, 0): 1, (2, 1): 1, (3, 0): 1}).throughput(best) == best.fabric.bandwidth / 3


def test_the_optimum_is_that_of_all_plans_where_the_servers_leaf_does_not_aggregate(seed: int) -> None:
    for number in range(15):
        drawn = small(seed * 1000 + number)
        instance = replace(drawn, aggregating_leaves=drawn.aggregating_leaves - {drawn.server[0]})
        plan = optimum(instance)
        assert plan.fullest(instance) == min(each.fullest(instance) for each in all_plans(instance))
        assert plan.gap(instance) == 0


def test_baselines_have_the_papers_means() -> None:
    instances = 300
    solved = [solve(LeafSpine(), 200, 9, seed, ["random", "aggtree"], Effort()) for seed in range(instances)]
    for name in ("random", "aggtree"):
        rates = [each.plans[name].throughput(each.instance) / 1e9 for each in solved]
        assert sum(rates) / instances == pytest.approx(PAPER[name], rel=0.03)


@pytest.mark.long
def test_the_papers_mean(request: pytest.FixtureRequest) -> None:
    full = request.config.getoption("--full")
    seeds = range(30) if full else (0, 1)
    solved = [solve(LeafSpine(mapping="block"), 200, 9, seed, ["aro"], Effort()) for seed in seeds]
    found = summary(solved, "aro")
    assert found.worst_gap == 0
    assert {round(each.plans["aro"].throughput(each.instance, whole=True) / 1e9) for each in solved} <= {25, 33}
    if full:
        assert found.mean == pytest.approx(PAPER["aro"], rel=0.01)


def test_a_limit_of_time_leaves_a_gap_or_nothing() -> None:
    instance = draw(LeafSpine(), 200, 9, seed=0)
    plan = route(instance, limit=0.02)
    assert plan is None or (plan.bound is not None and plan.bound <= plan.fullest(instance))


def test_instances_that_cannot_be_are_refused() -> None:
    for workers, aggregators, reason in ((0, 1, "0 workers"), (9, 1, "9 workers"), (1, 0, "0 aggregators")):
        with pytest.raises(InputError, match=reason):
            draw(LeafSpine(3, 2, 3), workers, aggregators, 1)
    with pytest.raises(InputError, match="there is no mapping 'x'"):
        draw(LeafSpine(3, 2, 3, mapping="x"), 1, 1, 1)


def test_a_plan_is_drawn(tmp_path: Path) -> None:
    instance = draw(LeafSpine(4, 3, 4), 9, 3, 1)
    plot_plans([(instance, aggregation_tree(instance, 1))], tmp_path / "plan.svg")
    text = (tmp_path / "plan.svg").read_text()
    assert "leaf" in text
    assert "spine" in text
