"""The programs with which a spec of Mode I is tested."""

from __future__ import annotations

from functools import partial

from p4gen.papers.epic.conformance.runs_iii import (
    ARITHMETIC,
    FLOATS,
    FOLDS,
    LARGE,
    MODULES,
    PIPELINES,
    STORES,
    SUMS,
    WHOLE_RANGE,
    WRITES,
)
from p4gen.papers.epic.conformance.small import small
from p4gen.papers.epic.spec import EpicSpec, Fold, Mode, Verb
from p4gen.ptf.family import SuiteRun
from p4gen.vocabulary import Icrc, Overflow
from p4gen.vocabulary.reductions import all_numbers

OWN = ("test_i_messages", "test_i_order")
"""What only Mode I does."""


def mode_i_runs(spec: EpicSpec) -> tuple[SuiteRun[EpicSpec], ...]:
    """All scenarios on ``spec``'s program, then, on small programs, those that need something else."""
    made = partial(small, type(spec), arch=spec.arch, ip=spec.ip, mode=Mode.I, slots=8, verb=spec.verb)
    large = spec.slots_per_group > LARGE
    long = made(lanes=8, slots=256, name="modei_n256")
    runs = [SuiteRun(spec, (*OWN, *STORES, *MODULES, *PIPELINES) if large else ())]
    if large:
        runs.append(SuiteRun(made(), WHOLE_RANGE))
    runs += [
        SuiteRun(long, ("test_iii_retransmission.OneNakBringsSixtyFourPackets",)),
        SuiteRun(made(lanes=8, congestion="none"), (*OWN, *WHOLE_RANGE)),
        SuiteRun(made(lanes=8, message=1, name="modei_m1"), (*OWN, *WHOLE_RANGE)),
        SuiteRun(made(lanes=8, window=1, message=4, name="modei_w1m4"), OWN),
        SuiteRun(made(lanes=8, message=4, verb=Verb.WRITE), (*OWN, *WRITES)),
        SuiteRun(made(icrc=Icrc.IGNORE), ("test_iii_order.Contributions", "test_iii_order.GapIsReportedOnce")),
        SuiteRun(made(icrc=Icrc.SET), ("test_iii_order.Contributions", "test_iii_order.GapIsReportedOnce")),
        *(SuiteRun(made(pipelines=count, lanes=8, groups=4, fan_in=8), (*PIPELINES, *OWN)) for count in (2, 4)),
    ]
    for numbers in all_numbers():
        named = {"op": numbers.op, "dtype": numbers.dtype}
        if not numbers.dtype.number_format.integer:
            runs.append(SuiteRun(made(**named), (*ARITHMETIC, *FLOATS, *OWN, *FOLDS)))
        elif numbers.op.overflows:
            runs += [SuiteRun(made(**named, overflow=how), (*SUMS, *STORES)) for how in Overflow]
            runs.append(SuiteRun(made(**named, overflow=Overflow.WRAP, fold=Fold.ARRIVAL), (*ARITHMETIC, *OWN)))
        else:
            runs.append(SuiteRun(made(**named), ARITHMETIC))
    if spec.fan_in < LARGE:
        names = ("test_iii_collectives.ThirtyTwoEdges", "test_iii_collectives.ChildrenOfALargeNode")
        runs.append(SuiteRun(made(lanes=8, fan_in=32, ports=32, name="modei_fan32"), (*names, *OWN)))
    return tuple(run for index, run in enumerate(runs) if not index or run.spec.resolved() != spec.resolved())
