"""Runs the conformance suite on several programs, so that every scenario has a program it applies to.

A scenario that does not apply to a program is skipped and gives the reason. The family decides which programs a spec is
tested with (``p4gen.ptf.family``).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from p4gen.ptf.family import Suite, SuiteRun, scenario_modules, suite_of
from p4gen.ptf.parallel import Stop, in_parallel
from p4gen.ptf.report import Outcome, TestResult
from p4gen.ptf.runner import SuiteResult, Switch, run_suite
from p4gen.switch.process import running_switch
from p4gen.switch.running import Program
from p4gen.vocabulary import ProgramSpec

Build = Callable[[ProgramSpec], Program]
"""A function that builds and compiles the program of a spec."""


_DIVISIBLE = 12
"""Modules from which on a run is divided. A part has a switch and a PTF of its own, which takes seconds."""
_MOST_PARTS = 4


@dataclass(frozen=True)
class _Part:
    """Scenarios of one run, which are run one after the other."""

    run: int
    folder: str
    tests: tuple[str, ...]


def _parts(number: int, tests: tuple[str, ...], jobs: int) -> list[_Part]:
    """The parts of a run: its program alone would keep one of several jobs busy when the others are done."""
    count = min(jobs, _MOST_PARTS) if len(tests) >= _DIVISIBLE else 1
    folders = (str(number), *(f"{number}/{index}" for index in range(1, count)))
    return [_Part(number, folder, tests[index::count]) for index, folder in enumerate(folders)]


def drawn_runs(runs: Sequence[SuiteRun[ProgramSpec]], percent: int, seed: int) -> tuple[SuiteRun[ProgramSpec], ...]:
    """``percent`` of the modules of all runs, at least one, drawn by seed; in order, without runs that get none."""
    units = [(number, name) for number, run in enumerate(runs) for name in run.tests or scenario_modules(run.spec)]
    count = max(1, round(len(units) * percent / 100))
    chosen = sorted(random.Random(seed).sample(range(len(units)), count))  # noqa: S311 - a repeatable choice
    groups = groupby((units[index] for index in chosen), key=lambda unit: unit[0])
    return tuple(replace(runs[number], tests=tuple(name for _, name in some)) for number, some in groups)


def _together(tests: tuple[str, ...], results: Sequence[SuiteResult]) -> SuiteResult:
    """The results of a run's parts, in the order of its tests."""
    place = {name: index for index, name in enumerate(tests)}
    found = [test for result in results for test in result.tests]
    found.sort(key=lambda test: place.get(test.name, place.get(test.name.partition(".")[0], len(place))))
    problem = next((result.problem for result in results if result.problem is not None), None)
    return SuiteResult(tuple(found), sum(result.seconds for result in results), problem)


@dataclass(frozen=True)
class ConformanceResult:
    """The results of all runs, in order."""

    runs: tuple[tuple[SuiteRun[ProgramSpec], SuiteResult], ...]

    @property
    def passed(self) -> bool:
        """Whether no run had a problem, no scenario failed, and at least one ran. Scenarios may be left out."""
        return self.ran_something and all(result.problem is None and not result.failures for _, result in self.runs)

    @property
    def ran_something(self) -> bool:
        """Whether at least one scenario ran."""
        return any(test.outcome is not Outcome.SKIPPED for _, result in self.runs for test in result.tests)

    @property
    def left_out(self) -> dict[str, str]:
        """Scenarios that apply to none of the programs, with the reason given for the first program."""
        tests = [test for _, result in self.runs for test in result.tests]
        ran = {test.name for test in tests if test.outcome is not Outcome.SKIPPED}
        return {test.name: test.message for test in reversed(tests) if test.name not in ran}

    @property
    def seconds(self) -> float:
        """Wall-clock time of all runs, without building."""
        return sum(result.seconds for _, result in self.runs)


def run_conformance(
    runs: Sequence[SuiteRun[ProgramSpec]],
    build: Build,
    directory: Path,
    *,
    seed: int,
    started: Callable[[SuiteRun[ProgramSpec]], None] | None = None,
    finished: Callable[[SuiteRun[ProgramSpec], SuiteResult], None] | None = None,
    progress: Callable[[TestResult], None] | None = None,
    suite: Suite | None = None,
    switch: Switch = running_switch,
    jobs: int = 1,
) -> ConformanceResult:
    """Build and test each run's program, ``jobs`` of them at a time.

    ``directory`` exists and is short (see ``run_suite``); run i leaves its logs and captures in ``directory/i``, or, if
    it is divided, also in folders below it.
    ``started``, ``progress`` and ``finished`` are called in the order of runs: with one job as things happen, with more
    when a run has ended. Raises what ``build`` and ``run_suite`` raise.
    """

    def test(
        part: _Part, program: Program, show: Callable[[TestResult], None] | None = None, stop: Stop | None = None
    ) -> SuiteResult:
        run, place = runs[part.run], directory / part.folder
        place.mkdir(exist_ok=True, parents=True)
        return run_suite(
            program,
            place,
            ports=run.spec.architecture.front_ports(run.spec.ports)[-1] + 1,
            params={"spec": run.spec.model_dump(mode="json"), "seed": seed},
            suite=suite or suite_of(run.spec),
            tests=part.tests,
            progress=show,
            switch=switch,
            stop=stop,
        )

    tests = [tuple(run.tests or scenario_modules(run.spec, suite)) for run in runs]
    parts = [part for number, names in enumerate(tests) for part in _parts(number, names, jobs)]
    results = []
    if jobs == 1:
        for part in parts:
            run = runs[part.run]
            if started is not None:
                started(run)
            results.append((run, test(part, build(run.spec), progress)))
            if finished is not None:
                finished(*results[-1])
        return ConformanceResult(tuple(results))
    programs = [build(run.spec) for run in runs]
    with in_parallel(lambda part, stop: test(part, programs[part.run], stop=stop), parts, jobs) as suites:
        for number, found in groupby(zip(parts, suites, strict=True), key=lambda pair: pair[0].run):
            run, result = runs[number], _together(tests[number], [result for _, result in found])
            if started is not None:
                started(run)
            for outcome in result.tests:
                if progress is not None:
                    progress(outcome)
            results.append((run, result))
            if finished is not None:
                finished(run, result)
    return ConformanceResult(tuple(results))
