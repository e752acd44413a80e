"""``p4gen ptf``: the conformance suite, and whether it notices faults."""

import click

from p4gen.cli.commands import Commands


@click.command(
    cls=Commands,
    package=__name__,
    about={
        "run": "Run the suite on a program and its variants.",
        "mutate": "Seed faults into programs; the suite must catch each.",
        "list": "List the scenarios that apply to a program.",
    },
    default="run",
    flags={"--mutate": "mutate", "--list": "list"},
)
def command() -> None:
    """Run the conformance suite."""
