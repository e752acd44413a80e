"""The work of ``p4gen verify table``: the searches that a paper reports, each compared with ours."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.table import Table

from p4gen.cli.options import report_console
from p4gen.errors import Diagnostic, InputError
from p4gen.families import families
from p4gen.inputs import parsed, quote
from p4gen.library.verification import small_program
from p4gen.verification.family import PaperTable, Verification
from p4gen.verification.scope import GroupScope
from p4gen.verification.world import Budget
from p4gen.vocabulary import units
from p4gen.vocabulary.topology import load_topology


def do(
    ctx: click.Context, /, numbers: str, as_json: bool, rows: tuple[str, ...], reduction: str, workers: int, memory: str
) -> None:
    """Run the command with these options."""
    from p4gen.verification.search.search import Search  # noqa: PLC0415 - the search needs Numba, which is slow to load
    from p4gen.verification.system import System  # noqa: PLC0415

    most = parsed("memory", units.size, memory)
    console = report_console(quiet=as_json)
    found: list[dict[str, Any]] = []
    status = 0
    for paper in {id(table): table for table in _tables(numbers)}.values():
        topology = load_topology(paper.topology)
        table = Table(
            "", "states", "paper", "transitions", "paper", "levels", "paper", "time", "paper", title=paper.caption,
            caption=paper.about,
        )  # fmt: skip
        for row in paper.rows:
            if rows and row.name not in rows:
                continue
            flags = {name: str(value) for name, value in row.fields.items()}
            scope = GroupScope(
                topology, small_program(topology, flags), (row.collective,), paper.packets, budget=Budget(paper.losses)
            )
            result = Search(System(scope), reduce=reduction == "por", workers=workers, memory=most).run()
            status = max(status, 1 if result.problem else 0 if result.complete else 3)
            table.add_row(
                row.name,
                f"{result.distinct:,}",
                f"{row.states:,}",
                f"{result.transitions:,}",
                f"{row.generated:,}",
                f"{result.depth}",
                f"{row.depth}",
                f"{result.seconds:.1f} s",
                row.time,
            )
            console.print(f"{row.name}: {result.sentence()}", highlight=False)
            found.append({"row": row.name} | result.summary())
        console.print(table)
    if as_json:
        click.echo(json.dumps(found))
    ctx.exit(status)


def _tables(numbers: str) -> list[PaperTable]:
    known = {
        number: table
        for family in families().values()
        if family.answers(Verification)
        for number, table in family.facet(Verification).tables.items()
    }
    found = []
    for text in numbers.split(","):
        if not text.strip().isdecimal() or int(text) not in known:
            there = ", ".join(map(str, sorted(known)))
            raise InputError(Diagnostic("table", f"{quote(text)} is none of the tables with searches: {there}"))
        found.append(known[int(text)])
    return found
