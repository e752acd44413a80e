"""``p4gen manager jobs``: the jobs of a manager."""

from __future__ import annotations

from typing import Any

from p4gen.cli.options import json_option
from p4gen.cli.places import manager_options
from p4gen.cli.verb import verb


@verb(examples=[("--manager 10.1.0.1:9560", "all jobs, with their hosts")])
@manager_options
@json_option
def command(**options: Any) -> None:
    """List the jobs that the manager has placed: their hosts, and how many of their groups switches carry."""
    from p4gen.cli.manager.do_place import do_jobs  # noqa: PLC0415 - wrong options are refused without it

    do_jobs(**options)
