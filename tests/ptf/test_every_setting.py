"""The suite passes on right programs, whatever they reduce and however they recover from losses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from p4gen.p4 import ir
from p4gen.papers.epic.conformance.matrix import every_program
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.program.compilation import compile_spec
from p4gen.ptf.family import scenario_modules, suite_of
from p4gen.ptf.judge import Finding, Trial, judge
from p4gen.ptf.matrix import sample
from p4gen.ptf.memory import load_suite

SAMPLE = 3
PROCESSOR_S = 600
"""For one program; it takes some seconds."""


def build(spec: EpicSpec) -> Callable[[], ir.Program]:
    return lambda: compile_spec(spec).program


@pytest.mark.sample(1)
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.long
def test_scenarios_pass_on_small_programs_of_every_setting(mode: Mode, seed: int, pytestconfig: pytest.Config) -> None:
    """All ops, dtypes, overflows, reliabilities, ICRC settings, congestion notifications and numbers of pipelines."""
    programs = every_program(mode)
    chosen = programs if pytestconfig.getoption("--full") else sample(programs, SAMPLE, seed)
    scenarios = load_suite(suite_of(programs[0]), scenario_modules(programs[0]))
    names = list(scenarios)
    trials = (Trial(spec.program, spec, build(spec), names, processor_s=PROCESSOR_S) for spec in chosen)
    findings = {trial.fault: trial for trial in judge(trials, scenarios, seed=seed, jobs=1)}
    assert len(findings) == len(chosen)
    wrong = [f"{name}: {t.by}: {t.message}" for name, t in findings.items() if t.finding is not Finding.SURVIVED]
    assert wrong == []
    ran = {name for trial in findings.values() for name, result in trial.results.items() if result.message == ""}
    assert len(ran) > len(names) // 2
