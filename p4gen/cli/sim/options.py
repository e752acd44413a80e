"""What the commands of ``p4gen sim`` share: the network, the program, ranks and faults."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from p4gen.cli.fields import field_options
from p4gen.cli.options import json_option, spec_options, workers_options
from p4gen.cli.seeds import seed_option
from p4gen.cli.values import TOPOLOGY
from p4gen.cli.verb import GroupedOption
from p4gen.library.run_options import DEFAULT_SIZE, DEFAULT_TIMEOUT, RunOptions
from p4gen.vocabulary.message import Collective

STUDIED_SIZE = "4M"
SAID_BY_TABLES: Mapping[str, Any] = {"collective": "allreduce", "root": 0, "recovery": None, "timeout": None}
"""The options of a simulation that a paper's table has its own values for."""
CALLS, LINKS, NICS = "What ranks call", "Links", "NICs"
"""Sections of help."""
F = TypeVar("F", bound=Callable[..., Any])


def simulation_options(
    *,
    size: str = DEFAULT_SIZE,
    timeout: str = DEFAULT_TIMEOUT,
    without: Collection[str] = (),
    always: bool = True,
    more: Collection[str] = (),
) -> Callable[[F], F]:
    """Topology, spec, and the options of a simulation (``RunOptions``) but those in ``without``; help names the
    defaults given here. Unless ``always``, the topology may be left out. ``more`` are calls that only some families'
    programs serve."""
    calls = dict.fromkeys([*map(str, Collective), *more])
    said = {"size": size, "timeout": timeout}
    options: dict[str, Callable[[F], F]] = {
        "collective": click.option(
            "--collective",
            type=click.Choice(list(calls)),
            default=None,
            cls=GroupedOption,
            group=CALLS,
            help=f"What ranks call.  [{Collective.ALLREDUCE}{'; of a family with its own, its first' if more else ''}]",
        ),
        **field_options(RunOptions, "size", "root", "sync", "concurrent", "repeat", "jobs", group=CALLS, defaults=said),
        **field_options(RunOptions, "engine"),
        "seed": seed_option("all randomness; same seed, same run."),
        **field_options(RunOptions, "loss", "burst", "reorder", "duplicate", "corrupt", "down", "scripts", group=LINKS),
        **field_options(RunOptions, "pfc", group=LINKS),
        **field_options(RunOptions, "recovery", "timeout", "retries", "dcqcn", group=NICS, defaults=said),
        "json": json_option,
    }

    def decorate(function: F) -> F:
        for name in reversed([name for name in options if name not in without]):
            function = options[name](function)
        return click.argument("topology", type=TOPOLOGY, required=always)(spec_options(function))

    return decorate


def comparison_options(function: F) -> F:
    """What commands have that run many simulations, and compare."""
    for option in (
        click.option(
            "--out",
            type=click.Path(path_type=Path, file_okay=False),
            default=Path("build/sim"),
            help="Folder for CSV and plot.  [build/sim]",
        ),
        click.option(
            "--seeds",
            type=click.IntRange(1, 1000),
            default=1,
            show_default=True,
            help="Runs of each lossy point; the median counts.",
        ),
        workers_options,
        click.option("--values", default=None, metavar="A,B,...", help="Values to sweep, instead of the paper's."),
    ):
        function = option(function)
    return function
