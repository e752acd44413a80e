"""The work of ``p4gen ptf list``: the scenarios that apply to a program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from p4gen.cli.options import report_console, spec_from
from p4gen.ptf.scenarios import Scenario, check_names, scenarios


def do(spec_file: Path | None, as_json: bool, tests: tuple[str, ...], **flags: str | None) -> None:
    """Run the command with these options."""
    known = scenarios(spec_from(spec_file, flags))
    check_names(tests, known)
    chosen = [s for s in known if not tests or s.name in tests or s.name.partition(".")[0] in tests]
    _list(chosen, as_json=as_json)


def _list(known: Sequence[Scenario], *, as_json: bool) -> None:
    """Scenarios that apply, then those of the mode that need another program, with the reason."""
    if as_json:
        click.echo(json.dumps({"scenarios": [asdict(scenario) for scenario in known]}))
        return
    console = report_console()
    fitting = [scenario for scenario in known if scenario.unfit is None]
    width = max((len(scenario.name) for scenario in fitting), default=0)
    for scenario in fitting:
        console.print(f"{scenario.name:{width}}  {scenario.about}".rstrip(), markup=False)
    others = [scenario for scenario in known if scenario.unfit is not None and not scenario.of_another_mode]
    if others:
        console.print(f"\n{len(fitting)} apply; {len(others)} of this mode need another program:", markup=False)
    for scenario in others:
        console.print(f"{scenario.name}: {scenario.unfit}", markup=False)
