"""``p4gen verify``: every reachable state of switches, hosts and a lossy network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from p4gen.cli.fields import field_options
from p4gen.cli.options import json_option, spec_options
from p4gen.cli.values import TOPOLOGY
from p4gen.cli.verb import FiniteRange, verb
from p4gen.library.search_options import SearchOptions

if TYPE_CHECKING:
    pass

F = TypeVar("F", bound=Callable[..., Any])


def _search_options(function: F) -> F:
    for option in reversed(field_options(SearchOptions, *SearchOptions.model_fields).values()):
        function = option(function)
    return function


@verb(
    examples=[
        ("--mode III", "AllReduce on tree-3-2, three packets from each rank, at most one loss"),
        ("--mode II --collective reduce --loss 2", "Mode II, two losses"),
        ("--mode themis --packets 5 --loss 0", "packets sprayed over two paths: none is sent again"),
        ("star-2 --mode III --variant psn-recycling --flow acks --window 1 --packets 4", "a design that is wrong"),
    ]
)
@click.argument("topology", type=TOPOLOGY, required=False)
@spec_options
@json_option
@_search_options
@click.option(
    "--reduction",
    default="por",
    show_default=True,
    metavar="por|symmetry|por,symmetry|none",
    help="Leave out orders of independent events, states that differ by an exchange of equal parts, both, or nothing.",
)
@click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Threads.")
@click.option(
    "--cluster",
    metavar="ADDRESS|local:N",
    help="Instead of threads, the workers of a Dask cluster, by its scheduler's address, or N processes.",
)
@click.option("--memory", default="4G", show_default=True, metavar="BYTES", help="For the set of states.")
@click.option(
    "--time", "seconds", type=FiniteRange(0, min_open=True), default=None, metavar="SECONDS", help="Time limit."
)
@click.option(
    "--confirm",
    type=click.Choice(["interp", "bmv2"]),
    default=None,
    help="Repeat each step of the switches on the interpreter or BMv2, too.",
)
@click.option(
    "--export",
    type=click.Choice(["tla", "promela"]),
    help="Write a model of the scope into the folder of --out, for TLC or Spin, and judge nothing.",
)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for a counterexample, or a model."
)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Check every reachable state of a collective.

    Each switch runs the generated program, hosts are the NICs and CommLib of `p4gen sim`, links lose, duplicate,
    reorder and corrupt within a budget, and timers expire in any order.

    TOPOLOGY is as for `p4gen sim`; by default tree-3-2, or clos:2x2x1 for programs that serve connections, over which
    the first host sends a message to another leaf. Without other flags the program is small, such as 8 lanes, window 3,
    messages of one packet.
    Exit status 0 when all states are known and nothing is wrong, 1 when something is (the shortest way there is
    printed), 3 when the search did not finish.
    """
    from p4gen.cli.verify.do_run import do  # noqa: PLC0415 - wrong options are refused without it

    do(ctx, **options)
