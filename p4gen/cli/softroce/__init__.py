"""``p4gen softroce``: hosts of labs that are virtual machines with Linux Soft-RoCE."""

import click

from p4gen.cli.commands import Commands


@click.command(
    cls=Commands,
    package=__name__,
    about={"build": "Make what the hosts boot from, of Debian's packages."},
    default="build",
)
def command() -> None:
    """Prepare hosts with Linux's own RoCE stack for labs (--hosts softroce)."""
