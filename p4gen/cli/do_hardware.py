"""The work of ``p4gen hardware``: what programs take of a real switch, beside the paper's table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from p4gen.cli import resources
from p4gen.cli.options import spec_from
from p4gen.errors import Diagnostic, InputError, Option
from p4gen.families import family_of
from p4gen.families.hardware import Hardware
from p4gen.p4.resources import resources_of
from p4gen.plugins import answers
from p4gen.program.compilation import compile_spec
from p4gen.vocabulary import ProgramSpec


@dataclass(frozen=True)
class _Column:
    """One size: the paper's shares, and the reports on our program of that size."""

    name: str
    slots: int
    paper: dict[str, float]
    reports: resources.Pair


def do(spec_file: Path | None, p4c_output: Path | None, as_json: bool, **flags: str | None) -> None:
    """Run the command with these options."""
    if p4c_output is not None and not p4c_output.is_dir():
        raise InputError(Diagnostic(Option("p4c_output"), f"{p4c_output} is no folder"))
    spec = spec_from(spec_file, flags)
    family = family_of(spec)
    if not answers(family, Hardware):
        raise InputError(f"the paper of the family {family.name} has no table of a switch's resources")
    table = family.facet(Hardware)
    columns = [
        _Column(
            name, slots, {row: shares[i] for row, shares in table.rows.items()},
            _reports(table.sized(spec, slots), p4c_output / str(slots) if p4c_output is not None else None),
        )
        for i, (name, slots) in enumerate(table.sizes.items())
    ]  # fmt: skip
    if as_json:
        click.echo(json.dumps({"paper": table.paper, "table": table.table, "sizes": [_as_dict(c) for c in columns]}))
        return
    for line in _lines(table, columns):
        click.echo(line)


def _reports(spec: ProgramSpec, output: Path | None) -> resources.Pair:
    """The estimate of a spec's program, and p4c's report where there is one."""
    program = compile_spec(spec).program
    if resources_of(program) is None:
        raise InputError(f"the resources of the architecture {spec.arch} are not known: use --arch tna or --arch t2na")
    (pair,) = resources.reports(program, Path(f"{spec.program}.p4"), output if output and output.is_dir() else None)
    return pair


def _lines(table: Hardware[Any], columns: Sequence[_Column]) -> Iterator[str]:
    ours, theirs = columns[0].reports
    by = f"our program on {ours.target} by {ours.source}" + (f", by {theirs.source}" if theirs else "")
    yield f"{table.paper}, Table {table.table}: share of {table.target}, and {by}"
    yield ""
    head = [f"{c.name}, {c.slots:,} slots" for c in columns]
    yield from resources.aligned([("", *head), *(_row(row, columns) for row in table.rows)])
    for column in columns:
        for text in (*column.reports[0].excess, *column.reports[0].doubts):
            yield f"! {column.name}: {text}"
    for report in columns[0].reports:
        if report is not None and report.modules:
            yield ""
            yield f"By module, {columns[0].slots:,} slots, by {report.source}:"
            yield from resources.aligned(resources.by_module(report))


def _row(row: str, columns: Sequence[_Column]) -> tuple[str, ...]:
    cells = []
    for column in columns:
        ours, theirs = column.reports
        cell = f"{column.paper[row]:.2f} | {ours.rows[row].share:.2f}{'!' if ours.excess else ''}"
        found = theirs.rows.get(row) if theirs is not None else None
        cells.append(cell + (f" | {found.share:.2f}" if found is not None else "") + " %")
    return row, *cells


def _as_dict(column: _Column) -> dict[str, Any]:
    (reports,) = resources.as_dict([column.reports])
    return {"size": column.name, "slots": column.slots, "paper": column.paper, **reports}
