"""``p4gen verify``: every reachable state of switches, hosts and a lossy network."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.live import Live
from rich.text import Text

from p4gen.cli.fields import field_options
from p4gen.cli.files import write_text
from p4gen.cli.options import json_option, report_console, spec_fields, spec_options, spec_values
from p4gen.cli.values import TOPOLOGY
from p4gen.cli.verb import FiniteRange, verb
from p4gen.errors import Diagnostic, InputError, Option
from p4gen.families import load_spec
from p4gen.inputs import parsed
from p4gen.library.verification import SearchOptions, reductions, scope_of, search
from p4gen.switch.targets import BMV2, check
from p4gen.vocabulary import units

if TYPE_CHECKING:
    from p4gen.verification.findings.results import Progress

F = TypeVar("F", bound=Callable[..., Any])
VIOLATED, INCOMPLETE = 1, 3


def _search_options(function: F) -> F:
    for option in reversed(field_options(SearchOptions, *SearchOptions.model_fields).values()):
        function = option(function)
    return function


@verb(
    examples=[
        ("--mode III", "AllReduce on tree-3-2, three packets from each rank, at most one loss"),
        ("--mode II --collective reduce --loss 2", "Mode II, two losses"),
        ("--mode themis --packets 5 --loss 0", "packets sprayed over two paths: none is sent again"),
        ("star-2 --mode III --variant psn-recycling --flow acks --window 1 --packets 4", "a design that is wrong"),
    ]
)
@click.argument("topology", type=TOPOLOGY, required=False)
@spec_options
@json_option
@_search_options
@click.option(
    "--reduction",
    default="por",
    show_default=True,
    metavar="por|symmetry|por,symmetry|none",
    help="Leave out orders of independent events, states that differ by an exchange of equal parts, both, or nothing.",
)
@click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Threads.")
@click.option(
    "--cluster",
    metavar="ADDRESS|local:N",
    help="Instead of threads, the workers of a Dask cluster, by its scheduler's address, or N processes.",
)
@click.option("--memory", default="4G", show_default=True, metavar="BYTES", help="For the set of states.")
@click.option(
    "--time", "seconds", type=FiniteRange(0, min_open=True), default=None, metavar="SECONDS", help="Time limit."
)
@click.option(
    "--confirm",
    type=click.Choice(["interp", "bmv2"]),
    default=None,
    help="Repeat each step of the switches on the interpreter or BMv2, too.",
)
@click.option(
    "--promela",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a model of the scope for Spin, and search nothing.",
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for a counterexample.")
@click.pass_context
def command(
    ctx: click.Context, /, topology: str | None, spec_file: Path | None, as_json: bool, out: Path | None, **options: Any
) -> None:
    """Check every reachable state of a collective.

    Each switch runs the generated program, hosts are the NICs and CommLib of `p4gen sim`, links lose, duplicate,
    reorder and corrupt within a budget, and timers expire in any order.

    TOPOLOGY is as for `p4gen sim`; by default tree-3-2, or clos:2x2x1 for programs that serve connections, over which
    the first host sends a message to another leaf. Without other flags the program is small, such as 8 lanes, window 3,
    messages of one packet.
    Exit status 0 when all states are known and nothing is wrong, 1 when something is (the shortest way there is
    printed), 3 when the search did not finish.
    """
    # Most of this takes a while to load.
    from p4gen.verification.findings.confirm import confirm  # noqa: PLC0415
    from p4gen.verification.findings.confirm_bmv2 import confirm_on_bmv2  # noqa: PLC0415
    from p4gen.verification.findings.counterexample import save  # noqa: PLC0415
    from p4gen.verification.findings.promela import promela  # noqa: PLC0415
    from p4gen.verification.findings.scenario import write  # noqa: PLC0415
    from p4gen.verification.search.cluster import Cluster  # noqa: PLC0415
    from p4gen.verification.system import System  # noqa: PLC0415

    memory = parsed("memory", units.size, options["memory"])
    reduce, symmetry = parsed("reduction", reductions, options["reduction"])
    flags = spec_values({name: options[name] for name in spec_fields()})
    spec = None if spec_file is None else load_spec(spec_file, flags)
    scope = scope_of(topology, spec, flags, SearchOptions.among(options))
    if options["confirm"] == BMV2:
        architecture = scope.program.architecture
        if BMV2 not in architecture.targets:
            raise InputError(Diagnostic(Option("confirm"), f"{BMV2} does not run programs for {architecture.name}"))
        check(BMV2)
    console = report_console(quiet=as_json)
    console.print(scope.sentence())
    limits: dict[str, Any] = {"memory": memory, "seconds": options["seconds"]}
    if options["promela"] is not None:
        report, known = search(scope, reduce=False, workers=1, heed=False, **limits)
        result = report.result
        console.print(
            f"{result.distinct:,} states, {result.transitions:,} transitions without reduction", highlight=False
        )
        if result.complete:
            write_text(options["promela"], promela(known))
        ctx.exit(0 if result.complete else INCOMPLETE)
    team = Cluster(options["cluster"]) if options["cluster"] else None
    with Live(console=console, transient=True, refresh_per_second=4) as live:

        def show(now: Progress) -> None:
            live.update(Text(now.sentence()))

        report, known = search(
            scope, reduce=reduce, symmetry=symmetry, workers=options["workers"], team=team, progress=show, **limits
        )
    problem = report.problem
    console.print(report.result.sentence())
    if problem is not None:
        console.print(
            f"violated: {problem.property}: {problem.text}; {len(problem.events)} events lead there", highlight=False
        )
        console.print(report.story, end="", highlight=False, markup=False)
        if out is not None:
            for path in save(report.replay(), problem, out):
                console.print(f"  {path}", highlight=False)
            scenario = write(report.replay(), problem.text, out)
            console.print(
                f"  {scenario or 'no scenario: no switch does something else than the sound program'}", highlight=False
            )
    confirmed = True
    if options["confirm"]:
        confirmation = confirm_on_bmv2(known) if options["confirm"] == BMV2 else confirm(known, options["confirm"])
        confirmed = not confirmation.difference
        console.print(f"{options['confirm']}: {confirmation.sentence()}", highlight=False)
    if as_json:
        summary = None if problem is None else problem.summary(System(scope))
        click.echo(json.dumps(report.result.summary() | {"problem": summary}))
    ctx.exit(0 if report.ok and confirmed else VIOLATED if problem is not None or not confirmed else INCOMPLETE)
