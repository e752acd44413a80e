"""Options of commands that are options of a library function: name, type, bounds, default and help are those of the
field of ``p4gen.library.options.Options``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeVar

import click

from p4gen.cli.verb import FiniteRange, GroupedOption
from p4gen.library.options import Options

F = TypeVar("F", bound=Callable[..., Any])


def field_options(
    kind: type[Options], *names: str, group: str = "", defaults: Mapping[str, str] | None = None
) -> dict[str, Callable[[F], F]]:
    """The options of these fields, by name without dashes, in a section of help if a ``group`` is given. ``defaults``
    are what help says in place of defaults."""
    schema = kind.model_json_schema()
    found: dict[str, Callable[[F], F]] = {}
    for name in names:
        form = _form(schema, schema["properties"][name])
        flag = form.get("flag", name)
        default = kind.model_fields[name].default
        said = (defaults or {}).get(name) or form.get("said", "")
        settings: dict[str, Any] = {"cls": GroupedOption, "group": group} if group else {}
        if form.get("type") == "boolean":
            settings["is_flag"] = True
        elif form.get("type") == "array":
            settings["multiple"] = True
        else:
            settings |= {"type": _type(form), "default": str(default) if isinstance(default, Enum) else default}
            settings["show_default"] = default is not None and not said
        help_text = form.get("description", "") + (f"  [{said}]" if said else "")
        metavar = form.get("metavar")
        found[flag] = click.option(
            f"--{flag.replace('_', '-')}", name, metavar=metavar, help=help_text.strip() or None, **settings
        )
    return found


def _form(schema: Mapping[str, Any], form: Mapping[str, Any]) -> dict[str, Any]:
    """What a field's schema says of its values, if they are not None."""
    for each in (form, *form.get("anyOf", ())):
        if "$ref" in each:
            return {**schema["$defs"][each["$ref"].rpartition("/")[2]], **form}
        if each.get("type", "null") != "null" or "enum" in each:
            return {**each, **form}
    return dict(form)


def _type(form: Mapping[str, Any]) -> click.ParamType[Any] | None:
    """The type of an option with such values."""
    if "enum" in form:
        return click.Choice([str(value) for value in form["enum"]])
    low, high = form.get("minimum"), form.get("maximum")
    match form.get("type"):
        case "integer":
            return click.IntRange(low, high)
        case "number":
            return FiniteRange(low, high)
    return None
