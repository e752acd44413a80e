"""A table, figure or statement of a paper that p4gen repeats: the facet, an order for one, and what it reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import ClassVar, TypeVar

from p4gen.errors import InputError
from p4gen.experiments.cells import Cell, Runner
from p4gen.inputs import quote
from p4gen.model import EngineName
from p4gen.plugins import Facet

Value = float | str | None
T = TypeVar("T")


@dataclass(frozen=True)
class Check:
    """A condition that a paper's result has to meet."""

    text: str
    """The condition, with the values found."""
    ok: bool


def within(what: str, value: float, low: float, high: float, unit: str = "") -> Check:
    """Whether a value is in a range."""
    return Check(f"{what}: {value:.4g}{unit}, between {low:.4g} and {high:.4g}", low <= value <= high)


def near(what: str, value: float, paper: float, share: float, unit: str = "") -> Check:
    """Whether a value is within a share of the paper's."""
    return within(f"{what} (paper {paper:.4g}{unit})", value, paper * (1 - share), paper * (1 + share), unit)


@dataclass(frozen=True)
class Report:
    """An experiment's result: the values, the checks, and the files."""

    columns: tuple[str, ...]
    """Names, each of which differs from all others."""
    rows: tuple[tuple[Value, ...], ...]
    """Our values beside the paper's; None where there is none."""
    checks: tuple[Check, ...]
    assumptions: tuple[str, ...]
    files: Mapping[str, str]
    """Pictures and further values: endings of file names, such as ``-series.csv``, with the files' texts."""

    @property
    def ok(self) -> bool:
        """Whether every check holds."""
        return all(check.ok for check in self.checks)

    @property
    def csv(self) -> str:
        """The rows as CSV, with a header."""

        def cell(value: Value) -> str:
            return "" if value is None else f'"{value}"' if isinstance(value, str) else f"{value:g}"

        head = ",".join(column.replace(",", "") for column in self.columns)
        return "\n".join([head, *(",".join(map(cell, row)) for row in self.rows)]) + "\n"


@dataclass(frozen=True)
class Order:
    """A request for an experiment."""

    scale: str
    seed: int
    engine: EngineName = "jit"
    patterns: tuple[str, ...] = ()
    """Only cells whose names match one of these (``allreduce/*/4/*``); all cells if there are none."""
    runner: Runner = field(default_factory=Runner)

    def run(self, cells: Sequence[Cell[T]]) -> dict[str, T]:
        """The outcomes of the cells that the order wants, by name, in the given order.

        Raises ``InputError`` if a pattern matches none of them, and what the work of a cell raises.
        """
        for pattern in self.patterns:
            if not any(fnmatchcase(cell.name, pattern) for cell in cells):
                raise InputError(
                    f"--cells {quote(pattern)}: there is no such cell; there are {cells[0].name} to {cells[-1].name}"
                )
        wanted = [
            cell
            for cell in cells
            if not self.patterns or any(fnmatchcase(cell.name, pattern) for pattern in self.patterns)
        ]
        return self.runner.run(wanted)


@dataclass(frozen=True)
class Experiment:
    """How an item of a paper is repeated."""

    scales: Mapping[str, str]
    """The scales by name: what is run, and what that costs. The first one is the default."""
    perform: Callable[[Order], Report]
    """Run the cells that are ordered, and judge their outcomes."""
    check: str | None = None
    """The scale that takes less than a minute; None if each takes longer."""
    partly: bool = False
    """Whether it can be judged with some of its cells only (``--cells``)."""


@dataclass(frozen=True)
class Experiments(Facet):
    """The experiments of a paper by the names of its items (``table-31``, ``figure-1``).

    ``paper.toml`` beside the module lists all items of the paper.
    """

    module: ClassVar[str] = "experiments"

    experiments: Mapping[str, Experiment]
