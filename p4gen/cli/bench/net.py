"""``p4gen bench net``: packet-hops a second of the virtual network."""

from __future__ import annotations

from typing import Any

from p4gen.cli.bench.options import programs, seed_option
from p4gen.cli.options import json_option
from p4gen.cli.verb import verb


@verb(examples=[("--mode II --mode III", "both modes")])
@programs
@json_option
@seed_option
def command(**options: Any) -> None:
    """Measure an AllReduce over the virtual network: packet-hops a second of processor time.

    Without SPEC.yaml the window is 8 messages of 16 packets.
    """
    from p4gen.cli.bench.do_net import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
