"""The groups of a running lab."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from typing_extensions import override

from p4gen.errors import FailedError, InputError, P4genError
from p4gen.families import serving
from p4gen.groups.group import Memory
from p4gen.labs.calls import CallOrder
from p4gen.labs.job import JOIN_S
from p4gen.labs.nodes import Nodes, answers_of_all, ask_all
from p4gen.labs.parties import Parties, Party, settled
from p4gen.labs.softroce.asked import syncs
from p4gen.manager.api import GroupSpec, GroupState, GroupStatus, Status
from p4gen.plan.placement.served import served
from p4gen.records import from_plain

_SETTLE_S: Final = 0.15
"""Seconds without a change after which groups count as settled."""
LEAST_PACKETS: Final = 255
"""Packets of each rank that memory has room for, unless a call takes more: with the fence 256."""


class Groups(Parties):
    """Groups of ``lab``'s hosts, created at its manager. All methods raise ``P4genError`` with the reason."""

    def __init__(self, lab: Nodes) -> None:
        self._lab = lab
        self._known: dict[str, GroupStatus] = {}
        """The manager's last known groups."""
        self._room: dict[str, int] = {}
        """Packets of each rank for which there is room in the memory that ranks of groups have offered."""

    def init(
        self, name: str, ranks: Sequence[str], root: str | None = None, packets: int = 0, *, number: int = 0
    ) -> GroupStatus:
        """Create a group of these hosts, for what the program can serve of the collectives that are called
        (``Wanted.called``). When this returns, all ranks have joined. ``packets``: what the memory that ranks offer has
        room for, at least. ``number``: which of the scenario's groups it is."""
        self._lab.check_hosts(ranks)
        scenario = self._lab.job.wanted
        duty, schedule = scenario.duty(number), scenario.schedule(number)
        wanted = GroupSpec(name, tuple(ranks), root, fallback=scenario.fallback, duty=duty, schedule=schedule)
        sync, collectives = served(serving(self._lab.job.spec), ranks, syncs(ranks, self._lab.job.machines))
        # If it can serve none, the manager says why.
        wanted = replace(wanted, sync=sync, collectives=scenario.called(collectives)) if collectives else wanted
        offers = self._lab.job.spec.uses_memory and not self._lab.job.spec.takes_part
        status = self._with_memory(wanted, packets) if offers else self._lab.manager.init_group(wanted)
        self.join(status)
        return status

    def join(self, status: GroupStatus) -> None:
        """Wait until all ranks of an active group know its generation."""
        name, generation = status.spec.name, status.generation
        hosts, patience = status.spec.ranks, JOIN_S + 5
        answers_of_all(self._lab, hosts, "join", patience, group=name, generation=generation, timeout=JOIN_S)

    def all(self) -> list[GroupStatus]:
        """All groups: from the manager, or as last known if it was killed on request."""
        if not self._lab.without_manager:
            self._known = {status.spec.name: status for status in self._lab.manager.groups()}
        return list(self._known.values())

    @override
    def check_run(self) -> None:
        spec = self._lab.job.spec
        if self._lab.without_manager and spec.wants_ticks:
            raise InputError("the manager is dead, and its agents send the ticks that this mode needs: restart manager")

    @override
    def of(self, ranks: Sequence[str], call: CallOrder, named: GroupStatus | None = None) -> Party:
        packets = call.plan(self._lab.job.spec, len(ranks)).packets
        status = named or self._existing(ranks, packets) or self.init(self._new_name(ranks), ranks, packets=packets)
        room = self._room.get(status.spec.name, 0)
        if room < packets:
            raise InputError(
                f"the call takes {packets:,} packets of each rank; the memory of group {status.spec.name} has room for "
                f"{room:,}: name the hosts instead, and a group with more of it is created"
            )
        self.join(status)
        return party(status)

    @override
    def give_up(self, party: Party) -> list[str]:
        name, lab = party.name, self._lab
        processes = [lab.switches[switch] for switch in (party.group.switches if party.group is not None else ())]
        dead = [process.failure(f"{process.name} has ended") for process in processes if not process.running]
        lines = [diagnostic.message for error in dead for diagnostic in error.diagnostics]
        unusable = f"group {name} cannot be used any more"
        if lab.without_manager:
            return [*lines, f"{unusable}, its ranks are out of step: restart manager, then destroy {name}"]
        try:
            lab.manager.destroy_group(name)
        except P4genError as error:
            return [*lines, f"{unusable} and could not be destroyed: {error.reason}"]
        return [*lines, f"group {name} is destroyed: its ranks are out of step; the next run creates it again"]

    def _existing(self, ranks: Sequence[str], packets: int) -> GroupStatus | None:
        fitting = (status for status in self.all() if status.spec.ranks == tuple(ranks))
        return next((status for status in fitting if self._room.get(status.spec.name, 0) >= packets), None)

    def _new_name(self, ranks: Sequence[str]) -> str:
        """A name for a group. Raises ``InputError`` without a manager, with the groups that there are."""
        groups = self.all()
        if self._lab.without_manager:
            known = ", ".join(f"{status.spec.name} ({' '.join(status.spec.ranks)})" for status in groups) or "none"
            raise InputError(f"the manager is dead, and a new group needs it; existing groups: {known}")
        name = "all" if tuple(ranks) == self._lab.topology.rank_hosts else "-".join(ranks)[:40]
        taken = {status.spec.name for status in groups}
        while name in taken:
            name += "x"
        return name

    def _with_memory(self, wanted: GroupSpec, packets: int) -> GroupStatus:
        """Have all hosts offer their memory, and the manager create the group with it."""
        if any(status.spec.name == wanted.name for status in self._lab.manager.groups()):
            raise InputError(f"there is a group {wanted.name} already: destroy it first")
        if len(set(wanted.ranks)) != len(wanted.ranks):
            raise InputError("a host can be only one rank")
        hosts, room = wanted.ranks, max(packets, LEAST_PACKETS)
        common = {"size": len(hosts), "packets": room, "timeout": JOIN_S}
        each = [{"rank": rank, **common} for rank in range(len(hosts))]
        try:
            offered = answers_of_all(self._lab, hosts, "enter", JOIN_S + 5, each, group=wanted.name)
            memories = tuple(from_plain(Memory, memory) for memory in offered)
            status = self._lab.manager.init_group(replace(wanted, memories=memories))
        except P4genError:
            with contextlib.suppress(FailedError):
                ask_all(self._lab, hosts, "leave", JOIN_S, group=wanted.name)
            raise
        self._room[wanted.name] = room
        return status

    def wait_for(self, name: str, state: GroupState, after: int = 0, timeout: float = JOIN_S) -> GroupStatus:
        """Wait until a group is in a state, in a generation after ``after``. Raises ``FailedError`` when it is not in
        time."""
        return self.wait_until(name, lambda now: now.state is state and now.generation > after, str(state), timeout)

    def wait_until(
        self, name: str, reached: Callable[[GroupStatus], bool], expected: str, timeout: float = JOIN_S
    ) -> GroupStatus:
        """Wait until the status of a group is one that ``reached`` accepts. Raises ``FailedError``, which says what was
        ``expected``, when it is not in time."""
        deadline = time.monotonic() + timeout
        while True:
            status = self._lab.manager.group(name)
            if reached(status):
                return status
            if time.monotonic() > deadline:
                why = f" ({status.reason})" if status.reason else ""
                raise FailedError(
                    f"group {name} is {status.state}{why}, generation {status.generation}, after {timeout:g} s; "
                    f"expected: {expected}"
                )
            time.sleep(0.02)

    @override
    def states(self) -> Mapping[str, GroupStatus]:
        return {status.spec.name: status for status in self._lab.manager.groups()}

    @override
    def changes(self, before: Mapping[str, GroupStatus], noticed: Callable[[Status], bool]) -> list[str]:
        if not before:
            return []
        groups = settled(self._lab, noticed, self._lab.manager.groups, _is_changing, _SETTLE_S)
        lines = []
        for status in groups:
            name, was = status.spec.name, before.get(status.spec.name)
            if was is None or (was.state, was.generation) != (status.state, status.generation):
                now = tree_text(status) if status.state is GroupState.ACTIVE else status.reason
                lines.append(f"group {name} is {status.state}, generation {status.generation}: {now}")
        return lines


def party(status: GroupStatus) -> Party:
    """A group as hosts that make calls together."""
    return Party(status.spec.name, status.spec.ranks, f", group {status.spec.name}: {tree_text(status)}", status)


def tree_text(status: GroupStatus) -> str:
    """A group's tree, or trees: each switch, and the one above it; whether its calls now run on a ring."""
    shapes = [each.tree for each in status.trees] or [status.tree]
    trees = [" ".join(f"{switch}→{up}" if up else f"{switch} (root)" for switch, up in tree.items()) for tree in shapes]
    return ", ".join(filter(None, (" and ".join(trees), "on a ring" if status.ring else "")))


def _is_changing(status: GroupStatus) -> bool:
    return status.state is GroupState.INSTALLING
