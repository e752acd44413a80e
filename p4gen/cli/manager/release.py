"""``p4gen manager release``: the end of a job."""

from __future__ import annotations

import click

from p4gen.cli.places import manager_options
from p4gen.cli.verb import verb


@verb(examples=[("llama", "its groups end, and its hosts are free")])
@click.argument("name")
@manager_options
def command(name: str, manager: str | None, tls: str | None) -> None:
    """End a job: its groups are destroyed, and its hosts are free for others."""
    from p4gen.cli.manager.do_place import client_of  # noqa: PLC0415 - wrong options are refused without it

    with client_of(manager, tls) as client:
        client.destroy_job(name)
