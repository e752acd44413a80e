"""An experiment's report as Markdown, and the list of all items of the papers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from p4gen.experiments.experiment import Report, Value
from p4gen.experiments.papers import Extent, Item, Paper


def titled(paper: Paper, item: Item) -> str:
    """The heading of an item: ``EPIC, Table 31: AllReduce with loss on one link``."""
    return f"{paper.short}, {item.title}: {item.caption}"


def text(value: Value) -> str:
    """A value as a cell of a table has it."""
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:,.0f}" if value == int(value) and abs(value) >= 100 else f"{value:,.4g}"


def page(paper: Paper, item: Item, report: Report, command: str) -> str:
    """The report with its assumptions, its checks and its pictures; ``command`` is what was run."""
    return "\n".join(_page(paper, item, report, command)) + "\n"


def _page(paper: Paper, item: Item, report: Report, command: str) -> Iterator[str]:
    yield f"# {titled(paper, item)}\n"
    yield f"Section {item.section}. {item.told}. Written by `{command}`.\n"
    yield from _table(report.columns, [[text(value) for value in row] for row in report.rows])
    if report.checks:
        yield "\n## What must hold\n"
        yield from (f"- {'holds' if check.ok else '**fails**'}: {check.text}" for check in report.checks)
    if report.assumptions:
        yield "\n## Assumptions\n"
        yield from (f"- {line}" for line in report.assumptions)
    pictures = [ending for ending in report.files if ending.endswith(".svg")]
    if pictures:
        yield ""
        yield from (f"![{item.title}]({item.name}{ending})" for ending in pictures)


def index(papers: Mapping[str, Paper]) -> str:
    """All items of the papers, with how far each is repeated, and by what command."""
    lines = [
        "# Tables and figures of the papers",
        "",
        "Written by `p4gen paper --out`. whole, partial: how far an item is repeated; open: it could be, and is not; "
        "hardware: it needs the paper's machines; concept: nothing is measured; beside: a statement of the paper.",
    ]
    for name, paper in papers.items():
        lines += ["", f"## {paper.title}", ""]
        rows = [[item.title, item.caption, item.extent, item.why, _how(name, paper, item)] for item in paper.item]
        lines += _table(["item", "shows", "repeated", "what is missing", "command"], rows)
    return "\n".join(lines) + "\n"


def _how(name: str, paper: Paper, item: Item) -> str:
    command = command_for(name, paper, item)
    return f"`{command}`" if command else ""


def command_for(name: str, paper: Paper, item: Item) -> str:
    """The command that repeats an item of the paper of this name; "" if none does."""
    if (item.by or item.name) in paper.experiments:
        return f"p4gen paper {name} {item.by or item.name}"
    return item.by if item.extent in (Extent.WHOLE, Extent.PARTIAL) else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"

    return [line(head), line(["---"] * len(head)), *map(line, rows)]
