"""``p4gen top``: groups, connections and switches of a running manager, live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from p4gen.cli.defaults import MANAGER_VARIABLE, TOP_INTERVAL_S
from p4gen.cli.values import ADDRESS
from p4gen.cli.verb import FiniteRange, verb


@verb(
    examples=[
        ("", "the running lab, live"),
        ("--once --manager 127.0.0.1:9560", "a manager's state, once"),
        ("--json --interval 5", "a line of JSON every five seconds"),
    ]
)
@click.option("--manager", type=ADDRESS, help=f"Address of the manager.  [${MANAGER_VARIABLE}, else the running lab's]")
@click.option(
    "--tls",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="One's ca.crt, tls.crt, tls.key, for a manager that asks for a certificate.  [$P4GEN_TLS]",
)
@click.option(
    "--interval",
    metavar="S",
    type=FiniteRange(0.05, 86_400),
    help=f"Seconds between two updates.  [{TOP_INTERVAL_S:g}]",
)
@click.option("--once", is_flag=True, help="Print the state once and end.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; with --interval one per line, for ever.")
def command(**options: Any) -> None:
    """Show groups, rates, retransmissions, connections with their counters, and switches' drops, live.

    A group's rate is its algorithm throughput: the data of the calls that its ranks have finished, over the time.
    """
    from p4gen.cli.do_top import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
