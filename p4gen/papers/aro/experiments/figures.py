"""ARO's Figures 7 to 13: one parameter varied, by algorithm, and the paper's statements about the curves.

The paper prints few numbers, and its curves are pictures. So most checks are inequalities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from typing import Final

from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Order, Report
from p4gen.experiments.plot import Series, chart_svg
from p4gen.plan.route.instance import LeafSpine
from p4gen.plan.route.study import (
    PAPER,
    USUAL,
    Effort,
    Setting,
    joint_summary,
    solve,
    solve_jointly,
    summary,
)

ONE: Final = "one"
"""The scale with one instance at each point."""
_SAME: Final = 0.03
"""The difference up to which two means are the same, in a trend."""


@dataclass(frozen=True)
class Mean:
    """An algorithm's means over instances, Gb/s."""

    least: float
    """With one task its rate, with one job the slowest task's, with several the slowest job's."""
    total: float
    """The total rate of all tasks."""
    gap: float | None
    seconds: float
    """Seconds of the slowest instance."""


Table = Mapping[str, Mapping[str, Mean]]
"""By point of the figure, then by algorithm."""


@dataclass(frozen=True)
class Figure:
    """A figure of the paper: its points, its algorithms, and its checks."""

    axis: str
    """The parameter that is varied."""
    points: Mapping[str, Setting]
    algorithms: tuple[str, ...]
    repeat: int
    """Number of instances at each point: with fewer, means may fail the checks."""
    holds: Callable[[Table], list[Check]]

    @property
    def several(self) -> bool:
        """Whether it has several tasks: then there are the slowest one's rate, and the rate of all."""
        return any(setting.jobs * setting.tasks > 1 for setting in self.points.values())

    def table(self, order: Order) -> Table:
        """The means over the instances that an order wants, ``ONE`` of each point or all."""
        numbers = range(order.seed, order.seed + (1 if order.scale == ONE else self.repeat))
        found = order.run(
            [
                Cell(f"{point}/{number}", solved, (setting, self.algorithms, number))
                for point, setting in self.points.items()
                for number in numbers
            ]
        )
        wanted = {point: [found[name] for name in found if name.startswith(f"{point}/")] for point in self.points}
        return {
            point: {name: _mean([one[name] for one in each]) for name in self.algorithms}
            for point, each in wanted.items()
            if each
        }

    def perform(self, order: Order) -> Report:
        """Repeat it: mean rates by algorithm, Gb/s. ``Experiment.perform``."""
        table = self.table(order)
        rows = tuple(
            (point, name, mean.least, *([mean.total] if self.several else []), mean.gap, mean.seconds)
            for point, means in table.items()
            for name, mean in means.items()
        )
        rates = ("slowest, Gb/s", "all, Gb/s") if self.several else ("Gb/s",)
        curves = [Series(name, [means[name].least for means in table.values()]) for name in self.algorithms]
        return Report(
            (self.axis, "algorithm", *rates, "largest gap to the bound", "slowest instance, s"),
            rows,
            tuple(self.holds(table)) if len(table) == len(self.points) else (),
            ("the paper's curves are pictures, so that what must hold is mostly what it says of them",),
            {".svg": chart_svg("mean rates", self.axis, list(table), rates[0], curves)},
        )


def solved(setting: Setting, algorithms: tuple[str, ...], seed: int) -> dict[str, Mean]:
    """What algorithms find for one instance of a setting."""
    fabric, effort = setting.fabric, setting.effort
    if setting.jobs * setting.tasks > 1:
        joint = solve_jointly(
            fabric, setting.jobs, setting.tasks, setting.workers, setting.aggregators, seed, algorithms, effort
        )
        several = {name: joint_summary([joint], name) for name in algorithms}
        return {name: Mean(each.least, each.total, each.worst_gap, each.slowest) for name, each in several.items()}
    single = solve(fabric, setting.workers, setting.aggregators, seed, algorithms, effort)
    alone = {name: summary([single], name) for name in algorithms}
    return {name: Mean(each.mean, each.mean, each.worst_gap, each.slowest) for name, each in alone.items()}


def _mean(each: Sequence[Mean]) -> Mean:
    gaps = [mean.gap for mean in each if mean.gap is not None]
    return Mean(
        fmean(mean.least for mean in each),
        fmean(mean.total for mean in each),
        max(gaps) if len(gaps) == len(each) else None,
        max(mean.seconds for mean in each),
    )


# --- what must hold ---


def _curve(table: Table, algorithm: str, *, total: bool = False) -> list[float]:
    return [means[algorithm].total if total else means[algorithm].least for means in table.values()]


