"""The work of ``p4gen ptf mutate``: faults seeded into programs; each must be caught."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from p4gen.cli.ending import terminable
from p4gen.cli.options import report_console, spec_from
from p4gen.errors import Diagnostic, InputError, Option
from p4gen.families import collective
from p4gen.inputs import drawn, quote
from p4gen.model import EngineName
from p4gen.ptf.family import conformance_of, equivalents_of
from p4gen.ptf.judge import Finding, Trial
from p4gen.ptf.mutants import (
    PIPELINES,
    RELIABILITIES,
    Mutant,
    listed_mutants,
    listed_subjects,
    made_mutants,
    run_mutants,
    sample,
)
from p4gen.ptf.scores import Score, score
from p4gen.vocabulary import ProgramSpec, Reliability

_STYLES = {Finding.CAUGHT: "green", Finding.SURVIVED: "red", Finding.UNCLEAR: "yellow", Finding.INVALID: "dim"}


def do(
    ctx: click.Context,
    /,
    spec_file: Path | None,
    as_json: bool,
    engine: EngineName,
    seed: int | None,
    operators: bool,
    fault: tuple[str, ...],
    faults: int | None,
    at_least: float,
    **flags: str | None,
) -> None:
    """Run the command with these options."""
    if fault and (operators or faults is not None):
        raise click.UsageError(f"--fault does not go with {'--operators' if operators else '--faults'}")
    spec = spec_from(spec_file, flags)
    seed = drawn(seed)
    if operators:
        # The values given explicitly; otherwise all programs.
        found = _made(
            spec,
            collective(spec).loss_recovery if spec.takes_part and flags.get("reliability") else None,
            spec.pipelines if flags.get("pipelines") else None,
        )
    else:
        found, at_least = _listed(spec, fault), 100.0
    if faults is not None:
        found = Faults(sample(found.mutants, faults, seed), len(found.mutants), found.equivalent)
    with terminable():
        trials = Mutate(found, seed, engine, report_console(quiet=as_json))
        passed, report = trials.run(at_least)
    if as_json:
        click.echo(json.dumps({"seed": seed, "passed": passed} | report))
    ctx.exit(0 if passed else 1)


@dataclass(frozen=True)
class Faults:
    """The mutants that ``ptf mutate`` tries, and the numbers of those that it leaves out."""

    mutants: Sequence[Mutant]
    of: int
    """How many there are in all."""
    equivalent: int = 0
    """How many more are known to cause no observable change."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Faults of a list that have no form in the programs, and why."""

    def sentence(self) -> str:
        """The counts as text, such as "20 of 346 faults in 4 programs, 12 more are equivalent"."""
        count, programs = len(self.mutants), len({mutant.subject for mutant in self.mutants})
        some = f"{count} of {self.of}" if count < self.of else str(count)
        more = f", {self.equivalent} more are equivalent" if self.equivalent else ""
        return f"{some} fault{'s' * (self.of != 1)} in {programs} program{'s' * (programs != 1)}{more}"


def _listed(spec: ProgramSpec, names: Sequence[str]) -> Faults:
    """The faults of the family's list, or those of these names."""
    seeding = conformance_of(spec).seeding(spec)
    known = {each.name: each for each in seeding.mutations}
    for name in names:
        if name not in known:
            raise InputError(Diagnostic(Option("fault"), f"{quote(name)} is no listed fault of {spec.program}"))
    if names:
        seeding = seeding.only([known[name] for name in names])
    mutants = listed_mutants(seeding, listed_subjects(spec, seeding))
    return Faults(mutants, len(mutants), left_out={} if names else seeding.left_out)


def _made(spec: ProgramSpec, reliability: Reliability | None, pipelines: int | None) -> Faults:
    """What operators make of programs of one reliability or number of pipelines, or of all."""
    mutants = made_mutants(
        spec,
        equivalents_of(spec),
        RELIABILITIES if reliability is None else (reliability,),
        PIPELINES if pipelines is None else (pipelines,),
    )
    counted = [mutant for mutant in mutants if mutant.equivalent is None]
    return Faults(counted, len(counted), len(mutants) - len(counted))


