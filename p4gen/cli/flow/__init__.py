"""``p4gen flow``: jobs on a fabric as flows, under EPIC's policies of sharing switches."""

import click

from p4gen.cli.commands import Commands


@click.command(
    cls=Commands,
    package=__name__,
    about={
        "run": "Simulate a workload under one or all policies.",
        "confirm": "Compare policies in labs with what flows say.",
    },
    default="run",
)
def command() -> None:
    """Simulate jobs as flows, without packets, under policies of sharing switches."""
