"""A folder of STF tests, and their results."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from p4gen.errors import Diagnostic, P4genError
from p4gen.model import is_modelled, packages
from p4gen.p4.compile import compile_file
from p4gen.stf.engines import ENGINES
from p4gen.stf.parser import parse_file
from p4gen.stf.runner import run

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

_ARCHITECTURES = re.compile(r"to include: (?:\S*/)?((?:psa|pna|tna|t2na|ebpf_model|ubpf_model|xdp_model)\.p4)$")
_UNSUPPORTED = "is not supported by the behavioural model"


@dataclass(frozen=True)
class Case:
    """A test: a program and a script for it. ``program`` is None where there is none."""

    name: str
    script: Path
    program: Path | None


@dataclass(frozen=True)
class Result:
    """The result of a test: passed, failed or skipped, with the reasons for the latter two."""

    name: str
    verdict: str
    reasons: tuple[Diagnostic, ...] = ()
    seconds: float = 0.0


def find_tests(folder: Path) -> list[Case]:
    """The tests in ``folder`` and below, by name: ``x.stf``, and any ``x.what.stf``, is for ``x.p4`` beside it."""
    return [
        Case(str(script.relative_to(folder).with_suffix("")), script, _program(script))
        for script in sorted(folder.rglob("*.stf"))
    ]


def _program(script: Path) -> Path | None:
    stem = script.name.removesuffix(".stf")
    while stem:
        program = script.with_name(f"{stem}.p4")
        if program.is_file():
            return program
        stem = stem.rpartition(".")[0]
    return None


def run_test(test: Case, engine: str = "interp", includes: Iterable[Path] = (), defines: Iterable[str] = ()) -> Result:
    """Compile and run one test. Errors of any kind are part of the result, not exceptions."""
    start = time.monotonic()
    if test.program is None:
        return Result(test.name, SKIPPED, (Diagnostic(None, f"there is no program for {test.script.name}"),))
    try:
        program = compile_file(test.program, defines, includes).program
        if not is_modelled(program):
            architecture = f"for {program.package}" if program.package else "without a main"
            reason = f"the program is {architecture}, and the model runs {' and '.join(packages())}"
            return Result(test.name, SKIPPED, (Diagnostic(None, reason),))
        outcome = run(program, parse_file(test.script), engine=ENGINES[engine])
    except P4genError as error:
        skip = _skip(error)
        seconds = time.monotonic() - start
        return Result(test.name, SKIPPED if skip else FAILED, (skip,) if skip else error.diagnostics, seconds)
    verdict = PASSED if outcome.passed else FAILED
    return Result(test.name, verdict, outcome.failures, time.monotonic() - start)


def _skip(error: P4genError) -> Diagnostic | None:
    """The reason why a program that cannot be run is skipped: another architecture, or an extern of its own. None if it
    is a failure."""
    for diagnostic in error.diagnostics:
        found = _ARCHITECTURES.search(diagnostic.message)
        if found:
            return Diagnostic(None, f"the program is for another architecture, {found[1]}")
        if diagnostic.message.startswith("extern ") and diagnostic.message.endswith(_UNSUPPORTED):
            return Diagnostic(None, diagnostic.message)
    return None


def run_tests(
    tests: Iterable[Case],
    *,
    engine: str = "interp",
    jobs: int = 1,
    includes: Iterable[Path] = (),
    defines: Iterable[str] = (),
) -> Iterator[Result]:
    """The results, in the order of the tests, each as soon as it is there."""
    one = partial(run_test, engine=engine, includes=tuple(includes), defines=tuple(defines))
    if jobs == 1:
        yield from map(one, tests)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(one, tests)
