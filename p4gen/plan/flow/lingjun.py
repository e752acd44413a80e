"""Jobs of Alibaba's Lingjun data set (alibaba-lingjun-dataset-2023), from which EPIC's Trace2 has its sizes (§L.2).

The data set is two weeks of a cluster in August 2023. ``job.csv`` has a line for each job, ``worker.csv`` one for each
of its workers; the column RES is JSON with the worker's resources. The meaning of the columns is taken from other
users' code.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from p4gen.errors import Diagnostic, InputError
from p4gen.inputs import quote, read_text

_GPU: Final = "nvidia.com/gpu"
_LARGEST: Final = 1 << 30
"""Bytes of a file."""
_TIMES: Final = ("%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M")


@dataclass(frozen=True)
class Recorded:
    """A job that ran to its end, as it was recorded."""

    name: str
    gpus: int
    submitted: float
    """Seconds after the first of all jobs."""
    seconds: float
    """Seconds from its start to its end."""


def recorded(folder: Path) -> list[Recorded]:
    """The jobs with GPUs that ran and ended, in the order in which they were submitted.

    Raises ``InputError`` for files that are missing, lack columns, or have a line with no time or no JSON where there
    should be some.
    """
    gpus = _gpus(folder / "worker.csv")
    found: list[tuple[datetime, datetime, datetime, str]] = []
    names = ("gmt_job_submitted", "gmt_job_running", "gmt_job_finished")
    for row, place in _rows(folder / "job.csv", ("job_name", *names)):
        if gpus[row["job_name"]] and all(row[name] for name in names):
            submitted, began, ended = (_time(row[name], place) for name in names)
            found.append((submitted, began, ended, row["job_name"]))
    first = min((each[0] for each in found), default=datetime.min)
    return [
        Recorded(name, gpus[name], (submitted - first).total_seconds(), (ended - began).total_seconds())
        for submitted, began, ended, name in sorted(found)
        if ended > began
    ]


def _gpus(file: Path) -> Counter[str]:
    """The number of GPUs of each job, by its name."""
    found: Counter[str] = Counter()
    for row, place in _rows(file, ("job_name", "RES")):
        if not row["RES"]:
            continue
        try:
            found[row["job_name"]] += int(json.loads(row["RES"]).get(_GPU, 0) or 0)
        except (ValueError, AttributeError):
            raise InputError(Diagnostic(place, f"RES is {quote(row['RES'])}, and should be a JSON object")) from None
    return found


def _rows(file: Path, columns: Sequence[str]) -> Iterator[tuple[dict[str, str], str]]:
    """The lines' values in some columns, and their places in the file."""
    reader = csv.DictReader(read_text(file, _LARGEST).splitlines())
    missing = [name for name in columns if name not in (reader.fieldnames or ())]
    if missing:
        raise InputError(Diagnostic(f"{file}:1", f"there is no column {', '.join(missing)}"))
    for row in reader:
        yield {name: row[name] or "" for name in columns}, f"{file}:{reader.line_num}"


def _time(text: str, place: str) -> datetime:
    for form in _TIMES:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    raise InputError(Diagnostic(place, f"{quote(text)} is no time such as '2023/7/15 02:19'"))
