"""The family beside a program's own: how it is written on a command line, and which of the two answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from p4gen.families.registry import families, family_of
from p4gen.plugins import Facet
from p4gen.vocabulary.program import COMMON, DEFAULT_FAMILY, ProgramSpec

NONE = "none"
"""The value of ``beside`` for a program of one family."""


def implied_family(values: Mapping[str, Any]) -> str:
    """The family of a spec that names none: the one that has its mode."""
    mode = values.get("mode")
    return next((name for name, family in families().items() if mode in family.modes), DEFAULT_FAMILY)


def fields_of(written: object) -> object:
    """The fields of the family beside another one, from their text; anything else is returned as it is.

    >>> fields_of("themis-s:paths=4")
    {'mode': 'themis-s', 'paths': 4}
    """
    if not isinstance(written, str):
        return written
    name, _, rest = written.partition(":")
    if name == NONE and not rest:
        return None
    by_mode = any(name in family.modes for family in families().values())
    found: dict[str, Any] = {"mode" if by_mode else "family": name}
    for part in filter(None, rest.split(",")):
        field, _, value = part.partition("=")
        found[field.strip().replace("-", "_")] = int(value) if value.strip().isdecimal() else value.strip()
    return found


def text_of(spec: ProgramSpec) -> str:
    """The shortest text that ``fields_of`` reads as this spec, but for the fields that it shares with the program."""
    family = family_of(spec)
    given = spec.model_dump(mode="json", exclude_defaults=True, exclude={*COMMON, "family", "mode", "beside"})
    name = getattr(spec, "mode", family.name)
    rest = ",".join(f"{field}={value}" for field, value in given.items())
    return f"{name}:{rest}" if rest else str(name)


def answering(spec: ProgramSpec, kind: type[Facet]) -> ProgramSpec | None:
    """The spec in a program whose family has a facet: the program's own, or that of the family beside it."""
    return next((part for part in (spec, spec.beside) if part is not None and family_of(part).answers(kind)), None)
