"""Studies: simulated figures compared with those of a paper. The family says which figures there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import fmean, median
from typing import Any, ClassVar, Final, Generic

from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Order, Report, Value
from p4gen.experiments.plot import Series, chart_svg
from p4gen.families import Facet, OwnSpec
from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import Recovery
from p4gen.net.collectives.config import SimConfig
from p4gen.vocabulary.message import Collective

KIB: Final = 1 << 10
MIB: Final = 1 << 20


class Axis(StrEnum):
    """The parameter that a study varies."""

    SIZE = "size"
    LOSS = "loss"
    LINKS = "links"
    NOTHING = "nothing"


AXES: Final = {
    Axis.SIZE: "message size",
    Axis.LOSS: "loss on one link",
    Axis.LINKS: "links that lose 5 %",
    Axis.NOTHING: "unit",
}
"""The axes by the names that they have in tables."""


@dataclass(frozen=True)
class Point:
    """A solution at one value of the axis: the configuration to simulate, on switches or on a ring."""

    solution: str
    """The paper's name of the row."""
    value: float
    config: SimConfig = field(repr=False)
    axis: Axis
    paper: float | None = None
    """The paper's value, if it gives one."""

    @property
    def label(self) -> str:
        """The value of the axis as text, for a heading."""
        return label(self.axis, self.value)


@dataclass(frozen=True)
class Measured:
    """What came of one run of a point: its value, its time in ps, and counts of packets."""

    ours: float
    """Gb/s, or Barriers per second; 0 when the run did not end."""
    duration: int
    sent: int
    resent: int
    timeouts: int
    naks: int
    cnps: int
    problems: tuple[str, ...]
    """Results that are not NumPy's, and why a run did not end."""


@dataclass(frozen=True)
class StudyPoint:
    """A point with its runs, one for each seed."""

    point: Point
    runs: tuple[Measured, ...]

    @property
    def ours(self) -> float:
        """The median of the runs' values: Gb/s, or Barriers per second."""
        return median(run.ours for run in self.runs)

    @property
    def ratio(self) -> float | None:
        """Our value divided by the paper's; None if the paper gives none."""
        return self.ours / self.point.paper if self.point.paper else None

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong of any run; nothing if each ended with the result that NumPy computes."""
        return tuple(problem for run in self.runs for problem in run.problems)

    def mean(self, name: str) -> float:
        """The mean over all seeds of the ``Measured`` value called ``name``."""
        return fmean(getattr(run, name) for run in self.runs)


@dataclass(frozen=True)
class Studies(Facet, Generic[OwnSpec]):
    """The sweeps of a paper's simulation and its lab, and how to reproduce them."""

    module: ClassVar[str] = "studies"

    program: Callable[[OwnSpec], Mapping[str, object]]
    """The program fields that the paper's simulation suggests for a program of the given fields."""
    timeout: Callable[[OwnSpec], int]
    """The ranks' retransmission timer, in ps."""
    recovery: Callable[[OwnSpec], Recovery]
    """The NICs' recovery."""
    points: Callable[[Axis, SimConfig, Sequence[float] | None], list[Point]]
    """The points of a sweep, at the given values or else at the paper's. The configuration gives everything else."""
    measure: Callable[[str, SimConfig], Measured]
    """Run a configuration for a solution; a function of a module."""
    assumptions: Callable[[Sequence[Point]], list[str]]
    """The assumptions behind the values, one line each."""
    lab: Callable[[OwnSpec], tuple[str, Mapping[Collective, Mapping[int, float]]]]
    """The paper's testbed: its name, and of each collective Mb/s by size in bytes; of a Barrier calls a second at the
    size 0."""


def label(axis: Axis, value: float) -> str:
    """A value of an axis as text for a heading."""
    match axis:
        case Axis.SIZE:
            return f"{value / MIB:g} MiB" if value >= MIB else f"{value / KIB:g} KiB"
        case Axis.LOSS:
            return f"{value:g} %"
        case Axis.LINKS:
            return f"{value:g}"
        case Axis.NOTHING:
            return ""


def measure(studies: Studies[Any], points: Sequence[Point], seeds: int, order: Order) -> list[StudyPoint]:
    """Run the points that the order wants. Where packets are lost, a point is run with ``seeds`` seeds from the
    configured one on."""

    def cells(point: Point) -> Iterator[Cell[Measured]]:
        lossy = any(each.loss for each in point.config.faults.impairments)
        for number in range(seeds if lossy else 1):
            config = replace(point.config, seed=point.config.seed + number)
            yield Cell(f"{point.solution}/{point.label}/{number}", studies.measure, (point.solution, config))

    by_point = [(point, list(cells(point))) for point in points]
    found = order.run([cell for _, some in by_point for cell in some])
    run = ((point, tuple(found[cell.name] for cell in some if cell.name in found)) for point, some in by_point)
    return [StudyPoint(point, runs) for point, runs in run if runs]


def report(studies: Studies[Any], points: Sequence[Point], title: str, unit: str, seeds: int, order: Order) -> Report:
    """Run the points that the order wants: a row for each value of the axis, ours beside the paper's, in ``unit``."""
    cells = measure(studies, points, seeds, order)
    axis = points[0].axis
    rows: dict[str, dict[str, StudyPoint]] = {}
    for cell in cells:
        rows.setdefault(cell.point.label or unit, {})[cell.point.solution] = cell
    columns: dict[str, list[Value]] = {AXES[axis]: list(rows)}
    lines = []
    for solution in dict.fromkeys(cell.point.solution for cell in cells):
        mine = [row.get(solution) for row in rows.values()]
        ours = [each.ours if each else None for each in mine]
        columns[solution] = list(ours)
        lines.append(Series(solution, ours))
        paper = [each.point.paper if each else None for each in mine]
        if any(value is not None for value in paper):
            columns[f"{solution}: paper"] = list(paper)
            columns[f"{solution}: ratio"] = [each.ratio if each else None for each in mine]
            lines.append(Series(f"{solution} (paper)", paper, dashed=True))
    wrong = [f"; {c.point.solution} {c.point.label}: {problem}" for c in cells for problem in c.problems]
    return Report(
        tuple(columns),
        tuple(zip(*columns.values(), strict=True)),
        (Check(f"{len(cells)} points end with NumPy's results{''.join(wrong)}", not wrong),),
        tuple(studies.assumptions([cell.point for cell in cells])),
        {
            "-runs.csv": to_csv(axis, cells),
            ".svg": chart_svg(title, AXES[axis], list(rows), unit, lines),
        },
    )


def to_csv(axis: Axis, cells: Sequence[StudyPoint]) -> str:
    """The cells as CSV. Counters are means over the seeds."""
    name = "case" if axis is Axis.NOTHING else axis
    lines = [f"solution,{name},ours,paper,ratio,duration_us,seeds,sent,resent,timeouts,naks,ok"]
    for cell in cells:
        point = cell.point
        paper, ratio = ("", "") if point.paper is None else (f"{point.paper:.2f}", f"{cell.ratio:.3f}")
        counters = ",".join(f"{cell.mean(counter):g}" for counter in ("sent", "resent", "timeouts", "naks"))
        lines.append(
            f'"{point.solution}",{point.value:g},{cell.ours:.2f},{paper},{ratio},{cell.mean("duration") / US:.2f},'
            f"{len(cell.runs)},{counters},{int(not cell.problems)}"
        )
    return "\n".join(lines) + "\n"
