"""``p4gen verify``: every reachable state of switches, hosts and a lossy network."""

import click

from p4gen.cli.commands import Commands


@click.command(
    cls=Commands,
    package=__name__,
    about={
        "run": "Check every reachable state of a collective.",
        "faults": "Seed each fault of the conformance suite, and search for what it breaks.",
        "replay": "Play a counterexample again, and its scenario on a switch.",
    },
    default="run",
    flags={"--replay=": "replay", "--faults": "faults"},
)
def command() -> None:
    """Check every reachable state of switches that run the generated program, hosts and a lossy network."""
