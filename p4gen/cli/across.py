"""``p4gen difftest --against``: the programs of one spec for two architectures, compared frame by frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from p4gen import runs
from p4gen.arch import architectures
from p4gen.cli.differences import tell_difference
from p4gen.cli.options import arguments_of, this_command
from p4gen.difftest.across import Tally
from p4gen.difftest.across_run import Job, Result, reference_of
from p4gen.difftest.family import traffic_of
from p4gen.model import EngineName
from p4gen.ptf.family import conformance_of
from p4gen.ptf.mutations import Mutation
from p4gen.vocabulary import ProgramSpec


@dataclass(frozen=True)
class AcrossVerb:
    """The program of ``spec`` against that of the same spec for the architecture ``against``."""

    spec: ProgramSpec
    against: str
    out: Path
    seed: int
    packets: int
    engine: EngineName
    console: Console

    def check(self) -> None:
        """Raises ``InputError`` or ``UsageError`` where there is nothing to compare."""
        generated = [name for name, arch in architectures().items() if arch.generates and name != self.spec.arch]
        if self.against not in generated:
            raise click.UsageError(f"--against {self.against}: must be one of {', '.join(generated)}")
        traffic_of(self.spec)
        reference_of(self.spec, self.against)

    def mutation(self, text: str | None) -> tuple[Mutation, str] | None:
        """The fault that ``--fault`` names, and the architecture of the program that it is for."""
        if text is None:
            return None
        name, _, side = text.partition("@")
        sides = {self.spec.arch: self.spec, self.against: reference_of(self.spec, self.against)}
        if side not in sides:
            raise click.UsageError(f"--fault {text}: must be NAME@ARCH, with ARCH one of {', '.join(sides)}")
        spec = sides[side]
        mutations = {mutation.name: mutation for mutation in conformance_of(spec).seeding(spec).mutations}
        if name not in mutations:
            raise click.UsageError(f"--fault {text}: no fault {name} exists for {spec.program}")
        return mutations[name], side

    def run(self, fault: tuple[Mutation, str] | None) -> tuple[bool, dict[str, Any]]:
        """One comparison, with its folder. It passes when there is no difference, or the seeded one is found."""
        name, pair = self.spec.program, f"{self.against}-{self.spec.arch}"
        folder = runs.new_folder(self.out, "difftest", name, pair)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console, disable=not self.console.is_terminal, transient=True) as bar:
            task = bar.add_task("packets", total=self.packets)
            result = self._result(folder, fault, lambda tally: bar.update(task, completed=tally.packets))
        passed = (result.difference is None) != (fault is not None)
        arguments = ["difftest", *arguments_of(self.spec), "--against", self.against, "--seed", str(self.seed)]
        arguments += ["--packets", str(self.packets), "--engine", self.engine]
        arguments += ["--fault", f"{fault[0].name}@{fault[1]}"] if fault else []
        record = runs.RunRecord("difftest", name, pair, tuple(arguments), self.seed, passed, {})
        problem = result.difference.what if result.difference and not fault else ""
        report = _report(result)
        runs.write_record(
            folder, record, [runs.Case(name, f"difftest.seed_{self.seed}", result.seconds, problem)], report
        )
        self._tell(result, fault is not None, folder)
        return passed, report | {"folder": str(folder)}

    def _result(self, folder: Path, fault: tuple[Mutation, str] | None, progress: Callable[[Tally], None]) -> Result:
        reference = reference_of(self.spec, self.against)
        mutation, side = fault or (None, "")
        job = Job(reference, self.spec, self.seed, self.packets, folder, self.engine, mutation, side, progress)
        return job.run()

    def _tell(self, result: Result, seeded: bool, folder: Path) -> None:
        tally, say = result.tally, self.console.print
        say(
            f"{tally.packets} packets in, {tally.outputs} out, {tally.dropped} that neither let pass, "
            f"{tally.changes} changes of the configuration; {result.seconds:.1f} s"
        )
        for name, reason in result.capabilities.items():
            say(f"  {tally.exceptions[name]:6} without [bold]{name}[/bold]: {reason}")
        tell_difference(self.console, result, "no other difference", seeded=seeded)
        say(f"\n{folder}: programs\n  {this_command()} rerun {folder}")


def _report(result: Result) -> dict[str, Any]:
    return {
        "tally": asdict(result.tally) | {"exceptions": dict(result.tally.exceptions)},
        "seconds": round(result.seconds, 3),
        "capabilities": result.capabilities,
        "difference": asdict(result.difference) if result.difference else None,
        "found_after": result.found_after or None,
        "reduced": [str(step) for step in result.reduced],
        "files": [str(file) for file in result.files],
    }
