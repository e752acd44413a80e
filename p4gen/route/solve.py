"""SJST: one task's best routing as an integer program (ARO §III), solved by HiGHS.

With one task the rate is the bandwidth over K, the most flows on a link: so K is minimised, and nothing is quadratic.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from p4gen.errors import FailedError, MissingToolError
from p4gen.route.instance import Instance
from p4gen.route.plan import Plan


def solver() -> Any:
    """The module ``highspy``. Raises ``MissingToolError``."""
    try:
        return importlib.import_module("highspy")
    except ImportError:
        raise MissingToolError("routing needs the package highspy: pip install 'p4gen[route]'") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Whatever is written to the process's standard output by the block is lost: HiGHS announces itself there when it
    is made, before it can be told not to."""
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


@dataclass
class _Program:
    """Columns with bounds and rows with bounds; all columns are whole numbers, and the first one is minimised."""

    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    rows: list[tuple[float, float, dict[int, float]]] = field(default_factory=list)

    def column(self, low: float, high: float) -> int:
        """A new column's number."""
        self.low.append(low)
        self.high.append(high)
        return len(self.low) - 1

    def row(self, low: float, high: float, terms: Iterable[tuple[int, float]]) -> None:
        """A new row: the sum of coefficients times columns is from ``low`` to ``high``."""
        found: dict[int, float] = {}
        for column, coefficient in terms:
            found[column] = found.get(column, 0.0) + coefficient
        self.rows.append((low, high, found))

    def minimise(self, limit: float) -> tuple[list[int] | None, float]:
        """Values of the columns, if any were found within ``limit`` seconds, and the lower bound of the first one."""
        highspy = solver()
        with _quiet():
            model = highspy.Highs()
        model.setOptionValue("output_flag", False)
        model.setOptionValue("time_limit", float(limit))
        model.setOptionValue("threads", 1)
        infinite = highspy.kHighsInf
        for low, high in zip(self.low, self.high, strict=True):
            model.addVar(low, high)
        for column in range(len(self.low)):
            model.changeColIntegrality(column, highspy.HighsVarType.kInteger)
        model.changeColCost(0, 1.0)
        for low, high, terms in self.rows:
            ends = (-infinite if low == -_ANY else low, infinite if high == _ANY else high)
            model.addRow(*ends, len(terms), list(terms), list(terms.values()))
        # The threads of a process are made by whoever runs HiGHS first, and it refuses another number of them later.
        highspy.Highs.resetGlobalScheduler(True)
        if model.run() == highspy.HighsStatus.kError:
            raise FailedError("HiGHS refuses the integer program")
        status = model.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None, float("inf")
        info = model.getInfo()
        feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        values = [round(value) for value in model.getSolution().col_value] if feasible else None
        return values, float(info.mip_dual_bound)


_ANY = 1e30


def route(
    instance: Instance,
    *,
    spines: Iterable[int] | None = None,
    pipelines: Mapping[int, frozenset[int]] | None = None,
    at_most: int | None = None,
    limit: float = 60.0,
    algorithm: str = "aro",
) -> Plan | None:
    """The best plan over ``spines`` (all), with the pipelines of aggregating spines that may be used (all), and at
    most ``at_most`` flows on a link; None if there is none, or none was found within ``limit`` seconds. Its bound is
    that of the restricted problem."""
    began = time.monotonic()
    usable = sorted(range(instance.fabric.spines) if spines is None else spines)
    program = _Program()
    fullest = program.column(1, at_most or max(sum(instance.sends.values()), instance.fabric.pipelines))
    up: dict[tuple[int, int], int] = {}
    for leaf, flows in instance.sends.items():
        kind = instance.fabric.spine_pipeline(leaf)
        for spine in usable:
            aggregates = spine in instance.aggregating_spines
            if aggregates and pipelines is not None and kind not in pipelines.get(spine, frozenset()):
                continue
            up[leaf, spine] = program.column(0, min(flows, at_most or flows))
            program.row(-_ANY, 0, [(up[leaf, spine], 1.0), (fullest, -1.0)])
        program.row(flows, flows, [(column, 1.0) for (at, _), column in up.items() if at == leaf])
    entered: dict[int, list[tuple[int, float]]] = {}
    for spine in usable:
        into = [(leaf, column) for (leaf, at), column in up.items() if at == spine]
        if spine in instance.aggregating_spines:
            leaving = [
                _used(
                    program, [(column, instance.sends[leaf]) for leaf, column in into if _kind(instance, leaf) == kind]
                )
                for kind in sorted({_kind(instance, leaf) for leaf, _ in into})
            ]
        else:
            leaving = [column for _, column in into]
        if leaving:
            program.row(-_ANY, 0, [*((column, 1.0) for column in leaving), (fullest, -1.0)])
            bound = sum(program.high[column] for column in leaving)
            entered.setdefault(instance.entry(spine), []).extend((column, bound) for column in leaving)
    last = [_used(program, into) for entry, into in sorted(entered.items()) if entry not in instance.own]
    program.row(-_ANY, -len(instance.own), [*((column, 1.0) for column in last), (fullest, -1.0)])
    values, bound = program.minimise(limit)
    if values is None:
        return None
    flows_up = {place: values[column] for place, column in up.items() if values[column]}
    return Plan(algorithm, flows_up, bound, time.monotonic() - began)


