"""What ``p4gen check --resources`` shows of a program's resources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from p4gen.errors import Diagnostic, InputError
from p4gen.p4 import ir
from p4gen.p4.resources import Amount, Report, resources_of

Pair = tuple[Report, Report | None]
"""The estimate of a pipe, and the compiler's report on it."""


def reports(program: ir.Program, file: Path, output: Path | None) -> tuple[Pair, ...]:
    """The estimates of a program's pipes, with the compiler's reports from its output folder.

    Raises ``InputError`` if p4gen knows no resources of the program's architecture, or no report for a pipe is there.
    """
    known = resources_of(program)
    if known is None:
        arch = program.arch or program.package or "of a program without main"
        raise InputError(Diagnostic(str(file), f"--resources: the resources of the architecture {arch} are not known"))
    estimates = known.estimate(program)
    if output is None:
        return tuple((report, None) for report in estimates)
    theirs = {report.pipe: report for report in known.compiled(program, output)}
    if len(estimates) == 1 and len(theirs) == 1:
        return tuple(zip(estimates, theirs.values(), strict=True))
    missing = [report.pipe for report in estimates if report.pipe not in theirs]
    if missing:
        raise InputError(Diagnostic(str(output), f"no report on {', '.join(missing)}"))
    return tuple((report, theirs[report.pipe]) for report in estimates)


def findings(pairs: Sequence[Pair], file: Path) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Errors for what cannot fit, warnings for what does not fit by the estimate."""
    errors = [Diagnostic(str(file), text) for report, _ in pairs for text in report.excess]
    warnings = [Diagnostic(str(file), text, "warning") for report, _ in pairs for text in report.doubts]
    return errors, warnings


def lines(pairs: Sequence[Pair]) -> Iterator[str]:
    """Tables: the rows in all, then by module."""
    for ours, theirs in pairs:
        yield ""
        yield f"{ours.pipe} on {ours.target}, by {ours.source}{f', beside {theirs.source}' if theirs else ''}:"
        table = [("", "used", "of", "share", *(("compiler", "share") if theirs else ()))]
        for row, amount in ours.rows.items():
            other = _cells(theirs.rows.get(row)) if theirs else ()
            table.append((row, f"{amount.used:,}", f"{amount.available:,}", f"{amount.share:.2f} %", *other))
        yield from aligned(table)
        for report in (ours, *((theirs,) if theirs and theirs.modules else ())):
            yield ""
            yield f"By module, by {report.source}:"
            yield from aligned(by_module(report))


def _cells(amount: Amount | None) -> tuple[str, str]:
    return (f"{amount.used:,}", f"{amount.share:.2f} %") if amount is not None else ("-", "-")


def by_module(report: Report) -> list[tuple[str, ...]]:
    """A report's modules, a row each under a heading."""
    order = [*report.rows, "last stage"]
    taken = {row for found in report.modules.values() for row in found}
    columns = [row for row in order if row in taken]
    rows = [
        (module or "(program)", *(str(found[c]) if c in found else "" for c in columns))
        for module, found in report.modules.items()
    ]
    return [("", *columns), *rows]


def aligned(table: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """A table as lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for name, *cells in table:
        shown = [name.ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells, widths[1:], strict=True))]
        yield "  ".join(shown).rstrip()


def as_dict(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Pairs as plain data for ``--json``; ``compiler`` is None without a report."""
    return [{"estimate": ours.plain, "compiler": theirs.plain if theirs else None} for ours, theirs in pairs]
