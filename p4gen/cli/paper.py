"""``p4gen paper``: tables and figures of the papers, ours beside the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from p4gen.choices import ENGINES
from p4gen.cli.options import json_option, workers_options
from p4gen.cli.seeds import seed_option
from p4gen.cli.verb import verb


class _Paper(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A paper's name; the verb looks it up."""

    name = "paper"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The papers."""
        from p4gen.experiments.papers import papers  # noqa: PLC0415 - wrong options are refused without it

        known = papers().items()
        return [CompletionItem(name, help=paper.title) for name, paper in known if name.startswith(incomplete)]


class _Item(click.ParamType):  # type: ignore[type-arg]
    """An item of the paper before it."""

    name = "item"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The items that an experiment repeats."""
        from p4gen.experiments.papers import papers  # noqa: PLC0415 - wrong options are refused without it

        paper = papers().get(ctx.params.get("paper") or "")
        items = paper.item if paper is not None else ()
        return [CompletionItem(each.name, help=each.caption) for each in items if each.name.startswith(incomplete)]


@verb(
    examples=[
        ("", "all tables and figures of all papers, and how far each is repeated"),
        ("themis figure-1 --seed 1", "random spraying over commodity RNICs, and Themis: half a minute"),
        ("epic table-31 --scale quick --seed 1", "AllReduce with loss, at three of the paper's values"),
        ("themis figure-5 --seed 1 --jobs 2 --cells 'allreduce/*/4/*'", "some of its simulations, two at a time"),
        ("scin --check --seed 1", "all of SCIN's that take less than a minute each"),
    ]
)
@click.argument("paper", type=_Paper(), required=False)
@click.argument("item", type=_Item(), required=False)
@click.option("--scale", default=None, metavar="NAME", help="How much is run; an unknown name lists them.")
@click.option("--check", is_flag=True, help="Repeat all that take less than a minute each, at that scale.")
@seed_option("all randomness; same seed, same run.")
@click.option("--engine", type=click.Choice(ENGINES), default="jit", show_default=True, help="What runs the switches.")
@workers_options
@click.option("--cells", multiple=True, metavar="PATTERN", help="Only some cells, such as 'allreduce/900/*'.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Folder for pages, CSV and pictures.  [build/papers]",
)
@json_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """List or repeat tables and figures of papers, ours beside the paper's, with what must hold of them.

    PAPER is the name of a paper, ITEM the name of one of its items: p4gen paper epic table-31. Without ITEM the items
    are listed. Exit status 1 when something does not hold.

    An experiment is a number of cells. The outcome of each is kept in OUT/PAPER/cells when it has ended, so that the
    same command goes on where it was interrupted.
    """
    from p4gen.cli.do_paper import do  # noqa: PLC0415 - wrong options are refused without it

    do(ctx, **options)
