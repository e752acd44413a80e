"""The programs with which a spec of Mode III is tested."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from p4gen.papers.epic.conformance.runs_ii import locked
from p4gen.papers.epic.conformance.small import small
from p4gen.papers.epic.spec import EpicSpec, Fold, Mode, Verb
from p4gen.papers.epic.tofino import static
from p4gen.papers.epic.tofino.iii import problems
from p4gen.ptf.family import SuiteRun
from p4gen.vocabulary import DType, Icrc, Op, Overflow, Reliability
from p4gen.vocabulary.reductions import all_numbers

Made = Callable[..., EpicSpec]
"""``small`` of Mode III, for a family's spec."""
SUMS = ("test_iii_collectives.SumsSaturateOrWrap",)
FLOATS = ("test_iii_floats",)
FOLDS = ("test_iii_folds",)
"""Of floating-point numbers that are folded in the order of ranks."""
WRITES = ("test_iii_write", "test_iii_retransmission")
"""Of results that are written into memory of ranks."""
STORES = ("test_iii_stores",)
"""Of any numbers that are."""
ARITHMETIC = ("test_iii_order.Contributions", "test_iii_order.ResultsFromTheParent")
RANGE = "test_iii_range"
WHOLE_RANGE = (RANGE, "test_iii_generations")
PIPELINES = ("test_iii_pipelines", "test_iii_internal")
HOLES = ("test_iii_holes",)
LARGE = 32
"""Wrapping around more slots than this is slow: small programs do it then, except for a few scenarios."""
ON_LARGE = tuple(f"{RANGE}.{name}" for name in ("RangeIsExactlyN", "RangeFromTheParent", "FastContributionsAreSafe"))
MODULES = (
    "test_iii_order",
    "test_iii_entrances",
    "test_iii_retransmission",
    "test_iii_collectives",
    "test_iii_selective",
    "test_iii_forwarding",
    "test_iii_headers",
    "test_iii_fan_in",
    "test_iii_phases",
    "test_iii_late_answers",
    "test_iii_idle",
    "test_iii_timer",
    "test_iii_congestion",
    "test_iii_vlan",
    "test_iii_neighbours",
    "test_iii_announcements",
    "test_iii_contexts",
    "test_iii_kinds",
    "test_iii_write",
)


def mode_iii_runs(spec: EpicSpec) -> tuple[SuiteRun[EpicSpec], ...]:
    """All scenarios on ``spec``'s program, then, on small programs, those that need something else."""
    made: Made = partial(small, type(spec), arch=spec.arch, ip=spec.ip, mode=Mode.III, verb=spec.verb)
    large = spec.slots_per_group > LARGE
    runs = [SuiteRun(spec, (*MODULES, *PIPELINES, *HOLES, *ON_LARGE) if large else ())]
    if spec.locks:
        runs = [SuiteRun(made(lanes=8, locks=4))]
    elif large or not spec.loss_recovery.in_order:
        runs.append(SuiteRun(made(), WHOLE_RANGE if spec.loss_recovery.in_order else ()))
    runs += [
        SuiteRun(_long(made, Reliability.GBN), ("test_iii_retransmission.OneNakBringsSixtyFourPackets",)),
        SuiteRun(_long(made, Reliability.SR), ("test_iii_selective", *HOLES)),
        SuiteRun(_long(made, Reliability.SACK), ("test_iii_selective", *HOLES)),
        SuiteRun(made(lanes=8, reliability=Reliability.SR), (*MODULES, *WHOLE_RANGE)),
        SuiteRun(made(op=Op.DYNAMIC), ("test_iii_collectives",)),
        SuiteRun(made(op=Op.DYNAMIC, dtype=DType.FLOAT32, lanes=8), ("test_iii_collectives", *FLOATS)),
        SuiteRun(made(lanes=8, congestion="none"), (RANGE,)),
        SuiteRun(made(icrc=Icrc.IGNORE), ("test_iii_order.Contributions", "test_iii_order.GapIsReportedOnce")),
        SuiteRun(made(icrc=Icrc.SET), ("test_iii_order.Contributions", "test_iii_order.GapIsReportedOnce")),
        *(SuiteRun(_pipelines(made, count, how), PIPELINES) for count, how in _BANKS),
    ]
    for numbers in all_numbers():
        if numbers.dtype.number_format.wide is not None:
            continue  # not for programs that add what arrives
        if not numbers.dtype.number_format.integer:
            runs.append(SuiteRun(made(op=numbers.op, dtype=numbers.dtype), (*ARITHMETIC, *FLOATS)))
        elif numbers.op.overflows:
            runs += [SuiteRun(made(op=numbers.op, dtype=numbers.dtype, overflow=how), SUMS) for how in Overflow]
        else:
            runs.append(SuiteRun(made(op=numbers.op, dtype=numbers.dtype), ARITHMETIC))
    if spec.fan_in < LARGE or not spec.icrc.checked:
        names = ("test_iii_collectives.ThirtyTwoEdges", "test_iii_collectives.ChildrenOfALargeNode")
        checks = ("test_iii_order.CorruptPacketsLeaveNoTrace", *ARITHMETIC)
        runs.append(SuiteRun(made(lanes=8, fan_in=32, ports=32), (*names, *checks)))
    if not static(spec):
        runs += _ordered(made)
        runs += locked(made, spec)
        runs += [
            SuiteRun(made(lanes=8, message=4, verb=Verb.WRITE), WRITES),
            SuiteRun(made(lanes=8, verb=Verb.WRITE, reliability=Reliability.SR), (*WRITES, "test_iii_selective")),
        ]
    else:
        # What has no program of this form cannot be tested on one.
        runs = [run for run in runs if run.spec is spec or not any(problems(run.spec))]
    return tuple(run for index, run in enumerate(runs) if not index or run.spec.resolved() != spec.resolved())


def _ordered(made: Made) -> list[SuiteRun[EpicSpec]]:
    """Contributions that are stored, and folded in the order of ranks."""
    ordered = partial(made, lanes=8, fold=Fold.ORDERED)
    return [
        SuiteRun(ordered(), (*STORES, *SUMS, *ARITHMETIC, "test_iii_retransmission", "test_iii_phases")),
        SuiteRun(ordered(reliability=Reliability.SR), (*STORES, "test_iii_selective", *HOLES)),
        SuiteRun(ordered(pipelines=2, groups=4, fan_in=8), PIPELINES),
        *(SuiteRun(ordered(dtype=dtype), (*STORES, *FOLDS)) for dtype in (DType.FLOAT32, DType.FLOAT16)),
        SuiteRun(ordered(op=Op.MIN, dtype=DType.FLOAT16), ("test_iii_folds.MinOfNan",)),
        SuiteRun(ordered(op=Op.MAX, dtype=DType.FLOAT32), ("test_iii_folds.MaxOfZeros",)),
    ]


_BANKS = ((2, Reliability.GBN), (4, Reliability.GBN), (2, Reliability.SR))


def _long(made: Made, reliability: Reliability) -> EpicSpec:
    """Slots for more packets than a burst has, or may arrive out of order."""
    return made(lanes=8, reliability=reliability, slots=256, name=f"modeiii_n256_{reliability}")


def _pipelines(made: Made, count: int, reliability: Reliability) -> EpicSpec:
    """A node in each pipeline, of two ranks and the edges to all other pipelines."""
    return made(pipelines=count, reliability=reliability, lanes=8, groups=4, fan_in=8)
