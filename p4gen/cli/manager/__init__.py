"""``p4gen manager``: the IncManager, jobs on its hosts, and changes of what its switches run."""

import click

from p4gen.cli.commands import Commands


@click.command(
    cls=Commands,
    package=__name__,
    about={
        "serve": "Manage groups on switches that register, for hosts and operators.",
        "place": "Choose hosts for a job, and create its groups; or plan it on a fabric.",
        "jobs": "List the jobs that a manager has placed.",
        "release": "End a job: its hosts are free again.",
        "cordon": "Keep new groups off a switch, or new jobs off a host.",
        "rollout": "Load another program onto the switches of a running manager, one after the other.",
    },
    default="serve",
)
def command() -> None:
    """Manage groups on switches, place jobs, and change the switches' programs while groups run."""
