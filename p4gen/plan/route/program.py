"""Linear and integer programs, solved by HiGHS."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from p4gen.errors import FailedError

ANY: Final = 1e30
"""No bound."""


@contextmanager
def _quiet() -> Iterator[None]:
    """Discard everything that the block writes to the process's standard output: HiGHS announces itself there when it
    is made, before its output can be switched off."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


@dataclass(frozen=True)
class Solution:
    """A solution of a program, and its bound."""

    values: list[float]
    """The values of the columns."""
    bound: float
    """The least cost that any solution can have."""


@dataclass
class Program:
    """Columns with bounds and costs, and rows with bounds. The costs' sum is minimised."""

    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    whole: set[int] = field(default_factory=set)
    """Columns that are whole numbers."""
    rows: list[tuple[float, float, dict[int, float]]] = field(default_factory=list)

    def column(self, low: float, high: float, cost: float = 0.0, *, whole: bool = False) -> int:
        """Add a column. Returns its number."""
        self.low.append(low)
        self.high.append(high)
        self.costs.append(cost)
        if whole:
            self.whole.add(len(self.low) - 1)
        return len(self.low) - 1

    def row(self, low: float, high: float, terms: Iterable[tuple[int, float]]) -> None:
        """Add a row: the sum of coefficients times columns is from ``low`` to ``high``."""
        found: dict[int, float] = {}
        for column, coefficient in terms:
            found[column] = found.get(column, 0.0) + coefficient
        self.rows.append((low, high, found))

    def at_most(self, terms: Iterable[tuple[int, float]], high: float = 0.0) -> None:
        """Add a row: the sum is at most ``high``."""
        self.row(-ANY, high, terms)

    def used(self, into: list[tuple[int, float]], only_if: int | None = None) -> int:
        """Add a column that is 1 if any of these whole columns is not 0. Each of them is at most as large as the number
        with it (ARO's constraint (7), with a bound for each). If the column ``only_if``, which is 0 or 1, is 0, so are
        all of them."""
        used = self.column(0, 1, whole=True)
        if only_if is not None:
            self.at_most([(used, 1.0), (only_if, -1.0)])
        for column, bound in into:
            self.at_most([(column, 1.0), (used, -bound)])
        self.row(0, ANY, [*((column, 1.0) for column, _ in into), (used, -1.0)])
        return used

    def minimise(self, limit: float, gap: float = 1e-4) -> Solution | None:
        """The best solution that is found within ``limit`` seconds; None if there is none. A solution that is proven to
        cost at most a share ``gap`` more than the best one ends the search.

        Raises ``FailedError`` if HiGHS refuses the program.
        """
        import highspy  # noqa: PLC0415 - takes a quarter of a second, and most plans need no solver

        with _quiet():
            model = highspy.Highs()
        model.setOptionValue("output_flag", False)
        model.setOptionValue("time_limit", float(limit))
        model.setOptionValue("threads", 1)
        model.setOptionValue("mip_rel_gap", gap)
        infinite = highspy.kHighsInf
        for column, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            model.addVar(low, infinite if high == ANY else high)
            model.changeColCost(column, self.costs[column])
        for column in self.whole:
            model.changeColIntegrality(column, highspy.HighsVarType.kInteger)
        for low, high, terms in self.rows:
            ends = (-infinite if low == -ANY else low, infinite if high == ANY else high)
            model.addRow(*ends, len(terms), list(terms), list(terms.values()))
        # The threads of a process are made by whoever runs HiGHS first, and it refuses another number of them later.
        highspy.Highs.resetGlobalScheduler(True)
        if model.run() == highspy.HighsStatus.kError:
            raise FailedError("HiGHS refuses the program")
        info = model.getInfo()
        if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return None
        values = [round(v) if column in self.whole else v for column, v in enumerate(model.getSolution().col_value)]
        return Solution(values, float(info.mip_dual_bound if self.whole else info.objective_function_value))
