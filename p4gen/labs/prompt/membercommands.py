"""Commands of a lab's prompt about groups whose ranks offer their memory."""

from __future__ import annotations

from collections.abc import Sequence

from p4gen.errors import InputError
from p4gen.labs.prompt.terminal import Session, read_size, take_option
from p4gen.labs.runs.membercalls import MemberCall, members_of
from p4gen.labs.runs.memberruns import run_calls
from p4gen.labs.runs.report import progress, show, to_json, tree_text
from p4gen.labs.session import Lab
from p4gen.manager.api import GroupStatus


def run(session: Session, words: list[str]) -> bool:
    """Runs a collective of a group whose ranks offer their memory."""
    lab, name, rest = session.lab, words[0], words[1:]
    family = members_of(lab.job.spec)
    if name not in family.collectives:
        raise InputError(f"'{name}' is not a collective; there are {', '.join(family.collectives)}")
    if name in family.sized and not rest:
        raise InputError(f"usage: {usage(lab, name)}")
    size = read_size(rest.pop(0)) if name in family.sized else None
    repeat = take_option(rest, "repeat", 1)
    if not repeat:
        raise InputError("repeat must be at least 1")
    options = _take_options(rest, tuple(family.collectives[name]))
    known = {status.spec.name: status for status in lab.groups.all()}
    named = known[rest[0]] if len(rest) == 1 and rest[0] in known else None
    ranks = named.spec.ranks if named else lab.topology.rank_hosts if rest in ([], ["all"]) else tuple(rest)
    lab.check_hosts(ranks)
    call = MemberCall.of(lab.job.spec, len(ranks), name, size, options)
    plan = call.plan(lab.job.spec, len(ranks))
    lab.groups.check_run()
    group = named or lab.groups.of(ranks, plan.packets)
    check_room(lab, group, plan.packets)
    session.runs += 1
    with progress(session.console, name) as tell:
        outcome = run_calls(lab, group, [call] * repeat, lab.job.wanted.seed + session.runs, tell)
    session.latest = to_json(outcome)
    with session.turn:
        session.console.print(f"{plan.title}, group {group.spec.name}: {tree_text(group)}", markup=False)
        show(outcome, session.console)
    return outcome.ok


def check_room(lab: Lab, group: GroupStatus, packets: int) -> None:
    """Raises ``InputError`` if the memory of a group is too small for a call."""
    name = group.spec.name
    room = lab.groups.memory.room(name)
    if room < packets:
        raise InputError(
            f"the call takes {packets:,} packets of each rank; the memory of group {name} has room for {room:,}: "
            "name the hosts instead, and a group with more of it is created"
        )


def usage(lab: Lab, collective: str) -> str:
    """How a collective is run."""
    family = members_of(lab.job.spec)
    given = ["SIZE"] if collective in family.sized else []
    given += [f"[{each} …]" for each in family.collectives[collective]]
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
