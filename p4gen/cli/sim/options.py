"""What the commands of ``p4gen sim`` share: the network, the program, ranks and faults."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

import click

from p4gen.cli.options import json_option, spec_options
from p4gen.cli.seeds import seed_option
from p4gen.cli.values import TOPOLOGY
from p4gen.cli.verb import FiniteRange, GroupedOption
from p4gen.groups.ranks import RECOVERIES
from p4gen.host.collectives.plan import PsnSync
from p4gen.library.simulation import DEFAULT_SIZE, DEFAULT_TIMEOUT
from p4gen.model import ENGINES
from p4gen.net.world.faults import MAX_BURST
from p4gen.vocabulary.message import Collective

STUDIED_SIZE = "4M"
CALLS, LINKS, NICS = "What ranks call", "Faults of links", "NICs"
"""Sections of help."""
F = TypeVar("F", bound=Callable[..., Any])


def _grouped(group: str, *names: str, **settings: Any) -> Callable[[F], F]:
    return click.option(*names, cls=GroupedOption, group=group, **settings)


def simulation_options(
    *,
    size: str = DEFAULT_SIZE,
    timeout: str = DEFAULT_TIMEOUT,
    without: Collection[str] = (),
    always: bool = True,
    more: Collection[str] = (),
) -> Callable[[F], F]:
    """Topology, spec, and the options of a simulation but those in ``without``; help names the defaults given here.
    Unless ``always``, the topology may be left out. ``more`` are calls that only some families' programs serve."""
    collectives = [str(c) for c in Collective]
    options = {
        "collective": _grouped(
            CALLS,
            "--collective",
            type=click.Choice([*collectives, *(name for name in more if name not in collectives)]),
            default=None,
            help=f"What ranks call.  [{Collective.ALLREDUCE}{'; of a family with its own, its first' if more else ''}]",
        ),
        "size": _grouped(
            CALLS, "--size", default=None, metavar="BYTES", help=f"Each rank's data, such as 256K or 4M.  [{size}]"
        ),
        "root": _grouped(
            CALLS,
            "--root",
            type=click.IntRange(0, 1023),
            default=0,
            show_default=True,
            help="Root rank of reduce and broadcast.",
        ),
        "sync": _grouped(
            CALLS,
            "--sync",
            type=click.Choice([str(s) for s in PsnSync]),
            default="subgroups",
            show_default=True,
            help="How PSNs stay synchronised over asymmetric collectives: QPs per pattern, or PSNs that hosts set.",
        ),
        "concurrent": _grouped(
            CALLS,
            "--concurrent",
            type=click.IntRange(1, 256),
            default=1,
            show_default=True,
            help="Groups of all ranks at once.",
        ),
        "repeat": _grouped(
            CALLS,
            "--repeat",
            type=click.IntRange(1, 100_000),
            default=1,
            show_default=True,
            help="Collectives, one after another.",
        ),
        "engine": click.option(
            "--engine", type=click.Choice(ENGINES), default="jit", show_default=True, help="What runs the switches."
        ),
        "seed": seed_option("all randomness; same seed, same run."),
        "loss": _grouped(
            LINKS, "--loss", multiple=True, metavar="SHARE[@WHERE]", help="Lose packets: 5%, 5%@h0, 1%@h0-s0, 1%@h0>s0."
        ),
        "burst": _grouped(
            LINKS,
            "--burst",
            type=FiniteRange(1, MAX_BURST),
            help="With --loss: mean number of packets lost in a row.  [1]",
        ),
        "reorder": _grouped(
            LINKS,
            "--reorder",
            multiple=True,
            metavar="SHARE[@WHERE]",
            help="Delay packets, so that others overtake them.",
        ),
        "duplicate": _grouped(
            LINKS, "--duplicate", multiple=True, metavar="SHARE[@WHERE]", help="Deliver packets twice."
        ),
        "corrupt": _grouped(LINKS, "--corrupt", multiple=True, metavar="SHARE[@WHERE]", help="Flip one to three bits."),
        "down": _grouped(
            LINKS, "--down", multiple=True, metavar="LINK@FROM-TO", help="Take a link down: h0-s0@10us-60us."
        ),
        "script": _grouped(
            LINKS, "--script", "scripts", multiple=True, metavar="TEXT", help="As in 'drop the 3rd UP_DATA of rank 2'."
        ),
        "recovery": _grouped(
            NICS,
            "--recovery",
            type=click.Choice([str(r) for r in RECOVERIES]),
            default=None,
            help="NICs' loss recovery.  [as the program's]",
        ),
        "timeout": _grouped(
            NICS,
            "--timeout",
            default=None,
            metavar="TIME",
            help=f"Retransmission timer, 1us at least; 0: none.  [{timeout}]",
        ),
        "retries": _grouped(
            NICS,
            "--retries",
            type=click.IntRange(0, 1000),
            default=None,
            help="Timeouts before a NIC gives up.  [never]",
        ),
        "dcqcn": _grouped(
            NICS, "--dcqcn", is_flag=True, help="NICs slow down when they receive congestion notifications."
        ),
        "json": json_option,
    }

    def decorate(function: F) -> F:
        for name in reversed([name for name in options if name not in without]):
            function = options[name](function)
        return click.argument("topology", type=TOPOLOGY, required=always)(spec_options(function))

    return decorate


def comparison_options(function: F) -> F:
    """What commands have that run many simulations, and compare."""
    for option in (
        click.option(
            "--out",
            type=click.Path(path_type=Path, file_okay=False),
            default=Path("build/sim"),
            help="Folder for CSV and plot.  [build/sim]",
        ),
        click.option(
            "--seeds",
            type=click.IntRange(1, 1000),
            default=1,
            show_default=True,
            help="Runs of each lossy point; the median counts.",
        ),
        click.option("--values", default=None, metavar="A,B,...", help="Values to sweep, instead of the paper's."),
    ):
        function = option(function)
    return function
