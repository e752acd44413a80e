"""Calls of a lab's hosts that are about to be made: in groups that switches serve, or over connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from p4gen.errors import InputError
from p4gen.families import collective as collective_spec
from p4gen.labs.job import LabJob, Wanted
from p4gen.labs.runs.calls import GroupRun, RunOutcome, check_calls, room
from p4gen.labs.runs.membercalls import ROOT, MemberCall, members_of
from p4gen.labs.runs.memberruns import run_calls
from p4gen.labs.runs.peercalls import COLLECTIVES, PeerCall
from p4gen.labs.runs.peerruns import Tell, run
from p4gen.labs.runs.report import size_text, tree_text
from p4gen.labs.session import Lab
from p4gen.manager.api import GroupStatus
from p4gen.net.collectives.config import Call
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.message import Collective

Begin = Callable[[Tell], Callable[[], RunOutcome]]
"""Begins calls; the function that it returns waits for their end."""


@dataclass(frozen=True)
class Ready:
    """What is about to be run."""

    what: str
    """The call, as in "allreduce of 64K"."""
    ranks: str
    """How many there are, if ``what`` does not say so."""
    place: str
    """Where they call."""
    begin: Begin
    lines: Sequence[str] = ()
    """What else there is to say."""
    ahead: str = ""
    """What a scenario says of the place before it begins."""
    group: GroupStatus | None = None
    """The group, if there is one."""


def collectives(job: LabJob) -> Mapping[str, Sequence[str]]:
    """What the hosts of a lab can call, with the options of each."""
    if job.uses_memory:
        return {name: tuple(options) for name, options in members_of(job.spec).collectives.items()}
    return dict.fromkeys(map(str, Collective) if job.takes_part else COLLECTIVES, (ROOT,))


def is_sized(job: LabJob, collective: str) -> bool:
    """Whether users give a number of bytes for it."""
    return collective in members_of(job.spec).sized if job.uses_memory else collective != Collective.BARRIER


def ready(lab: Lab, wanted: Wanted, hosts: Sequence[str], named: GroupStatus | None = None) -> Ready:
    """The calls of these hosts; in a group that is ``named``, or in one of theirs. Raises ``P4genError`` with the
    reason why they cannot be made; then no group is created."""
    lab.check_hosts(hosts)
    if not lab.job.grouped:
        return _over_connections(lab, wanted, hosts)
    lab.groups.check_run()
    return (_with_members if lab.job.uses_memory else _in_a_group)(lab, wanted, hosts, named)


def _in_a_group(lab: Lab, wanted: Wanted, hosts: Sequence[str], named: GroupStatus | None) -> Ready:
    calls = [Call(Collective(wanted.collective), wanted.size, wanted.root)] * wanted.repeat
    check_calls(calls, collective_spec(lab.job.spec), hosts)
    group = named or lab.groups.of(hosts)
    lab.groups.join(group)

    def begin(tell: Tell) -> Callable[[], RunOutcome]:
        return GroupRun(lab, group, calls, seed=wanted.seed, deadline=wanted.deadline, progress=tell).result

    ahead = f"\n{len(group.trees)} trees: {tree_text(group)}" if group.trees else ""
    return Ready(_what(wanted), _ranks(hosts), _in(group), begin, ahead=ahead, group=group)


def _with_members(lab: Lab, wanted: Wanted, hosts: Sequence[str], named: GroupStatus | None) -> Ready:
    call = member_call(lab.job.spec, wanted, len(hosts))
    plan = call.plan(lab.job.spec, len(hosts))
    group = named or lab.groups.of(hosts, plan.packets)
    held = lab.groups.memory.room(group.spec.name)
    if held < plan.packets:
        raise InputError(
            f"the call takes {plan.packets:,} packets of each rank; the memory of group {group.spec.name} has room for "
            f"{held:,}: name the hosts instead, and a group with more of it is created"
        )

    def begin(tell: Tell) -> Callable[[], RunOutcome]:
        return partial(run_calls, lab, group, [call] * wanted.repeat, wanted.seed, tell)

    return Ready(plan.title, "", _in(group), begin, group=group)


def _over_connections(lab: Lab, wanted: Wanted, hosts: Sequence[str]) -> Ready:
    call = PeerCall(wanted.collective, wanted.size, wanted.root)
    call.check(len(hosts))
    room(call.collective, call.size, len(hosts))
    group = lab.connections.group(hosts, ring=not call.is_alltoall)
    count = f"{len(group.numbers)} connections"
    spread = "sprayed" if wanted.spray else "on the paths that ECMP gives them"

    def begin(tell: Tell) -> Callable[[], RunOutcome]:
        calls = [call] * wanted.repeat
        return partial(run, lab, group, calls, seed=wanted.seed, deadline=wanted.deadline, progress=tell)

    place = f"{_ranks(hosts)} over {group.name}, {count}"
    return Ready(_what(wanted), _ranks(hosts), place, begin, group.not_registered, f"; {count}, {spread}")


def member_call(spec: ProgramSpec, wanted: Wanted, ranks: int) -> MemberCall:
    """The scenario's call of a family whose ranks offer their memory. Raises ``InputError`` if there is none."""
    family, name = members_of(spec), wanted.collective
    if name not in family.collectives:
        raise InputError(f"{spec.program} has no {name}; there are {', '.join(family.collectives)}")
    root = {ROOT: str(wanted.root)} if wanted.root or ROOT in family.collectives[name] else {}
    size = wanted.size if name in family.sized else None
    return MemberCall.of(spec, ranks, name, size, root | dict(wanted.given))


def _what(wanted: Wanted) -> str:
    return f"{wanted.collective} of {size_text(wanted.size)}" if wanted.size else wanted.collective


def _ranks(hosts: Sequence[str]) -> str:
    return f", {len(hosts)} ranks"


def _in(group: GroupStatus) -> str:
    return f", group {group.spec.name}: {tree_text(group)}"
