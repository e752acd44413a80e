"""``p4gen run``: sends packets through a program, from an STF test, the command line or captures."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from p4gen.cli.common import engine_option, json_option, preprocessor_options
from p4gen.cli.verb import verb
from p4gen.errors import InputError
from p4gen.model import Event, Trace, render
from p4gen.p4 import ir
from p4gen.p4.compile import compile_file
from p4gen.stf import StfResult, parse_file, run
from p4gen.stf.bench import Engine
from p4gen.stf.engines import ENGINES, poisoned
from p4gen.stf.inject import Injection, Passage, arrivals

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@verb(
    examples=[
        ("mine.p4 --stf mine.stf --trace", "a test, with the path of each packet"),
        ("mine.p4 --packet 0:ffffffffffff --entries entries.txt", "a packet, and the output by port"),
        ("mine.p4 --pcap 0:in.pcap --out out.pcapng", "the packets of a capture"),
    ]
)
@click.argument("file", metavar="FILE.p4", type=_FILE)
@click.option("--stf", "script", metavar="FILE.stf", type=_FILE, help="A test: packets, what to expect, table entries.")
@click.option("--packet", "packets", metavar="PORT:HEX", multiple=True, help="A packet that arrives; repeatable.")
@click.option(
    "--pcap",
    "captures",
    metavar="PORT:FILE",
    multiple=True,
    help="The packets of a capture (pcap or pcapng) arrive at a port; repeatable, all in the order of their times.",
)
@click.option(
    "--entries", metavar="FILE", type=_FILE, help="Table entries and other configuration for --packet and --pcap."
)
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the output of --packet and --pcap to a capture: .pcap, or .pcapng with an interface per port.",
)
@click.option("--trace", "with_trace", is_flag=True, help="Print how each packet is handled, with source positions.")
@click.option("--poison", is_flag=True, help="Garbage instead of zeros in uninitialised variables.")
@engine_option
@preprocessor_options
@json_option
def command(
    file: Path,
    script: Path | None,
    packets: tuple[str, ...],
    captures: tuple[str, ...],
    entries: Path | None,
    out: Path | None,
    with_trace: bool,
    poison: bool,
    engine: str,
    includes: tuple[Path, ...],
    defines: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run packets through a P4_16 program.

    With --stf, they are those of a test: exit 1 if the program does not meet it. With --packet and --pcap,
    the output is printed as PORT:HEX.
    """
    if (with_trace or poison) and engine != "interp":
        raise click.UsageError("--trace and --poison need the reference interpreter: use --engine interp")
    if (script is None) == (not packets and not captures):
        raise click.UsageError("give either --stf, or packets with --packet and --pcap")
    if script is not None and (entries or out):
        raise click.UsageError("--entries and --out go with --packet and --pcap; a test has its own entries")
    if out is not None and out.suffix not in (".pcap", ".pcapng"):
        raise click.UsageError(f"--out {out}: a capture's name ends in .pcap or .pcapng")
    if out is not None and not out.parent.is_dir():
        raise InputError(f"cannot write {out}: no folder {out.parent}")
    makes = poisoned if poison else ENGINES[engine]
    program = compile_file(file, defines, includes).program
    if script is not None:
        _test(program, script, makes, traced=with_trace, as_json=as_json)
        return
    arriving = list(arrivals(packets, captures))
    injection = Injection(program, parse_file(entries) if entries else (), engine=makes)
    passages = []
    for number, arrival in enumerate(arriving, 1):
        passages.append(injection.process(arrival, traced=with_trace))
        if not as_json:
            _tell(number, passages[-1])
    if out is not None:
        _capture(out, passages)
    if as_json:
        click.echo(json.dumps(_injected(passages, injection)))
        return
    for line in (*injection.notes, *injection.traps):
        click.echo(line)
    click.echo(f"{_count(len(passages))} in, {sum(len(passage.outputs) for passage in passages)} out")
    if out is not None:
        click.echo(f"wrote {out}")


def _tell(number: int, passage: Passage) -> None:
    arrival = passage.arrival
    click.echo(f"packet {number}, {len(arrival.data)} bytes at port {arrival.port}:")
    for line in render(passage.events):
        click.echo(line)
    for digest in passage.digests:
        click.echo(f"  digest {digest.name} {dict(digest.fields)}")
    for port, data in passage.outputs:
        click.echo(f"  {port}:{data.hex()}")
    if not passage.outputs:
        click.echo("  nothing comes out")


def _count(packets: int) -> str:
    return f"{packets} packet{'' if packets == 1 else 's'}"


def _injected(passages: Sequence[Passage], injection: Injection) -> dict[str, object]:
    return {
        "packets": [
            {
                "port": passage.arrival.port,
                "packet": passage.arrival.data.hex(),
                "outputs": [{"port": port, "packet": data.hex()} for port, data in passage.outputs],
                "digests": [{"name": digest.name, "fields": dict(digest.fields)} for digest in passage.digests],
                "trace": render(passage.events),
            }
            for passage in passages
        ],
        "notes": list(injection.notes),
        "traps": list(injection.traps),
    }


def _capture(path: Path, passages: Sequence[Passage]) -> None:
    """The output, with the switch's times."""
    # The capture code of labs and simulations takes a while to load.
    from p4gen.net.views.capture import PcapngWriter  # noqa: PLC0415
    from p4gen.switch.pcap import PcapWriter  # noqa: PLC0415

    sent = [(port, passage.time, data) for passage in passages for port, data in passage.outputs]
    ports = sorted({port for port, _, _ in sent})
    try:
        if path.suffix == ".pcapng":
            with path.open("wb") as file:
                writer = PcapngWriter(file, [f"port{port}" for port in ports])
                for port, time, data in sent:
                    writer.write(ports.index(port), time, data, outbound=True)
            return
        plain = PcapWriter(path)
        for _, time, data in sent:
            plain.write(data, time)
        plain.close()
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def _test(program: ir.Program, script: Path, engine: Engine, *, traced: bool, as_json: bool) -> None:
    """Run an STF test, report it and exit with its status."""
    trace = Trace() if traced else None
    outcome = run(program, parse_file(script), engine=engine, trace=trace)
    events: Iterable[Event] = trace.events if trace is not None else ()
    lines = render(events)
    if as_json:
        click.echo(json.dumps(_summary(script, outcome, lines)))
    else:
        for line in (*lines, *outcome.notes, *outcome.traps):
            click.echo(line)
        for failure in outcome.failures:
            click.echo(str(failure), err=True)
        verdict = "passed" if outcome.passed else "FAILED"
        click.echo(f"{script}: {verdict}; {_count(outcome.packets)} in, {len(outcome.outputs)} out")
    sys.exit(0 if outcome.passed else 1)


def _summary(script: Path, outcome: StfResult, trace: list[str]) -> dict[str, object]:
    return {
        "test": str(script),
        "passed": outcome.passed,
        "failures": [str(failure) for failure in outcome.failures],
        "outputs": [{"port": o.port, "packet": o.data.hex(), "cause": str(o.cause)} for o in outcome.outputs],
        "notes": list(outcome.notes),
        "traps": list(outcome.traps),
        "trace": trace,
    }
