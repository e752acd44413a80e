"""Studies: runs of the simulator that stand beside figures of a paper. Which ones, is the family's to say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Final

from p4gen.families import Facet
from p4gen.host.collectives.control import Collective
from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import Recovery
from p4gen.net.config import SimConfig
from p4gen.net.simulation import SimResult

KIB: Final = 1 << 10
MIB: Final = 1 << 20


class Axis(StrEnum):
    """What is varied."""

    SIZE = "size"
    LOSS = "loss"
    LINKS = "links"
    NOTHING = "nothing"


@dataclass(frozen=True)
class PaperTable:
    """One table of a paper, its caption, and its rows by value of the axis."""

    number: int
    caption: str
    collective: Collective
    axis: Axis
    rows: Mapping[str, Mapping[float, float]]

    @property
    def unit(self) -> str:
        """The unit of its figures."""
        return "barriers/s" if self.collective is Collective.BARRIER else "Gb/s"

    @property
    def values(self) -> list[float]:
        """What the axis is at, in the paper's order."""
        return list(dict.fromkeys(value for row in self.rows.values() for value in row))


@dataclass(frozen=True)
class Run:
    """What one cell takes: a configuration, to be run on switches or on a ring."""

    solution: str
    """The row that it belongs to, by the paper's name."""
    value: float
    config: SimConfig = field(repr=False)
    axis: Axis
    paper: float | None = None

    @property
    def label(self) -> str:
        """The value, as a heading has it."""
        return label(self.axis, self.value)


@dataclass(frozen=True)
class Cell:
    """Our figure and the paper's: Gb/s, or Barriers a second."""

    run: Run
    ours: float
    results: tuple[SimResult, ...] = field(repr=False)

    @property
    def ratio(self) -> float | None:
        """Ours over the paper's."""
        return self.ours / self.run.paper if self.run.paper else None

    @property
    def ok(self) -> bool:
        """Every run ended with what NumPy has."""
        return all(result.ok for result in self.results)

    def mean(self, name: str) -> float:
        """The mean of a counter of ``SimResult``."""
        return float(sum(getattr(result, name) for result in self.results) / len(self.results))


Started = Callable[[Run], None]


@dataclass(frozen=True)
class Studies(Facet):
    """A paper's figures, and how they are repeated. Functions of a program take the family's own spec."""

    module: ClassVar[str] = "studies"

    paper: str
    """The name that its figures go by."""
    program: Callable[[Any], Mapping[str, object]]
    """Fields of the program that the paper's simulation suggests, for the kind of program that is asked for."""
    timeout: Callable[[Any], int]
    """Retransmission timer of its ranks, ps."""
    recovery: Recovery
    tables: Mapping[int, PaperTable]
    points: Callable[[Axis, SimConfig, Sequence[float] | None], list[Run]]
    """The runs of a sweep: the paper's values, or those given. The configuration says all that is not swept."""
    table_runs: Callable[[int, SimConfig, Sequence[float] | None], list[Run]]
    """The runs of one of ``tables``, row by row; raises ``InputError`` for a table that is not one of them."""
    perform: Callable[[Sequence[Run], int, Started | None], list[Cell]]
    """Run them, with several seeds where packets are lost, of which the median counts."""
    assumptions: Callable[[Sequence[Run]], list[str]]
    """All that the figures rest on."""
    lab: Callable[[Any], tuple[str, Mapping[int, float]]]
    """AllReduce in the paper's own lab: a name, and Mb/s by size in bytes."""


def label(axis: Axis, value: float) -> str:
    """A value of an axis, as a heading has it."""
    match axis:
        case Axis.SIZE:
            return f"{value / MIB:g} MiB" if value >= MIB else f"{value / KIB:g} KiB"
        case Axis.LOSS:
            return f"{value:g} %"
        case Axis.LINKS:
            return f"{value:g}"
        case Axis.NOTHING:
            return ""


def to_csv(axis: Axis, cells: Sequence[Cell]) -> str:
    """The cells as CSV. Counters are means over the seeds."""
    name = "case" if axis is Axis.NOTHING else axis
    lines = [f"solution,{name},ours,paper,ratio,duration_us,seeds,sent,resent,timeouts,naks,ok"]
    for cell in cells:
        run = cell.run
        paper, ratio = ("", "") if run.paper is None else (f"{run.paper:.2f}", f"{cell.ratio:.3f}")
        counters = ",".join(f"{cell.mean(counter):g}" for counter in ("sent", "resent", "timeouts", "naks"))
        lines.append(
            f'"{run.solution}",{run.value:g},{cell.ours:.2f},{paper},{ratio},{cell.mean("duration") / US:.2f},'
            f"{len(cell.results)},{counters},{int(cell.ok)}"
        )
    return "\n".join(lines) + "\n"
