"""The work of ``p4gen ptf mutate``: faults seeded into programs; each must be caught."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from p4gen.cli.ending import terminable
from p4gen.cli.options import report_console, spec_from
from p4gen.families import collective
from p4gen.inputs import drawn
from p4gen.model import EngineName
from p4gen.program import compose, render
from p4gen.ptf.equivalents import equivalents_in
from p4gen.ptf.family import conformance_of
from p4gen.ptf.judge import Finding, Trial
from p4gen.ptf.mutants import Sound, run_mutants
from p4gen.ptf.operators import PIPELINES, RELIABILITIES, Fault, faults_of, run_operators, sample, subjects
from p4gen.ptf.scores import Score, score
from p4gen.vocabulary import ProgramSpec, Reliability

_STYLES = {Finding.CAUGHT: "green", Finding.SURVIVED: "red", Finding.UNCLEAR: "yellow", Finding.INVALID: "dim"}


T = TypeVar("T")


def do(
    ctx: click.Context,
    /,
    spec_file: Path | None,
    as_json: bool,
    engine: EngineName,
    seed: int | None,
    operators: bool,
    faults: int | None,
    at_least: float,
    **flags: str | None,
) -> None:
    """Run the command with these options."""
    spec = spec_from(spec_file, flags)
    seed = drawn(seed)
    with terminable():
        trials = Mutate(spec, faults, seed, engine, report_console(quiet=as_json))
        if operators:
            # The values given explicitly; otherwise all programs.
            passed, report = trials.operators(
                collective(spec).loss_recovery if spec.takes_part and flags.get("reliability") else None,
                spec.pipelines if flags.get("pipelines") else None,
                at_least,
            )
        else:
            passed, report = trials.listed()
    if as_json:
        click.echo(json.dumps({"seed": seed, "passed": passed} | report))
    ctx.exit(0 if passed else 1)


@dataclass(frozen=True)
class Mutate:
    """Faults in small programs like a spec's; ``faults`` of them, drawn by ``seed``, or all."""

    spec: ProgramSpec
    faults: int | None
    seed: int
    engine: EngineName
    console: Console
    """Silent with --json."""

    def listed(self) -> tuple[bool, dict[str, Any]]:
        """The faults of the family's list."""
        seeding = conformance_of(self.spec).seeding(self.spec)
        if self.faults is not None:
            seeding = seeding.sample(self.faults, self.seed)
        specs = {
            name: type(self.spec).model_validate({**fields, "arch": self.spec.arch})
            for name, fields in seeding.programs.items()
        }
        programs = {name: Sound(spec, render(compose(spec)).text) for name, spec in specs.items()}
        count = len(seeding.mutations)
        self.console.print(f"seed {self.seed}; {_count(count, 'fault')} in {_count(len(programs), 'program')}")
        trials: list[Trial[Any]] = []
        started = time.monotonic()
        with self._shown(run_mutants(seeding, programs, seed=self.seed, engine=self.engine), count) as shown:
            for trial in shown:
                trials.append(trial)
                where = f"{trial.fault.module:16} {trial.fault.name:26}"
                self.console.print(f"{where} {_finding(trial)}", highlight=False)
        for name, reason in seeding.left_out.items() if self.faults is None else ():
            self.console.print(f"no form   {name}: {reason}", highlight=False)
        caught = [trial for trial in trials if trial.finding is Finding.CAUGHT]
        unclear = [trial for trial in trials if trial.finding is Finding.UNCLEAR]
        self.console.print(
            f"\n{len(caught)} of {_count(count, 'fault')} caught, "
            f"{count - len(caught) - len(unclear)} survived, {len(unclear)} unclear, "
            f"{time.monotonic() - started:.0f} s"
        )
        report = [asdict(trial.fault) | _json(trial) for trial in trials]
        return len(caught) == count, {"mutations": report, "left_out": dict(seeding.left_out)}

    def operators(
        self, reliability: Reliability | None, pipelines: int | None, at_least: float
    ) -> tuple[bool, dict[str, Any]]:
        """Faults made by operators on the typed IR, in programs of one reliability or pipeline count, or of all."""
        programs = subjects(
            self.spec,
            RELIABILITIES if reliability is None else (reliability,),
            PIPELINES if pipelines is None else (pipelines,),
        )
        listed = conformance_of(self.spec).equivalents
        faults = faults_of(programs, equivalents_in(listed))
        justified = sum(fault.reason is not None for fault in faults)
        drawn = sample(faults, self.faults or len(faults), self.seed)
        self.console.print(
            f"seed {self.seed}; {len(drawn)} of {len(faults) - justified} faults in {len(programs)} programs, "
            f"{justified} more are equivalent"
        )
        trials: list[Trial[Fault]] = []
        started = time.monotonic()
        with self._shown(run_operators(drawn, seed=self.seed, engine=self.engine), len(drawn)) as shown:
            for trial in shown:
                trials.append(trial)
                if trial.finding is not Finding.CAUGHT:
                    self.console.print(_lines(trial), highlight=False, soft_wrap=True)
        by_module = score((trial.fault.mutant.module, trial.finding) for trial in trials)
        by_program = score((trial.fault.subject.name, trial.finding) for trial in trials)
        self._table("module", by_module)
        self._table("program", by_program)
        total = score(("all", trial.finding) for trial in trials).get("all", Score())
        self.console.print(f"\n{total}, {time.monotonic() - started:.0f} s; repeat with --seed {self.seed}")
        return total.reaches(at_least), {
            "score": total.share,
            "modules": {name: asdict(found) for name, found in by_module.items()},
            "programs": {name: asdict(found) for name, found in by_program.items()},
            "equivalent": justified,
            "mutations": [_fault_json(trial) for trial in trials],
        }

    def _table(self, what: str, scores: dict[str, Score]) -> None:
        table = Table(what, "faults", "caught", "survived", "unclear", "score", box=None)
        for name, found in sorted(scores.items()):
            numbers = (found.counted, found.caught, found.survived, found.unclear)
            table.add_row(name, *map(str, numbers), f"{100 * found.share:.1f} %")
        self.console.print()
        self.console.print(table)

    @contextmanager
    def _shown(self, trials: Generator[Trial[T]], count: int) -> Iterator[Iterator[Trial[T]]]:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        # Without its own thread: the processes that try the faults are forks of this one.
        quiet = not self.console.is_terminal
        with (
            closing(trials),
            Progress(*columns, console=self.console, disable=quiet, transient=True, auto_refresh=False) as bar,
        ):
            task = bar.add_task("faults", total=count)

            def counted() -> Iterator[Trial[T]]:
                bar.refresh()
                for trial in trials:
                    bar.advance(task)
                    bar.refresh()
                    yield trial

            yield counted()


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _finding(trial: Trial[Any]) -> str:
    assert trial.finding is not None
    style = _STYLES[trial.finding]
    word = trial.finding if trial.finding is Finding.CAUGHT else trial.finding.upper()
    said = trial.by if trial.finding is Finding.CAUGHT else f"{trial.by} {trial.message}".strip()
    return f"[{style}]{word:9}[/{style}] {said}"


