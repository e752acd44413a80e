"""``p4gen bench``: the speed of programs, of simulators, and of the switch on interfaces."""

import click

from p4gen.cli.commands import Commands


@click.command(
    cls=Commands,
    package=__name__,
    about={
        "program": "Measure a program on every engine that can run it: packets a second.",
        "net": "Measure the virtual network: packet-hops a second.",
        "flow": "Measure the simulator of flows: how its time grows with jobs and hosts.",
        "route": "Measure routing: how its time grows with the fabric.",
        "wire": "Measure p4gen switch on veth pairs against a plain echo; needs root.",
    },
    default="program",
    flags={"--net": "net", "--wire": "wire"},
)
def command() -> None:
    """Measure speeds on this machine."""
