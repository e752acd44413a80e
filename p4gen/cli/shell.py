"""``p4gen shell``: p4runtime-shell on a running switch."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from p4gen.cli.switch import DEFAULT_ADDRESS
from p4gen.p4.compile import compile_text
from p4gen.p4rt.client import Client
from p4gen.p4rt.session import newest_election


@click.command()
@click.argument("program", metavar="[PROGRAM.p4]", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--grpc-addr", "address", metavar="ADDRESS", default=DEFAULT_ADDRESS, help=f"Of the switch.  [{DEFAULT_ADDRESS}]"
)
@click.option("--device-id", type=click.IntRange(0), default=1, help="[1]")
def command(program: str | None, address: str, device_id: int) -> None:
    """Open p4runtime-shell on the switch at ADDRESS, as its primary controller.

    PROGRAM.p4 is loaded into the switch first, which must be one of ours; what the switch held is gone then.
    """
    with Client(address, device_id) as client:  # says what is wrong where the shell would just leave
        if program is not None:
            text = Path(program).read_text(encoding="utf-8")
            compiled = compile_text(text, program, folder=Path(program).parent)
            client.set_pipeline(compiled.p4info, text.encode())
    high, low = newest_election()
    arguments = ["--grpc-addr", address, "--device-id", str(device_id), "--election-id", f"{high},{low}"]
    sys.stdout.flush()
    # The shell takes over this process: its prompt, its signals, its exit status.
    os.execv(sys.executable, [sys.executable, "-m", "p4runtime_sh", *arguments])  # noqa: S606
