"""``p4gen verify replay``: a counterexample played again, and its scenario on a switch."""

from __future__ import annotations

from pathlib import Path

import click

from p4gen.choices import TARGETS
from p4gen.cli.options import report_console
from p4gen.cli.verb import verb
from p4gen.errors import Diagnostic, InputError
from p4gen.scratch import scratch
from p4gen.switch import targets


@verb(
    examples=[
        ("build/counterexample/schedule.yaml", "every event, in words"),
        ("build/counterexample/schedule.yaml --target bmv2", "and the scenario, with the wrong and the sound program"),
    ]
)
@click.argument("schedule", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--target",
    type=click.Choice(TARGETS),
    default=None,
    help="Run the scenario beside the schedule on this switch, too.",
)
@click.pass_context
def command(ctx: click.Context, /, schedule: Path, target: str | None) -> None:
    """Play the events of SCHEDULE again, which `p4gen verify --out` has written.

    With --target, the scenario that was written with it runs on a switch, with the wrong program and the sound one.
    Exit status 0 if the schedule violates the same property again and the scenario fails and passes as it should.
    """
    from p4gen.verification.findings.counterexample import play  # noqa: PLC0415 - the search needs Numba, which is slow to load
    from p4gen.verification.findings.scenario import MODULE, switch_in, trial  # noqa: PLC0415

    console = report_console(quiet=False)
    story, violated = play(schedule)
    scope = story.system.scope
    console.print(scope.sentence(), highlight=False)
    console.print(story.text(), end="", highlight=False, markup=False)
    found = story.violations()
    # What is wrong with a state, such as that nothing leads out of it, shows in no single event.
    same = violated in found or not found
    console.print(f"violated: {violated}" if found else f"{violated}: a search tells, not an event", highlight=False)
    if target is not None:
        file = schedule.with_name(f"{MODULE}.py")
        if not file.exists():
            raise InputError(Diagnostic(str(file), "there is no scenario beside the schedule"))
        targets.check(target)
        with scratch() as place:
            wrong, right = trial(scope, switch_in(file), schedule.parent, target, place)
        console.print(
            f"{target}: the scenario {_verdict(wrong)} with this program, {_verdict(right)} with the sound one"
        )
        same = same and not wrong and right
    ctx.exit(0 if same else 1)


def _verdict(passed: bool) -> str:
    return "passes" if passed else "fails"
