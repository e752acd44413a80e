"""Studies: simulated figures compared with those of a paper. The family says which figures there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final, Generic

from p4gen.families import Facet, OwnSpec
from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import Recovery
from p4gen.net.collectives.config import SimConfig
from p4gen.net.collectives.simulation import SimResult
from p4gen.vocabulary.message import Collective

KIB: Final = 1 << 10
MIB: Final = 1 << 20


class Axis(StrEnum):
    """The parameter that a study varies."""

    SIZE = "size"
    LOSS = "loss"
    LINKS = "links"
    NOTHING = "nothing"


@dataclass(frozen=True)
class PaperTable:
    """One table of a paper. ``rows`` maps the name of a row to its values by value of the axis."""

    number: int
    caption: str
    collective: Collective
    axis: Axis
    rows: Mapping[str, Mapping[float, float]]

    @property
    def unit(self) -> str:
        """The unit of the table's values."""
        return "barriers/s" if self.collective is Collective.BARRIER else "Gb/s"

    @property
    def values(self) -> list[float]:
        """The values of the axis, in the paper's order."""
        return list(dict.fromkeys(value for row in self.rows.values() for value in row))


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
class StudyPoint:
    """A simulated point. ``ours`` is the measured value: Gb/s, or Barriers per second."""

    point: Point
    ours: float
    results: tuple[SimResult, ...] = field(repr=False)

    @property
    def ratio(self) -> float | None:
        """Our value divided by the paper's; None if the paper gives none."""
        return self.ours / self.point.paper if self.point.paper else None

    @property
    def ok(self) -> bool:
        """Whether every run ended with the result that NumPy computes."""
        return all(result.ok for result in self.results)

    def mean(self, name: str) -> float:
        """The mean over all seeds of the ``SimResult`` counter called ``name``."""
        return float(sum(getattr(result, name) for result in self.results) / len(self.results))


Started = Callable[[Point], None]


@dataclass(frozen=True)
class Studies(Facet, Generic[OwnSpec]):
    """The tables and sweeps of a paper, and how to reproduce them."""

    module: ClassVar[str] = "studies"

    paper: str
    """The name of the paper in titles."""
    program: Callable[[OwnSpec], Mapping[str, object]]
    """The program fields that the paper's simulation suggests for a program of the given fields."""
    timeout: Callable[[OwnSpec], int]
    """The ranks' retransmission timer, in ps."""
    recovery: Callable[[OwnSpec], Recovery]
    """The NICs' recovery."""
    tables: Mapping[int, PaperTable]
    points: Callable[[Axis, SimConfig, Sequence[float] | None], list[Point]]
    """The points of a sweep, at the given values or else at the paper's. The configuration gives everything else."""
    table_points: Callable[[int, SimConfig, Sequence[float] | None], list[Point]]
    """The points of a table, row by row. Raises ``InputError`` if ``tables`` does not have it."""
    perform: Callable[[Sequence[Point], int, Started | None], list[StudyPoint]]
    """Simulate the points. Where packets are lost, a point is run with several seeds and the median counts."""
    assumptions: Callable[[Sequence[Point]], list[str]]
    """The assumptions behind the values, one line each."""
    lab: Callable[[OwnSpec], tuple[str, Mapping[int, float]]]
    """AllReduce on the paper's testbed: the testbed's name, and Mb/s by size in bytes."""


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
            f"{len(cell.results)},{counters},{int(cell.ok)}"
        )
    return "\n".join(lines) + "\n"
