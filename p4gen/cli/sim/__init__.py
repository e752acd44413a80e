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
    },
    default="run",
    flags={"--sweep=": "sweep"},
)
def command() -> None:
    """Run collectives over a virtual network that loses, reorders, duplicates and corrupts."""
