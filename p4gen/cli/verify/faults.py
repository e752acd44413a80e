"""``p4gen verify faults``: each fault of the conformance suite, and what a search finds that it breaks."""

from __future__ import annotations

import json
from pathlib import Path

import click

from p4gen.cli.options import json_option, report_console, spec_from, spec_options
from p4gen.cli.verb import verb
from p4gen.errors import Diagnostic, InputError, Option
from p4gen.inputs import quote


@verb(
    examples=[
        ("--mode III", "every listed fault of Mode III: takes an hour"),
        ("--mode II --fault half-the-buffer", "one fault"),
        ("--mode themis --keep themis.jsonl", "may be stopped, and goes on where it was when it is started again"),
    ]
)
@spec_options
@json_option
@click.option("--fault", "names", multiple=True, metavar="NAME", help="These faults alone.  [all]")
@click.option(
    "--states",
    type=click.IntRange(1),
    default=400_000,
    show_default=True,
    help="For one scope: about so many are searched.",
)
@click.option(
    "--keep",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write each verdict to this file, and take those that it has from an earlier run.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    spec_file: Path | None,
    as_json: bool,
    names: tuple[str, ...],
    states: int,
    keep: Path | None,
    **flags: str | None,
) -> None:
    """Seed each listed fault of the conformance suite, and search small scopes until one shows what it breaks.

    Faults of arithmetic, addresses, validation and counters break nothing that a search knows, nor does what only hosts
    that disagree can show; the suite catches them, and a reason is printed.
    Exit status 1 if another one is not found.
    """
    from p4gen.verification.seeding.hunt import Hunt, seeding_of  # noqa: PLC0415 - the search needs Numba, which is slow to load
    from p4gen.verification.seeding.verdicts import Verdict, VerdictFile  # noqa: PLC0415

    seeding = seeding_of(spec_from(spec_file, flags))
    known = {fault.name: fault for fault in seeding.mutations}
    if wrong := [name for name in names if name not in known]:
        raise InputError(
            Diagnostic(Option("fault"), f"there is no fault {quote(wrong[0])}; `p4gen ptf mutate` lists them")
        )
    console = report_console(quiet=as_json)
    report: list[Verdict] = []
    hunt, kept = Hunt(seeding, states=states), None if keep is None else VerdictFile(keep)
    for fault in (known[name] for name in names) if names else seeding.mutations:
        digest = hunt.digest(fault)
        verdict = None if kept is None else kept.get(digest)
        if verdict is None:
            verdict = Verdict.of(hunt.find(fault))
            if kept is not None:
                kept.add(digest, verdict)
        console.print(f"{verdict.module}: {verdict.fault}: {verdict.text}", highlight=False)
        report.append(verdict)
    count, missing = sum(each.found for each in report), sum(each.missing for each in report)
    others = len(report) - sum(each.found or each.missing for each in report)
    console.print(f"{count} of {len(report)} faults found, {missing} not found; {others} are not for a search")
    if as_json:
        click.echo(json.dumps([each.summary() for each in report]))
    ctx.exit(1 if missing else 0)
