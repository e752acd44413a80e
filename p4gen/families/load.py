"""From YAML text and command-line flags to a family's spec, or to errors with positions.

A flag wins over the file. Every wrong value is reported, not just the first.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, cast

from pydantic import BeforeValidator, SerializeAsAny, ValidationError
from pydantic_core import ErrorDetails

from p4gen.errors import Diagnostic, InputError, Option, Pos
from p4gen.families.guests import fields_of, implied_family
from p4gen.families.registry import families
from p4gen.inputs import quote
from p4gen.vocabulary.collective import CollectiveSpec
from p4gen.vocabulary.program import COMMON, ProgramSpec, SpecConflictError
from p4gen.vocabulary.serving import ServingSpec

Where = Pos | str | None
_NAME: Final = "\0name"
"""At the end of a field's name: where a file has the name, not the value."""


def load_spec(path: Path | None = None, flags: Mapping[str, Any] | None = None) -> ProgramSpec:
    """The spec that ``path`` (YAML) and ``flags`` (field name → value, None if not given) describe.

    Raises ``InputError`` with one diagnostic per wrong value: ``file:line:column`` for values
    in the file, the field's name for others.
    """
    values: dict[str, Any] = {}
    where: dict[str, Where] = {}
    lines: list[str] = []
    if path is not None:
        values, where, lines = _read(path)
    for name, value in (flags or {}).items():
        if value is not None:
            values[name] = value
            where[name] = Option(name)
    default = Pos(str(path), 1, 1) if path else None
    kind = _kind(_family_name(values), where.get("family", default))
    try:
        return kind.model_validate(values | _beside(values, where, default))
    except ValidationError as error:
        problems = (_diagnose(kind, e, values, where, default) for e in error.errors())
        raise InputError(*(_with_source(d, lines) for d in sorted(problems, key=_order))) from None


def load_collective(path: Path | None = None, flags: Mapping[str, Any] | None = None) -> CollectiveSpec:
    """``load_spec`` for a program that takes part in collectives. Raises ``InputError`` also for others."""
    return collective(load_spec(path, flags))


def parse_spec(values: Mapping[str, Any]) -> ProgramSpec:
    """The spec with these fields, as ``model_dump`` gives them. Raises pydantic's ``ValidationError``."""
    guest = values.get("beside")
    both = {**values, "beside": parse_spec(guest)} if isinstance(guest, Mapping) else values
    return _kind(_family_name(values), None).model_validate(both)


def _beside(values: Mapping[str, Any], where: Mapping[str, Where], default: Where) -> dict[str, Any]:
    """The spec of the family beside the program's own, if one is described, in place of its description."""
    place = where.get("beside", default)
    if "beside" not in values:
        return {}
    fields = fields_of(values["beside"])
    if fields is None:
        return {"beside": None}
    if not isinstance(fields, Mapping):
        raise InputError(Diagnostic(place, f"beside = {quote(fields)}: must be a family's mode or name, or its fields"))
    for name in COMMON:
        if name in fields and fields[name] != values.get(name, ProgramSpec.model_fields[name].default):
            raise InputError(Diagnostic(place, f"beside: {name} is a field of the whole program"))
    kind = _kind(_family_name(fields), place)
    try:
        return {"beside": kind.model_validate(fields)}
    except ValidationError as error:
        found = (_diagnose(kind, e, fields, {}, place) for e in error.errors())
        raise InputError(*(Diagnostic(d.where, f"beside: {d.message}") for d in found)) from None


def _read_back(value: object) -> object:
    return parse_spec(value) if isinstance(value, Mapping) else value


WrittenSpec = Annotated[SerializeAsAny[ProgramSpec], BeforeValidator(_read_back)]
"""The type of a field of a record that holds a program's spec: it is read as the spec of its own family."""
WrittenCollective = Annotated[SerializeAsAny[CollectiveSpec], BeforeValidator(_read_back)]
"""The same for a program that takes part in collectives."""
WrittenServing = Annotated[SerializeAsAny[ServingSpec], BeforeValidator(_read_back)]
"""The same for a program that serves groups."""


def serving(spec: ProgramSpec) -> ServingSpec:
    """A spec of a program that serves groups; ``InputError`` for another."""
    if not spec.serves_groups:
        raise InputError(f"{spec.program}: programs of the family {spec.family} serve no groups")
    return cast("ServingSpec", spec)


def collective(spec: ProgramSpec) -> CollectiveSpec:
    """A spec of a program that takes part in collectives; ``InputError`` for another."""
    if not spec.takes_part:
        raise InputError(f"{spec.program}: programs of the family {spec.family} do not take part in collectives")
    return cast("CollectiveSpec", spec)


