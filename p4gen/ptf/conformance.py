"""Which programs the conformance suite runs on, so that no scenario is left without a program that it fits.

A scenario that has nothing to do with a program skips itself and says why. What a mode can do depends on its spec (a
sum saturates or wraps, a minimum does neither), so one spec is tested together with small variants of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from p4gen.ptf.report import Outcome, TestResult
from p4gen.ptf.runner import SuiteResult, Switch, run_suite
from p4gen.spec import DType, Icrc, Op, Overflow, ProgramSpec
from p4gen.switch.process import running_switch
from p4gen.switch.running import Program

Build = Callable[[ProgramSpec], Program]
"""From a spec to its program, compiled."""

EVERYTHING: tuple[str, ...] = ()
ARITHMETIC = ("test_arithmetic",)


@dataclass(frozen=True)
class Run:
    """A program and the scenarios to run on it (PTF names; none for all)."""

    spec: ProgramSpec
    tests: tuple[str, ...] = EVERYTHING


@dataclass(frozen=True)
class ConformanceResult:
    """What came of every run, in order."""

    runs: tuple[tuple[Run, SuiteResult], ...]

    @property
    def passed(self) -> bool:
        """Every run is sound, nothing failed, and every scenario ran on at least one program."""
        sound = all(result.problem is None and not result.failures for _, result in self.runs)
        return bool(self.runs) and sound and not self.left_out

    @property
    def left_out(self) -> dict[str, str]:
        """Scenarios that fit none of the programs, with the reason that the first program gave."""
        tests = [test for _, result in self.runs for test in result.tests]
        ran = {test.name for test in tests if test.outcome is not Outcome.SKIPPED}
        return {test.name: test.message for test in reversed(tests) if test.name not in ran}

    @property
    def seconds(self) -> float:
        """Wall-clock time of all runs, without building."""
        return sum(result.seconds for _, result in self.runs)


def mode_ii_runs(spec: ProgramSpec) -> tuple[Run, ...]:
    """All scenarios on ``spec``'s program, then, on small programs, those that need another op, dtype or ICRC."""
    runs = [Run(spec)]
    for op, dtype, overflow in _arithmetics():
        if (op, dtype, op is Op.SUM and overflow is Overflow.SATURATE) != (spec.op, spec.dtype, spec.saturating):
            runs.append(Run(_small(op=op, dtype=dtype, overflow=overflow), ARITHMETIC))
    if spec.icrc is Icrc.RECOMPUTE:
        ignoring = _small(icrc=Icrc.IGNORE)
        runs.append(Run(ignoring, ("test_validation.IcrcIgnored", "test_reliability.AckIsReflected")))
    else:
        runs.append(Run(_small(), ("test_validation.WrongIcrc",)))
    if spec.fan_in < 32 or spec.groups < 2 or spec.ports < 4:
        runs.append(Run(_small(lanes=8, fan_in=32, ports=32)))
    return tuple(runs)


def run_conformance(
    runs: Sequence[Run],
    build: Build,
    directory: Path,
    *,
    seed: int,
    started: Callable[[Run], None] | None = None,
    progress: Callable[[TestResult], None] | None = None,
    suite: Path | None = None,
    switch: Switch = running_switch,
) -> ConformanceResult:
    """Build and test each run's program, one after the other.

    ``directory`` exists and is short (see ``run_suite``); run i leaves its logs and captures in ``directory/i``.
    ``started`` is called before each run. Raises what ``build`` and ``run_suite`` raise.
    """
    results = []
    for number, run in enumerate(runs):
        if started is not None:
            started(run)
        place = directory / str(number)
        place.mkdir(exist_ok=True)
        params = {"spec": run.spec.model_dump(mode="json"), "seed": seed}
        result = run_suite(
            build(run.spec),
            place,
            ports=run.spec.ports,
            params=params,
            suite=suite,
            tests=run.tests,
            progress=progress,
            switch=switch,
        )
        results.append((run, result))
    return ConformanceResult(tuple(results))


def _small(**fields: object) -> ProgramSpec:
    """A spec of a program that is quick to run, but has more than one of everything.

    Its name is never the default one, so that building it does not overwrite what the user built.
    """
    size = {"lanes": 16, "window": 2, "message": 2, "groups": 2, "fan_in": 4, "ports": 8}
    spec = ProgramSpec.model_validate(size | fields)
    return ProgramSpec.model_validate(size | fields | {"name": f"variant_{spec.program}"})


def _arithmetics() -> Iterator[tuple[Op, DType, Overflow | None]]:
    for dtype in DType:
        yield from ((Op.SUM, dtype, overflow) for overflow in Overflow)
        yield from ((op, dtype, None) for op in (Op.MIN, Op.MAX))
