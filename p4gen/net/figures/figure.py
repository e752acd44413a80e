"""Figures of papers that a family repeats in the simulator: the facet, and what a figure reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import ClassVar, Final

from p4gen.errors import InputError
from p4gen.families import Facet, families
from p4gen.inputs import quote
from p4gen.model import EngineName

Value = float | str | None


@dataclass(frozen=True)
class Check:
    """A condition that a figure has to meet."""

    text: str
    """The condition, with the values found."""
    ok: bool


@dataclass(frozen=True)
class Report:
    """A figure's result: the values, the checks, and the files."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    """Our values beside the paper's; None where there is none."""
    checks: tuple[Check, ...]
    assumptions: tuple[str, ...]
    files: Mapping[str, str]
    """The figure as CSV and as pictures: endings of file names, such as ``.csv``, with the files' texts."""

    @property
    def ok(self) -> bool:
        """Whether every check holds."""
        return all(check.ok for check in self.checks)


@dataclass(frozen=True)
class Order:
    """The options of a request for a figure."""

    scale: str
    seed: int
    engine: EngineName = "jit"
    jobs: int = 1
    """Processes that simulate at the same time, where a figure consists of many runs."""
    patterns: tuple[str, ...] = ()
    """Only cells whose names match one of these (``allreduce/*/4/*``); all cells if there are none."""
    kept: Path | None = None
    """The folder in which finished cells are kept and looked for."""

    def wants(self, cell: str) -> bool:
        """Whether a cell is among the requested ones."""
        return not self.patterns or any(fnmatchcase(cell, pattern) for pattern in self.patterns)


@dataclass(frozen=True)
class Figure:
    """A figure of a paper that p4gen repeats: its scales and its simulations."""

    caption: str
    scales: Mapping[str, str]
    """The scales by name: what is simulated, and what that costs. The first one is the default."""
    draw: Callable[[Order, Callable[[str], None]], Report]
    """Simulates the figure. The function that it takes is called with a line about each simulation that begins."""
    cells: Callable[[str], tuple[str, ...]] = lambda _scale: ()
    """The names of its cells at a scale, if it consists of simulations that can run one by one."""


@dataclass(frozen=True)
class Figures(Facet):
    """The figures of a family's paper, by number."""

    module: ClassVar[str] = "figures"

    paper: str
    figures: Mapping[str, Figure]


SEPARATOR: Final = "-"


def all_figures() -> dict[str, tuple[str, Figure]]:
    """The figures of all families, by family and number (``themis-1``), each with the name of its paper."""
    return {
        f"{name}{SEPARATOR}{number}": (facet.paper, figure)
        for name, family in families().items()
        if family.answers(Figures)
        for facet in (family.facet(Figures),)
        for number, figure in facet.figures.items()
    }


def figure_named(name: str) -> tuple[str, Figure]:
    """The name of a figure's paper, and the figure. Raises ``InputError`` if there is none of this name."""
    known = all_figures()
    if name not in known:
        raise InputError(f"there is no figure {quote(name)}; there are {', '.join(known) or 'none'}")
    return known[name]


def report_csv(report: Report) -> str:
    """The rows as CSV, with a header."""

    def cell(value: Value) -> str:
        return "" if value is None else f'"{value}"' if isinstance(value, str) else f"{value:g}"

    head = ",".join(column.replace(",", "") for column in report.columns)
    return "\n".join([head, *(",".join(map(cell, row)) for row in report.rows)]) + "\n"
