"""Small programs of every setting: all of them, or a sample that leaves no value out."""

from __future__ import annotations

import itertools

import pytest

from p4gen.errors import InputError
from p4gen.papers.epic.conformance.matrix import AXES, every_program
from p4gen.papers.epic.spec import Congestion, EpicSpec, Mode
from p4gen.ptf.family import conformance_of, modules_of, scenario_modules, suite_of
from p4gen.ptf.matrix import axes_of, chosen_programs, sample
from p4gen.ptf.memory import load_suite
from p4gen.ptf.scenarios import scenarios_of
from p4gen.vocabulary import DType, Op, Overflow, Reliability
from p4gen.vocabulary.program import COMMON_ICRC

COUNTS = {Mode.I: 3 * 2 * 3, Mode.II: 2 * 3 * 3, Mode.III: 3 * 3 * 2 * 3}
"""Reliabilities, ICRC settings, congestion notification, numbers of pipelines."""
SEED = 20260719
ARRIVING = [dtype for dtype in DType if dtype.number_format.wide is None]
"""The dtypes of programs that add contributions as they arrive."""


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.long
def test_every_combination_is_there_once(mode: Mode) -> None:
    programs = every_program(mode)
    names = {spec.program for spec in programs}
    kinds = {(spec.op, spec.dtype, spec.saturating) for spec in programs}
    # Sums of integers and dynamic saturate or wrap; sums of floating-point numbers, minima and maxima do neither.
    arriving = 2 * 2 + 1 + 2 + 2 * 3
    # Mode I has no dynamic; it folds, so it has float16 and bfloat16, too.
    assert len(kinds) == (arriving - 2 + 2 * 3 if mode.stores else arriving)
    assert len(programs) == len(names) == len(kinds) * COUNTS[mode]
    assert all(name.startswith("variant_") for name in names)
    assert {spec.mode for spec in programs} == {mode}


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.long
def test_a_sample_of_eight_leaves_no_value_out(mode: Mode) -> None:
    programs = every_program(mode)
    recoveries = {spec.loss_recovery for spec in programs}
    for seed in range(SEED, SEED + 10):
        chosen = sample(programs, 8, seed)
        assert len(set(chosen)) == 8
        assert {spec.op for spec in chosen} == {spec.op for spec in programs}, seed
        assert {spec.dtype for spec in chosen} == (set(DType) if mode.stores else set(ARRIVING)), seed
        assert {spec.icrc for spec in chosen} == set(COMMON_ICRC), seed
        assert {spec.pipelines for spec in chosen} == {1, 2, 4}, seed
        assert {spec.resolved()["overflow"] for spec in chosen} >= {None, *Overflow}, seed
        assert {spec.loss_recovery for spec in chosen} == recoveries, seed
        assert {spec.notifies for spec in chosen} == ({True, False} if mode.augmented else {False}), seed
    assert chosen == sample(programs, 8, seed)


@pytest.mark.long
def test_what_is_given_stays_so() -> None:
    spec = EpicSpec(mode=Mode.III, op=Op.MAX, reliability=Reliability.SACK, congestion=Congestion.NONE)
    programs = chosen_programs(spec, "all", SEED)
    assert len(programs) == len(ARRIVING) * 3 * 3
    assert {(p.op, p.loss_recovery) for p in programs} == {(Op.MAX, Reliability.SACK)}
    assert {p.resolved()["congestion"] for p in programs} == {"none"}
    assert set(chosen_programs(spec, "3", SEED)) < set(programs)
    assert " ".join(axes_of(spec)) == "--mode III --op max --reliability sack --congestion none"


@pytest.mark.parametrize(
    ("fields", "wanted", "cause"),
    [
        ({}, "0", "neither a number of programs nor all"),
        ({}, "-1", "neither a number of programs nor all"),
        ({}, "few", "neither a number of programs nor all"),
        ({"lanes": 8, "window": 2}, "3", "it does not go with --lanes, --window"),
    ],
)
def test_wrong_wishes(fields: dict[str, object], wanted: str, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        chosen_programs(EpicSpec.model_validate(fields), wanted, SEED)


@pytest.mark.sample(2)
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.long
def test_the_variants_of_the_default_program_leave_no_scenario_out(mode: Mode) -> None:
    """What ``p4gen ptf`` runs without further wishes is the whole suite of a mode."""
    covered: set[str] = set()
    everything: set[str] = set()
    suite = suite_of(EpicSpec(mode=mode))
    kinds = load_suite(suite, modules_of(suite))
    for run in conformance_of(EpicSpec()).runs(EpicSpec(mode=mode)):
        known = tuple(scenarios_of(kinds, run.spec))
        known = tuple(s for s in known if s.unfit != f"the program is of mode {mode}")
        everything |= {s.name for s in known if s.name.partition(".")[0] in scenario_modules(run.spec)}
        covered |= {
            s.name
            for s in known
            if s.unfit is None and (not run.tests or {s.name, s.name.partition(".")[0]} & set(run.tests))
        }
    assert everything
    assert everything - covered == set()


def test_all_axes_are_fields() -> None:
    assert AXES.keys() <= EpicSpec.model_fields.keys()
    assert all(len(set(values)) == len(values) > 1 for values in AXES.values())
    assert len(list(itertools.product(*AXES.values()))) > len(every_program(Mode.III))