def _lines(trial: Trial[Fault]) -> str:
    subject, mutant = trial.fault.subject, trial.fault.mutant
    place = f"{subject.name}  {mutant.module} {mutant.where}  {mutant.pos.file}:{mutant.pos.line}"
    return f"{_finding(trial)}\n    {place} ({subject.template(mutant)})\n    {_change(trial)}".replace("[(", r"\[(")


def _change(trial: Trial[Fault]) -> str:
    mutant = trial.fault.mutant
    which = f" ({mutant.number})" if mutant.number > 1 else ""
    return f"{mutant.operator}{which}: {mutant.before}  →  {mutant.after}".replace("[", r"\[")


def _json(trial: Trial[Any]) -> dict[str, Any]:
    caught_by = trial.by if trial.finding is Finding.CAUGHT else None
    return {"finding": trial.finding, "caught_by": caught_by, "message": trial.message}


def _fault_json(trial: Trial[Fault]) -> dict[str, Any]:
    subject, mutant = trial.fault.subject, trial.fault.mutant
    return {
        "program": subject.name,
        "module": mutant.module,
        "where": mutant.where,
        "operator": mutant.operator,
        "before": mutant.before,
        "after": mutant.after,
        "number": mutant.number,
        "p4": f"{mutant.pos.file}:{mutant.pos.line}",
        "template": subject.template(mutant),
    } | _json(trial)
