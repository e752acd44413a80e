"""``p4gen sim run --schedule``: events in the order of a file, in place of time and chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console

from p4gen.cli.files import write_text, writing

_BESIDE = ("schedule", "capture", "ladder", "as_json")


def play_schedule(
    ctx: click.Context, schedule: Path, capture: Path | None, ladder: Path | None, console: Console
) -> tuple[bool, dict[str, Any]]:
    """Play a schedule: the NICs, the CommLib and the switches of a simulation, whose clock stands still. Returns
    whether all calls have ended and nothing was wrong, and what a report says."""
    from p4gen.verification.findings.counterexample import draw, play, write_capture  # noqa: PLC0415 - Numba is slow to load

    for parameter in ctx.command.params:
        given = ctx.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and parameter.name not in _BESIDE:
            name = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.human_readable_name
            raise click.UsageError(f"{name} does not go with --schedule, which says what runs", ctx)
    story, _ = play(schedule)
    console.print(story.system.scope.sentence(), highlight=False)
    console.print(story.text(), end="", highlight=False, markup=False)
    if capture is not None:
        with writing(capture):
            write_capture(story, capture)
    if ladder is not None:
        write_text(ladder, draw(story))
    for file in (capture, ladder):
        if file is not None:
            console.print(f"wrote {file}")
    violated = sorted(story.violations())
    for name in violated:
        console.print(f"[red]violated[/red]  {name}", highlight=False)
    if not story.ended:
        console.print("[red]did not end[/red]: calls are incomplete when the schedule ends", highlight=False)
    report = {"events": len(story.moments), "violated": violated, "ended": story.ended}
    return story.ended and not violated, report
