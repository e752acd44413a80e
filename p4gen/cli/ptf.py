"""``p4gen ptf``: the conformance suite on a program and its variants, or on programs with faults seeded."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from p4gen.builder import build
from p4gen.cli.options import json_option, out_option, report_console, spec_from, spec_options
from p4gen.inc import compose
from p4gen.ptf.conformance import Run, mode_ii_runs, run_conformance
from p4gen.ptf.mutants import Verdict, run_mutants
from p4gen.ptf.mutations import MODE_II
from p4gen.ptf.report import Outcome, TestResult
from p4gen.ptf.runner import Program, SuiteResult
from p4gen.render import render
from p4gen.spec import ProgramSpec
from p4gen.switch.process import RemoteSwitch, running_switch


@click.command()
@spec_options
@out_option
@json_option
@click.option("--seed", type=int, default=None, help="Seed of all random choices.  [drawn, and printed]")
@click.option("--test", "tests", multiple=True, metavar="MODULE[.CLASS]", help="Only these scenarios; may be repeated.")
@click.option("--trace", is_flag=True, help="Print every packet's whole way through the program (with --test).")
@click.option("--mutate", is_flag=True, help="Seed faults into the program; each must make a scenario fail.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    spec_file: Path | None,
    out: Path,
    as_json: bool,
    seed: int | None,
    tests: tuple[str, ...],
    trace: bool,
    mutate: bool,
    **flags: str | None,
) -> None:
    """Run the conformance suite on a program.

    The program runs on the embedded switch, in a process of its own, and is driven with RoCEv2 packets. Scenarios that
    need another op, dtype or ICRC setting run on small variants of the program.
    """
    if mutate and (tests or trace):
        raise click.UsageError("--mutate runs all scenarios: it goes with neither --test nor --trace")
    if trace and not tests:
        raise click.UsageError("--trace of the whole suite is too much to read: name scenarios with --test")
    spec = spec_from(spec_file, flags)
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    with tempfile.TemporaryDirectory(prefix="p4gen-") as scratch:
        job = _Job(spec, out, Path(scratch), seed, report_console(quiet=as_json))
        passed, report = job.mutate() if mutate else job.conform(tests, trace)
    if as_json:
        click.echo(json.dumps({"seed": seed, "passed": passed} | report))
    ctx.exit(0 if passed else 1)


@dataclass(frozen=True)
class _Job:
    spec: ProgramSpec
    out: Path
    scratch: Path
    seed: int
    console: Console
    """Silent with --json."""

    def conform(self, tests: tuple[str, ...], trace: bool) -> tuple[bool, dict[str, Any]]:
        runs = (Run(self.spec, tests),) if tests else mode_ii_runs(self.spec)
        self.console.print(f"seed {self.seed}")
        show = _Traces(self.console) if trace else _Lines(self.console)
        result = run_conformance(
            runs,
            lambda spec: build(spec, self.out, use_p4c=False).compiled.program,
            self.scratch,
            seed=self.seed,
            started=show.program,
            progress=show.scenario,
            switch=show.switch,
        )
        left_out = result.left_out
        for name, reason in left_out.items():
            self.console.print(f"[yellow]not run[/yellow]   {name}: {reason}")
        for run, outcome in result.runs:
            if outcome.problem:
                self.console.print(f"[red]{run.spec.program}: {outcome.problem}[/red]")
        done = sum(len(suite.of(Outcome.PASSED)) for _, suite in result.runs)
        failed = sum(len(suite.failures) for _, suite in result.runs)
        self.console.print(
            f"\n{len(runs)} program{'s' * (len(runs) > 1)}, {result.seconds:.1f} s; repeat with --seed {self.seed}\n"
            f"{done} passed, {failed} failed, {len(left_out)} skipped"
        )
        return result.passed, {"runs": [_run_json(run, suite) for run, suite in result.runs]}

    def mutate(self) -> tuple[bool, dict[str, Any]]:
        """On the smallest program that has everything a fault can break."""
        spec = self.spec.model_validate(MUTATED)
        text = render(compose(spec)).text
        verdicts: list[Verdict] = []
        self.console.print(f"seed {self.seed}; {len(MODE_II)} faults in {spec.program}")
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console, disable=not self.console.is_terminal, transient=True) as bar:
            task = bar.add_task("", total=len(MODE_II))
            for verdict in run_mutants(
                text,
                spec,
                MODE_II,
                self.scratch,
                seed=self.seed,
                started=lambda mutation: bar.update(task, description=mutation.name),
            ):
                verdicts.append(verdict)
                bar.advance(task)
                bar.console.print(_verdict_line(verdict))
        survivors = [v for v in verdicts if v.caught_by is None]
        self.console.print(f"\n{len(verdicts) - len(survivors)} faults caught, {len(survivors)} survived")
        report = [asdict(v.mutation) | {"caught_by": v.caught_by, "message": v.message} for v in verdicts]
        return not survivors, {"mutations": report}


MUTATED = {"lanes": 8, "window": 2, "message": 2, "groups": 2, "fan_in": 4, "ports": 8}
"""int32, saturating sum: what ``mutations.MODE_II`` is written for."""


@dataclass
class _Lines:
    """One line a scenario, as it finishes."""

    console: Console

    @contextmanager
    def switch(self, program: Program, directory: Path, ports: Iterable[int]) -> Iterator[RemoteSwitch]:
        """The switch that scenarios run on."""
        with running_switch(program, directory, ports) as switch:
            yield switch

    def program(self, run: Run) -> None:
        self.console.print(f"\n[bold]{run.spec.program}[/bold]")

    def scenario(self, test: TestResult) -> None:
        if test.outcome is Outcome.SKIPPED:
            return  # runs on another program, or is listed at the end
        style = "green" if test.outcome is Outcome.PASSED else "red"
        note = f"  {test.message}" if test.message else ""
        self.console.print(f"[{style}]{test.outcome:8}[/{style}] {test.seconds:6.2f} s  {test.name}", end="")
        self.console.print(note, markup=False)


class _Traces(_Lines):
    """Before the line, every packet's whole way through the program."""

    running: RemoteSwitch

    @contextmanager
    def switch(self, program: Program, directory: Path, ports: Iterable[int]) -> Iterator[RemoteSwitch]:
        with running_switch(program, directory, ports) as self.running:
            self.running.set_tracing(True)
            yield self.running

    def scenario(self, test: TestResult) -> None:
        self.console.print(str(self.running.take_trace()), markup=False)
        super().scenario(test)


def _verdict_line(verdict: Verdict) -> str:
    caught = verdict.caught_by
    what = f"[green]caught[/green]    {caught}" if caught else f"[red]SURVIVED[/red]  {verdict.message}"
    return f"{verdict.mutation.module:16} {verdict.mutation.name:26} {what}"


def _run_json(run: Run, suite: SuiteResult) -> dict[str, Any]:
    return {
        "program": run.spec.program,
        "seconds": round(suite.seconds, 3),
        "problem": suite.problem,
        "tests": [asdict(test) for test in suite.tests],
    }
