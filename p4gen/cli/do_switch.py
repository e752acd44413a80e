"""The work of ``p4gen switch``: the embedded switch as a process, which behaves like simple_switch_grpc."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from pathlib import Path

import click

from p4gen.arch.ports import DROP_PORT
from p4gen.cli.defaults import LOG_LEVELS, SWITCH_PORTS
from p4gen.cli.logs import logging_to
from p4gen.inputs import parsed
from p4gen.model import EngineName
from p4gen.switch.process import LOGGER, TRACE_LEVEL, Options, Statistics, run_switch
from p4gen.vocabulary import units

_SMALLEST_TRACE = 64 << 10

_LEVELS = dict(
    zip(
        LOG_LEVELS,
        (TRACE_LEVEL, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL + 1),
        strict=True,
    )
)


def do(
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
    log_format: str,
    seed: int,
    engine: EngineName,
    until_eof: bool,
    includes: tuple[Path, ...],
    defines: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run the command with these options."""
    if bool(interfaces) and unix is not None:
        raise click.UsageError("ports are either interfaces (-i) or sockets (--unix)")
    if ports is not None and unix is None:
        raise click.UsageError("--ports counts the sockets that --unix makes; interfaces are given one by one (-i)")
    options = Options(
        address,
        program,
        dict(_interface(text) for text in interfaces),
        unix,
        SWITCH_PORTS if ports is None else ports,
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
    logging.addLevelName(TRACE_LEVEL, "TRACE")
    with logging_to(log_file, LOGGER, _LEVELS[log_level], log_format):
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
