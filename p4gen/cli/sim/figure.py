"""``p4gen sim figure``: a figure of a paper, ours beside the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from p4gen.choices import ENGINES
from p4gen.cli.options import json_option
from p4gen.cli.seeds import seed_option
from p4gen.cli.verb import verb


class _Name(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A figure's name; the verb looks it up."""

    name = "figure"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The figures of all families."""
        from p4gen.net.figures.figure import all_figures  # noqa: PLC0415 - wrong options are refused without it

        return [
            CompletionItem(name, help=figure.caption)
            for name, (_, figure) in all_figures().items()
            if name.startswith(incomplete)
        ]


@verb(
    examples=[
        ("themis-1 --seed 1", "random spraying over commodity RNICs, and Themis"),
        ("themis-1 --scale paper", "with the paper's 100 MB a node: minutes"),
        ("themis-loss --seed 1", "losses on a spine link, and how they are repaired"),
        ("themis-5 --seed 1 --jobs 2", "collectives over DCQCN's settings, two simulations at a time"),
        ("themis-5 --seed 1 --cells 'allreduce/*/4/*'", "AllReduce with T_D = 4 us only"),
    ]
)
@click.argument("figure", type=_Name(), metavar="FIGURE")
@click.option("--scale", default=None, metavar="NAME", help="How much is simulated; an unknown name lists them.")
@seed_option("all randomness; same seed, same run.")
@click.option("--engine", type=click.Choice(ENGINES), default="jit", show_default=True, help="What runs the switches.")
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Simulations at the same time, each in a process, where a figure consists of many.",
)
@click.option(
    "--cells",
    multiple=True,
    metavar="PATTERN",
    help="Only some of a figure's simulations, such as 'allreduce/900/*'.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/sim"),
    help="Folder for CSV and pictures.  [build/sim]",
)
@json_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Repeat a figure of a paper, ours beside the paper's, with assumptions and with what must hold of it.

    FIGURE is a family and a number: themis-1. Written as CSV and as pictures, too. Exit status 1 when something does
    not hold.

    If a figure consists of many simulations (cells), each is written to a file in the folder FIGURE-cells when it has
    ended; the same command goes on where it was interrupted.
    """
    from p4gen.cli.sim.do_figure import do  # noqa: PLC0415 - wrong options are refused without it

    do(ctx, **options)
