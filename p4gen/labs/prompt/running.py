"""The command of a lab's prompt that runs collectives."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from p4gen.errors import InputError, P4genError
from p4gen.labs.job import LabJob
from p4gen.labs.prompt.terminal import Session, read_size, take_option
from p4gen.labs.runs.membercalls import ROOT
from p4gen.labs.runs.ready import collectives, is_sized, ready
from p4gen.labs.runs.report import progress, show, to_json, tree_text

RUN: Final = "run COLLECTIVE [SIZE] [HOST …|GROUP] [root R] [repeat N]"


def run(session: Session, words: list[str]) -> bool:
    """Runs a collective, of all hosts, of those named, or of a group."""
    lab, job, name, rest = session.lab, session.lab.job, words[0], words[1:]
    known = collectives(job)
    if name not in known:
        raise InputError(f"'{name}' is not a collective; there are {', '.join(known)}")
    if is_sized(job, name) and not rest:
        raise InputError(f"usage: {usage(job, name)}")
    size = read_size(rest.pop(0)) if is_sized(job, name) else 0
    repeat = take_option(rest, "repeat", 1)
    if not repeat:
        raise InputError("repeat must be at least 1")
    root = 0 if job.uses_memory else take_option(rest, ROOT, 0)
    given = _take_options(rest, known[name]) if job.uses_memory else {}
    groups = {status.spec.name: status for status in lab.groups.all()} if job.grouped else {}
    named = groups[rest[0]] if len(rest) == 1 and rest[0] in groups else None
    hosts = named.spec.ranks if named else lab.topology.rank_hosts if rest in ([], ["all"]) else tuple(rest)
    wanted = replace(
        job.wanted,
        collective=name,
        size=size,
        root=root,
        repeat=repeat,
        seed=job.wanted.seed + session.runs + 1,
        given=tuple(given.items()),
    )
    what = ready(lab, wanted, hosts, named)
    session.runs += 1
    with progress(session.console, name) as tell:
        outcome = what.begin(tell)()
    session.latest = to_json(outcome)
    with session.turn:
        session.console.print(f"{what.what}{what.place}", *what.lines, sep="\n", markup=False)
        show(outcome, session.console)
        if what.group is not None:
            with contextlib.suppress(P4genError):  # after a failure the group is gone
                now = lab.manager.group(what.group.spec.name)
                if now.generation != what.group.generation:
                    again = f"placed again meanwhile: generation {now.generation}, {tree_text(now)}"
                    session.console.print(again, markup=False)
    return outcome.ok


def usage(job: LabJob, collective: str) -> str:
    """How a collective is run."""
    if not job.uses_memory:
        return RUN if job.grouped else RUN.replace("|GROUP", "")
    given = ["SIZE"] if is_sized(job, collective) else []
    given += [f"[{each} …]" for each in collectives(job)[collective]]
    return " ".join(["run", collective, *given, "[HOST …|GROUP] [repeat N]"])


def _take_options(words: list[str], names: Sequence[str]) -> dict[str, str]:
    """Remove each option's name and the word after it. Returns the words by name."""
    found: dict[str, str] = {}
    for name in names:
        if name in words:
            at = words.index(name)
            if at + 1 == len(words):
                raise InputError(f"{name} must be followed by a value")
            found[name] = words[at + 1]
            del words[at : at + 2]
    return found
