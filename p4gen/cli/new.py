"""``p4gen new``: a family of one's own, to start from."""

from __future__ import annotations

import json
import keyword
import re
from pathlib import Path

import click

from p4gen.cli.common import json_option
from p4gen.cli.verb import verb
from p4gen.errors import Diagnostic, InputError
from p4gen.families import families
from p4gen.inputs import quote
from p4gen.program.templates import COMMON
from p4gen.resources import resource
from p4gen.scratch import scratch

_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
_SNAKE, _CAMEL = "new_family", "NewFamily"
"""The name of the family in ``templates/new``, which is one itself."""


@verb(
    examples=[
        ("arrivals", "a family in the folder arrivals"),
        ("arrivals --in ~/families", "in ~/families/arrivals"),
    ]
)
@click.argument("name")
@click.option(
    "--in",
    "place",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="The folder that the family's own folder is made in.  [.]",
)
@json_option
def command(name: str, place: Path, as_json: bool) -> None:
    """Write a family of your own, to start from: EPIC's Mode II with one more module.

    The folder NAME contains a field of the spec, a module and its template, a conformance scenario, and a fault that
    the scenario detects. "--family NAME" selects it for build, ptf, sim, diff and other commands. docs/extending.md
    turns such a folder into something else, step by step.
    """
    _check_name(name)
    folder = place / name
    written = _write(name, folder)
    if as_json:
        click.echo(json.dumps({"family": name, "folder": str(folder), "files": [str(file) for file in written]}))
        return
    for file in written:
        click.echo(str(file))
    click.echo(f"\nNext:\n  p4gen build --family {folder}\n  p4gen ptf run --family {folder} --test test_{name}")


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise InputError(
            Diagnostic(None, f"{quote(name)} is not a name for a family: lower-case letters, digits and _, a letter "
                             "first, 31 at most, and no keyword of Python")
        )  # fmt: skip
    if name in families():
        raise InputError(Diagnostic(None, f"there is a family called {name} already: {families()[name].package}"))
    if name in COMMON:
        raise InputError(Diagnostic(None, f"{name} is a folder of templates that all families use"))


def _write(name: str, folder: Path) -> list[Path]:
    """Write the family's files, all or none."""
    if folder.is_symlink() or (folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))):
        raise InputError(Diagnostic(str(folder), "exists, and is not an empty folder"))
    camel = "".join(part.capitalize() for part in name.split("_"))
    pattern = resource("templates") / "new"
    files = sorted(file for file in pattern.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    written = []
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with scratch(f".{name}.", folder.parent) as place:
            for file in files:
                path = place / "new" / str(file.relative_to(pattern)).replace(_SNAKE, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                text = file.read_text(encoding="utf-8").replace(_SNAKE, name).replace(_CAMEL, camel)
                path.write_text(text, encoding="utf-8")
                written.append(folder / path.relative_to(place / "new"))
            (place / "new").rename(folder)
    except OSError as error:
        raise InputError(Diagnostic(str(folder), f"cannot be written: {error.strerror}")) from error
    return written
