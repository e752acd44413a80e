"""The IncManager: groups of many clients on the switches of one fabric (EPIC §3.3.1, §6.1, §G).

What every switch should hold follows from the groups in the ledger; a thread for each switch makes it so. A request is
written down before switches are touched, and again when all have answered, so a restart at any point knows what to
undo. Nothing waits for a switch with the ledger's lock held.
"""

from __future__ import annotations

import concurrent.futures
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from p4gen.groups.group import GroupContext
from p4gen.manager.api import (
    Agent,
    Code,
    GroupSpec,
    GroupState,
    GroupStatus,
    HostAddresses,
    HostInfo,
    ManagerError,
    RankReport,
    Status,
    SwitchInfo,
    SwitchStatus,
)
from p4gen.manager.fabric import Fabric
from p4gen.manager.ledger import Ledger, Record
from p4gen.manager.lifecycle import Lifecycle, of_switch
from p4gen.manager.repair import Repair
from p4gen.manager.store import Store
from p4gen.manager.switches import Key, SwitchThread
from p4gen.manager.watch import Watch
from p4gen.placement.placed import PlacedGroup
from p4gen.placement.planner import View, check
from p4gen.placement.policy import PlacementPolicy, find_policy
from p4gen.spec.topology import TopologySpec

LOGGER = logging.getLogger("p4gen.manager")
DOUBT: Final = 30.0
"""Seconds that a link is not used after a switch has given up what it sends over it."""
COUNTING: Final = 0.5
"""Seconds that ``status`` waits for switches' counters; later the last known ones do."""
MAX_WAIT_S: Final = 3600.0
"""For ranks that wait for each other."""
ENDING: Final = 15.0
"""Seconds that ``close`` waits for threads, all together: longer than a switch that hangs is waited for."""


