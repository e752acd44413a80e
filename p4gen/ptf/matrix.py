"""Small programs of every op, dtype and setting that changes what a program does, for the suite to run on."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from p4gen.errors import Diagnostic, InputError
from p4gen.ptf.conformance import small
from p4gen.spec import Congestion, DType, Icrc, Mode, Op, Overflow, ProgramSpec, Reliability, flag_name

AXES: dict[str, Sequence[object]] = {
    "op": tuple(Op),
    "dtype": tuple(DType),
    "overflow": (None, *Overflow),
    "reliability": (None, *Reliability),
    "icrc": tuple(Icrc),
    "congestion": (None, *Congestion),
    "pipelines": (1, 2, 4),
}
"""Fields whose values decide what a program does. None is a default, which is one of the others."""


def chosen_programs(spec: ProgramSpec, wanted: str, seed: int) -> tuple[ProgramSpec, ...]:
    """The programs of ``spec``'s mode that have its values, where it gives any; ``wanted`` is their number, or all.

    Raises ``InputError`` for another word than that, and where the spec gives what small programs do not take over.
    """
    foreign = spec.model_fields_set - {"mode", *AXES}
    if foreign:
        flags = ", ".join(flag_name(name) for name in ProgramSpec.model_fields if name in foreign)
        raise InputError(f"--matrix makes small programs of its own: it does not go with {flags}")
    if wanted != "all" and not (wanted.isdecimal() and int(wanted)):
        raise InputError(Diagnostic("--matrix", f"'{wanted}' is neither a number of programs nor all"))
    given, resolved = spec.model_fields_set & AXES.keys(), spec.resolved()
    programs = [p for p in every_program(spec.mode) if all(p.resolved()[name] == resolved[name] for name in given)]
    return tuple(programs) if wanted == "all" else sample(programs, int(wanted), seed)


def axes_of(spec: ProgramSpec) -> list[str]:
    """The flags by which ``chosen_programs`` chooses the same again."""
    values = spec.model_dump(mode="json")
    given = [name for name in ("mode", *AXES) if name in spec.model_fields_set and values[name] is not None]
    return [word for name in given for word in (flag_name(name), str(values[name]))]


def every_program(mode: Mode) -> tuple[ProgramSpec, ...]:
    """A small program for each combination of values that goes together in a mode, each of them once."""
    programs: dict[str, ProgramSpec] = {}
    for values in itertools.product(*AXES.values()):
        try:
            spec = small(mode=mode, lanes=8, fan_in=32, **dict(zip(AXES, values, strict=True)))
        except ValidationError:
            continue  # they do not go together
        programs.setdefault(repr(sorted(spec.resolved().items() - {("name", spec.name)}, key=str)), spec)
    return tuple(programs.values())


def sample(programs: Sequence[ProgramSpec], count: int, seed: int) -> tuple[ProgramSpec, ...]:
    """``count`` programs drawn by ``seed``, each for the pairs of values that those before it do not have."""
    left = {spec: set(_pairs(spec)) for spec in random.Random(seed).sample(programs, len(programs))}  # noqa: S311 - to be repeated
    chosen: list[ProgramSpec] = []
    seen: set[object] = set()
    while left and len(chosen) < count:
        best = max(left, key=lambda spec: len(left[spec] - seen))
        chosen.append(best)
        seen |= left.pop(best)
    return tuple(chosen)


def _pairs(spec: ProgramSpec) -> Iterator[tuple[object, object]]:
    resolved = spec.resolved()
    return itertools.combinations([(name, resolved[name]) for name in AXES], 2)