def _family_name(values: Mapping[str, Any]) -> object:
    return values.get("family", implied_family(values))


def _kind(name: object, where: Where) -> type[ProgramSpec]:
    """The spec of the given family."""
    known = families()
    if not isinstance(name, str) or name not in known:
        near = difflib.get_close_matches(str(name), known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"the families are {', '.join(known)}"
        raise InputError(Diagnostic(where, f"family = {quote(name)}: there is no such family; {hint}"))
    return known[name].spec


def flag_name(field: str) -> str:
    """The command-line flag of a field."""
    return "--" + field.replace("_", "-")


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Where], list[str]]:
    """The mapping's values, the positions of each value and of its name, and the lines."""
    from p4gen.vocabulary.positions import KEY, read_yaml  # noqa: PLC0415 - most specs are flags

    root, places, lines = read_yaml(path)
    if root is None:
        return {}, {}, []
    if not isinstance(root, dict):
        raise InputError(Diagnostic(places[()], "a spec is a mapping of fields, as in 'lanes: 64'"))
    where: dict[str, Where] = {}
    for name in root:
        where[name], where[f"{name}{_NAME}"] = places[(name,)], places[name, KEY]
    return root, where, lines


def _diagnose(
    kind: type[ProgramSpec],
    error: ErrorDetails,
    values: Mapping[str, Any],
    where: Mapping[str, Where],
    default: Where,
) -> Diagnostic:
    cause = error.get("ctx", {}).get("error")
    field = cause.field if isinstance(cause, SpecConflictError) else str(error["loc"][0])
    place = where.get(field, default)
    if error["type"] == "extra_forbidden":
        others = [family for family in families().values() if field in family.spec.model_fields]
        if others:
            owners = _listed([family.name for family in others], "and")
            modes = [mode for family in others for mode in family.modes]
            how = f" (--mode {_listed(modes)})" if modes else ""
            own = next(name for name, family in families().items() if family.spec is kind)
            message = f"{quote(field)} is a field of {owners}{how}, not of {own}"
            return Diagnostic(where.get(f"{field}{_NAME}", place), message)
        near = difflib.get_close_matches(field, kind.model_fields, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"the fields are {', '.join(kind.model_fields)}"
        return Diagnostic(where.get(f"{field}{_NAME}", place), f"unknown field {quote(field)}; {hint}")
    about = kind.model_fields[field].description
    value = values.get(field)
    head = f"{field}: " if value is None else f"{field} = {quote(value)}: "
    if field == "mode" and error["type"] == "enum":
        known = [mode for family in families().values() for mode in family.modes]
        return Diagnostic(place, f"{head}must be {_listed(known)}{_meant(known, value)}")
    why = str(cause) if cause else f"{reason(error)} ({about})"
    names = re.findall(r"'([^']+)'", str(error.get("ctx", {}).get("expected", "")))
    return Diagnostic(place, head + why + _meant(names, value))


def _listed(names: Sequence[str], word: str = "or") -> str:
    """``a``; ``a or b``; ``a, b or c``."""
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last


def _meant(names: Iterable[str], value: object) -> str:
    """The value of a field that is most similar to the given one, of those with these names."""
    by_case = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(value.casefold(), by_case, n=1) if isinstance(value, str) else []
    return f"; did you mean '{by_case[near[0]]}'?" if near else ""


def reason(error: ErrorDetails) -> str:
    """Why pydantic refuses a value, in our words."""
    context = error.get("ctx", {})
    match error["type"]:
        case "literal_error" | "enum":
            return f"must be {context['expected'].replace(chr(39), '')}"
        case "greater_than_equal":
            return f"must be at least {context['ge']}"
        case "less_than_equal":
            return f"must be at most {context['le']}"
        case "int_type" | "int_parsing" | "int_from_float":
            return "must be an integer"
        case "int_parsing_size":
            return "is too large a number"
        case "extra_forbidden":
            return "there is no such option"
        case "string_pattern_mismatch":
            return "must start with a lower-case letter and continue with lower-case letters, digits and _ (63 at most)"
        case _:
            return error["msg"]


def _with_source(diagnostic: Diagnostic, lines: list[str]) -> Diagnostic:
    where = diagnostic.where
    if not isinstance(where, Pos) or not 0 < where.line <= len(lines):
        return diagnostic
    return Diagnostic(where, diagnostic.message, source_line=lines[where.line - 1])


def _order(diagnostic: Diagnostic) -> tuple[int, int, str]:
    where = diagnostic.where
    return (where.line, where.column, "") if isinstance(where, Pos) else (0, 0, str(where))
