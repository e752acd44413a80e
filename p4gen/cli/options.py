"""Options that several verbs share."""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from p4gen import arch
from p4gen.choices import TARGETS
from p4gen.cli.common import engine_option as engine_option  # noqa: PLC0414  (for the other verbs)
from p4gen.cli.common import json_option as json_option  # noqa: PLC0414
from p4gen.cli.common import workers_options as workers_options  # noqa: PLC0414
from p4gen.cli.values import SpecValue
from p4gen.cli.verb import GroupedOption
from p4gen.families import (
    collective,
    families,
    family_of,
    flag_name,
    folder_of,
    implied_family,
    load_collective,
    load_spec,
    text_of,
)
from p4gen.vocabulary import CollectiveSpec, ProgramSpec

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from rich.console import Console

PROGRAM = "The program: these, or a YAML file with the same fields; flags win"
"""What the spec's options are called in ``--help``."""
_FOLDERS = {
    "family": "; of one of your own, its folder (P4GEN_FAMILIES: such folders)",
    "arch": "; of one of your own, its folder (P4GEN_ARCHS: such folders)",
}
F = TypeVar("F", bound=Callable[..., Any])


class SpecOption(GroupedOption):
    """The flag of a field of specs, as all families that have the field describe it. Help has the flag for the families
    and modes that have the field."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """The field in all families. Descriptions and values are looked up only now: most command lines need none."""
        name = str(self.name)
        field, kinds = _fields()[name]
        default = "" if name == "family" else _default(field)  # each family's own name
        about = f"{_description(name, kinds)}{_FOLDERS.get(name, '')}{default}"
        return f"{flag_name(name)} {_metavar(field, _values(name, kinds))}", about

    def record_for(self, ctx: click.Context, given: Mapping[str, str]) -> tuple[str, str] | None:
        """The field as the family of the command line describes it, with the values that it takes there."""
        kind = kind_of(given)
        if kind is None:
            return self.get_help_record(ctx)
        name = str(self.name)
        if name not in kind.fields_for(given):
            return None
        field = kind.model_fields[name]
        if name in _FOLDERS or name == "mode":
            return self.get_help_record(ctx)
        return f"{flag_name(name)} {_metavar(field, _values(name, [kind]))}", f"{field.description}{_default(field)}"


def kind_of(given: Mapping[str, str]) -> type[ProgramSpec] | None:
    """The spec of the family that a command line's ``mode`` or ``family`` says, None if there is no such family."""
    known = families().get(given.get("family") or implied_family(given))
    return known.spec if known else None


T = TypeVar("T")


def spec_options(function: F) -> F:
    """A flag for every field of the spec, and a YAML file; see ``spec_from``."""
    function = spec_flags(function, multiple=False)
    file = click.argument("spec_file", metavar="[SPEC.yaml]", required=False, type=click.Path(path_type=Path))
    return file(function)


def spec_flags(function: F, *, multiple: bool) -> F:
    """A flag for every field of the spec: its text, or with ``multiple`` the texts that it was given with."""
    for name, (_, kinds) in reversed(_fields().items()):
        values = SpecValue(functools.partial(_values, name, kinds))
        option = click.option(flag_name(name), name, multiple=multiple, type=values, cls=SpecOption, group=PROGRAM)
        function = option(function)
    return function


def _fields() -> dict[str, tuple[FieldInfo, list[type[ProgramSpec]]]]:
    """The fields of all families' specs, each as the first that has it describes it, with the specs that have it."""
    found: dict[str, tuple[FieldInfo, list[type[ProgramSpec]]]] = {}
    for family in families().values():
        for name, field in family.spec.model_fields.items():
            found.setdefault(name, (field, []))[1].append(family.spec)
    return found


def spec_fields() -> tuple[str, ...]:
    """The names of all options that ``spec_options`` gives a verb."""
    return tuple(_fields())


def _description(name: str, kinds: Sequence[type[ProgramSpec]]) -> str:
    """What a field means: as the first family that has it says, or as all say of one that tells families apart."""
    told = [str(kind.model_fields[name].description) for kind in kinds]
    return "; ".join(told) if any(name in family.telling for family in families().values()) else told[0]


