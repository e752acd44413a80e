"""The options of tables as nccl-tests prints them, for simulations and labs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from p4gen.cli.verb import GroupedOption
from p4gen.inputs import parsed
from p4gen.vocabulary import units
from p4gen.vocabulary.message import Collective

F = TypeVar("F", bound=Callable[..., Any])
_FIRST, _LAST, _FACTOR = 1 << 10, 1 << 20, 2
_OPTIONS: Sequence[tuple[tuple[str, ...], dict[str, Any]]] = (
    (("-b", "--minbytes"), {"metavar": "BYTES", "help": "The first size.  [1K, or --maxbytes]"}),
    (("-e", "--maxbytes"), {"metavar": "BYTES", "help": "The last size.  [1M, or --minbytes]"}),
    (
        ("-f", "--stepfactor"),
        {"metavar": "N", "type": click.IntRange(2, 1 << 20), "help": "Between sizes.  [2]"},
    ),
)


_RANGE = ("minbytes", "maxbytes", "stepfactor")
_GROUP: Mapping[str, Any] = {"cls": GroupedOption, "group": "nccl-tests' table"}


def table_options(function: F) -> F:
    """``--nccl-tests``, and the range of sizes as nccl-tests has it."""
    about = "Time and bandwidth by size, as nccl-tests prints them."
    return click.option("--nccl-tests", is_flag=True, help=about, **_GROUP)(range_options(function))


def range_options(function: F) -> F:
    """The range of sizes as nccl-tests has it."""
    for flags, more in reversed(_OPTIONS):
        function = click.option(*flags, **more, **_GROUP)(function)
    return function


def asked_range(options: Mapping[str, Any], collective: str) -> tuple[int, int, int] | None:
    """The first size, the last one, and the factor between sizes; None unless a table is asked for. Raises
    ``UsageError`` or ``InputError``."""
    given = [name for name in _RANGE if options[name] is not None]
    if not options["nccl_tests"]:
        if given:
            raise click.UsageError(f"--{given[0]} goes with --nccl-tests")
        return None
    if options["size"]:
        raise click.UsageError("--nccl-tests takes sizes from --minbytes to --maxbytes, not --size")
    return size_range(options, collective)


def size_range(options: Mapping[str, Any], collective: str) -> tuple[int, int, int]:
    """The first size, the last one, and the factor between sizes. Raises ``UsageError`` or ``InputError``."""
    given = [name for name in _RANGE if options[name] is not None]
    if given and collective == Collective.BARRIER:
        raise click.UsageError(f"a barrier has no data: omit --{given[0]}")
    first, last = (
        None if options[name] is None else parsed(name, units.size, options[name]) for name in ("minbytes", "maxbytes")
    )
    first = min(_FIRST, last or _FIRST) if first is None else first
    last = max(_LAST, first) if last is None else last
    if not 0 < first <= last:
        raise click.UsageError(f"--minbytes {first} must be at least 1, and at most --maxbytes, {last}")
    return first, last, options["stepfactor"] or _FACTOR
