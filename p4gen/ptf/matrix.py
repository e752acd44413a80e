"""Small programs with every op, dtype and other setting that affects behaviour, for the suite to run on."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import TypeVar

from p4gen.errors import Diagnostic, InputError, Option
from p4gen.families import flag_name
from p4gen.ptf.family import conformance_of
from p4gen.vocabulary import ProgramSpec

C = TypeVar("C", bound=ProgramSpec)


def chosen_programs(spec: C, wanted: str, seed: int) -> tuple[C, ...]:
    """The programs of the same kind as ``spec`` that have the values it sets. ``wanted`` is their number or "all".

    Raises ``InputError`` for any other ``wanted``, and when the spec sets fields that small programs do not copy.
    """
    facet = conformance_of(spec)
    foreign = spec.model_fields_set - {"family", *facet.kept, *facet.axes}
    if foreign:
        flags = ", ".join(flag_name(name) for name in type(spec).model_fields if name in foreign)
        raise InputError(f"--matrix makes small programs of its own: it does not go with {flags}")
    if wanted != "all" and not (wanted.isdecimal() and int(wanted)):
        raise InputError(Diagnostic(Option("matrix"), f"'{wanted}' is neither a number of programs nor all"))
    given, resolved = spec.model_fields_set & facet.axes.keys(), spec.resolved()
    programs = [p for p in facet.every_program(spec) if all(p.resolved()[name] == resolved[name] for name in given)]
    return tuple(programs) if wanted == "all" else sample(programs, int(wanted), seed)


def axes_of(spec: ProgramSpec) -> list[str]:
    """The flags with which ``chosen_programs`` makes the same choice again."""
    values = spec.model_dump(mode="json")
    facet = conformance_of(spec)
    given = [name for name in (*facet.kept, *facet.axes) if name in spec.model_fields_set and values[name] is not None]
    return [word for name in given for word in (flag_name(name), str(values[name]))]


def sample(programs: Sequence[C], count: int, seed: int) -> tuple[C, ...]:
    """``count`` programs drawn with ``seed``; each is chosen for the pairs of values that the earlier ones do not
    cover."""
    left = {spec: set(_pairs(spec)) for spec in random.Random(seed).sample(programs, len(programs))}  # noqa: S311 - to be repeated
    chosen: list[C] = []
    seen: set[object] = set()
    while left and len(chosen) < count:
        best = max(left, key=lambda spec: len(left[spec] - seen))
        chosen.append(best)
        seen |= left.pop(best)
    return tuple(chosen)


def _pairs(spec: ProgramSpec) -> Iterator[tuple[object, object]]:
    resolved = spec.resolved()
    return itertools.combinations([(name, resolved[name]) for name in conformance_of(spec).axes], 2)
