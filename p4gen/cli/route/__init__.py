"""``p4gen route``: aggregator-aware routing, of the paper's tasks and of groups' trees."""

import click

from p4gen.cli.commands import Commands


@click.command(
    cls=Commands,
    package=__name__,
    about={
        "run": "Route workers to parameter servers on random fabrics, beside the paper's baselines.",
        "figure": "Repeat the paper's figures, with what must hold of them.",
        "tree": "Find the fastest IncTree of a group on a topology, with a bound.",
        "confirm": "Run the trees of random fabrics with packets, and compare goodput with what was predicted.",
    },
    default="run",
)
def command() -> None:
    """Find the fastest aggregation, with a bound (ARO)."""
