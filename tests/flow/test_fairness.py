"""Max-min fair rates against linear programs, and against cases that are known by hand."""

from __future__ import annotations

import random

import highspy
import pytest

from p4gen.plan.flow.fairness import max_min_rates


def test_flows_share_what_a_longer_one_leaves() -> None:
    # The long flow crosses both links, each of the short ones one: the classical parking lot.
    assert max_min_rates([1.0, 2.0], [[0, 1], [0], [1]]) == [0.5, 0.5, 1.5]


def test_a_link_that_is_down_gives_nothing_and_takes_nothing_from_others() -> None:
    assert max_min_rates([0.0, 3.0], [[0, 1], [1]]) == [0.0, 3.0]


def test_no_flows_have_no_rates() -> None:
    assert max_min_rates([1.0], []) == []


def lp_rates(capacity: list[float], flows: list[list[int]]) -> list[float]:
    """Max-min fair rates by linear programs: raise the least rate of all open flows as far as it goes, then close those
    that cannot have more, one program each."""

    def most(closed: dict[int, float], rising: list[int], least: float | None) -> float:
        """The greatest common rate of ``rising``, while others keep what they have, or at least ``least``."""
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        infinite = highspy.kHighsInf
        level = solver.addVariable(0, infinite)
        rates = [
            solver.addVariable(closed[f], closed[f]) if f in closed else solver.addVariable(least or 0.0, infinite)
            for f in range(len(flows))
        ]
        for link, room in enumerate(capacity):
            users = [rates[f] for f, links in enumerate(flows) if link in links]
            if users:
                solver.addConstr(sum(users[1:], users[0]) <= room)
        for f in rising:
            solver.addConstr(rates[f] >= level)
        solver.maximize(level)
        return float(solver.getInfo().objective_function_value)

    closed: dict[int, float] = {}
    while len(closed) < len(flows):
        rising = [f for f in range(len(flows)) if f not in closed]
        level = most(closed, rising, None)
        slack = max(level - 1e-9, 0.0)
        full = [f for f in rising if most(closed, [f], slack) <= level + 1e-6]
        assert full
        closed |= dict.fromkeys(full, level)
    return [closed[f] for f in range(len(flows))]


@pytest.mark.parametrize("part", range(4))
def test_rates_are_those_of_linear_programs(part: int, seed: int, request: pytest.FixtureRequest) -> None:
    source = random.Random(f"{seed} {part}")
    for _ in range(250 if request.config.getoption("--full") else 20):
        capacity = [source.choice([1.0, 2.0, 2.5, 4.0]) for _ in range(source.randint(1, 6))]
        flows = [
            sorted(source.sample(range(len(capacity)), source.randint(1, len(capacity))))
            for _ in range(source.randint(1, 6))
        ]
        assert max_min_rates(capacity, flows) == pytest.approx(lp_rates(capacity, flows), abs=1e-5)


def test_every_flow_has_a_full_link_on_which_no_other_has_more(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(300):
        capacity = [source.uniform(0.5, 4.0) for _ in range(12)]
        flows = [sorted(source.sample(range(12), source.randint(1, 5))) for _ in range(source.randint(1, 30))]
        rates = max_min_rates(capacity, flows)
        load = [sum(rate for rate, flow in zip(rates, flows, strict=True) if link in flow) for link in range(12)]
        assert all(used <= room + 1e-9 for used, room in zip(load, capacity, strict=True))
        for rate, flow in zip(rates, flows, strict=True):
            full = [link for link in flow if load[link] >= capacity[link] - 1e-9]
            assert any(
                rate >= max(r for r, other in zip(rates, flows, strict=True) if link in other) - 1e-9 for link in full
            )
