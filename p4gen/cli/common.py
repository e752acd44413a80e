"""Options that import little of p4gen, for verbs that must start quickly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from p4gen.choices import ENGINES
from p4gen.cli.verb import FiniteRange

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, nothing else.")
engine_option = click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default=ENGINES[0],
    show_default=True,
    help="What runs the program: the reference interpreter, or compiled code.",
)


def preprocessor_options(function: F) -> F:
    """``-I`` and ``-D``, given to the verb as ``includes`` and ``defines``."""
    folder = click.Path(exists=True, file_okay=False, path_type=Path)
    function = click.option(
        "-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro for the preprocessor."
    )(function)
    return click.option("-I", "includes", multiple=True, type=folder, help="Look for included files here.")(function)


p4info_option = click.option(
    "--p4info",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the program's P4Info here: text (.txtpb, .txt), JSON (.json) or binary (.bin, .binpb), by the suffix.",
)

p4c_timeout_option = click.option(
    "--p4c-timeout",
    metavar="SECONDS",
    type=FiniteRange(min=0, min_open=True),
    help="The time limit for p4c: 900 seconds for Tofino, 300 for BMv2, if not given.",
)


def workers_options(function: F) -> F:
    """Where the cells of an experiment run."""
    jobs = click.option(
        "--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Runs at the same time, in processes."
    )
    scheduler = click.option(
        "--scheduler", default=None, metavar="ADDRESS", help="A Dask scheduler, or local:N: where runs are made."
    )
    return jobs(scheduler(function))
