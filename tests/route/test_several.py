"""Several tasks at once: values against all plans there are, bounds, loads of links, and what the paper finds."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from p4gen.errors import InputError
from p4gen.plan.route.expansion import solve_expanded
from p4gen.plan.route.instance import Instance, LeafSpine
from p4gen.plan.route.plan import Plan
from p4gen.plan.route.pruning import prune, solve_accelerated_jointly
from p4gen.plan.route.several import jointly
from p4gen.plan.route.study import USUAL, Effort, joint_summary, solve_jointly
from p4gen.plan.route.tasks import Joint, Tasks, draw_tasks, optimise_rates, overloads


def small(seed: int) -> Tasks:
    """Tasks whose plans can be counted."""
    source = random.Random(seed)
    fabric = LeafSpine(3, 2, 3, pipelines=2, mapping=source.choice(["mod", "block"]))
    jobs = source.choice([1, 2])
    return draw_tasks(fabric, jobs, 2 // jobs, source.randint(1, 3), source.randint(2, 5), seed)


def all_plans(instance: Instance) -> list[Plan]:
    ways = [
        [Counter((leaf, s) for s in chosen) for chosen in itertools.combinations_with_replacement(range(2), flows)]
        for leaf, flows in instance.sends.items()
    ]
    return [Plan("some", dict(sum(chosen, Counter()))) for chosen in itertools.product(*ways)]


def test_nothing_is_better_and_no_link_is_overloaded(seed: int) -> None:
    for number in range(6):
        tasks = small(seed * 100 + number)
        found = jointly(tasks, seed)
        for instance, plan in zip(tasks.instances, found.plans, strict=True):
            assert list(plan.problems(instance)) == []
        assert overloads(tasks, found) == []
        best = max(
            tasks.value(optimise_rates(tasks, Joint("some", plans, ())).rates)
            for plans in itertools.product(*map(all_plans, tasks.instances))
        )
        assert found.bound is not None
        assert tasks.value(found.rates) <= best + 1e-6 <= found.bound + 2e-6
        if found.gap(tasks) < 1e-6:  # type: ignore[operator]
            assert tasks.value(found.rates) == pytest.approx(best, abs=1e-6)


def test_links_that_carry_too_much_are_told() -> None:
    tasks = small(4)
    found = jointly(tasks, 1)
    faster = Joint("aro", found.plans, tuple(rate * 1.5 for rate in found.rates))
    assert overloads(tasks, found) == []
    assert any("of its bandwidth" in line for line in overloads(tasks, faster))


def test_the_tasks_of_a_job_share_their_workers_links() -> None:
    """One worker that sends to two servers over links that are otherwise empty: half a link for each."""
    tasks = draw_tasks(LeafSpine(3, 2, 3), 1, 2, 1, 2, 5)
    found = jointly(tasks, 1)
    assert tasks.value(found.rates) == pytest.approx(1.0)
    assert found.rates == pytest.approx((0.5, 0.5))
    alone = draw_tasks(LeafSpine(3, 2, 3), 2, 1, 1, 2, 5)
    assert jointly(alone, 1).rates == pytest.approx((1.0, 1.0))


@pytest.mark.long
def test_one_job_of_two_tasks_is_twice_as_fast_as_baselines(seed: int) -> None:
    """Figure 9: more than twice the baselines; the total grows with the number of tasks."""
    solved = [solve_jointly(LeafSpine(), 1, 2, 100, 9, seed + n, USUAL, Effort()) for n in range(2)]
    found = {name: joint_summary(solved, name) for name in USUAL}
    assert found["aro"].total > 2 * max(found["random"].total, found["aggtree"].total)
    assert found["aro"].least > 2 * found["random"].least
    assert found["aro"].worst_gap is not None


@pytest.mark.parametrize(
    ("jobs", "tasks", "workers", "aggregators", "why"),
    [
        (2, 2, 1, 4, "4 tasks have their servers under as many leaves; there are 3"),
        (1, 2, 1, 1, "1 aggregators; with the servers' leaves it is 2 to 5"),
        (2, 1, 4, 3, "8 workers; the fabric has room for 1 to 7"),
    ],
)
def test_tasks_that_there_cannot_be(jobs: int, tasks: int, workers: int, aggregators: int, why: str) -> None:
    with pytest.raises(InputError, match=why):
        draw_tasks(LeafSpine(3, 2, 3), jobs, tasks, workers, aggregators, 1)


def test_the_product_of_flows_and_rates_in_one_program_finds_the_same(seed: int) -> None:
    """ARO's own program; and rates in steps are at most one step behind, of each task."""
    for number in range(4):
        tasks = small(seed * 100 + number)
        found, raw, stepped = jointly(tasks, seed), solve_expanded(tasks), solve_expanded(tasks, steps=10)
        assert overloads(tasks, raw) == overloads(tasks, stepped) == []
        assert tasks.value(raw.rates) <= found.bound + 1e-6  # type: ignore[operator]
        assert tasks.value(raw.rates) == pytest.approx(raw.bound, abs=1e-6)
        assert tasks.value(raw.rates) >= tasks.value(found.rates) - 1e-6
        assert all(rate * 10 == pytest.approx(round(rate * 10), abs=1e-6) for rate in stepped.rates)
        step = 0.1 * len(stepped.rates)
        assert tasks.value(raw.rates) - step < tasks.value(stepped.rates) <= tasks.value(raw.rates) + 1e-6


def test_accelerations_keep_to_what_they_leave() -> None:
    """Six aggregating spines that enter two pipelines of the leaf: three of them for each task, of both pipelines, and
    of tasks whose lists do not suffice the first ones again."""
    fabric = LeafSpine(4, 6, 4, pipelines=2)
    tasks = Tasks(
        tuple(
            Instance(fabric, frozenset({0, 1, 2}), frozenset(range(6)), (task, 0), ((3, 0), (3, 1), (2, 2)))
            for task in range(3)
        ),
        ((0, 1, 2),),
    )
    assert prune(tasks.instances, 0.5) == [(0, 1, 2), (3, 4, 5), (0, 1, 2)]
    assert prune(tasks.instances, 0.1) == [(0,), (1,), (2,)]
    assert [len(spines) for spines in prune(tasks.instances, 0.7)] == [4, 4, 4]
    found = solve_accelerated_jointly(tasks, 1, alpha=0.5)
    for plan, spines in zip(found.plans, prune(tasks.instances, 0.5), strict=True):
        assert {spine for _, spine in plan.up} <= set(spines)
    assert overloads(tasks, found) == []
    assert tasks.value(found.rates) <= jointly(tasks, 1).bound + 1e-6  # type: ignore[operator]


def test_one_program_without_time_is_no_worse_than_what_it_begins_with(seed: int) -> None:
    tasks = small(seed)
    found = solve_expanded(tasks, 1e-3, seed=seed)
    assert tasks.value(found.rates) > 0
    assert overloads(tasks, found) == []
    assert tasks.value(found.rates) <= jointly(tasks, seed).bound + 1e-6  # type: ignore[operator]
    assert found.bound is not None
    assert found.bound >= tasks.value(found.rates) - 1e-6
