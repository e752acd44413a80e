"""Which programs a spec is tested with, and when a set of runs counts as passed."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from p4gen.papers.epic.conformance.runs_ii import ARITHMETIC, mode_ii_runs
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.ptf.conformance import ConformanceResult, drawn_runs
from p4gen.ptf.family import SuiteRun, conformance_of, scenario_modules
from p4gen.ptf.report import Outcome, TestResult
from p4gen.ptf.runner import SuiteResult
from p4gen.vocabulary import DType, Icrc, Op, Overflow, Reliability
from p4gen.vocabulary.program import COMMON_ICRC

SPECS = [
    EpicSpec(),
    EpicSpec(op=Op.MAX, dtype=DType.UINT32),
    EpicSpec(overflow=Overflow.WRAP, icrc=Icrc.IGNORE),
    EpicSpec(lanes=8, fan_in=2, groups=1, ports=2, window=1, message=1),
    EpicSpec(op=Op.DYNAMIC, pipelines=2),
    EpicSpec(reliability=Reliability.GBN, pipelines=4),
]
TOFINO = [spec for arch in ("tna", "t2na") for spec in (EpicSpec(arch=arch, fan_in=4), EpicSpec(arch=arch, lanes=8))]


@pytest.mark.parametrize("spec", SPECS)
def test_every_arithmetic_and_icrc_setting_is_covered(spec: EpicSpec) -> None:
    runs = mode_ii_runs(spec)
    assert runs[0] == SuiteRun(spec)
    kinds = {(run.spec.op, run.spec.dtype, run.spec.saturating) for run in runs if run.tests in ((), ARITHMETIC)}
    integers = [dtype for dtype in DType if dtype.number_format.integer]
    arriving = [dtype for dtype in DType if dtype.number_format.wide is None]
    sums = {(Op.SUM, dtype, saturating) for dtype in integers for saturating in (True, False)}
    sums.add((Op.SUM, DType.FLOAT32, False))
    assert kinds >= sums | {(op, dtype, False) for op in (Op.MIN, Op.MAX) for dtype in arriving}
    assert {run.spec.icrc for run in runs} == set(COMMON_ICRC)
    assert any(not run.tests and run.spec.fan_in == 32 and run.spec.groups > 3 for run in runs)
    assert any(run.spec.op is Op.DYNAMIC for run in runs)
    assert {run.spec.pipelines for run in runs} == {1, 2, 4}
    assert {run.spec.loss_recovery for run in runs} - {Reliability.SACK} == {Reliability.SR, Reliability.GBN}


@pytest.mark.parametrize("mode", list(Mode))
def test_all_runs_of_a_spec_are_of_its_mode(mode: Mode) -> None:
    spec = EpicSpec(mode=mode)
    runs = conformance_of(spec).runs(spec)
    assert runs[0].spec == spec
    assert {run.spec.resolved()["mode"] for run in runs} == {mode}


@pytest.mark.parametrize("spec", [*SPECS, *TOFINO])
def test_variants_overwrite_no_build(spec: EpicSpec) -> None:
    """Programs are built before the first one is tested: of two with one name, the second would be tested twice."""
    runs = mode_ii_runs(spec)
    names = [run.spec.program for run in runs]
    assert len(set(names)) == len({repr(run.spec.resolved()) for run in runs})
    assert all(name.startswith("variant_") for name in names[1:])


def suite(outcomes: Iterable[tuple[str, Outcome]], problem: str | None = None) -> SuiteResult:
    return SuiteResult(tuple(TestResult(name, outcome, 0.0, f"why {name}") for name, outcome in outcomes), 1.0, problem)


def conformance(*suites: SuiteResult) -> ConformanceResult:
    return ConformanceResult(tuple((SuiteRun(EpicSpec()), result) for result in suites))


def test_a_scenario_skipped_here_and_passed_there_is_covered() -> None:
    here = suite([("a", Outcome.PASSED), ("b", Outcome.SKIPPED)])
    there = suite([("a", Outcome.SKIPPED), ("b", Outcome.PASSED)])
    result = conformance(here, there)
    assert result.left_out == {}
    assert result.passed
    assert result.seconds == 2.0


def test_a_scenario_skipped_everywhere_is_left_out_with_its_reason() -> None:
    result = conformance(suite([("a", Outcome.PASSED), ("b", Outcome.SKIPPED)]))
    assert result.left_out == {"b": "why b"}
    assert result.passed


def test_a_run_in_which_nothing_ran_is_not_passed() -> None:
    result = conformance(suite([("a", Outcome.SKIPPED)]), suite([("b", Outcome.SKIPPED)]))
    assert not result.ran_something
    assert not result.passed


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.ERROR])
def test_one_failure_anywhere_fails_the_whole(outcome: Outcome) -> None:
    assert not conformance(suite([("a", Outcome.PASSED)]), suite([("a", outcome)])).passed


def test_a_problem_with_a_run_fails_the_whole() -> None:
    assert not conformance(suite([("a", Outcome.PASSED)]), suite([], "no test was run")).passed
    assert not conformance().passed


@pytest.mark.parametrize("percent", [1, 25, 100])
def test_a_share_is_drawn_over_all_programs(percent: int, seed: int) -> None:
    runs = tuple(mode_ii_runs(EpicSpec()))
    every = [(run.spec, name) for run in runs for name in run.tests or scenario_modules(run.spec)]
    drawn = drawn_runs(runs, percent, seed)
    units = [(run.spec, name) for run in drawn for name in run.tests]
    assert units == [unit for unit in every if unit in units]
    assert len(units) == max(1, round(len(every) * percent / 100))
    assert drawn == drawn_runs(runs, percent, seed)
    assert all(run.tests for run in drawn)
