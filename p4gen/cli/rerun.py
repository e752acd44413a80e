"""``p4gen rerun``: repeat a run from its folder."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from p4gen import runs
from p4gen.cli.app import VERBS, cli
from p4gen.cli.options import out_option
from p4gen.cli.verb import verb


@verb(
    examples=[
        ("build/runs/20260101-120000-ptf-modeii_sum_int32_x64-embedded", "repeat that run"),
    ]
)
@click.argument("folder", metavar="FOLDER", type=click.Path(exists=True, file_okay=False, path_type=Path))
@out_option
def command(folder: Path, out: Path) -> None:
    """Repeat the run whose folder is FOLDER (build/runs/...): the same program, seed and target, in a new folder."""
    record = runs.read_record(folder)
    if record.verb not in VERBS:
        raise click.UsageError(f"{folder}: a run of {record.verb}, which this p4gen does not have")
    now = {name: version for name, version in _versions(record.target).items() if name in record.versions}
    for name, version in now.items():
        if version != record.versions[name]:
            click.echo(f"{name} was {record.versions[name]} and is now {version}", err=True)
    arguments = [*record.arguments, "--out", str(out)]
    click.echo(f"p4gen {' '.join(arguments)}", err=True)
    sys.exit(cli.main(arguments, standalone_mode=False) or 0)


def _versions(target: str) -> dict[str, str]:
    from p4gen.switch import targets  # noqa: PLC0415 - only here are switches asked for their versions

    return targets.versions(targets.BMV2 if targets.BMV2 in target else targets.EMBEDDED)