def _default(field: FieldInfo) -> str:
    """A field's default, at the end of its help."""
    return "" if field.default is None else f"  [{field.default}]"


def _metavar(field: FieldInfo, values: Sequence[str]) -> str:
    """The values that a field takes, or their kind."""
    if values:
        return "|".join(values) if len(values) <= 8 else f"{values[0]}|{values[1]}|...|{values[-1]}"
    return "N" if field.annotation is int else "NAME"


def _values(field: str, kinds: Sequence[type[ProgramSpec]]) -> tuple[str, ...]:
    """The values that a field takes in these specs, as far as they are few enough to be listed."""
    found: dict[str, None] = {}
    for schema in map(_schema, kinds):
        forms = [schema["properties"][field], *schema["properties"][field].get("anyOf", ())]
        forms += [schema["$defs"][form["$ref"].rpartition("/")[2]] for form in forms if "$ref" in form]
        values = (form.get("enum") or ([form["const"]] if "const" in form else []) for form in forms)
        found |= dict.fromkeys(map(str, next(filter(None, values), ())))
    return tuple(found)


@functools.cache
def _schema(kind: type[ProgramSpec]) -> dict[str, Any]:
    return kind.model_json_schema()


def spec_from(spec_file: Path | None, flags: dict[str, str | None]) -> ProgramSpec:
    """The spec that file and flags describe; flags win. Raises ``InputError`` for wrong values."""
    return load_spec(spec_file, spec_values(flags))


def collective_from(spec_file: Path | None, flags: dict[str, str | None]) -> CollectiveSpec:
    """The same, for a program that takes part in collectives."""
    return load_collective(spec_file, spec_values(flags))


def spec_values(flags: Mapping[str, str | None]) -> dict[str, int | str | None]:
    """The values of a spec's fields that flags have as text."""
    return {name: _number(value) for name, value in flags.items()}


def specs_from(files: Sequence[Path], flags: Mapping[str, tuple[str, ...]]) -> tuple[ProgramSpec, ...]:
    """The specs that flags with several values describe, in the order of the values; a value given once is for all.

    Raises ``UsageError`` if the numbers of files or values differ, ``InputError`` for wrong values.
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


def collectives_from(files: Sequence[Path], flags: Mapping[str, tuple[str, ...]]) -> tuple[CollectiveSpec, ...]:
    """The same, for programs that take part in collectives."""
    return tuple(collective(spec) for spec in specs_from(files, flags))


def this_command() -> str:
    """The command that the user typed, for suggested commands: ``p4gen``, or the script in a checkout."""
    return os.environ.get("P4GEN_COMMAND", "p4gen")


def flags_of(spec: ProgramSpec) -> list[str]:
    """The shortest flags that give this spec, always with those that distinguish its family's programs."""
    family = family_of(spec)
    told, folder = family.telling, folder_of(family)
    given = spec.model_dump(mode="json", include=set(told)) | spec.model_dump(mode="json", exclude_defaults=True)
    own_defaults = {name: value for name, value in spec.architecture.defaults.items() if hasattr(spec, name)}
    given |= {n: v for n, v in spec.model_dump(mode="json", include=set(own_defaults)).items() if v != own_defaults[n]}
    if folder is not None or family.name != implied_family(given):
        given["family"] = family.name if folder is None else shlex.quote(str(folder))
    if spec.beside is not None:
        given["beside"] = text_of(spec.beside)
    own = arch.folder_of(spec.architecture)
    if own is not None:
        given["arch"] = shlex.quote(str(own))
    names = dict.fromkeys((*told, *type(spec).model_fields))
    return [f"{flag_name(name)} {given[name]}" for name in names if name in given]


def arguments_of(spec: ProgramSpec) -> list[str]:
    """The same as a program is started with, word by word."""
    return shlex.split(" ".join(flags_of(spec)))


def report_console(*, quiet: bool = False) -> Console:
    """The console for reports: standard output, as wide as the terminal, or wide enough for a table."""
    from rich.console import Console  # noqa: PLC0415 - what is refused needs none

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
