"""``p4gen manager rollout``: another program on the switches of a running manager."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from p4gen.cli.options import out_option, spec_from, spec_options
from p4gen.cli.places import manager_options
from p4gen.cli.verb import FiniteRange, verb


@verb(
    examples=[
        ("--mode III --reliability sr", "Mode III with another repair of losses, on all switches"),
        ("new.yaml --switches spine0,spine1 --wait 120", "a program of a file, on two switches"),
    ]
)
@spec_options
@manager_options
@click.option("--switches", metavar="NAME,…", help="These, in this order.  [all, in order of name]")
@click.option(
    "--wait", metavar="S", type=FiniteRange(0.1, 86_400), default=60.0,
    help="Until all groups are active again after each switch.  [60]",
)  # fmt: skip
@out_option
def command(spec_file: Path | None, out: Path, **options: Any) -> None:
    """Load another program onto switches, one after the other, while groups run.

    The manager moves groups off a switch that gets its program where there is another tree, or to a ring; calls take
    longer meanwhile, and do not fail. If a switch refuses the program, or a group that was active is not so in time,
    all switches get their old programs back, and the exit status is 1.
    """
    from p4gen.cli.manager.do_rollout import do  # noqa: PLC0415 - wrong options are refused without it

    own = ("manager", "tls", "switches", "wait")
    spec = spec_from(spec_file, {name: value for name, value in options.items() if name not in own})
    do(spec, out, **{name: options[name] for name in own})
