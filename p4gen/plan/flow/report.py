"""Results as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from p4gen.plan.flow.simulate import Result


def jobs_csv(results: Mapping[str, Result]) -> str:
    """A line for each job and policy; times in seconds."""
    rows = [
        (policy, o.name, o.gpus, f"{o.submitted:.6f}", f"{o.began:.6f}", f"{o.ended:.6f}", o.calls, o.granted)
        for policy, result in results.items()
        for o in result.outcomes
    ]
    return _csv(("policy", "job", "gpus", "submitted", "began", "ended", "collectives", "by switches"), rows)


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return file.getvalue()
