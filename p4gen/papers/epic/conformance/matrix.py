"""Small programs of every op, dtype and setting that changes a program's behaviour, on which the suite runs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from pydantic import ValidationError

from p4gen.papers.epic.conformance.small import small
from p4gen.papers.epic.spec import Congestion, EpicSpec, Mode
from p4gen.vocabulary import DType, Op, Overflow, Reliability
from p4gen.vocabulary.program import COMMON_ICRC, DEFAULT_ARCH

AXES: dict[str, Sequence[object]] = {
    "op": tuple(Op),
    "dtype": tuple(DType),
    "overflow": (None, *Overflow),
    "reliability": (None, *Reliability),
    "icrc": COMMON_ICRC,
    "congestion": (None, *Congestion),
    "pipelines": (1, 2, 4),
}
"""Fields that change a program's behaviour. None is a default, which is one of the others."""


def every_program(mode: Mode, kind: type[EpicSpec] = EpicSpec, arch: str = DEFAULT_ARCH) -> tuple[EpicSpec, ...]:
    """A small program for each valid combination of values in a mode, each of them once."""
    programs: dict[str, EpicSpec] = {}
    for values in itertools.product(*AXES.values()):
        try:
            spec = small(kind, arch=arch, mode=mode, lanes=8, fan_in=32, **dict(zip(AXES, values, strict=True)))
        except ValidationError:
            continue  # not a valid combination
        programs.setdefault(repr(sorted(spec.resolved().items() - {("name", spec.name)}, key=str)), spec)
    return tuple(programs.values())
