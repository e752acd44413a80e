"""``p4gen manager cordon``: nodes that new groups and jobs are to leave alone."""

from __future__ import annotations

import click

from p4gen.cli.places import manager_options
from p4gen.cli.verb import verb


@verb(
    examples=[
        ("spine0", "no new group gets a tree over this switch"),
        ("spine0 --off", "as before"),
        ("", "which nodes are cordoned"),
    ]
)
@click.argument("node", required=False)
@click.option("--off", is_flag=True, help="The node is used again.")
@manager_options
def command(node: str | None, off: bool, manager: str | None, tls: str | None) -> None:
    """Keep new groups off a switch, or new jobs off a host, and list the nodes of which that holds.

    Groups that are there stay; MoveGroup moves them. Ordinary traffic is routed as before.
    """
    if off and node is None:
        raise click.UsageError("--off is of a node")
    from p4gen.cli.manager.do_place import client_of  # noqa: PLC0415 - wrong options are refused without it

    with client_of(manager, tls) as client:
        if node is not None:
            client.cordon(node, on=not off)
        click.echo(" ".join(client.cordoned()) or "no node is cordoned")
