"""The command of a lab's prompt that runs collectives."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from p4gen.errors import InputError, P4genError
from p4gen.labs.calls import LabMembers, members_of
from p4gen.labs.groups import tree_text
from p4gen.labs.prompt.terminal import Session, read_size, take_option
from p4gen.labs.runs.ready import ready
from p4gen.labs.runs.report import progress, show, to_json

RUN: Final = "run COLLECTIVE [SIZE] [HOST …|GROUP] [root R] [repeat N]"


def run(session: Session, words: list[str]) -> bool:
    """Runs a collective, of all hosts, of those named, or of a group."""
    lab, job, name, rest = session.lab, session.lab.job, words[0], words[1:]
    family = members_of(job.spec)
    if name not in family.collectives:
        raise InputError(f"'{name}' is not a collective; there are {', '.join(family.collectives)}")
    if name in family.sized and not rest:
        raise InputError(f"usage: {_usage(family, name, grouped=job.grouped)}")
    size = read_size(rest.pop(0)) if name in family.sized else 0
    repeat = take_option(rest, "repeat", 1)
    if not repeat:
        raise InputError("repeat must be at least 1")
    given = _take_options(rest, tuple(family.collectives[name]))
    groups = lab.groups.all() if job.grouped else []
    named = next((status for status in groups if rest == [status.spec.name]), None)
    hosts = named.spec.ranks if named else lab.topology.rank_hosts if rest in ([], ["all"]) else tuple(rest)
    seed = job.wanted.seed + session.runs + 1
    wanted = replace(
        job.wanted, collective=name, size=size, root=0, repeat=repeat, seed=seed, given=tuple(given.items())
    )
    what = ready(lab, wanted, hosts, named)
    session.runs += 1
    with progress(session.console, name, repeat) as tell:
        outcome = what.begin(tell).result()
    session.latest = to_json(outcome)
    group = what.party.group
    with session.turn:
        session.console.print(f"{what.title}{what.party.place}", *what.party.not_registered, sep="\n", markup=False)
        show(outcome, session.console)
        if group is not None:
            with contextlib.suppress(P4genError):  # after a failure the group is gone
                now = lab.manager.group(group.spec.name)
                if now.generation != group.generation:
                    again = f"placed again meanwhile: generation {now.generation}, {tree_text(now)}"
                    session.console.print(again, markup=False)
    return outcome.ok


def _usage(family: LabMembers[Any], collective: str, *, grouped: bool) -> str:
    """The usage of ``run`` for a collective, such as ``run allreduce SIZE [HOST …|GROUP] [repeat N]``."""
    given = ["SIZE"] if collective in family.sized else []
    given += [f"[{option} …]" for option in family.collectives[collective]]
    return " ".join(["run", collective, *given, "[HOST …|GROUP]" if grouped else "[HOST …]", "[repeat N]"])


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
