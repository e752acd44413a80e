"""``p4gen difftest``: random traffic through the embedded switch and BMv2, compared byte for byte."""

from __future__ import annotations

from typing import Any

import click

from p4gen.choices import TARGETS
from p4gen.cli.defaults import FAULT_PACKETS, PACKETS
from p4gen.cli.options import (
    engine_option,
    json_option,
    out_option,
    spec_options,
)
from p4gen.cli.seeds import seed_option
from p4gen.cli.verb import verb


@verb(
    examples=[
        ("--mode III --packets 20000", "both switches under the same random traffic"),
        ("--mode II --arch t2na --against v1model", "two architectures' programs of a spec, on the embedded switch"),
    ]
)
@spec_options
@out_option
@json_option
@engine_option
@click.option(
    "--against",
    metavar="ARCH",
    help="Compare with the program of the same spec for this architecture, both on the embedded switch, not with BMv2.",
)
@click.option(
    "--packets", type=click.IntRange(1), default=None, help=f"[{PACKETS}; {FAULT_PACKETS} with a fault, or --against]"
)
@seed_option("all random choices.")
@click.option(
    "--fault", metavar="NAME@SIDE", help=f"Seed a fault into one side ({' or '.join(TARGETS)}); it must be found."
)
@click.option(
    "--faults", "all_faults", is_flag=True, help="Seed every fault of the mode into either side, one at a time."
)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Send random traffic and random table entries through two switches, and compare everything.

    The switches are the embedded one and BMv2. Outputs are compared byte for byte and in order per port, counters and
    registers regularly, and whether requests are accepted. With --against, outputs alone are compared: they may differ
    by what the program lacks ('capabilities' in its manifest.json), and packets for which they may are counted. A
    difference is reduced to the packets that it needs, and saved as pcap and STF. With a fault seeded, success is
    finding it.
    """
    from p4gen.cli.do_difftest import do  # noqa: PLC0415 - wrong options are refused without it

    do(ctx, **options)
