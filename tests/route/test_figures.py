"""The paper's figures of routing: what must hold of them is noticed when it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from p4gen.experiments.experiment import Order
from p4gen.papers.aro.experiments.figures import FIGURES, ONE, Figure, Mean, Table, solved
from p4gen.plan.route.study import ALGORITHMS, JOINT_ALGORITHMS

RATES: dict[str, dict[str, Sequence[float]]] = {
    "7a": {"random": [7.9], "grid": [1.75], "aggtree": [8.8], "aro-acc": [25], "aro": [26.3]},
    "7b": {
        "random": range(6, 13),
        "grid": [1.5, 1.7, 1.7, 1.6, 1.5, 1.4, 1.3],
        "aggtree": range(7, 14),
        "aro-acc": range(22, 29),
        "aro": range(24, 31),
    },
    "7c": {
        "random": [12, 7, 5, 4],
        "grid": [2.6, 1.7, 1.3, 1.1],
        "aggtree": [13, 8, 6, 5],
        "aro-acc": [30, 24, 20, 16],
        "aro": [31, 26, 25, 23],
    },
    "8": {
        "random": [7.5] * 4,
        "grid": [2.5, 2.1, 1.7, 1.3],
        "aggtree": [9.4, 9, 8, 7],
        "aro-acc": [30, 30, 24, 15],
        "aro": [46, 46, 26, 16],
    },
    "9": {
        "random": [16, 20, 23],
        "grid": [5, 7, 9],
        "aggtree": [27, 41, 54],
        "aro-acc": [60, 93, 99],
        "aro": [61, 94, 99],
    },
    "10": {
        "random": [8, 11, 7, 11],
        "grid": [5, 5, 5, 5],
        "aggtree": [28, 28, 26, 25],
        "aro-acc": [60] * 4,
        "aro": [61, 62, 63, 64],
    },
    "11": {
        "aro-qsr": [25, 22, 20],
        "aro-sro": [33, 30, 28],
        "aro-app": [33, 30, 28],
        "aro-acc": [32, 29, 26],
        "aro": [33, 30, 28],
    },
    "12": {"aro-acc": [30, 35, 36, 36.4, 36.4], "aro": [36.4] * 5},
    "13": {"aro-qsr": [59, 60, 60.5, 60.8], "aro-raw": [61] * 4, "aro": [61] * 4},
}
"""Means that agree with the paper."""
SECONDS = {"aro-qsr": 120.0}
"""Those that others need a tenth of."""


def table(figure: Figure, rates: dict[str, list[float]], slow: str = "") -> Table:
    seconds = {name: 500.0 if name == slow else SECONDS.get(name, 10.0) for name in rates}
    return {
        point: {name: Mean(curve[at], curve[at], None, seconds[name]) for name, curve in rates.items()}
        for at, point in enumerate(figure.points)
    }


@pytest.mark.parametrize("name", FIGURES)
def test_every_statement_holds_of_what_the_paper_says_and_fails_of_something(name: str) -> None:
    """Each algorithm's curve turned round, smaller, larger, steeper or flatter, or the algorithm slow: one of these
    breaks each statement."""
    figure, rates = FIGURES[name], {key: list(curve) for key, curve in RATES[name].items()}
    assert [s.text for s in figure.holds(table(figure, rates)) if not s.ok] == []
    broken: set[int] = set()
    for algorithm, curve in rates.items():
        places = range(1, len(curve) + 1)
        others = (
            curve[::-1],
            [rate / 2 for rate in curve],
            [rate * 3 for rate in curve],
            [rate * place for rate, place in zip(curve, places, strict=True)],
            [rate / place for rate, place in zip(curve, places, strict=True)],
        )
        tables = [table(figure, rates | {algorithm: other}) for other in others]
        for changed in [*tables, table(figure, rates, slow=algorithm)]:
            broken |= {at for at, statement in enumerate(figure.holds(changed)) if not statement.ok}
    assert broken == set(range(len(figure.holds(table(figure, rates)))))


@pytest.mark.parametrize("name", FIGURES)
def test_figures_have_algorithms_that_there_are(name: str) -> None:
    figure = FIGURES[name]
    for setting in figure.points.values():
        several = setting.jobs * setting.tasks > 1
        assert set(figure.algorithms) <= set(JOINT_ALGORITHMS if several else ALGORITHMS)
        assert 1 <= setting.aggregators < setting.fabric.leaves + setting.fabric.spines


def small(name: str) -> Figure:
    """The first two points of a figure, with two algorithms and three instances."""
    figure = FIGURES[name]
    points = dict(list(figure.points.items())[:2])
    return replace(figure, points=points, algorithms=("random", "aggtree"), repeat=3, holds=lambda _: [])


def test_a_figure_has_means_over_all_instances() -> None:
    figure = small("8")
    table = figure.table(Order("paper", 1))
    assert list(table) == ["1", "2"]
    each = [solved(figure.points["1"], figure.algorithms, seed)["aggtree"] for seed in (1, 2, 3)]
    assert table["1"]["aggtree"].least == pytest.approx(sum(mean.least for mean in each) / 3)
    assert figure.table(Order(ONE, 3))["1"]["aggtree"].least == each[2].least


@pytest.mark.parametrize(("name", "rates"), [("8", 1), ("9", 2)])
def test_a_figure_is_reported_point_by_point(name: str, rates: int) -> None:
    figure = small(name)
    report = figure.perform(Order(ONE, 1))
    assert len(report.columns) == 4 + rates
    assert [row[:2] for row in report.rows] == [
        (point, algorithm) for point in figure.points for algorithm in figure.algorithms
    ]
    some = figure.perform(Order(ONE, 1, patterns=(f"{next(iter(figure.points))}/*",)))
    assert len(some.rows) == 2
    assert some.checks == ()
