"""The groups of a running lab."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from dataclasses import replace
from typing import Final

from p4gen.errors import FailedError, InputError
from p4gen.families import collective as collective_spec
from p4gen.labs.job import JOIN_S
from p4gen.labs.memorygroups import MemoryGroups
from p4gen.labs.nodes import Nodes
from p4gen.manager.api import GroupSpec, GroupState, GroupStatus, Status
from p4gen.plan.placement.served import served

_LOOK_S: Final = 0.2
"""Seconds between checks whether all awaited processes are running."""
_SETTLE_S: Final = 0.15
"""Seconds without a change after which groups count as settled."""


class Groups:
    """Groups of ``lab``'s hosts, created at its manager. All methods raise ``P4genError`` with the reason."""

    def __init__(self, lab: Nodes) -> None:
        self._lab = lab
        self._known: dict[str, GroupStatus] = {}
        """The manager's last known groups."""
        self.memory = MemoryGroups(lab)
        """What groups have whose switches address the ranks' memory."""

    def init(
        self, name: str, ranks: Sequence[str], root: str | None = None, packets: int = 0, *, number: int = 0
    ) -> GroupStatus:
        """Create a group of these hosts, for all collectives that the program can serve. When this returns, all ranks
        have joined. ``packets``: what the memory that ranks offer has room for, at least. ``number``:
        which of the scenario's groups it is."""
        self._lab.check_hosts(ranks)
        if self._lab.job.uses_memory:
            status = self.memory.create(name, ranks, root, packets)
            self.join(status)
            return status
        sync, collectives = served(collective_spec(self._lab.job.spec), ranks)
        scenario = self._lab.job.wanted
        wanted = GroupSpec(name, tuple(ranks), root, fallback=scenario.fallback, duty=scenario.duty(number))
        # If it can serve none, the manager says why.
        wanted = replace(wanted, sync=sync, collectives=collectives) if collectives else wanted
        status = self._lab.manager.init_group(wanted)
        self.join(status)
        return status

    def join(self, status: GroupStatus) -> None:
        """Wait until all ranks of an active group know its generation."""
        hosts = self._lab.hosts
        asked = [
            hosts[host].ask("join", group=status.spec.name, generation=status.generation, timeout=JOIN_S)
            for host in status.spec.ranks
        ]
        until = time.monotonic() + JOIN_S + 5
        while wait(asked, _LOOK_S).not_done and time.monotonic() < until:
            self._lab.check_running(status.spec.ranks)
        for future in asked:
            future.result(0)

    def dead_switches(self, status: GroupStatus) -> list[FailedError]:
        """Reports of a group's switches that have ended."""
        processes = (self._lab.switches[name] for name in status.switches)
        return [process.failure(f"{process.name} has ended") for process in processes if not process.running]

    def all(self) -> list[GroupStatus]:
        """All groups: from the manager, or as last known if it was killed on request."""
        if not self._lab.without_manager:
            self._known = {status.spec.name: status for status in self._lab.manager.groups()}
        return list(self._known.values())

    def check_run(self) -> None:
        """Raises ``InputError`` if calls could not end, because without the manager its agents do not send the ticks
        that Mode III needs."""
        spec = self._lab.job.spec
        if self._lab.without_manager and spec.wants_ticks:
            raise InputError("the manager is dead, and its agents send the ticks that this mode needs: restart manager")

    def of(self, ranks: Sequence[str], packets: int = 0) -> GroupStatus:
        """An existing group of exactly these ranks, or a new one. The memory that ranks offer has room for ``packets``,
        which are 0 if they offer none."""
        self._lab.check_hosts(ranks)
        groups = self.all()
        for status in groups:
            if status.spec.ranks == tuple(ranks) and self.memory.room(status.spec.name) >= packets:
                return status
        if self._lab.without_manager:
            known = ", ".join(f"{status.spec.name} ({' '.join(status.spec.ranks)})" for status in groups) or "none"
            raise InputError(f"the manager is dead, and a new group needs it; existing groups: {known}")
        name = "all" if tuple(ranks) == self._lab.topology.rank_hosts else "-".join(ranks)[:40]
        taken = {status.spec.name for status in groups}
        while name in taken:
            name += "x"
        return self.init(name, ranks, packets=packets)

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

    def settle(self, noticed: Callable[[Status], bool], timeout: float = 30.0) -> list[GroupStatus]:
        """Wait until the manager has noticed an event and has finished what follows for its groups. Returns the groups
        then, or after ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        before: list[GroupStatus] | None = None
        while True:
            status = self._lab.manager.status()
            groups = list(status.groups)
            moving = any(group.state is GroupState.INSTALLING for group in groups)
            if (noticed(status) and not moving and groups == before) or time.monotonic() > deadline:
                return groups
            before = groups
            time.sleep(_SETTLE_S)
