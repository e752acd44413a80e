"""``p4gen manager``: the IncManager, and changes of what its switches run."""

import click

from p4gen.cli.commands import Commands


@click.command(
    cls=Commands,
    package=__name__,
    about={
        "serve": "Manage groups on switches that register, for hosts and operators.",
        "rollout": "Load another program onto the switches of a running manager, one after the other.",
    },
    default="serve",
)
def command() -> None:
    """Manage groups on switches, and change the switches' programs while groups run."""
