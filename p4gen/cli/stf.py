"""``p4gen stf``: every STF test in a folder."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

import click

from p4gen.cli.common import engine_option, json_option, preprocessor_options
from p4gen.cli.verb import verb
from p4gen.errors import InputError
from p4gen.stf.suite import FAILED, PASSED, SKIPPED, Result, find_tests, run_tests


@verb(
    examples=[
        ("tests/stf --match register --engine jit", "some tests of a folder, in machine code"),
    ]
)
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--match", default="", metavar="TEXT", help="Only tests whose name contains this.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=lambda: os.cpu_count() or 1,
    show_default="one for each processor",
    help="Processes to run tests in.",
)
@engine_option
@preprocessor_options
@json_option
def command(
    folder: Path,
    match: str,
    jobs: int,
    engine: str,
    includes: tuple[Path, ...],
    defines: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run the STF tests in a folder and below: x.stf, and any x.what.stf, on x.p4 beside it.

    A test that fails says where and why; one that cannot be run (a program for another architecture, its own
    extern) is skipped and says why. Exit 1 if any fails.
    """
    tests = [test for test in find_tests(folder) if match in test.name]
    if not tests:
        raise InputError(f"no .stf files in {folder}" + (f" whose name contains {match!r}" if match else ""))
    results = []
    width = max(len(test.name) for test in tests)
    for result in run_tests(tests, engine=engine, jobs=jobs, includes=includes, defines=defines):
        results.append(result)
        if not as_json:
            _line(result, width)
    counts = Counter(result.verdict for result in results)
    totals = {verdict: counts[verdict] for verdict in (PASSED, FAILED, SKIPPED)}
    if as_json:
        click.echo(json.dumps({"folder": str(folder)} | totals | {"tests": [_as_dict(r) for r in results]}))
    else:
        click.echo(", ".join(f"{number} {verdict}" for verdict, number in totals.items()))
    sys.exit(1 if counts[FAILED] else 0)


def _line(result: Result, width: int) -> None:
    if result.verdict == SKIPPED:
        click.echo(f"{result.name:<{width}}  skipped: {result.reasons[0].message}")
        return
    click.echo(f"{result.name:<{width}}  {result.verdict}")
    for reason in result.reasons:
        click.echo(str(reason), err=True)


def _as_dict(result: Result) -> dict[str, object]:
    reasons = [str(reason) for reason in result.reasons]
    return {"name": result.name, "verdict": result.verdict, "reasons": reasons, "seconds": round(result.seconds, 3)}
