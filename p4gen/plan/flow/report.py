"""Results as CSV, and distributions as plots."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from p4gen.plan.flow.simulate import Result
from p4gen.plan.flow.tables import Report


def jobs_csv(results: Mapping[str, Result]) -> str:
    """A line for each job and policy; times in seconds."""
    rows = [
        (policy, o.name, o.gpus, f"{o.submitted:.6f}", f"{o.began:.6f}", f"{o.ended:.6f}", o.calls, o.granted)
        for policy, result in results.items()
        for o in result.outcomes
    ]
    return _csv(("policy", "job", "gpus", "submitted", "began", "ended", "collectives", "by switches"), rows)


def table_csv(report: Report) -> str:
    """A line for each cell of a table."""
    rows = [(report.number, c.row, c.column, f"{c.ours:.6g}", c.paper, int(c.ok), c.note) for c in report.cells]
    return _csv(("table", "row", "column", "ours", "paper", "holds", "note"), rows)


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return file.getvalue()


def plot_cdf(series: Mapping[str, Sequence[float]], title: str, path: Path) -> None:
    """Draw the distribution of each series of completion times (seconds), as SVG or PNG by the suffix of ``path``."""
    import matplotlib as mpl  # noqa: PLC0415 - takes a second to load, and only plots need it
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.hashsalt": "p4gen"}):
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.add_subplot()
        for name, times in series.items():
            ordered = sorted(times)
            axes.step(ordered, [(i + 1) / len(ordered) for i in range(len(ordered))], where="post", label=name)
        axes.set_xlabel("job completion time, s")
        axes.set_ylabel("share of jobs")
        axes.set_ylim(0, 1)
        axes.grid(alpha=0.3)
        axes.legend()
        axes.set_title(title)
        figure.savefig(path)
