"""Max-min fair rates against linear programs, and against cases that are known by hand; changes against all anew."""

from __future__ import annotations

import random

import highspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p4gen.plan.flow.fairness import FairRates


def max_min_rates(capacity: list[float], flows: list[list[int]]) -> list[float]:
    fair = FairRates(np.array(capacity))
    numbers = [fair.add(np.array(links)) for links in flows]
    fair.solve()
    return [float(fair.rates[number]) for number in numbers]


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


def filled(capacity: list[float], flows: list[list[int]]) -> list[float]:
    """Max-min fair rates by filling all links anew, round by round."""
    left = list(capacity)
    rates: dict[int, float] = {}
    while len(rates) < len(flows):
        rising = [f for f in range(len(flows)) if f not in rates]
        users = [sum(link in flows[f] for f in rising) for link in range(len(capacity))]
        level = min(room / count for room, count in zip(left, users, strict=True) if count)
        full = {link for link, count in enumerate(users) if count and left[link] <= level * count * (1 + 1e-12)}
        for f in rising:
            if not full.isdisjoint(flows[f]):
                rates[f] = max(level, 0.0)
                for link in flows[f]:
                    left[link] -= rates[f]
    return [rates[f] for f in range(len(flows))]


@settings(max_examples=200)
@given(st.data())
def test_changes_have_the_rates_of_all_flows_anew(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 30))
    room = st.one_of(st.sampled_from([0.0, 1.0, 2.0, 8.0]), st.floats(0.5, 100.0))
    capacity = data.draw(st.lists(room, min_size=count, max_size=count))
    link = st.integers(0, count - 1)
    change = st.one_of(
        st.lists(link, min_size=1, max_size=5, unique=True),
        st.floats(0.0, 1.0, exclude_max=True),
        st.tuples(link, room),
    )
    """Links of a flow that begins, the place of one that ends among the present ones, or a link's capacity."""
    fair, flows = FairRates(np.array(capacity)), dict[int, list[int]]()
    for changes in data.draw(st.lists(st.lists(change, max_size=4), max_size=40)):
        for each in changes:
            if isinstance(each, list):
                number = fair.add(np.array(each))
                assert number not in flows
                flows[number] = each
            elif isinstance(each, tuple):
                capacity[each[0]] = each[1]
                fair.resize([each[0]], each[1])
            elif flows:
                number = sorted(flows)[int(each * len(flows))]
                fair.remove(number)
                del flows[number]
        fair.solve()
        found = [float(fair.rates[number]) for number in flows]
        assert found == pytest.approx(filled(capacity, list(flows.values())), rel=1e-9, abs=1e-9)
        assert np.count_nonzero(fair.rates) == np.count_nonzero(found)


def test_more_flows_than_there_was_room_for_have_their_rates() -> None:
    flows = [[f % 7, 7 + f % 11] for f in range(500)] + [list(range(18))] * 500
    assert max_min_rates([1.0] * 18, flows) == pytest.approx(filled([1.0] * 18, flows))


def test_flows_that_no_link_connects_with_a_change_keep_their_rates() -> None:
    fair = FairRates(np.array([1.0, 1.0, 1.0]))
    apart, beside = fair.add(np.array([0])), fair.add(np.array([1, 2]))
    fair.solve()
    fair.rates[apart] = 0.75  # a mark: it is not computed again
    fair.add(np.array([2]))
    fair.solve()
    assert (fair.rates[apart], fair.rates[beside]) == (0.75, 0.5)
