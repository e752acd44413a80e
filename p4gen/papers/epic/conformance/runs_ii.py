"""The programs with which a spec of Mode II is tested: its own, and small ones for scenarios that do not apply to it.

What a program can do depends on its spec: a sum saturates or wraps, a minimum does neither; a program with one pipeline
has no internal edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from p4gen.papers.epic.conformance.small import small
from p4gen.papers.epic.spec import EpicSpec, Fold, Served, Verb
from p4gen.papers.epic.tofino import static
from p4gen.papers.epic.tofino.limits import problems
from p4gen.ptf.family import SuiteRun
from p4gen.vocabulary import DType, Icrc, Op, Overflow, Reliability
from p4gen.vocabulary.reductions import single_ops

ARITHMETIC = ("test_arithmetic", "test_floats")
_ANY_ICRC = (
    "test_validation.IcrcIgnored",
    "test_reliability.AckIsReflected",
    "test_control.CongestionNotificationIsReflected",
    "test_tree.AnnouncementGoesUpAndComesDown",
    "test_tree.ResultComesDown",
)
ICRC = {
    Icrc.RECOMPUTE: (
        "test_validation.WrongIcrc",
        "test_validation.CorruptNotification",
        "test_control.CorruptAnnouncement",
        "test_headers.IcrcAtTheLimits",
    ),
    Icrc.SET: _ANY_ICRC,
    Icrc.IGNORE: _ANY_ICRC[:2],
}
"""The scenarios that run on a variant with this setting."""
PIPES = ("test_static_pipes",)
PAYLOAD_PIPES = ("test_static_fold",)
SACKS = ("test_sacks",)
FOLDS = ("test_folds", "test_reliability")
WRITES = ("test_write", "test_tree", "test_reliability")
"""Of results that are written into memory of ranks."""
STORES = ("test_folds", "test_arithmetic", "test_reliability", "test_reduce", "test_tree", "test_patterns")
"""Of contributions that are stored, and folded in the order of ranks."""
LOCKS = ("test_locks",)
SEVERAL_PIPES = 72
"""Ports of a program that has some in a second pipe."""


def mode_ii_runs(spec: EpicSpec) -> tuple[SuiteRun[EpicSpec], ...]:
    """All scenarios on ``spec``'s program, then, on small programs, those that need something else."""
    made = partial(small, type(spec), arch=spec.arch, ip=spec.ip, payload_pipes=spec.payload_pipes, verb=spec.verb)
    runs = [SuiteRun(made(lanes=8, locks=4)) if spec.locks else SuiteRun(spec)]
    for op, dtype, overflow in _arithmetics():
        if (op, dtype, op.overflows and overflow is not Overflow.WRAP) != (spec.op, spec.dtype, spec.saturating):
            runs.append(SuiteRun(made(op=op, dtype=dtype, overflow=overflow), ARITHMETIC))
    if spec.op is not Op.DYNAMIC:
        runs.append(SuiteRun(made(op=Op.DYNAMIC), ("test_dynamic", *ARITHMETIC)))
        runs.append(SuiteRun(made(op=Op.DYNAMIC, dtype=DType.FLOAT32, lanes=8), ("test_dynamic", *ARITHMETIC)))
    lanes = {"lanes": 8} if static(spec) else {}  # Tofino has no more stages for more
    runs += [SuiteRun(made(icrc=icrc, **lanes), tests) for icrc, tests in ICRC.items() if icrc is not spec.icrc]
    if not spec.loss_recovery.in_order:
        runs.append(SuiteRun(made(reliability=Reliability.GBN), ("test_order", "test_idle")))
        sack = partial(made, reliability=Reliability.SACK, lanes=8)
        runs.append(SuiteRun(sack(), (*SACKS, "test_broadcast")))
        runs.append(SuiteRun(sack(window=64, message=4, slots=512, name="modeii_n512_sack"), SACKS))
    for pipelines, reliability in ((2, Reliability.GBN), (4, Reliability.SR)):
        if (pipelines, reliability) != (spec.pipelines, spec.loss_recovery):
            runs.append(SuiteRun(made(pipelines=pipelines, reliability=reliability), ("test_pipelines",)))
    if spec.fan_in < 32 or spec.groups < 4 or spec.ports < 4:
        runs.append(SuiteRun(made(lanes=8, fan_in=32, ports=32, groups=4)))
    if static(spec):
        # Every width of the payload; a variant has 16 lanes, as most of the runs above.
        widths = (made(lanes=lanes, name=f"modeii_x{lanes}_{spec.arch}") for lanes in (8, 32) if lanes != spec.lanes)
        runs += [SuiteRun(width, ARITHMETIC) for width in widths]
        runs.append(SuiteRun(made(lanes=8, ports=SEVERAL_PIPES, name=f"modeii_pipes_{spec.arch}"), PIPES))
        if not spec.broadcasts:
            broadcasting = made(lanes=8, fan_in=8, serves=Served.ALL)
            runs.append(SuiteRun(broadcasting, ("test_broadcast", "test_broadcast_edges", "test_vlan", "test_control")))
        if spec.payload_pipes == 1:
            runs.append(SuiteRun(made(lanes=8, payload_pipes=4), PAYLOAD_PIPES))
            runs.append(SuiteRun(made(lanes=8, payload_pipes=4, icrc=Icrc.SET), (*PAYLOAD_PIPES, "test_tree")))
        # What has no program of this form cannot be tested on one.
        runs = [run for run in runs if run.spec is spec or not any(problems(run.spec))]
    else:
        runs += _ordered(made)
        runs += locked(made, spec)
        runs.append(SuiteRun(made(lanes=8, message=4, verb=Verb.WRITE, pipelines=2), (*WRITES, "test_pipelines")))
    return tuple(runs)


def locked(made: Callable[..., EpicSpec], spec: EpicSpec) -> list[SuiteRun[EpicSpec]]:
    """Groups that share slots, on ``spec``'s program if it has locks, and small ones; none that write results."""
    if spec.uses_memory:
        return []
    small_ones = [made(lanes=8, locks=2), made(lanes=8, locks=1, op=Op.MIN, dtype=DType.UINT32)]
    small_ones.append(made(lanes=8, locks=2, pipelines=2, fan_in=8))
    return [SuiteRun(each, LOCKS) for each in ([spec] if spec.locks else []) + small_ones]


def _ordered(made: Callable[..., EpicSpec]) -> list[SuiteRun[EpicSpec]]:
    """Contributions that are stored, and folded in the order of ranks."""
    ordered = partial(made, lanes=8, fold=Fold.ORDERED)
    return [
        SuiteRun(ordered(), STORES),
        SuiteRun(ordered(pipelines=2), ("test_pipelines",)),
        *(SuiteRun(ordered(dtype=dtype), FOLDS) for dtype in (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)),
    ]


def _arithmetics() -> Iterator[tuple[Op, DType, Overflow | None]]:
    for dtype in (each for each in DType if each.number_format.wide is None):
        for op in (op for op in single_ops() if dtype in op.reduction.dtypes):
            several = op.overflows and dtype.number_format.integer
            yield from ((op, dtype, overflow) for overflow in (Overflow if several else (None,)))