@dataclass(frozen=True)
class Mutate:
    """Mutants, tried one after the other."""

    faults: Faults
    seed: int
    engine: EngineName
    console: Console
    """Silent with --json."""

    def run(self, at_least: float) -> tuple[bool, dict[str, Any]]:
        """Try all; whether at least so many percent were caught, and the report."""
        self.console.print(f"seed {self.seed}; {self.faults.sentence()}")
        trials: list[Trial[Mutant]] = []
        started = time.monotonic()
        tried = run_mutants(self.faults.mutants, seed=self.seed, engine=self.engine)
        with self._shown(tried, len(self.faults.mutants)) as shown:
            for trial in shown:
                trials.append(trial)
                if trial.fault.listed:
                    where = f"{trial.fault.module:16} {trial.fault.name:26}"
                    self.console.print(f"{where} {_finding(trial)}", highlight=False)
                if trial.finding is not Finding.CAUGHT:
                    self.console.print(_lines(trial), highlight=False, soft_wrap=True)
        for name, reason in self.faults.left_out.items():
            self.console.print(f"no form   {name}: {reason}", highlight=False)
        by_module = score((trial.fault.module, trial.finding) for trial in trials)
        by_program = score((trial.fault.subject.name, trial.finding) for trial in trials)
        self._table("module", by_module)
        self._table("program", by_program)
        total = score(("all", trial.finding) for trial in trials).get("all", Score())
        self.console.print(f"\n{total}, {time.monotonic() - started:.0f} s; repeat with --seed {self.seed}")
        return total.reaches(at_least), {
            "score": total.share,
            "modules": {name: asdict(found) for name, found in by_module.items()},
            "programs": {name: asdict(found) for name, found in by_program.items()},
            "equivalent": self.faults.equivalent,
            "left_out": dict(self.faults.left_out),
            "mutations": [{**trial.fault.described, **_json(trial)} for trial in trials],
        }

    def _table(self, what: str, scores: dict[str, Score]) -> None:
        table = Table(what, "faults", "caught", "survived", "unclear", "score", box=None)
        for name, found in sorted(scores.items()):
            numbers = (found.counted, found.caught, found.survived, found.unclear)
            table.add_row(name, *map(str, numbers), f"{100 * found.share:.1f} %")
        self.console.print()
        self.console.print(table)

    @contextmanager
    def _shown(self, trials: Generator[Trial[Mutant]], count: int) -> Iterator[Iterator[Trial[Mutant]]]:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        # Without its own thread: the processes that try the faults are forks of this one.
        quiet = not self.console.is_terminal
        with (
            closing(trials),
            Progress(*columns, console=self.console, disable=quiet, transient=True, auto_refresh=False) as bar,
        ):
            task = bar.add_task("faults", total=count)

            def counted() -> Iterator[Trial[Mutant]]:
                bar.refresh()
                for trial in trials:
                    bar.advance(task)
                    bar.refresh()
                    yield trial

            yield counted()


def _finding(trial: Trial[Mutant]) -> str:
    assert trial.finding is not None
    style = _STYLES[trial.finding]
    word = trial.finding if trial.finding is Finding.CAUGHT else trial.finding.upper()
    said = trial.by if trial.finding is Finding.CAUGHT else f"{trial.by} {trial.message}".strip()
    return f"[{style}]{word:9}[/{style}] {escape(said)}"


def _lines(trial: Trial[Mutant]) -> str:
    """What has not been caught, and where it is."""
    fault = trial.fault
    first = "" if fault.listed else f"{_finding(trial)}\n"
    return f"{first}    {escape(f'{fault.subject.name}  {fault.module} {fault.place}')}\n    {escape(fault.change)}"


def _json(trial: Trial[Mutant]) -> dict[str, Any]:
    caught_by = trial.by if trial.finding is Finding.CAUGHT else None
    return {"finding": trial.finding, "caught_by": caught_by, "message": trial.message}
