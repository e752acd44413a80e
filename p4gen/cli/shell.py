"""``p4gen shell``: p4runtime-shell on a running switch."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from p4gen import packages
from p4gen.cli.switch import DEFAULT_ADDRESS
from p4gen.cli.values import ADDRESS, DEVICE_ID
from p4gen.cli.verb import verb
from p4gen.errors import MissingToolError
from p4gen.inputs import read_text
from p4gen.p4.compile import compile_text
from p4gen.p4rt.client import Client
from p4gen.p4rt.session import newest_election


@verb(examples=[("--grpc-addr 127.0.0.1:9559", "the switch that p4gen switch runs by default")])
@click.argument("program", metavar="[PROGRAM.p4]", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--grpc-addr", "address", type=ADDRESS, default=DEFAULT_ADDRESS, help=f"Address of the switch.  [{DEFAULT_ADDRESS}]"
)
@click.option("--device-id", type=DEVICE_ID, default=1, help="[1]")
def command(program: str | None, address: str, device_id: int) -> None:
    """Open p4runtime-shell on the switch at ADDRESS, as its primary controller.

    PROGRAM.p4 is loaded into the switch first, which must be p4gen's; this clears the switch's state.
    """
    python = packages.p4runtime_shell()
    if python is None:
        raise MissingToolError(f"p4runtime-shell is not installed: {packages.P4RUNTIME_SHELL}")
    with Client(address, device_id) as client:  # reports the error; the shell would just exit
        if program is not None:
            text = read_text(Path(program))
            compiled = compile_text(text, program, folder=Path(program).parent)
            client.set_pipeline(compiled.p4info, text.encode())
    high, low = newest_election()
    arguments = ["--grpc-addr", address, "--device-id", str(device_id), "--election-id", f"{high},{low}"]
    sys.stdout.flush()
    # The shell takes over this process: its prompt, its signals, its exit status.
    os.execv(python, [python, "-m", "p4runtime_sh", *arguments])  # noqa: S606
