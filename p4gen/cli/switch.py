"""``p4gen switch``: the embedded switch as a process, which behaves like simple_switch_grpc."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from p4gen.arch.ports import DROP_PORT
from p4gen.choices import ENGINES
from p4gen.cli.common import json_option, preprocessor_options
from p4gen.cli.defaults import LOG_FORMATS, LOG_LEVELS, SWITCH_PORTS
from p4gen.cli.values import ADDRESS, DEVICE_ID
from p4gen.cli.verb import SEED, verb

DEFAULT_ADDRESS = "127.0.0.1:9559"


_PORT = click.IntRange(0, DROP_PORT - 1)


@verb(
    examples=[
        ("program.p4 -i 0@veth0 -i 1@veth1", "run a program on two interfaces"),
        ("--unix /tmp/s1 --ports 4 --grpc-server-addr unix:/tmp/s1/p4rt.sock", "no privilege, and no port number"),
    ]
)
@click.argument("program", metavar="[PROGRAM.p4]", required=False, type=click.Path(path_type=Path))
@click.option(
    "-i", "--interface", "interfaces", multiple=True, metavar="PORT@INTERFACE",
    help="Attach an interface (veth, tap, real) to a port; may be repeated. Needs CAP_NET_RAW.",
)  # fmt: skip
@click.option(
    "--unix", metavar="DIR", type=click.Path(path_type=Path, file_okay=False),
    help="Ports as sockets DIR/port<N>.sock (SOCK_SEQPACKET, one frame per message) instead; needs no privilege.",
)  # fmt: skip
@click.option("--ports", type=_PORT, help=f"How many ports --unix makes.  [{SWITCH_PORTS}]")
@click.option(
    "--grpc-server-addr", "address", type=ADDRESS, default=DEFAULT_ADDRESS,
    help=f"Where the P4Runtime server listens; port 0 takes a free one; unix:PATH works too.  [{DEFAULT_ADDRESS}]",
)  # fmt: skip
@click.option("--device-id", type=DEVICE_ID, default=1, help="P4Runtime's id of this switch.  [1]")
@click.option("--cpu-port", type=_PORT, default=0, help="Port for packet-in and packet-out.  [none]")
@click.option(
    "--pcap", metavar="DIR", type=click.Path(path_type=Path, file_okay=False), help="Capture each port's frames there."
)
@click.option("--trace", metavar="FILE", type=click.Path(path_type=Path), help="Append the whole path of every packet.")
@click.option(
    "--trace-limit", metavar="BYTES", default="64M", show_default=True,
    help="Largest trace file; its last line says that it was reached.",
)  # fmt: skip
@click.option(
    "--control", metavar="SOCKET", type=click.Path(path_type=Path, dir_okay=False),
    help="Start without --trace and --pcap; lines at this unix socket turn them on and off: trace on, trace off, "
    "capture on, capture off, status.",
)  # fmt: skip
@click.option("-L", "--log-level", type=click.Choice(LOG_LEVELS), default="info", help="[info]")
@click.option("--log-file", metavar="FILE", type=click.Path(path_type=Path), help="[standard error]")
@click.option("--log-format", type=click.Choice(LOG_FORMATS), default="text", help="JSON: an object a line.  [text]")
@click.option("--seed", type=SEED, default=0, help="Seed of the program's random().  [0]")
@click.option(
    "--engine", type=click.Choice(ENGINES), default="jit",
    help="What runs the program: the reference interpreter, or machine code (traces use the interpreter).  [jit]",
)  # fmt: skip
@click.option("--until-eof", is_flag=True, hidden=True)
@preprocessor_options
@json_option
def command(**options: Any) -> None:
    """Run a switch, with PROGRAM loaded or waiting for a controller to load one, until SIGTERM or Ctrl-C.

    Controllers load P4 text as device config, or BMv2's JSON if its P4Info is PROGRAM's.
    """
    from p4gen.cli.do_switch import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
