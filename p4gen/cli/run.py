"""``p4gen run``: one STF test on a program, with a trace if one is wanted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from p4gen.cli.common import engine_option, json_option, preprocessor_options
from p4gen.model import Trace, render
from p4gen.p4.compile import compile_file
from p4gen.stf import Outcome, parse_file, run
from p4gen.stf.engines import ENGINES, poisoned


@click.command()
@click.argument("file", metavar="FILE.p4", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--stf",
    "script",
    metavar="FILE.stf",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The test: packets, what to expect, table entries.",
)
@click.option("--trace", "with_trace", is_flag=True, help="Say what happens to each packet, with source positions.")
@click.option("--poison", is_flag=True, help="Garbage, not zeros, in what the program has not initialised.")
@engine_option
@preprocessor_options
@json_option
def command(
    file: Path,
    script: Path,
    with_trace: bool,
    poison: bool,
    engine: str,
    includes: tuple[Path, ...],
    defines: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run an STF test on a P4_16 program; exit 1 if it does not get what it expects."""
    if (with_trace or poison) and engine != "interp":
        raise click.UsageError("--trace and --poison are the reference interpreter's: use --engine interp")
    compiled = compile_file(file, defines, includes)
    statements = parse_file(script)
    trace = Trace() if with_trace else None
    outcome = run(compiled.program, statements, engine=poisoned if poison else ENGINES[engine], trace=trace)
    lines = render(trace.events) if trace is not None else []
    if as_json:
        click.echo(json.dumps(_summary(script, outcome, lines)))
    else:
        for line in (*lines, *outcome.notes, *outcome.traps):
            click.echo(line)
        for failure in outcome.failures:
            click.echo(str(failure), err=True)
        verdict = "passed" if outcome.passed else "FAILED"
        click.echo(f"{script}: {verdict}; {outcome.packets} packets in, {len(outcome.outputs)} out")
    sys.exit(0 if outcome.passed else 1)


def _summary(script: Path, outcome: Outcome, trace: list[str]) -> dict[str, object]:
    return {
        "test": str(script),
        "passed": outcome.passed,
        "failures": [str(failure) for failure in outcome.failures],
        "outputs": [{"port": o.port, "packet": o.data.hex(), "cause": str(o.cause)} for o in outcome.outputs],
        "notes": list(outcome.notes),
        "traps": list(outcome.traps),
        "trace": trace,
    }
