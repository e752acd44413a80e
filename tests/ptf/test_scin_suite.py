"""SCIN's faults fit their programs."""

from __future__ import annotations

import pytest

from p4gen.families.scin.faults import SEEDING
from p4gen.families.scin.spec import ScinSpec
from p4gen.program import compose, render
from p4gen.ptf.mutations import Mutation


@pytest.mark.parametrize("mutation", SEEDING.mutations, ids=lambda mutation: mutation.name)
def test_a_fault_fits_its_program(mutation: Mutation) -> None:
    spec = ScinSpec.model_validate(SEEDING.programs[mutation.program])
    text = render(compose(spec)).text
    assert mutation.apply(text) != text
