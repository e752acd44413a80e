"""Mode III's scenarios: each has a program that it runs on, and each wrong design fails one that is about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4gen.papers.epic.conformance.runs_iii import mode_iii_runs
from p4gen.papers.epic.conformance.small import small
from p4gen.papers.epic.spec import Congestion, EpicSpec, Mode, Variant
from p4gen.program import compose, render
from p4gen.ptf.family import scenario_modules
from p4gen.ptf.runner import run_suite
from p4gen.switch.running import Program
from p4gen.vocabulary import Icrc, Op, Reliability
from p4gen.vocabulary.program import COMMON_ICRC

SPECS = [
    EpicSpec(mode=Mode.III),
    EpicSpec(mode=Mode.III, reliability=Reliability.SACK, icrc=Icrc.IGNORE),
    EpicSpec(mode=Mode.III, op=Op.DYNAMIC, pipelines=4),
    EpicSpec(mode=Mode.III, lanes=8, window=2, message=2, groups=2, fan_in=4, ports=8),
]

NOTICED = {
    Variant.PSN_RECYCLING: "test_iii_range.FastContributionsAreSafe",
    Variant.ROOT_COPIES: "test_iii_range.RangeIsExactlyN",
    Variant.NO_NAK: "test_iii_order.GapIsReportedOnce",
    Variant.NAK_STORM: "test_iii_order.GapIsReportedOnce",
    Variant.STALE_ARRIVED: "test_iii_range.SlotsAreUsedAgain",
}


@pytest.mark.parametrize("spec", SPECS)
def test_every_module_and_setting_is_covered(spec: EpicSpec) -> None:
    runs = mode_iii_runs(spec)
    assert runs[0].spec == spec
    assert {run.spec.mode for run in runs} == {Mode.III}
    everything = {name for run in runs for name in (run.tests or scenario_modules(EpicSpec(mode=Mode.III)))}
    assert set(scenario_modules(EpicSpec(mode=Mode.III))) <= everything
    specs = [run.spec for run in runs]
    assert {s.loss_recovery for s in specs} == set(Reliability)
    assert {s.pipelines for s in specs} == {1, 2, 4}
    assert {s.icrc for s in specs} == set(COMMON_ICRC)
    assert {s.op for s in specs} == set(Op)
    assert any(s.congestion is Congestion.NONE for s in specs)
    assert any(s.fan_in == 32 for s in specs)


@pytest.mark.parametrize("spec", SPECS)
def test_programs_overwrite_no_build(spec: EpicSpec) -> None:
    specs = {repr(run.spec.resolved()): run.spec.program for run in mode_iii_runs(spec)}
    assert len(set(specs.values())) == len(specs)
    assert all(name.startswith("variant_") for name in list(specs.values())[1:])


@pytest.mark.sample(3)
@pytest.mark.parametrize("variant", [None, *Variant])
@pytest.mark.long
def test_wrong_designs_are_noticed(variant: Variant | None, tmp_path: Path) -> None:
    spec = small(EpicSpec, mode=Mode.III, lanes=8, variant=variant)
    program = Program.of_text(render(compose(spec)).text, tmp_path)
    tests = sorted(set(NOTICED.values())) if variant is None else [NOTICED[variant]]
    params = {"spec": spec.model_dump(mode="json"), "seed": 1}
    result = run_suite(program, tmp_path, ports=spec.ports, params=params, tests=tests)
    assert result.problem is None
    assert bool(result.failures) == (variant is not None), [test.message for test in result.failures]
    assert not variant or result.failures[0].message.startswith("AssertionError: context 0, edge")
