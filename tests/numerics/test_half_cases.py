"""The suite's cases of binary16 and bfloat16, and the faults that they have to find."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from p4gen.model import Model
from p4gen.p4.compile import compile_text
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.ptf.family import conformance_of
from p4gen.ptf.mutations import Mutation
from p4gen.resources import resource
from p4gen.vocabulary import DType, Op
from p4gen.vocabulary.folds import Fold
from p4gen.vocabulary.reductions import Numbers

from .folds import Switch, harness
from .test_halves import halves_of, lanes_of

sys.path.insert(0, str(resource("ptf_tests")))
import halves

LANES = 32
SEEDING = conformance_of(EpicSpec(mode=Mode.I)).seeding(EpicSpec(mode=Mode.I))
HALVES = ("halves", "least of halves", "bfloat16")
FAULTS = [fault for fault in SEEDING.mutations if fault.program in HALVES]


def chosen(dtype: DType, op: Op) -> tuple[halves.Case, ...]:
    cases = halves.CASES[dtype]
    return {Op.SUM: cases.sums, Op.MIN: cases.minima, Op.MAX: cases.maxima}[op]


def fold(dtype: DType, op: Op) -> Fold:
    return Fold(Numbers(op, dtype), counts=op.overflows)


def wrong(switch: Switch, dtype: DType, op: Op) -> list[str]:
    """The cases whose results are others, and those that are not counted as they should be."""
    found = []
    large = {case for case in halves.CASES[dtype].overflow if op is Op.SUM}
    for contributions, right in chosen(dtype, op):
        count = len(contributions)
        # Two neighbours, so that halves that are mixed up show.
        rows = np.zeros((switch.sources, 2 * switch.lanes), np.uint16)
        rows[:count, 0] = contributions
        rows[0, 1] = halves.CASES[dtype].one
        lanes, full = switch(lanes_of(rows), (1 << count) - 1)
        got = halves_of(lanes)
        other = halves_of(switch(lanes_of(rows[:, 1::-1].repeat(switch.lanes, axis=1)), (1 << count) - 1)[0])
        if got[0] != right or other[-1] != right:
            found.append(f"{[f'{each:04x}' for each in contributions]}: {got[0]:04x}, not {right:04x}")
        if bool(full[0]) is not ((contributions, right) in large):
            found.append(f"{[f'{each:04x}' for each in contributions]}: counted {bool(full[0])}")
    return found


@pytest.mark.parametrize("op", [Op.SUM, Op.MIN, Op.MAX], ids=str)
@pytest.mark.parametrize("dtype", list(halves.CASES), ids=str)
def test_cases_are_right(dtype: DType, op: Op) -> None:
    assert not wrong(Switch.of(fold(dtype, op), halves.MOST, LANES), dtype, op)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
@pytest.mark.sample(9)
def test_each_fault_is_found(fault: Mutation) -> None:
    fields = SEEDING.programs[fault.program]
    dtype, op = DType(str(fields["dtype"])), Op(str(fields.get("op", "sum")))
    made = fold(dtype, op)
    switch = Switch.of(made, halves.MOST, 1, "interp")
    text = harness(made.functions, made.lines("element", range(halves.MOST)), halves.MOST, 1)
    switch.model = Model(compile_text(fault.apply(text), "fault.p4").program, engine="interp")
    assert wrong(switch, dtype, op)
