"""``p4gen bench wire``: packets a second of ``p4gen switch`` on network interfaces."""

from __future__ import annotations

from typing import Any

from p4gen.cli.bench.options import packets_option, programs, seed_option
from p4gen.cli.options import json_option
from p4gen.cli.verb import verb


@verb(examples=[("--mode II", "Mode II; as root")])
@programs
@json_option
@packets_option
@seed_option
def command(**options: Any) -> None:
    """Measure p4gen switch on veth pairs against a process that sends every packet back. Needs root."""
    from p4gen.cli.bench.do_wire import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
