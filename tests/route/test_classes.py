"""Classes of rates: bounds hold for all plans that there are, and plans keep to what links can carry."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from p4gen.plan.route.classes import class_bound, class_plans
from p4gen.plan.route.dividing import divided_by_rates
from p4gen.plan.route.instance import Instance, LeafSpine
from p4gen.plan.route.plan import Plan
from p4gen.plan.route.several import everything, jointly
from p4gen.plan.route.solve import optimum
from p4gen.plan.route.tasks import Joint, Tasks, draw_tasks, optimise_rates, overloads


def small(seed: int) -> Tasks:
    """Tasks whose plans can be counted, on fabrics where spines are interchangeable, aggregate, or both."""
    source = random.Random(seed)
    spines = source.choice([2, 3])
    fabric = LeafSpine(3, spines, 3, pipelines=source.choice([1, 2]), mapping=source.choice(["mod", "block"]))
    jobs = source.choice([1, 2])
    workers = source.randint(2, 3 if jobs == 2 or spines == 2 else 4)
    return draw_tasks(fabric, jobs, 2 // jobs, workers, source.randint(2, 3 + spines), seed)


def all_plans(instance: Instance) -> list[Plan]:
    spines = range(instance.fabric.spines)
    ways = [
        [Counter((leaf, s) for s in chosen) for chosen in itertools.combinations_with_replacement(spines, flows)]
        for leaf, flows in instance.sends.items()
    ]
    return [Plan("some", dict(sum(chosen, Counter()))) for chosen in itertools.product(*ways)]


def best_value(tasks: Tasks) -> float:
    every = itertools.product(*map(all_plans, tasks.instances))
    return max(tasks.value(optimise_rates(tasks, Joint("some", plans, ())).rates) for plans in every)


def choices(tasks: Tasks, deeper: int) -> list[range]:
    fewest = [optimum(instance).least for instance in tasks.instances]
    return [range(k, k + deeper + 1) for k in fewest]


def drawn(seed: int, count: int, most: int) -> Iterator[Tasks]:
    """Instances with at most so many plans."""
    for number in itertools.count(seed * 1000):
        tasks = small(number)
        plans = 1
        for instance in tasks.instances:
            plans *= len(all_plans(instance))
        if 1 < plans <= most:
            yield tasks
            count -= 1
        if not count:
            return


def test_no_plans_exceed_the_bound_and_those_found_reach_it_mostly(seed: int) -> None:
    reached = 0
    for tasks in drawn(seed, 10, 150):
        best = best_value(tasks)
        bounds = []
        for deeper in (0, 1, 2):
            bound = class_bound(tasks, choices(tasks, deeper), 10, everything(tasks))
            assert bound is not None
            bounds.append(bound.value)
            assert best <= bound.value + 1e-6
        assert bounds[2] <= bounds[0] + 1e-6
        found = class_plans(tasks, choices(tasks, 3), 10, everything(tasks))
        assert found is not None
        assert tasks.value(found.rates) <= best + 1e-6
        assert overloads(tasks, found) == []
        for instance, plan in zip(tasks.instances, found.plans, strict=True):
            assert list(plan.problems(instance)) == []
        reached += tasks.value(found.rates) >= min(bounds) * (1 - 1e-4)
    assert reached >= 5


def test_the_bound_holds_for_rates_that_are_not_the_best_of_their_classes() -> None:
    """Over one spine: r + 2 s <= 1 from leaf 2 and 3 r + s <= 1 from leaf 3, so that 1/5 and 2/5 are best, although 1/5
    and 1/2, the best of their classes, do not fit together."""
    fabric = LeafSpine(4, 1, 6, pipelines=1)

    def task(leaf: int, *workers: tuple[int, int]) -> Instance:
        return Instance(fabric, frozenset({0, 1}), frozenset({0}), (leaf, 0), workers)

    first, second = task(0, (2, 0), (3, 0), (3, 1), (3, 2)), task(1, (2, 3), (2, 4), (3, 3))
    tasks = Tasks((first, second), ((0, 1),))
    assert choices(tasks, 0) == [range(3, 4), range(2, 3)]
    found = jointly(tasks, 1)
    assert found.rates == pytest.approx((0.2, 0.4), abs=1e-6)
    assert found.gap(tasks) == pytest.approx(0, abs=1e-6)
    bound = class_bound(tasks, [range(3, 13), range(2, 5)], 10, everything(tasks))
    assert bound is not None
    assert bound.value >= 0.6 - 1e-6


def test_a_task_that_cannot_be_of_a_class_has_no_plans() -> None:
    tasks = next(tasks for tasks in drawn(1, 50, 10_000) if choices(tasks, 0)[0][0] > 1)
    fewest = [each[0] for each in choices(tasks, 0)]
    assert class_plans(tasks, [[k] for k in fewest], 10, everything(tasks)) is not None
    assert class_plans(tasks, [[fewest[0] - 1], *([k] for k in fewest[1:])], 10, everything(tasks)) is None


def test_equal_rates_are_always_divided_without_overload(seed: int) -> None:
    """Random flows of four tasks that fill five spines' links, at one rate: no link has more than its bandwidth."""
    source = random.Random(seed)
    group, tasks, leaves, most = (0, 1, 2, 3, 4), 4, 6, 4
    for _ in range(5):
        flows_of: list[Counter[tuple[int, tuple[int, ...]]]] = [Counter() for _ in range(tasks)]
        from_leaf: Counter[int] = Counter()
        for task in range(tasks):
            while sum(flows_of[task].values()) < most * len(group):
                leaf = source.choice([leaf for leaf in range(leaves) if from_leaf[leaf] < most * len(group)])
                flows_of[task][leaf, group] += 1
                from_leaf[leaf] += 1
        plans = divided_by_rates(flows_of, [1 / most] * tasks)
        up: Counter[tuple[int, int]] = Counter()
        for flows, plan in zip(flows_of, plans, strict=True):
            up.update(plan.up)
            down: Counter[int] = Counter()
            for (_, spine), count in plan.up.items():
                down[spine] += count
            assert set(down.values()) == {most}
            sent: Counter[int] = Counter()
            for (leaf, _), count in plan.up.items():
                sent[leaf] += count
            assert sent == {leaf: count for (leaf, _), count in flows.items()}
        assert max(up.values()) <= most


@pytest.mark.long
def test_the_papers_four_jobs_of_two_tasks_have_a_gap_of_a_tenth_at_most() -> None:
    tasks = draw_tasks(LeafSpine(), 4, 2, 100, 9, 2)
    found = jointly(tasks, 2, 120)
    assert overloads(tasks, found) == []
    assert min(tasks.of_jobs(found.rates)) >= 0.45
    gap = found.gap(tasks)
    assert gap is not None
    assert gap <= 0.1