def _values(curve: list[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in curve)


def _grows(table: Table, algorithm: str, *, total: bool = False) -> Check:
    curve = _curve(table, algorithm, total=total)
    ok = curve[-1] > curve[0] and all(after >= before * (1 - _SAME) for before, after in pairwise(curve))
    return Check(f"{algorithm} grows: {_values(curve)}", ok)


def _falls(table: Table, algorithm: str) -> Check:
    curve = _curve(table, algorithm)
    ok = curve[-1] < curve[0] and all(after <= before * (1 + _SAME) for before, after in pairwise(curve))
    return Check(f"{algorithm} falls: {_values(curve)}", ok)


def _ahead(table: Table, factor: float, *, over: str = "aggtree", total: bool = False) -> Check:
    ratios = [
        ours / theirs
        for ours, theirs in zip(_curve(table, "aro", total=total), _curve(table, over, total=total), strict=True)
    ]
    return Check(f"aro is at least {factor:g} times {over}: {_values(ratios)}", min(ratios) >= factor)


def _loss(table: Table, algorithm: str) -> list[float]:
    """The share of aro's rates that an algorithm loses, at each point."""
    pairs = zip(_curve(table, algorithm, total=True), _curve(table, "aro", total=True), strict=True)
    return [1 - theirs / best for theirs, best in pairs]


def _losses(table: Table, algorithm: str, most: float) -> Check:
    worst = max(_loss(table, algorithm))
    return Check(f"{algorithm} loses {most:.0%} of aro's rates at most: {worst:.1%}", worst <= most)


def _slowest(table: Table, algorithm: str, factor: float) -> Check:
    """Check that all others are at least ``factor`` times as fast at every point, as the paper shows of GRID."""
    ratios = [
        min(mean.least for name, mean in means.items() if name != algorithm) / means[algorithm].least
        for means in table.values()
    ]
    return Check(f"all are at least {factor:g} times {algorithm}: {_values(ratios)}", min(ratios) >= factor)


def _figure_7a(table: Table) -> list[Check]:
    (means,) = table.values()
    near = [
        Check(
            f"{name}: {means[name].least:.2f} Gb/s, the paper's {PAPER[name]:.2f} within {tolerance:.1%}",
            abs(means[name].least / PAPER[name] - 1) <= tolerance,
        )
        for name, tolerance in (("random", 0.05), ("grid", 0.05), ("aggtree", 0.05), ("aro", 0.045))
    ]
    return [*near, _slowest(table, "grid", 3), _ahead(table, 2.2), _losses(table, "aro-acc", 0.07)]


def _figure_7b(table: Table) -> list[Check]:
    loss = _loss(table, "aro-acc")
    less = Check(f"aro-acc loses less with more aggregators: {loss[0]:.1%}, {loss[-1]:.1%}", loss[-1] <= loss[0])
    curve = _curve(table, "grid")
    flat = Check(f"grid changes by less than half: {_values(curve)}", max(curve) < 1.5 * min(curve))
    return [
        *(_grows(table, name) for name in ("random", "aggtree", "aro")),
        flat,
        _slowest(table, "grid", 3),
        _ahead(table, 1.8),
        less,
    ]


def _figure_7c(table: Table) -> list[Check]:
    curve = _curve(table, "aro")
    slower = curve[-1] / curve[0]
    most = Check(f"four times as many workers leave aro more than a quarter: {slower:.2f}", slower > 1 / 4)
    names = ("random", "grid", "aggtree", "aro")
    return [*(_falls(table, name) for name in names), _slowest(table, "grid", 3), _ahead(table, 1.8), most]


def _figure_8(table: Table) -> list[Check]:
    curve = _curve(table, "random")
    same = Check(f"random does not depend on pipelines: {_values(curve)}", max(curve) <= min(curve) * (1 + 2 * _SAME))
    names = ("grid", "aggtree", "aro-acc", "aro")
    return [*(_falls(table, name) for name in names), _ahead(table, 1.8), same]


def _figure_9(table: Table) -> list[Check]:
    total = _curve(table, "aro", total=True)[-1]
    limit = Check(f"four tasks have 100 Gb/s, a worker's link: {total:.2f}", total >= 97)
    return [
        _grows(table, "aro", total=True),
        _ahead(table, 1.8, total=True),
        _ahead(table, 2.5, over="random", total=True),
        _ahead(table, 8.2, over="grid", total=True),
        limit,
        _losses(table, "aro-acc", 0.1),
    ]


def _figure_10(table: Table) -> list[Check]:
    return [
        _grows(table, "aro", total=True),
        _ahead(table, 1.8),
        _ahead(table, 2.5, over="random"),
        _ahead(table, 8.2, over="grid"),
    ]


def _figure_11(table: Table) -> list[Check]:
    """The paper's ARO is the program ``aro-qsr``, which Gurobi ends at its limit; ``aro`` finds the optimum."""
    means = list(table.values())
    lost = [1 - each["aro-acc"].least / each["aro"].least for each in means]
    time = [each["aro-acc"].seconds / each["aro-qsr"].seconds for each in means]
    quick = [means[-1][name].least for name in ("aro-sro", "aro-app", "aro-acc")]
    program = means[-1]["aro-qsr"].least
    beaten = [max(mean.least for mean in each.values()) / each["aro"].least for each in means]
    return [
        Check(f"aro-acc loses less than 10 % of the slowest job's rate: {max(lost):.1%}", max(lost) < 0.1),
        Check(f"aro-acc takes a tenth of aro-qsr's time at most: {_values(time)}", max(time) <= 0.1),
        Check(f"of the largest, accelerations beat aro-qsr: {_values(quick)} to {program:.2f}", min(quick) > program),
        Check(f"none beats aro, unlike in the paper: {_values(beaten)} of its rate", max(beaten) <= 1 + 1e-4),
    ]


def _figure_12(table: Table) -> list[Check]:
    loss = dict(zip(table, _loss(table, "aro-acc"), strict=True))
    return [
        _grows(table, "aro-acc"),
        Check(f"40 % of them lose at most a tenth (the paper: 5 %): {loss['40%']:.1%}", loss["40%"] <= 0.1),
        Check(f"60 % lose at most 7 %: {loss['60%']:.1%}", loss["60%"] <= 0.07),
    ]


def _figure_13(table: Table) -> list[Check]:
    loss = dict(zip(table, _loss(table, "aro-qsr"), strict=True))
    falls = all(after <= before + 0.005 for before, after in pairwise(loss.values()))
    means = table["100"]
    return [
        Check(f"more steps lose less: {', '.join(f'{value:.1%}' for value in loss.values())}", falls),
        Check(f"100 steps lose less than 2 %: {loss['100']:.1%}", loss["100"] < 0.02),
        Check(
            f"one program finds no better plans than rates and flows in turn: {means['aro-raw'].total:.2f}, "
            f"{means['aro'].total:.2f}",
            means["aro-raw"].total <= means["aro"].total * (1 + 1e-4),
        ),
    ]


_SEVERAL: Final = Setting(workers=100)
_LARGE: Final = Setting(LeafSpine(72, 72, 72), 300)
"""The setting of Figures 11 and 12: three times as large (§IV-C)."""

FIGURES: Final[Mapping[str, Figure]] = {
    "7a": Figure("one task", {"200 workers": Setting()}, USUAL, 30, _figure_7a),
    "7b": Figure(
        "switches that aggregate",
        {f"{share}%": Setting(ina=share / 100) for share in range(10, 80, 10)}, USUAL, 30, _figure_7b,
    ),
    "7c": Figure(
        "workers", {str(n): Setting(workers=n) for n in (100, 200, 300, 400)}, USUAL, 30,
        _figure_7c,
    ),
    "8": Figure(
        "pipelines",
        {str(n): Setting(LeafSpine(pipelines=n)) for n in (1, 2, 4, 8)}, USUAL, 30, _figure_8,
    ),
    "9": Figure(
        "tasks", {f"1J{n}T": replace(_SEVERAL, tasks=n) for n in (2, 3, 4)}, USUAL, 10, _figure_9
    ),
    "10": Figure(
        "jobs", {f"{n}J2T": replace(_SEVERAL, jobs=n, tasks=2) for n in (1, 2, 3, 4)},
        USUAL, 3, _figure_10,
    ),
    "11": Figure(
        "λ",
        {str(n): Setting(LeafSpine(24 * n, 24 * n, 24 * n), 100 * n, jobs=5, effort=Effort(limit=120))
         for n in (3, 4, 5)},
        ("aro-qsr", "aro-sro", "aro-app", "aro-acc", "aro"), 3, _figure_11,
    ),
    "12": Figure(
        "aggregating spines kept",
        {f"{share}%": replace(_LARGE, effort=Effort(alpha=share / 100)) for share in (20, 40, 60, 80, 100)},
        ("aro-acc", "aro"), 5, _figure_12,
    ),
    "13": Figure(
        "steps",
        {str(n): replace(_SEVERAL, tasks=2, effort=Effort(steps=n, limit=120)) for n in (20, 50, 100, 200)},
        ("aro-qsr", "aro-raw", "aro"), 3, _figure_13,
    ),
}  # fmt: skip
"""By number; the parts of 8, 9 and 10 are one."""
