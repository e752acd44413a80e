"""Options of commands that are fields of a library function's options: both refuse the same values."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import click
import pytest
from click.testing import CliRunner
from pydantic import Field

from p4gen.cli.app import cli
from p4gen.cli.fields import field_options
from p4gen.errors import InputError
from p4gen.library.options import NicRecovery, Options, Text, Texts, option
from p4gen.library.run_options import RunOptions
from p4gen.library.search_options import SearchOptions


class Some(Options):
    """Fields of each form."""

    number: Annotated[int, Field(ge=1, le=9)] = 3
    """How many."""
    maybe: Annotated[Annotated[float, Field(ge=0, le=1)] | None, option(said="none")] = None
    """Which share."""
    colour: Literal["red", "green"] = "green"
    recovery: NicRecovery | None = None
    much: Annotated[Text, option(flag="how-much", metavar="BYTES")] = "1K"
    """Bytes."""
    many: Texts = ()
    on: bool = False


def command() -> click.Command:
    function: Any = lambda **values: click.echo(repr(Some.checked(values)))  # noqa: E731
    for decorate in reversed(field_options(Some, *Some.model_fields).values()):
        function = decorate(function)
    made: click.Command = click.command(function)
    return made


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(command(), arguments, catch_exceptions=False)
    return done.exit_code, done.output


def test_without_options_all_fields_have_their_defaults() -> None:
    assert run() == (0, f"{Some()!r}\n")


def test_given_options_are_the_fields_values() -> None:
    given = "--number 9 --maybe 0.5 --colour red --recovery gbn --how-much 4K --many a --many b --on"
    wanted = Some.checked(
        {"number": 9, "maybe": 0.5, "colour": "red", "recovery": "gbn", "much": "4K", "many": ["a", "b"], "on": True}
    )
    assert run(*given.split()) == (0, f"{wanted!r}\n")


@pytest.mark.parametrize(
    "wrong", ["--number 10", "--number 0", "--maybe 1.1", "--maybe nan", "--colour blue", "--recovery oracle"]
)
def test_wrong_values_are_refused_by_the_command_and_by_the_model(wrong: str) -> None:
    flag, value = wrong.split()
    code, output = run(flag, value)
    assert code == 2
    assert f"Invalid value for '{flag}'" in output
    with pytest.raises(InputError):
        Some.checked({flag.removeprefix("--"): value})


def test_help_has_docstrings_bounds_and_defaults() -> None:
    _, text = run("--help")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "--number INTEGER RANGE How many. [default: 3; 1<=x<=9]" in lines
    assert "--maybe FLOAT RANGE Which share. [none] [0<=x<=1]" in lines
    assert "--how-much BYTES Bytes. [default: 1K]" in lines


def bounded(kind: type[Options]) -> list[tuple[str, int]]:
    """Fields of a model with an upper bound, and values beyond it."""
    forms = ((name, [form, *form.get("anyOf", ())]) for name, form in kind.model_json_schema()["properties"].items())
    return [(name, each["maximum"] + 1) for name, form in forms for each in form if "maximum" in each]


@pytest.mark.parametrize(("name", "value"), bounded(RunOptions))
def test_runs_refuse_what_their_model_refuses(name: str, value: int) -> None:
    done = CliRunner().invoke(cli, ["sim", "run", "star-4", f"--{name}", str(value)])
    assert isinstance(done.exception, click.BadParameter) or done.exit_code == 2
    assert "is not in the range" in str(done.exception) + done.output


@pytest.mark.parametrize(("name", "value"), bounded(SearchOptions))
def test_searches_refuse_what_their_model_refuses(name: str, value: int) -> None:
    done = CliRunner().invoke(cli, ["verify", f"--{name.replace('_', '-')}", str(value)])
    assert "is not in the range" in str(done.exception) + done.output
