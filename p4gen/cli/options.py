"""Options that several verbs share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from p4gen.choices import TARGETS
from p4gen.cli.common import engine_option as engine_option  # noqa: PLC0414  (for the other verbs)
from p4gen.cli.common import json_option as json_option  # noqa: PLC0414
from p4gen.cli.values import SpecValue
from p4gen.cli.verb import GroupedOption
from p4gen.spec import ProgramSpec, flag_name, load_spec

PROGRAM = "The program: these, or a YAML file with the same fields; flags win"
"""What the spec's options are called in ``--help``."""
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def spec_options(function: F) -> F:
    """A flag for every field of the spec, and a YAML file; see ``spec_from``."""
    function = spec_flags(function, multiple=False)
    file = click.argument("spec_file", metavar="[SPEC.yaml]", required=False, type=click.Path(path_type=Path))
    return file(function)


def spec_flags(function: F, *, multiple: bool) -> F:
    """A flag for every field of the spec: its text, or with ``multiple`` the texts that it was given with."""
    for name, field in reversed(ProgramSpec.model_fields.items()):
        default = "" if field.default is None else f"  [{field.default}]"
        text, values = f"{field.description}{default}", _values(name)
        option = click.option(
            flag_name(name),
            name,
            multiple=multiple,
            metavar=_metavar(name, values),
            help=text,
            type=SpecValue(values),
            cls=GroupedOption,
            group=PROGRAM,
        )
        function = option(function)
    return function


def _metavar(field: str, values: Sequence[str]) -> str:
    """The values that a field takes, or what kind they are."""
    if values:
        return "|".join(values) if len(values) < 8 else f"{values[0]}|{values[1]}|...|{values[-1]}"
    kinds = ProgramSpec.model_fields[field].annotation
    return "N" if kinds is int else "NAME"


def _values(field: str) -> tuple[str, ...]:
    """The values that a field takes, where they are few enough to be listed."""
    schema = ProgramSpec.model_json_schema()
    forms = [schema["properties"][field], *schema["properties"][field].get("anyOf", ())]
    forms += [schema["$defs"][form["$ref"].rpartition("/")[2]] for form in forms if "$ref" in form]
    for form in forms:
        values = form.get("enum") or ([form["const"]] if "const" in form else [])
        if values:
            return tuple(map(str, values))
    return ()


def spec_from(spec_file: Path | None, flags: dict[str, str | None]) -> ProgramSpec:
    """The spec that file and flags ask for; flags win. Raises ``InputError`` for wrong values."""
    return load_spec(spec_file, {name: _number(value) for name, value in flags.items()})


def specs_from(files: Sequence[Path], flags: Mapping[str, tuple[str, ...]]) -> tuple[ProgramSpec, ...]:
    """The specs that flags with several values ask for, in the order of the values; what is given once is for all.

    Raises ``UsageError`` where numbers of files or values do not go together, ``InputError`` for wrong values.
    """
    given = {flag_name(name): len(values) for name, values in flags.items()} | {"file": len(files)}
    count = max(1, *given.values())
    for name, number in given.items():
        if number not in (0, 1, count):
            what = f"{number} files are given" if name == "file" else f"{name} is given {number} times"
            raise click.UsageError(f"{what}; there are {count} programs")

    def of(values: Sequence[T], i: int) -> T | None:
        return values[min(i, len(values) - 1)] if values else None

    return tuple(spec_from(of(files, i), {n: of(values, i) for n, values in flags.items()}) for i in range(count))


def this_command() -> str:
    """What the user typed to get here, for what to type next: ``p4gen``, or the script in a checkout."""
    return os.environ.get("P4GEN_COMMAND", "p4gen")


def flags_of(spec: ProgramSpec) -> list[str]:
    """The shortest command line that asks for this spec; the mode always stands in it."""
    given = spec.model_dump(mode="json", exclude_defaults=True) | {"mode": str(spec.mode)}
    return [f"{flag_name(name)} {given[name]}" for name in ProgramSpec.model_fields if name in given]


def report_console(*, quiet: bool = False) -> Console:
    """Where reports go: standard output, as wide as the terminal, or wide enough for a table."""
    console = Console(highlight=False, soft_wrap=True, quiet=quiet)
    return console if console.is_terminal else Console(highlight=False, soft_wrap=True, quiet=quiet, width=120)


def _number(value: str | None) -> int | str | None:
    try:
        return int(value) if value is not None else None
    except ValueError:
        return value


out_option = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build"),
    help="Folder for programs.  [build]",
)
target_option = click.option(
    "--target",
    type=click.Choice(TARGETS),
    default=TARGETS[0],
    show_default=True,
    help="What runs the program: the embedded switch, or BMv2's simple_switch_grpc (needs BMv2 and p4c).",
)
