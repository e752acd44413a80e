"""The programs with which a spec of Mode II is tested: its own, and small ones for scenarios that do not apply to it.

What a program can do depends on its spec: a sum saturates or wraps, a minimum does neither; a program with one pipeline
has no internal edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from p4gen.families.epic.conformance.small import small
from p4gen.families.epic.spec import EpicSpec
from p4gen.families.epic.static import problems, static
from p4gen.ptf.family import SuiteRun
from p4gen.spec import DType, Icrc, Op, Overflow, Reliability
from p4gen.spec.reductions import single_ops

ARITHMETIC = ("test_arithmetic",)


def mode_ii_runs(spec: EpicSpec) -> tuple[SuiteRun[EpicSpec], ...]:
    """All scenarios on ``spec``'s program, then, on small programs, those that need something else."""
    made = partial(small, type(spec), arch=spec.arch)
    runs = [SuiteRun(spec)]
    for op, dtype, overflow in _arithmetics():
        if (op, dtype, op.overflows and overflow is not Overflow.WRAP) != (spec.op, spec.dtype, spec.saturating):
            runs.append(SuiteRun(made(op=op, dtype=dtype, overflow=overflow), ARITHMETIC))
    if spec.op is not Op.DYNAMIC:
        runs.append(SuiteRun(made(op=Op.DYNAMIC), ("test_dynamic", *ARITHMETIC)))
    if spec.icrc.checked:
        ignoring = made(icrc=Icrc.IGNORE)
        runs.append(SuiteRun(ignoring, ("test_validation.IcrcIgnored", "test_reliability.AckIsReflected")))
    else:
        runs.append(SuiteRun(made(), ("test_validation.WrongIcrc",)))
    if not spec.loss_recovery.in_order:
        runs.append(SuiteRun(made(reliability=Reliability.GBN), ("test_order", "test_idle")))
    for pipelines, reliability in ((2, Reliability.GBN), (4, Reliability.SR)):
        if (pipelines, reliability) != (spec.pipelines, spec.loss_recovery):
            runs.append(SuiteRun(made(pipelines=pipelines, reliability=reliability), ("test_pipelines",)))
    if spec.fan_in < 32 or spec.groups < 4 or spec.ports < 4:
        runs.append(SuiteRun(made(lanes=8, fan_in=32, ports=32, groups=4)))
    if static(spec):
        # What has no program of this form cannot be tested on one.
        runs = [run for run in runs if run.spec is spec or not any(problems(run.spec))]
    return tuple(runs)


def _arithmetics() -> Iterator[tuple[Op, DType, Overflow | None]]:
    for dtype in DType:
        for op in (op for op in single_ops() if dtype in op.reduction.dtypes):
            yield from ((op, dtype, overflow) for overflow in (Overflow if op.overflows else (None,)))
