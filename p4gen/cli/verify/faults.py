"""``p4gen verify faults``: each fault of the conformance suite, and what a search finds that it breaks."""

from __future__ import annotations

import json
from pathlib import Path

import click

from p4gen.cli.options import json_option, report_console, spec_from, spec_options
from p4gen.cli.verb import FiniteRange, verb
from p4gen.errors import Diagnostic, InputError
from p4gen.inputs import shown


@verb(
    examples=[
        ("--mode III", "every listed fault of Mode III: takes an hour"),
        ("--mode II --fault half-the-buffer", "one fault"),
    ]
)
@spec_options
@json_option
@click.option("--fault", "names", multiple=True, metavar="NAME", help="These faults alone.  [all]")
@click.option(
    "--time",
    "seconds",
    type=FiniteRange(0, min_open=True),
    default=30,
    show_default=True,
    help="For one scope, seconds.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    spec_file: Path | None,
    as_json: bool,
    names: tuple[str, ...],
    seconds: float,
    **flags: str | None,
) -> None:
    """Seed each listed fault of the conformance suite, and search small scopes until one shows what it breaks.

    Faults of arithmetic, addresses, validation and counters break nothing that a search knows, nor does what only hosts
    that disagree can show; the suite catches them, and a reason is printed.
    Exit status 1 if another one is not found.
    """
    from p4gen.verify.faults import Hunt, seeding_of  # noqa: PLC0415 - the search needs Numba, which is slow to load

    seeding = seeding_of(spec_from(spec_file, flags))
    known = {fault.name: fault for fault in seeding.mutations}
    if wrong := [name for name in names if name not in known]:
        raise InputError(Diagnostic("--fault", f"there is no fault {shown(wrong[0])}; `p4gen ptf mutate` lists them"))
    console = report_console(quiet=as_json)
    report = []
    hunt = Hunt(seeding, seconds=seconds)
    for fault in (known[name] for name in names) if names else seeding.mutations:
        found = hunt.find(fault)
        if found.problem is not None:
            text = f"{found.name}: {found.problem.property}: {found.problem.text}, {len(found.problem.events)} events"
        else:
            text = f"not for a search: {found.why}" if found.why else "not found"
        text += f"; {found.doubt}" if found.doubt else ""
        console.print(f"{fault.module}: {fault.name}: {text}", highlight=False)
        report.append(
            {
                "fault": fault.name,
                "module": fault.module,
                "found": found.problem is not None,
                "missing": found.missing,
                "text": text,
            }
        )
    count, missing = sum(each["found"] is True for each in report), sum(each["missing"] is True for each in report)
    others = len(report) - count - missing
    console.print(f"{count} of {len(report)} faults found, {missing} not found; {others} are not for a search")
    if as_json:
        click.echo(json.dumps(report))
    ctx.exit(1 if missing else 0)
