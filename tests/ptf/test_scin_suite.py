"""SCIN's faults fit their programs, and a design that falls short is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4gen.papers.scin.conformance import small
from p4gen.papers.scin.spec import ScinSpec, Variant
from p4gen.program import compose, render
from p4gen.ptf.family import conformance_of, suite_of
from p4gen.ptf.mutations import Mutation
from p4gen.ptf.runner import run_suite
from p4gen.switch.running import Program

SEEDING = conformance_of(ScinSpec()).seeding(ScinSpec())

NOTICED = {Variant.EARLY_RELEASE: "test_scin_results.ResultsStayUntilTheyAreAcknowledged"}


@pytest.mark.parametrize("mutation", SEEDING.mutations, ids=lambda mutation: mutation.name)
def test_a_fault_fits_its_program(mutation: Mutation) -> None:
    spec = ScinSpec.model_validate(SEEDING.programs[mutation.program])
    text = render(compose(spec)).text
    assert mutation.apply(text) != text


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.long
def test_a_design_that_falls_short_is_noticed(variant: Variant, tmp_path: Path) -> None:
    spec = small(variant=variant)
    program = Program.of_text(render(compose(spec)).text, tmp_path)
    params = {"spec": spec.model_dump(mode="json"), "seed": 1}
    names, suite = [NOTICED[variant]], suite_of(spec)
    result = run_suite(program, tmp_path, ports=spec.ports, params=params, tests=names, suite=suite)
    assert result.problem is None
    assert [test.message.partition(":")[0] for test in result.failures] == ["AssertionError"]
