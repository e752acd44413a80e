"""The suite passes on right programs, whatever they reduce and however they recover from losses."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from p4gen.inc import compose
from p4gen.p4 import ir
from p4gen.p4.compile import compile_text
from p4gen.ptf.conformance import scenario_modules
from p4gen.ptf.judge import Finding, Trial, judge
from p4gen.ptf.matrix import every_program, sample
from p4gen.ptf.memory import load_suite
from p4gen.ptf.runner import default_suite
from p4gen.render import render
from p4gen.spec import Mode, ProgramSpec

SAMPLE = 16
PROCESSOR_S = 600
"""For one program; it takes some seconds."""


def build(spec: ProgramSpec) -> Callable[[], ir.Program]:
    return lambda: compile_text(render(compose(spec)).text, f"{spec.program}.p4").program


@pytest.mark.parametrize("mode", Mode)
def test_scenarios_pass_on_small_programs_of_every_setting(mode: Mode, pytestconfig: pytest.Config) -> None:
    """All ops, dtypes, overflows, reliabilities, ICRC settings, congestion notifications and numbers of pipelines."""
    given = pytestconfig.getoption("--seed")
    seed = random.SystemRandom().randrange(1 << 32) if given is None else int(given)
    programs = every_program(mode)
    chosen = programs if pytestconfig.getoption("--full") else sample(programs, SAMPLE, seed)
    print(f"seed {seed}: {len(chosen)} programs of mode {mode}")  # noqa: T201 - pytest shows it with what fails
    scenarios = load_suite(default_suite(), scenario_modules(mode))
    names = list(scenarios)
    trials = (Trial(spec.program, spec, build(spec), names, processor_s=PROCESSOR_S) for spec in chosen)
    findings = {trial.fault: trial for trial in judge(trials, scenarios, seed=seed, jobs=1)}
    assert len(findings) == len(chosen)
    wrong = [f"{name}: {t.by}: {t.message}" for name, t in findings.items() if t.finding is not Finding.SURVIVED]
    assert wrong == [], f"again with pytest {__file__} --seed {seed}"
    ran = {name for trial in findings.values() for name, result in trial.results.items() if result.message == ""}
    assert len(ran) > len(names) // 2
