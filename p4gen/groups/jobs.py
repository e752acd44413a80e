"""What is alike in the jobs of programs whose packets name a job by 8 bits, and its generation by as many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from p4gen.groups.group import GroupContext
from p4gen.host.collectives.plan import ChannelKey
from p4gen.model.entries import Entry, Exact
from p4gen.vocabulary import ProgramSpec


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


def holds(_: ProgramSpec, entries: Sequence[Entry], group: GroupContext) -> bool:
    """``GroupEntries.holds`` of programs for which a group is the job of its context's number."""
    mine = {"job": Exact(group.context)}
    return any(entry.match == mine and entry.action.args.get("epoch") == group.epoch for entry in entries)


def refusals(_: ProgramSpec, channels: Sequence[Sequence[ChannelKey]]) -> Iterator[str]:
    """``GroupEntries.refusals`` of such programs."""
    if len(channels) > 1:
        yield "a group is one job, in which all collectives are made of AllReduce: sync refined would do"
