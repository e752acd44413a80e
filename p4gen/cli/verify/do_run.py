"""The work of ``p4gen verify``: every reachable state of switches, hosts and a lossy network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from p4gen.choices import BMV2
from p4gen.cli.files import write_text
from p4gen.cli.options import report_console, spec_fields, spec_values
from p4gen.errors import Diagnostic, InputError, Option
from p4gen.families import load_spec
from p4gen.inputs import parsed
from p4gen.library.search_options import SearchOptions
from p4gen.library.verification import Report, reductions, scope_of, search
from p4gen.verification.search.search import waits_for
from p4gen.verification.system import System
from p4gen.vocabulary import units

if TYPE_CHECKING:
    from p4gen.verification.findings.confirm import Confirmation
    from p4gen.verification.findings.results import Problem, Progress
    from p4gen.verification.search.knowledge import Knowledge
    from p4gen.verification.search.team import Team
    from p4gen.verification.world import Scope


VIOLATED, INCOMPLETE = 1, 3


def do(
    ctx: click.Context, /, topology: str | None, spec_file: Path | None, as_json: bool, out: Path | None, **options: Any
) -> None:
    """Run the command with these options."""
    memory = parsed("memory", units.size, options["memory"])
    reduce, symmetry = parsed("reduction", reductions, options["reduction"])
    flags = spec_values({name: options[name] for name in spec_fields()})
    spec = None if spec_file is None else load_spec(spec_file, flags)
    scope = scope_of(topology, spec, flags, SearchOptions.among(options))
    if options["confirm"] == BMV2:
        architecture = scope.program.architecture
        if BMV2 not in architecture.targets:
            raise InputError(Diagnostic(Option("confirm"), f"{BMV2} does not run programs for {architecture.name}"))
        from p4gen.switch.bmv2 import check_tools  # noqa: PLC0415 - gRPC takes a while to load

        check_tools()
    console = report_console(quiet=as_json)
    console.print(scope.sentence())
    limits: dict[str, Any] = {"memory": memory, "seconds": options["seconds"]}
    if options["export"] is not None:
        ctx.exit(0 if _export(scope, options["export"], out, console, limits) else INCOMPLETE)
    with Live(console=console, transient=True, refresh_per_second=4) as live:

        def show(now: Progress) -> None:
            live.update(Text(now.sentence()))

        live.update(Text(waits_for()))
        report, known = search(
            scope,
            reduce=reduce,
            symmetry=symmetry,
            workers=options["workers"],
            team=_team(options["cluster"]),
            progress=show,
            **limits,
        )
    problem = report.problem
    console.print(report.result.sentence())
    if problem is not None:
        console.print(
            f"violated: {problem.property}: {problem.text}; {len(problem.events)} events lead there", highlight=False
        )
        console.print(report.story, end="", highlight=False, markup=False)
        if out is not None:
            _keep(report, problem, out, console)
    confirmed = True
    if options["confirm"]:
        confirmation = _confirm(known, options["confirm"])
        confirmed = not confirmation.difference
        console.print(f"{options['confirm']}: {confirmation.sentence()}", highlight=False)
    if as_json:
        summary = None if problem is None else problem.summary(System(scope))
        click.echo(json.dumps(report.result.summary() | {"problem": summary}))
    ctx.exit(0 if report.ok and confirmed else VIOLATED if problem is not None or not confirmed else INCOMPLETE)


def _export(scope: Scope, language: str, out: Path | None, console: Console, limits: Mapping[str, Any]) -> bool:
    """Write a model of the scope into a folder. Returns whether all states are known, without which there is none."""
    if out is None:
        raise InputError(Diagnostic(Option("export"), "needs the folder to write to, --out"))
    report, known = search(scope, reduce=False, workers=1, heed=False, **limits)
    result = report.result
    console.print(
        f"{result.distinct:,} states, {result.transitions:,} transitions without reduction, {result.depth} levels",
        highlight=False,
    )
    if not result.complete:
        console.print(result.sentence(), highlight=False)
        return False
    # Few searches write a model.
    from p4gen.verification.findings.promela import promela  # noqa: PLC0415
    from p4gen.verification.findings.tla import tla  # noqa: PLC0415

    for name, text in {"tla": tla, "promela": promela}[language](known).items():
        write_text(out / name, text)
        console.print(f"  {out / name}", highlight=False)
    return True


def _team(cluster: str | None) -> Team | None:
    """The workers of a Dask cluster; None for threads."""
    if cluster is None:
        return None
    from p4gen.verification.search.cluster import Cluster  # noqa: PLC0415 - few searches have one

    return Cluster(cluster)


def _keep(report: Report, problem: Problem, out: Path, console: Console) -> None:
    """Write the counterexample and the scenario into a folder."""
    # Scapy takes a while to load.
    from p4gen.verification.findings.counterexample import save  # noqa: PLC0415
    from p4gen.verification.findings.scenario import write  # noqa: PLC0415

    for path in save(report.replay(), problem, out):
        console.print(f"  {path}", highlight=False)
    scenario = write(report.replay(), problem.text, out)
    console.print(
        f"  {scenario or 'no scenario: no switch does something else than the sound program'}", highlight=False
    )


def _confirm(known: Knowledge, target: str) -> Confirmation:
    """What BMv2 or the interpreter does, compared with the search."""
    from p4gen.verification.findings.confirm import confirm  # noqa: PLC0415 - the search needs Numba, slow to load
    from p4gen.verification.findings.confirm_bmv2 import confirm_on_bmv2  # noqa: PLC0415

    return confirm_on_bmv2(known) if target == BMV2 else confirm(known, "interp")