class IncManager:
    """Group management for a fabric; all methods are for any thread (``api.Manager`` says what they do).

    ``agents`` makes the agent of a switch; it is called on that switch's own thread. Without a ``topology`` it is made
    of what switches say of their links. ``store`` is the SQLite file; a manager takes over what is there. ``policy``
    is one or the name of one. ``grace``: seconds that a switch may not answer before its groups are placed elsewhere.
    ``patience``: seconds that a request waits for a switch. ``seed`` makes first PSNs repeatable, for tests.

    Raises ``InputError`` for a file that is no store of this version, or a policy that is not there.
    """

    def __init__(
        self,
        agents: Callable[[SwitchInfo], Agent],
        *,
        topology: TopologySpec | None = None,
        store: Path | str = ":memory:",
        policy: PlacementPolicy | str = "lowest-common-switch",
        seed: int | None = None,
        grace: float = 1.0,
        patience: float = 30.0,
    ) -> None:
        chosen = find_policy(policy) if isinstance(policy, str) else policy
        self._agents = agents
        self._patience = patience
        self._store = Store(store)
        try:
            self._ledger = Ledger(self._store, Fabric(topology), chosen, seed)
        except BaseException:
            self._store.close()
            raise
        self._changed = self._ledger.changed
        self._threads: dict[str, SwitchThread] = {}
        self._lifecycle = Lifecycle(self._ledger, self._threads, patience)
        self._repair = Repair(self._ledger, self._threads, self._lifecycle, grace, patience)
        self._ended = False
        with self._changed:
            for name, info in self._ledger.fabric.switches.items():
                self._threads[name] = SwitchThread(info, agents, self, self._held_by(name))
        self._repair.start()

    def _held_by(self, switch: str) -> dict[Key, PlacedGroup]:
        return {r.key: placed for r, placed in self._ledger.live() if switch in placed.switches and not r.lost}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End. Switches keep what they hold, and the file says what that is; watchers and waiters come back."""
        with self._changed:
            if self._ended:
                return
            self._ended = True
            watches = self._ledger.watches
            self._changed.notify_all()
        for watch in watches:
            watch.close()
        deadline = time.monotonic() + ENDING
        for thread in self._threads.values():
            thread.close()
        self._repair.close(deadline)
        for thread in self._threads.values():
            thread.close(max(0.0, deadline - time.monotonic()))
        with self._changed:
            self._store.close()

    def _check_open(self) -> None:
        if self._ended:
            raise ManagerError(Code.UNREACHABLE, "the manager has ended")

    # --- who is there ---

    def register_switch(self, switch: SwitchInfo) -> None:
        """See ``api.Manager``. One that is new and does not answer is not registered."""
        ledger, name = self._ledger, switch.name
        with self._changed:
            self._check_open()
            known = name in self._threads
            ledger.fabric.add_switch(switch)
            with self._store.transaction():
                self._store.put_switch(ledger.fabric.switch_numbers[name], switch)
            if not known:
                self._threads[name] = SwitchThread(switch, self._agents, self)
            answer = self._threads[name].register(switch)
            self._fabric_changed()
        failures = self._lifecycle.wait({name: answer})
        if not failures:
            return
        error = failures[name]
        with self._changed:
            if not known and not ledger.contexts_on(name):
                ledger.fabric.remove_switch(name)
                self._threads.pop(name).close()
                with self._store.transaction():
                    self._store.drop_switch(name)
                self._fabric_changed()
        raise ManagerError(Code.UNREACHABLE if error.unreachable else Code.REFUSED, of_switch(name, error))

    def register_host(self, host: HostInfo) -> HostAddresses:
        """See ``api.Manager``. Without a given topology, ``REFUSED`` until a switch has a link to it."""
        fabric = self._ledger.fabric
        with self._changed:
            self._check_open()
            new = host.name not in fabric.hosts
            fabric.add_host(host.name)
            if new:
                with self._store.transaction():
                    self._store.put_host(host.name, fabric.hosts[host.name])
                self._fabric_changed()
            if host.name not in fabric.view.topology.hosts:
                raise ManagerError(Code.REFUSED, f"no switch that has registered has a link to {host.name} yet")
            return fabric.addresses(host.name)

    def report_links(self, switch: str, ports: Mapping[int, bool]) -> None:
        """See ``api.Manager``. A link is down when either end says so."""
        fabric = self._ledger.fabric
        with self._changed:
            self._check_open()
            if fabric.set_links(switch, ports):
                with self._store.transaction():
                    self._store.put_ports_down(sorted(fabric.ports_down))
                self._fabric_changed()

    def _fabric_changed(self) -> None:
        self._ledger.version += 1
        for thread in self._threads.values():
            thread.refresh()
        self._repair.wake()

    # --- groups ---

    def init_group(self, spec: GroupSpec) -> GroupStatus:
        """See ``api.Manager``."""
        with self._changed:
            self._check_open()
            check(spec, self._ledger.fabric.view)
            if spec.name in self._ledger.records:
                raise ManagerError(Code.EXISTS, f"there is a group '{spec.name}' already")
            record = Record(spec, busy=True)
            self._ledger.records[spec.name] = record
        try:
            self._lifecycle.settle(record, spec)
            return self._status(record)
        except BaseException:
            with self._changed:
                if not self._ended:
                    self._ledger.drop(record)
            raise
        finally:
            self._lifecycle.idle(record)

    def destroy_group(self, name: str) -> None:
        """See ``api.Manager``."""
        with self._changed:
            self._check_open()
            record = self._lifecycle.busy(name, GroupState.ACTIVE, GroupState.BROKEN)
        try:
            self._lifecycle.destroy(record)
        finally:
            self._lifecycle.idle(record)
            self._repair.wake()

    def resize_group(self, name: str, slots: int) -> GroupStatus:
        """See ``api.Manager``. Where there is no room for both generations at once, the new one takes the old one's."""
        return self._again(name, lambda spec: replace(spec, slots=slots))

    def move_group(self, name: str, root: str | None = None) -> GroupStatus:
        """See ``api.Manager``. Where there is no room for both generations at once, the new one takes the old one's."""
        return self._again(name, lambda spec: replace(spec, root=root))

    def _again(self, name: str, changed: Callable[[GroupSpec], GroupSpec]) -> GroupStatus:
        with self._changed:
            self._check_open()
            record = self._lifecycle.busy(name, GroupState.ACTIVE)
        try:
            spec = changed(record.spec)
            with self._changed:
                check(spec, self._ledger.fabric.view)
            self._lifecycle.settle(record, spec, beside=True)
            return self._status(record)
        finally:
            self._lifecycle.idle(record)
            self._repair.wake()

    def _status(self, record: Record) -> GroupStatus:
        with self._changed:
            return record.status()

    def group(self, name: str) -> GroupStatus:
        """See ``api.Manager``."""
        with self._changed:
            return self._ledger.get(name).status()

    def groups(self) -> list[GroupStatus]:
        """See ``api.Manager``."""
        with self._changed:
            return [record.status() for _, record in sorted(self._ledger.records.items())]

    # --- hosts ---

    def watch(self, host: str) -> Watch:
        """See ``api.Manager``. ``close`` of what it gives ends it, from any thread."""
        with self._changed:
            self._check_open()
            return self._ledger.watch(host)

    def ready(self, group: str, generation: int, rank: int, completed: int, timeout: float = 60.0) -> int:
        """See ``api.Manager``."""
        if not 0 <= timeout <= MAX_WAIT_S:  # neither is nan
            raise ManagerError(Code.INVALID, f"a rank waits for others up to {MAX_WAIT_S:,} s, not {timeout:g}")
        deadline = time.monotonic() + timeout
        with self._changed:
            record = self._ledger.get(group)
            size = len(record.spec.ranks)
            if not 0 <= rank < size or completed < 0:
                raise ManagerError(Code.INVALID, f"group {group} has no rank {rank} with {completed} calls")
            while True:
                self._check_open()
                current = record.generation == generation and record.state is GroupState.ACTIVE
                if not current or self._ledger.records.get(group) is not record:
                    why = f": {record.reason}" if record.reason else ""
                    at = f"{record.state}, generation {record.generation or record.last}"
                    raise ManagerError(Code.REFUSED, f"group {group} is {at}; not {generation}{why}")
                if record.agreed is not None:
                    return record.agreed
                record.arrived[rank] = completed
                if len(record.arrived) == size:
                    self._ledger.agree(record)
                    continue
                left = deadline - time.monotonic()
                if left <= 0:
                    away = ", ".join(f"{r} ({record.spec.ranks[r]})" for r in range(size) if r not in record.arrived)
                    raise ManagerError(Code.UNREACHABLE, f"group {group}: not ready within {timeout:g} s: rank {away}")
                self._changed.wait(left)

    def report_rank(self, report: RankReport) -> None:
        """See ``api.Manager``."""
        with self._changed:
            record = self._ledger.get(report.group)
            if not 0 <= report.rank < len(record.spec.ranks):
                raise ManagerError(Code.INVALID, f"group {report.group} has no rank {report.rank}")
            record.reports[report.rank] = report

    # --- seeing it ---

    def status(self) -> Status:
        """See ``api.Manager``. A switch that does not answer at once is shown with the counters it had last."""
        with self._changed:
            self._check_open()
            answers = [thread.count() for thread in self._threads.values()]
        concurrent.futures.wait(answers, timeout=COUNTING)
        with self._changed:
            records = [record for _, record in sorted(self._ledger.records.items())]
            return Status(
                time.monotonic(),
                tuple(record.status() for record in records),
                tuple(self._switch_status(name) for name in self._threads),
                tuple(report for record in records for _, report in sorted(record.reports.items())),
            )

    def _switch_status(self, name: str) -> SwitchStatus:
        thread, fabric = self._threads[name], self._ledger.fabric
        spec = fabric.switches[name].spec
        contexts: list[GroupContext] = self._ledger.contexts_on(name)
        silent = fabric.silent.get(name)
        return SwitchStatus(
            name,
            reachable=thread.stale_since is None and silent is None,
            problem=thread.problem or silent or "",
            contexts=len(contexts),
            contexts_total=spec.groups,
            slots=sum(end - first for context in contexts for first, end in context.ranges()),
            slots_total=spec.total_slots * spec.pipelines,
            entries=thread.entries,
            drops=thread.drops,
            links_down=fabric.links_down(name),
            ticks_per_second=thread.ticks_per_second,
        )

    def agent_lost(self, switch: str) -> None:
        """For agents, from any thread, at once: the connection to a switch has broken."""
        thread = self._threads.get(switch)
        if thread is not None:
            thread.lost()

    # --- what the switches' threads say (switches.Owner) ---

    def view(self) -> View:
        """The fabric as it is now."""
        with self._changed:
            return self._ledger.fabric.view

    def switch_trouble(self, switch: str) -> None:
        """A switch has become stale."""
        self._repair.wake()

    def switch_back(self, switch: str) -> None:
        """A switch holds what it should again, so those without a place may find one."""
        with self._changed:
            if self._ledger.fabric.set_silent(switch, None):
                self._fabric_changed()
            else:
                self._ledger.version += 1
                self._repair.wake()

    def switch_lost(self, switch: str, keys: set[Key]) -> None:
        """A switch was restarted, and with it the state of some placements went."""
        with self._changed:
            for record in self._ledger.records.values():
                record.lost |= record.placed is not None and record.key in keys
                record.pending_lost |= record.pending is not None and record.pending_key in keys
            self._repair.wake()

    def edges_given_up(self, switch: str, ports: set[int]) -> None:
        """Links over which nothing is acknowledged count as down for a while: groups go another way, or are broken."""
        fabric = self._ledger.fabric
        with self._changed:
            for port in sorted(ports):
                if fabric.doubt(switch, port, time.monotonic() + DOUBT):
                    other = fabric.view.topology.ports[switch][port].other(switch)
                    LOGGER.warning("%s: %s acknowledges nothing and is given up for %g s", switch, other, DOUBT)
                    self._fabric_changed()

    def switch_restarted(self, switch: str) -> None:
        """A switch's program was loaded anew, so all epochs are clean."""
        with self._changed:
            self._ledger.forget_epochs(switch)
