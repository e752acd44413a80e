"""``p4gen bench program``: the speed of a program on every engine that can run it."""

from __future__ import annotations

from typing import Any

from p4gen.cli.bench.options import packets_option, programs, seed_option
from p4gen.cli.options import json_option, out_option
from p4gen.cli.verb import verb


@verb(
    examples=[
        ("--mode II --mode III", "both modes, on every engine that can run them"),
        ("--lanes 256 --packets 20000", "packets of 1 KiB"),
    ]
)
@programs
@out_option
@json_option
@packets_option
@seed_option
def command(**options: Any) -> None:
    """Measure a program: packets a second of the interpreter, of native code (one by one, in batches, on two threads),
    of BMv2 if it is installed, and of a hand-written C loop that does the same, all in one run.

    A flag given several times is for several programs: p4gen bench program --mode II --mode III. Also measures the time
    from P4 text to the first packet, and the speed of snapshots. Writes bench.csv and bench.svg into each program's
    folder.
    """
    from p4gen.cli.bench.do_program import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
