"""``p4gen sim``: collectives through the generated program over a virtual network, checked against NumPy."""

import click

from p4gen.cli.commands import Commands


@click.command(
    cls=Commands,
    package=__name__,
    about={
        "run": "Run a collective once.",
        "sweep": "Run a collective for several sizes or losses, compared with the row of the program's paper.",
        "traffic": "Run flows, AlltoAll and rings between hosts, without an IncTree.",
        "table": "Repeat tables of the program's paper, each row compared with ours.",
        "figure": "Repeat a figure of a paper, such as themis-1.",
    },
    default="run",
    flags={"--sweep=": "sweep", "--table=": "table", "--figure=": "figure"},
)
def command() -> None:
    """Run collectives over a virtual network that loses, reorders, duplicates and corrupts."""
