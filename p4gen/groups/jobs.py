"""What is alike in the jobs of programs whose packets name a job by 8 bits, and its generation by as many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class NumberedJob:
    """A job as its packets name it."""

    number: int
    epoch: int
    workers: Sequence[int]
    """Their addresses."""


def problems(jobs: Sequence[NumberedJob], most: int, most_workers: int) -> Iterator[str]:
    """Why a program that serves ``most`` jobs of ``most_workers`` workers cannot serve these together, a line each."""
    if len(jobs) > most:
        yield f"{len(jobs)} jobs; the program has {most}"
    if len({job.number for job in jobs}) < len(jobs):
        yield "two jobs have the same number"
    for job in jobs:
        at = f"job {job.number}"
        if not 0 <= job.number <= 255:
            yield f"{at}: its number is not in 0 to 255"
        if not 1 <= job.epoch <= 255:
            yield f"{at}: epoch {job.epoch} is not in 1 to 255"
        if not 1 <= len(job.workers) <= most_workers:
            yield f"{at}: {len(job.workers)} workers; the program has 1 to {most_workers}"
        if len(set(job.workers)) < len(job.workers):
            yield f"{at}: two workers have the same address"
