"""The work of ``p4gen difftest``: random traffic through the embedded switch and BMv2, compared byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from p4gen import runs
from p4gen.cli.across import AcrossVerb
from p4gen.cli.defaults import FAULT_PACKETS, PACKETS
from p4gen.cli.differences import tell_difference
from p4gen.cli.ending import terminable
from p4gen.cli.options import (
    arguments_of,
    report_console,
    spec_from,
    this_command,
)
from p4gen.difftest.compare import Tally
from p4gen.difftest.family import traffic_of
from p4gen.difftest.run import SIDES, Fault, Job, Result
from p4gen.inputs import drawn
from p4gen.model import EngineName
from p4gen.program import compose, render
from p4gen.ptf.family import conformance_of
from p4gen.scratch import scratch
from p4gen.switch import targets
from p4gen.vocabulary import ProgramSpec


def do(
    ctx: click.Context,
    /,
    spec_file: Path | None,
    out: Path,
    as_json: bool,
    engine: EngineName,
    against: str | None,
    packets: int | None,
    seed: int | None,
    fault: str | None,
    all_faults: bool,
    **flags: str | None,
) -> None:
    """Run the command with these options."""
    if fault is not None and all_faults:
        raise click.UsageError("--fault and --faults exclude each other")
    spec = spec_from(spec_file, flags)
    traffic_of(spec)
    if against is not None:
        ctx.exit(_across(spec, against, out, as_json, engine, packets, seed, fault, all_faults))
    chosen = _fault(fault, spec) if fault is not None else None
    for target in targets.EMBEDDED, targets.BMV2:
        targets.check_runs(target, spec.architecture)
    targets.check(targets.BMV2)
    seed = drawn(seed)
    count = packets or (FAULT_PACKETS if chosen or all_faults else PACKETS)
    console = report_console(quiet=as_json)
    versions = targets.versions(targets.BMV2)
    console.print(f"seed {seed}; embedded ({engine}) and bmv2: " + ", ".join(f"{k} {v}" for k, v in versions.items()))
    verb = _Verb(spec, out, seed, count, engine, console, versions)
    with terminable():
        passed, report = verb.every_fault() if all_faults else verb.once(chosen)
    if as_json:
        click.echo(json.dumps({"seed": seed, "passed": passed, "versions": versions} | report))
    ctx.exit(0 if passed else 1)


def _across(
    spec: ProgramSpec,
    against: str,
    out: Path,
    as_json: bool,
    engine: EngineName,
    packets: int | None,
    seed: int | None,
    fault: str | None,
    all_faults: bool,
) -> int:
    if all_faults:
        raise click.UsageError("--faults is for BMv2; with --against there is --fault")
    seed = drawn(seed)
    console = report_console(quiet=as_json)
    verb = AcrossVerb(spec, against, out, seed, packets or FAULT_PACKETS, engine, console)
    verb.check()
    chosen = verb.mutation(fault)
    console.print(f"seed {seed}; {spec.arch} against {against}, embedded ({engine})")
    with terminable():
        passed, report = verb.run(chosen)
    if as_json:
        click.echo(json.dumps({"seed": seed, "passed": passed} | report))
    return 0 if passed else 1


def _fault(text: str, spec: ProgramSpec) -> Fault:
    mutations = {mutation.name: mutation for mutation in conformance_of(spec).seeding(spec).mutations}
    name, _, side = text.partition("@")
    if side not in SIDES:
        raise click.UsageError(f"--fault {text}: must be NAME@SIDE, with SIDE one of {', '.join(SIDES)}")
    if name not in mutations:
        raise click.UsageError(
            f"--fault {text}: no fault {name} exists for {spec.program}; it has {', '.join(mutations)}"
        )
    return Fault(mutations[name], side)


@dataclass(frozen=True)
class _Verb:
    spec: ProgramSpec
    out: Path
    seed: int
    packets: int
    engine: EngineName
    console: Console
    versions: dict[str, str]

    def once(self, fault: Fault | None) -> tuple[bool, dict[str, Any]]:
        """One comparison, with its folder. It passes when there is no difference, or the seeded one is found."""
        name = self.spec.program
        folder = runs.new_folder(self.out, "difftest", name, "embedded-bmv2")
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console, disable=not self.console.is_terminal, transient=True) as bar:
            task = bar.add_task("packets", total=self.packets)
            result = self._run(folder, fault, lambda tally: bar.update(task, completed=tally.packets))
        passed = (result.difference is None) != (fault is not None)
        arguments = ["difftest", *arguments_of(self.spec), "--seed", str(self.seed)]
        arguments += ["--packets", str(self.packets), "--engine", self.engine]
        arguments += ["--fault", str(fault)] if fault else []
        record = runs.RunRecord("difftest", name, "embedded-bmv2", tuple(arguments), self.seed, passed, self.versions)
        problem = result.difference.what if result.difference and not fault else ""
        case = runs.Case(name, f"difftest.seed_{self.seed}", result.seconds, problem)
        report = _report(result)
        runs.write_record(folder, record, [case], report)
        self._tell(result, fault, folder)
        return passed, report | {"folder": str(folder)}

    def every_fault(self) -> tuple[bool, dict[str, Any]]:
        """Every fault of the mode, each in a small program that contains it, on either side: each must be found."""
        found: list[dict[str, Any]] = []
        seeding = conformance_of(self.spec).seeding(self.spec)
        for mutation in seeding.mutations:
            small = replace(self, spec=type(self.spec).model_validate(seeding.programs[mutation.program]))
            for side in SIDES:
                fault = Fault(mutation, side)
                with scratch() as folder:
                    result = small._run(folder, fault, None, reduce=False)
                what = result.difference.what if result.difference else None
                after = result.found_after if result.difference else None
                found.append({"fault": mutation.name, "side": side, "found_after": after, "difference": what})
                told = f"[green]found[/green] after {after:5} packets: {what}" if what else "[red]NOT FOUND[/red]"
                self.console.print(f"{mutation.name:26} {side:9} {told}")
        missed = [f for f in found if f["difference"] is None]
        self.console.print(
            f"\n{len(found) - len(missed)} of {len(found)} seeded faults found within {self.packets} packets"
        )
        return not missed, {"faults": found}

    def _run(
        self, folder: Path, fault: Fault | None, progress: Callable[[Tally], None] | None, *, reduce: bool = True
    ) -> Result:
        text = render(compose(self.spec)).text
        with scratch() as place:
            job = Job(self.spec, text, self.seed, self.packets, folder, place, self.engine, fault, reduce, progress)
            result = job.run()
            for side in SIDES:
                runs.keep(place / side, folder / side)
        return result

    def _tell(self, result: Result, fault: Fault | None, folder: Path) -> None:
        tally, say = result.tally, self.console.print
        if not result.registers:
            say("[yellow]registers were not compared: this BMv2 has no Thrift server[/yellow]")
        say(
            f"{tally.packets} packets in, {tally.outputs} out, {tally.requests} requests "
            f"({tally.refused} refused by both), state compared {tally.states} times; {result.seconds:.1f} s"
        )
        tell_difference(self.console, result, "no difference", seeded=fault is not None)
        say(f"\n{folder}: programs, logs, requests\n  {this_command()} rerun {folder}")


def _report(result: Result) -> dict[str, Any]:
    return {
        "tally": asdict(result.tally),
        "seconds": round(result.seconds, 3),
        "registers_compared": result.registers,
        "difference": asdict(result.difference) if result.difference else None,
        "found_after": result.found_after or None,
        "reduced": [str(event) for event in result.reduced],
        "files": [str(file) for file in result.files],
    }
