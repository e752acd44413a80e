"""The work of ``p4gen ptf run``: the conformance suite on a program and its variants."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from p4gen import runs
from p4gen.arch import architecture, architectures
from p4gen.builder import build
from p4gen.cli.ending import terminable
from p4gen.cli.options import (
    arguments_of,
    report_console,
    spec_from,
    this_command,
)
from p4gen.errors import FailedError
from p4gen.inputs import drawn
from p4gen.model import EngineName
from p4gen.p4.toolchain import Toolchain
from p4gen.ptf import bundle
from p4gen.ptf.conformance import drawn_runs, run_conformance
from p4gen.ptf.family import SuiteRun, conformance_of, suite_of
from p4gen.ptf.matrix import axes_of, chosen_programs
from p4gen.ptf.report import Outcome, TestResult
from p4gen.ptf.runner import SuiteResult
from p4gen.ptf.scenarios import are_there, check_names, drawn_names, scenarios
from p4gen.scratch import scratch
from p4gen.switch import targets
from p4gen.switch.running import Program, RunningSwitch
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.program import DEFAULT_ARCH


def do(
    ctx: click.Context,
    /,
    spec_file: Path | None,
    out: Path,
    as_json: bool,
    target: str,
    engine: EngineName,
    seed: int | None,
    tests: tuple[str, ...],
    matrix: str | None,
    report: Path | None,
    sample: int | None,
    share: int | None,
    trace: bool,
    **flags: str | None,
) -> None:
    """Run the command with these options."""
    if trace and not tests:
        raise click.UsageError("--trace of the whole suite is too long to read: choose scenarios with --test")
    if trace and target != targets.EMBEDDED:
        raise click.UsageError("--trace goes with the embedded switch")
    if trace and matrix:
        raise click.UsageError("--matrix does not go with --trace")
    if sample and (tests or matrix):
        raise click.UsageError(f"--sample does not go with {'--test' if tests else '--matrix'}")
    if share and (tests or matrix or sample):
        other = "--test" if tests else "--matrix" if matrix else "--sample"
        raise click.UsageError(f"--share does not go with {other}")
    spec = spec_from(spec_file, _for_target(target, spec_file, flags))
    targets.check_runs(target, spec.architecture)
    targets.check_queue_lengths(target, spec)
    targets.check(target, spec.architecture)
    if not are_there(tests, suite_of(spec)):
        check_names(tests, scenarios(spec))
    if report is not None:
        bundle.check_path(report)
    seed = drawn(seed)
    if sample:
        tests = drawn_names(scenarios(spec), sample, seed)
    with terminable(), scratch() as place:
        job = _Job(spec, target, engine, out, place, seed, report_console(quiet=as_json), report)
        passed, found = job.conform(tests, matrix, share, trace)
    if as_json:
        click.echo(json.dumps({"seed": seed, "passed": passed} | found))
    ctx.exit(0 if passed else 1)


def _for_target(target: str, spec_file: Path | None, flags: dict[str, str | None]) -> dict[str, str | None]:
    """The flags, with an architecture that the target runs where neither they nor the file name one."""
    if target in architecture(DEFAULT_ARCH).targets or flags.get("arch") is not None:
        return flags
    if spec_file is not None and "arch" in spec_from(spec_file, {}).model_fields_set:
        return flags
    return flags | {"arch": next(name for name, arch in architectures().items() if target in arch.targets)}


@dataclass(frozen=True)
class _Job:
    spec: ProgramSpec
    target: str
    engine: EngineName
    out: Path
    scratch: Path
    seed: int
    console: Console
    """Silent with --json."""
    report: Path | None = None
    """The file about the run, if one is wanted."""

    def conform(
        self, tests: tuple[str, ...], matrix: str | None, share: int | None, trace: bool
    ) -> tuple[bool, dict[str, Any]]:
        wanted: tuple[SuiteRun[ProgramSpec], ...]
        if matrix:
            wanted = tuple(SuiteRun(spec, tests) for spec in chosen_programs(self.spec, matrix, self.seed))
        elif tests:
            wanted = (SuiteRun(self.spec, tests),)
        else:
            wanted = tuple(conformance_of(self.spec).runs(self.spec))
        if share:
            wanted = drawn_runs(wanted, share, self.seed)
        self.console.print(f"seed {self.seed}")
        versions = targets.versions(self.target, self.spec.architecture)
        self.console.print("target " + self.target + ": " + ", ".join(f"{k} {v}" for k, v in versions.items()))
        show = (_Traces if trace else _Programs if matrix else _Lines)(
            self.console, targets.starter(self.target, trace=trace, engine=self.engine)
        )
        programs: list[Program] = []

        def built(spec: ProgramSpec) -> Program:
            programs.append(self._build(spec))
            return programs[-1]

        folder = runs.new_folder(self.out, "ptf", self.spec.program, self.target)
        arguments = ["ptf", "run", *(axes_of(self.spec) if matrix else arguments_of(self.spec))]
        arguments += ["--target", self.target, "--seed", str(self.seed), "--engine", self.engine]
        arguments += ["--matrix", matrix] if matrix else []
        arguments += ["--share", str(share)] if share else []
        arguments += [word for test in tests for word in ("--test", test)]
        known = {"arguments": arguments, "seed": self.seed, "versions": versions}
        began = time.monotonic()
        try:
            result = run_conformance(
                wanted,
                built,
                self.scratch,
                seed=self.seed,
                started=show.program,
                progress=show.scenario,
                finished=show.summary,
                switch=show.switch,
                jobs=1 if trace or len(wanted) == 1 or self.target != targets.EMBEDDED else os.cpu_count() or 1,
            )
        except FailedError as error:
            self._report(known, programs, (), str(error))
            raise
        self._report({**known, "passed": result.passed, "not_run": result.left_out}, programs, result.runs)
        left_out = result.left_out
        for name, reason in {} if matrix or share else left_out.items():
            self.console.print(f"[yellow]not run[/yellow]   {name}: {reason}")
        for run, outcome in result.runs:
            if outcome.problem:
                self.console.print(f"[red]{run.spec.program}: {outcome.problem}[/red]")
        if not result.ran_something:
            self.console.print("[red]nothing ran: no scenario applies to the program[/red]")
        done = sum(len(suite.of(Outcome.PASSED)) for _, suite in result.runs)
        scenarios_run = len({test.name for _, suite in result.runs for test in suite.of(Outcome.PASSED)})
        failed = sum(len(suite.failures) for _, suite in result.runs)
        seconds = time.monotonic() - began
        self.console.print(
            f"\n{len(wanted)} program{'s' * (len(wanted) > 1)}, {seconds:.1f} s; "
            f"repeat with --seed {self.seed}\n{done} passed, {failed} failed, {len(left_out)} not run"
            f"\n{scenarios_run} different scenarios passed"
        )
        for number, program in enumerate(programs):
            files = [path for path in (program.p4, program.p4info, program.json) if path is not None]
            runs.keep(self.scratch / str(number), folder / program.p4.stem, files)
        record = runs.RunRecord(
            "ptf", self.spec.program, self.target, tuple(arguments), self.seed, result.passed, versions
        )
        runs.write_record(folder, record, [_case(run, test) for run, suite in result.runs for test in suite.tests])
        self.console.print(f"\n{folder}: programs, logs, requests, captures, {runs.JUNIT_FILE}")
        self.console.print(f"  {this_command()} rerun {folder}")
        return result.passed, {
            "target": self.target,
            "versions": versions,
            "folder": str(folder),
            "not_run": left_out,
            "runs": [_run_json(run, suite) for run, suite in result.runs],
        }

    def _report(
        self,
        known: dict[str, Any],
        programs: Sequence[Program],
        results: Sequence[tuple[object, SuiteResult]],
        problem: str = "",
    ) -> None:
        """Write the file about the run, if one is wanted. Of a run that ended early there are no results."""
        if self.report is None:
            return
        found = [suite for _, suite in results]
        parts = [
            bundle.Part(program, self.scratch / str(number), found[number] if found else None)
            for number, program in enumerate(programs)
        ]
        bundle.write(self.report, known, parts, problem)

    def _build(self, spec: ProgramSpec) -> Program:
        result = build(spec, self.out, use_p4c=self.target != targets.EMBEDDED)
        json_file = result.program.with_suffix(".json")
        info = result.folder / f"{spec.program}.p4info.txtpb"
        output = spec.architecture.facet(Toolchain).output
        tofino = result.folder / output if output and self.target == targets.TOFINO_MODEL else None
        return Program(result.program, info, json_file if json_file.exists() else None, tofino)


@dataclass
class _Lines:
    """One line per scenario, as it finishes."""

    console: Console
    start: targets.Start

    @contextmanager
    def switch(self, program: Program, directory: Path, ports: range) -> Iterator[RunningSwitch]:
        """The switch that scenarios run on."""
        with self.start(program, directory, ports) as running:
            yield running

    def program(self, run: SuiteRun[ProgramSpec]) -> None:
        self.console.print(f"\n[bold]{run.spec.program}[/bold]")

    def scenario(self, test: TestResult) -> None:
        if test.outcome is Outcome.SKIPPED:
            return  # runs on another program, or is listed at the end
        style = "green" if test.outcome is Outcome.PASSED else "red"
        note = f"  {test.message}" if test.message else ""
        self.console.print(f"[{style}]{test.outcome:8}[/{style}] {test.seconds:6.2f} s  {test.name}", end="")
        self.console.print(note, markup=False)

    def summary(self, run: SuiteRun[ProgramSpec], suite: SuiteResult) -> None:
        """The results of a program."""


@dataclass
class _Programs(_Lines):
    """One line per program, and one for each scenario that failed."""

    def program(self, run: SuiteRun[ProgramSpec]) -> None:
        pass

    def scenario(self, test: TestResult) -> None:
        if not test.ok:
            super().scenario(test)

    def summary(self, run: SuiteRun[ProgramSpec], suite: SuiteResult) -> None:
        passed, failed = len(suite.of(Outcome.PASSED)), len(suite.failures)
        style = "green" if suite.problem is None and not failed else "red"
        counts = f"{passed:4} passed, {failed} failed, {len(suite.of(Outcome.SKIPPED)):3} not run"
        self.console.print(f"[{style}]{counts}[/{style}] {suite.seconds:6.1f} s  {run.spec.program}")


@dataclass
class _Traces(_Lines):
    """Before the line, the whole path of every packet through the program."""

    trace: Path | None = None
    shown: int = 0

    @contextmanager
    def switch(self, program: Program, directory: Path, ports: range) -> Iterator[RunningSwitch]:
        with super().switch(program, directory, ports) as running:
            self.trace, self.shown = running.trace, 0
            self.console.print(f"program.p4 below is {program.p4}")
            yield running

    def scenario(self, test: TestResult) -> None:
        if self.trace is not None and self.trace.exists():
            with self.trace.open(encoding="utf-8") as file:
                file.seek(self.shown)
                self.console.print(file.read(), markup=False)
                self.shown = file.tell()
        super().scenario(test)


def _case(run: SuiteRun[ProgramSpec], test: TestResult) -> runs.Case:
    skipped = test.message if test.outcome is Outcome.SKIPPED else ""
    problem = test.message or test.outcome if not test.ok else ""
    return runs.Case(run.spec.program, test.name, test.seconds, problem, test.details, skipped)


def _run_json(run: SuiteRun[ProgramSpec], suite: SuiteResult) -> dict[str, Any]:
    return {
        "program": run.spec.program,
        "seconds": round(suite.seconds, 3),
        "problem": suite.problem,
        "tests": [asdict(test) for test in suite.tests],
    }
