"""``p4gen sim traffic``: flows, AlltoAll and rings between hosts, on switches that spread and forward packets."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import click

from p4gen.cli.defaults import TRAFFIC
from p4gen.cli.nccltests import table_options
from p4gen.cli.sim.options import simulation_options
from p4gen.cli.values import LateChoice
from p4gen.cli.verb import verb
from p4gen.host.transport.verbs import Recovery

_NOT_OURS: Final = frozenset(
    ("collective", "root", "sync", "concurrent", "repeat", "jobs", "script", "recovery", "dcqcn")
)  # fmt: skip

_NICS: Final = (Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT, Recovery.ORACLE)


def _patterns() -> Iterable[str]:
    from p4gen.net.traffic.traffic import Pattern  # noqa: PLC0415 - wrong options are refused without it

    return map(str, Pattern)


def _algorithms() -> Iterable[str]:
    from p4gen.host.collectives.algorithms import Algorithm  # noqa: PLC0415 - wrong options are refused without it

    return map(str, Algorithm)


@verb(
    examples=[
        ("clos:4x2x2 --pattern next --size 8M --dcqcn", "a ring of flows over the leaves"),
        ("clos:4x4x4 --pattern alltoall --size 4M --seed 1", "four groups at once, one host of each leaf"),
        ("leaf-spine --pattern flow --hosts h0,h4 --series flow.csv", "one flow, and its rate over time"),
        ("leaf-spine --pattern alltoall --nccl-tests -b 4K -e 4M -f 4", "time and bandwidth by size"),
        ("leaf-spine --mode themis --hosts h0,h4 --loss 2%@leaf0-spine1 --ladder flow.svg", "what becomes of NACKs"),
    ]
)
@simulation_options(size=TRAFFIC["size"], timeout=TRAFFIC["timeout"], without=_NOT_OURS)
@click.option(
    "--pattern",
    type=LateChoice(_patterns),
    default="next",
    show_default=True,
    help="flow: the first host of a group sends to the others; next: each to the next; alltoall; allreduce: by hosts.",
)
@click.option(
    "--algorithm",
    type=LateChoice(_algorithms),
    default="ring",
    show_default=True,
    help="Of allreduce: a ring, NCCL's double binary tree, recursive doubling or halving.",
)
@click.option("--hosts", multiple=True, metavar="A,B,...", help="A group of hosts.  [one host of each leaf a group]")
@click.option(
    "--nic",
    type=click.Choice([str(recovery) for recovery in _NICS]),
    default=str(Recovery.SELECTIVE_REPEAT),
    show_default=True,
    help="NICs' loss recovery: Go-Back-N, selective repeat, or a bound: the sender is told what links have dropped.",
)
@click.option("--spray-gbn", is_flag=True, help="Spray registered connections even if NICs go back N.  [ECMP]")
@click.option("--dcqcn", is_flag=True, help="NICs slow down upon congestion notifications, and upon NAKs for gaps.")
@click.option("--ti", default=None, metavar="TIME", help=f"With --dcqcn: timer of rate increases.  [{TRAFFIC['ti']}]")
@click.option(
    "--td", default=None, metavar="TIME", help=f"With --dcqcn: least time between two cuts.  [{TRAFFIC['td']}]"
)
@click.option("--no-nak-cuts", is_flag=True, help="With --dcqcn: only congestion notifications cut the rate.")
@click.option(
    "--outstanding",
    type=click.IntRange(1, 1 << 20),
    default=512,
    show_default=True,
    help="Packets that a connection may have outstanding.",
)
@click.option("--mtu", default="1024", show_default=True, metavar="BYTES", help="Payload of a packet.")
@click.option(
    "--ahead",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Steps of an alltoall that a host may have under way at once.",
)
@click.option(
    "--core",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A YAML file with the program of switches that have no hosts.  [the same program]",
)
@click.option(
    "--series",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write rate and useful share of each flow over time into this file (CSV), and a plot beside it.",
)
@click.option("--ladder", type=click.Path(path_type=Path, dir_okay=False), help="Draw the first packets as SVG.")
@click.option(
    "--interval", default=None, metavar="TIME", help=f"With --series: between two samples.  [{TRAFFIC['interval']}]"
)
@table_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Run flows, AlltoAlls or rings between hosts; switches only forward, and spread packets as the program does.

    TOPOLOGY is a YAML file, or a name (p4gen sim run --help). --size is the bytes of a flow, or of a host's array.
    Exit status 1 when something arrives that was not sent, or the run does not end; the reason is printed.
    """
    from p4gen.cli.sim.do_traffic import do  # noqa: PLC0415 - wrong options are refused without it

    do(ctx, **options)