def _kind(instance: Instance, leaf: int) -> int:
    return instance.fabric.spine_pipeline(leaf)


def _used(program: _Program, into: list[tuple[int, float]]) -> int:
    """A column that is 1 if any of these columns is not 0 (constraint (7), each with its own bound)."""
    used = program.column(0, 1)
    for column, _ in into:
        program.row(-_ANY, 0, [(column, 1.0), (used, -program.high[column])])
    program.row(0, _ANY, [*((column, 1.0) for column, _ in into), (used, -1.0)])
    return used


def optimum(instance: Instance, limit: float = 60.0) -> Plan:
    """ARO: the best plan of all. Raises ``FailedError`` if none was found within ``limit`` seconds."""
    return _found(route(instance, limit=limit), limit)


def accelerated(instance: Instance, limit: float = 60.0, alpha: float = 0.6) -> Plan:
    """ARO-ACC: APP keeps ⌊alpha n⌋ of the n interchangeable aggregating spines, at least one; SRO solves without spines
    that do not aggregate first, and leaves pipelines that were not used there out of the second stage, where its K is
    an upper bound. The plan's bound is that of the restricted problem, not of all plans.
    """
    began = time.monotonic()
    kept = _kept(instance, alpha)
    plain = [spine for spine in range(instance.fabric.spines) if spine not in instance.aggregating_spines]
    first = route(instance, spines=kept, limit=limit) if kept else None
    if first is None:
        second = route(instance, spines=[*kept, *plain], limit=limit)
    else:
        used: dict[int, set[int]] = {}
        for leaf, spine in first.up:
            used.setdefault(spine, set()).add(_kind(instance, leaf))
        pipelines = {spine: frozenset(kinds) for spine, kinds in used.items()}
        fullest = first.fullest(instance)
        second = route(instance, spines=[*kept, *plain], pipelines=pipelines, at_most=fullest, limit=limit) or first
    plan = _found(second, limit)
    return Plan("aro-acc", plan.up, None, time.monotonic() - began)


def _kept(instance: Instance, alpha: float) -> list[int]:
    """APP's choice: the aggregating spines whose pipelines' scores (most flows that can reach them) vary least, those
    of equal variance in turn by the pipeline of the server's leaf that they enter."""
    spines = sorted(instance.aggregating_spines)
    count = max(1, int(alpha * len(spines) + 1e-9)) if spines else 0
    seen: dict[int, int] = {}
    turn = {}
    for spine in spines:
        turn[spine] = seen.setdefault(instance.entry(spine), 0)
        seen[instance.entry(spine)] += 1
    return sorted(sorted(spines, key=lambda spine: (turn[spine], spine))[:count])


def _found(plan: Plan | None, limit: float) -> Plan:
    if plan is None:
        raise FailedError(f"no plan was found within {limit:g} s")
    return plan
