"""``p4gen switch``: the embedded switch as a process, which behaves like simple_switch_grpc."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from p4gen.arch.ports import DROP_PORT
from p4gen.cli.common import json_option, preprocessor_options
from p4gen.cli.values import ADDRESS, DEVICE_ID
from p4gen.cli.verb import SEED, verb
from p4gen.errors import InputError
from p4gen.inputs import parsed
from p4gen.model import ENGINES, EngineName
from p4gen.switch.process import LOGGER, TRACE_LEVEL, Options, Statistics, run_switch
from p4gen.vocabulary import units

DEFAULT_ADDRESS = "127.0.0.1:9559"
DEFAULT_PORTS = 32
_PORT = click.IntRange(0, DROP_PORT - 1)
_SMALLEST_TRACE = 64 << 10
_LEVELS = {
    "trace": TRACE_LEVEL,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}


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
@click.option("--ports", type=_PORT, help=f"How many ports --unix makes.  [{DEFAULT_PORTS}]")
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
@click.option("-L", "--log-level", type=click.Choice(list(_LEVELS)), default="info", help="[info]")
@click.option("--log-file", metavar="FILE", type=click.Path(path_type=Path), help="[standard error]")
@click.option("--seed", type=SEED, default=0, help="Seed of the program's random().  [0]")
@click.option(
    "--engine", type=click.Choice(ENGINES), default="jit",
    help="What runs the program: the reference interpreter, or machine code (traces use the interpreter).  [jit]",
)  # fmt: skip
@click.option("--until-eof", is_flag=True, hidden=True)
@preprocessor_options
@json_option
def command(
    program: Path | None,
    interfaces: tuple[str, ...],
    unix: Path | None,
    ports: int | None,
    address: str,
    device_id: int,
    cpu_port: int,
    pcap: Path | None,
    trace: Path | None,
    trace_limit: str,
    control: Path | None,
    log_level: str,
    log_file: Path | None,
    seed: int,
    engine: EngineName,
    until_eof: bool,
    includes: tuple[Path, ...],
    defines: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run a switch, with PROGRAM loaded or waiting for a controller to load one, until SIGTERM or Ctrl-C.

    Controllers load P4 text as device config, or BMv2's JSON if its P4Info is PROGRAM's.
    """
    if bool(interfaces) and unix is not None:
        raise click.UsageError("ports are either interfaces (-i) or sockets (--unix)")
    if ports is not None and unix is None:
        raise click.UsageError("--ports counts the sockets that --unix makes; interfaces are given one by one (-i)")
    options = Options(
        address,
        program,
        dict(_interface(text) for text in interfaces),
        unix,
        DEFAULT_PORTS if ports is None else ports,
        device_id,
        cpu_port,
        pcap,
        trace,
        parsed("trace_limit", _trace_limit, trace_limit),
        control,
        seed,
        engine,
        until_eof,
        includes,
        defines,
    )
    if len(options.interfaces) != len(interfaces):
        raise click.UsageError("two interfaces for one port")
    if len(set(options.interfaces.values())) != len(interfaces):
        raise click.UsageError("one interface for two ports: each would receive every frame")
    with _logging(log_level, log_file):
        statistics = run_switch(options)
    _report(statistics, as_json)


def _trace_limit(text: str) -> int:
    value = units.size(text)
    if value < _SMALLEST_TRACE:
        raise ValueError(f"a trace file must have room for a packet: at least {_SMALLEST_TRACE >> 10}K")
    return value


def _interface(text: str) -> tuple[int, str]:
    number, at, name = text.partition("@")
    if not (at and name and number.isdecimal() and int(number) < DROP_PORT):
        raise click.UsageError(f"-i {text}: must be PORT@INTERFACE, such as 0@veth0, with a port up to {DROP_PORT - 1}")
    return int(number), name


@contextlib.contextmanager
def _logging(level: str, file: Path | None) -> Iterator[None]:
    try:
        handler: logging.Handler = (
            logging.StreamHandler(sys.stderr) if file is None else logging.FileHandler(file, encoding="utf-8")
        )
    except OSError as error:
        raise InputError(f"--log-file {file}: {error.strerror}") from None
    handler.setFormatter(logging.Formatter("[%(asctime)s.%(msecs)03d] [%(levelname)s] %(message)s", "%H:%M:%S"))
    logging.addLevelName(TRACE_LEVEL, "TRACE")
    LOGGER.addHandler(handler)
    LOGGER.setLevel(_LEVELS[level])
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        handler.close()


def _report(statistics: Statistics, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(asdict(statistics)))
        return
    click.echo(f"{'port':>6} {'packets in':>12} {'bytes in':>14} {'packets out':>12} {'bytes out':>14} {'lost':>8}")
    for port in sorted({*statistics.ports, *statistics.undelivered}):
        counts = statistics.ports.get(port, {})
        values = [counts.get(name, 0) for name in ("in_packets", "in_bytes", "out_packets", "out_bytes")]
        lost = statistics.undelivered.get(port, 0)
        click.echo(f"{port:6} {values[0]:12} {values[1]:14} {values[2]:12} {values[3]:14} {lost:8}")
    for port, number in sorted(statistics.truncated.items()):
        click.echo(f"port {port}: {number} frames were dropped because they are longer than any interface's MTU")
    for port, number in sorted(statistics.missed.items()):
        click.echo(f"port {port}: {number} frames were dropped by the kernel because too many waited")
    for trap in statistics.traps:
        click.echo(trap)
