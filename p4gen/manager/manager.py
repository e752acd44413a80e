"""The IncManager: groups of many clients on the switches of one fabric (EPIC §3.3.1, §6.1, §G).

The groups in the ledger determine the configuration of every switch; a thread for each switch establishes it. A request
is stored before switches are changed, and again when all have answered, so that after a restart at any point it is
known what to undo. No thread waits for a switch while it holds the ledger's lock.
"""

from __future__ import annotations

import concurrent.futures
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from typing_extensions import override

from p4gen.families import serving
from p4gen.groups.group import GroupContext, Memory
from p4gen.manager.access.tenants import ALONE, Tenants
from p4gen.manager.api import (
    Agent,
    Code,
    ConnectionSpec,
    ConnectionStatus,
    GroupSpec,
    GroupState,
    GroupStatus,
    HostAddresses,
    HostInfo,
    JobSpec,
    JobStatus,
    Manager,
    ManagerError,
    RankReport,
    Status,
    SwitchInfo,
    SwitchStatus,
)
from p4gen.manager.connections.connections import Connections
from p4gen.manager.connections.handshakes import Handshakes
from p4gen.manager.fabric import Fabric
from p4gen.manager.groups.departures import AWAY, Departures
from p4gen.manager.groups.jobs import Jobs
from p4gen.manager.groups.leases import FALLBACKS, LONGEST, Leases
from p4gen.manager.groups.lifecycle import Lifecycle, of_switch
from p4gen.manager.groups.offers import Offers
from p4gen.manager.groups.repair import Repair
from p4gen.manager.groups.replan import PAUSE, Replan
from p4gen.manager.store.ledger import Ledger
from p4gen.manager.store.record import Record
from p4gen.manager.store.store import Store
from p4gen.manager.switches.switches import SwitchThread
from p4gen.manager.switches.wanted import Key
from p4gen.manager.watch import Watch
from p4gen.plan.placement.placed import PlacedTrees, memory_needed
from p4gen.plan.placement.planner import NoPlaceError, View, check
from p4gen.plan.placement.policy import PlacementPolicy, find_policy
from p4gen.vocabulary.topology import TopologySpec

LOGGER = logging.getLogger("p4gen.manager")
DOUBT: Final = 30.0
"""Seconds for which a link is not used after a switch has given up sending over it."""
COUNTING: Final = 0.5
"""Seconds that ``status`` waits for switches' counters; after that it uses the last known ones."""
MAX_WAIT_S: Final = 3600.0
"""The longest time that a rank may wait for others, in seconds."""
ENDING: Final = 15.0
"""Seconds that ``close`` waits for all threads together: longer than the time limit for a switch that hangs."""


class IncManager(Manager):
    """Group management for a fabric. All methods may be called from any thread; ``api.Manager`` documents them.

    ``agents`` makes the agent of a switch; it is called on that switch's own thread. Without a ``topology``, it is
    discovered from the links that switches report. ``store`` is the SQLite file; a manager continues with its contents.
    ``policy`` is a policy or the name of one. ``grace``: seconds without an answer from a switch after which its groups
    are placed elsewhere. ``patience``: seconds that a request waits for a switch. ``seed`` makes first PSNs repeatable,
    for tests. ``drain``: seconds, two of the longest round trips in the fabric, for which a connection's NACKs all
    pass when its paths have changed. ``longest`` and ``fallbacks`` are those of ``Leases``. ``replan``: whether groups
    move in the background to trees that are faster (``Replan``, whose ``pause`` is given, too). ``away`` is that of
    ``Departures``. ``tenants`` are those whose quotas hold.

    Raises ``InputError`` for a file that is not a store of this version, or a policy that does not exist.
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
        drain: float = 0.1,
        longest: float = LONGEST,
        fallbacks: int = FALLBACKS,
        replan: bool = False,
        pause: float = PAUSE,
        away: float = AWAY,
        tenants: Tenants = ALONE,
    ) -> None:
        chosen = find_policy(policy) if isinstance(policy, str) else policy
        self._agents = agents
        self._patience = patience
        self._store = Store(store)
        try:
            self._ledger = Ledger(self._store, Fabric(topology), chosen, seed, tenants)
        except BaseException:
            self._store.close()
            raise
        self._changed = self._ledger.changed
        self._threads: dict[str, SwitchThread] = {}
        self._lifecycle = Lifecycle(self._ledger, self._threads, patience)
        self._connections = Connections(self._ledger, self._threads, self._lifecycle, drain)
        self._handshakes = Handshakes(self._ledger, self._connections)
        self._leases = Leases(self._ledger, self._lifecycle, longest, fallbacks, self._check_open)
        self._offers = Offers(self._ledger, patience, self._check_open)
        self._jobs = Jobs(self._ledger, self._lifecycle, tenants, self._check_open)
        self._repair = Repair(self._ledger, self._threads, self._lifecycle, grace, patience, self._connections.refresh)
        self._replan = Replan(self._ledger, self._lifecycle, pause) if replan else None
        self._departures = Departures(self._ledger, self._lifecycle, away)
        self._ended = False
        with self._changed:
            for name, info in self._ledger.fabric.switches.items():
                held = self._connections.held_by(name)
                self._threads[name] = SwitchThread(info, agents, self, self._live_trees_on(name), held)
        self._repair.start()
        if self._replan is not None:
            self._replan.start()
        self._connections.start()
        self._handshakes.start()
        self._departures.start()

    def _live_trees_on(self, switch: str) -> dict[Key, PlacedTrees]:
        return {r.key: placed for r, placed in self._ledger.live() if switch in placed.switches and not r.lost}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the manager. Switches keep their configuration, which the file records. Watches and waiting calls end."""
        with self._changed:
            if self._ended:
                return
            self._ended = True
            watches = self._ledger.watches
            self._changed.notify_all()
        for watch in watches:
            watch.close()
        deadline = time.monotonic() + ENDING
        self._departures.close(deadline)
        if self._replan is not None:
            self._replan.close(deadline)
        self._handshakes.close(deadline)
        self._connections.close(deadline)
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

    # --- registration ---

    @override
    def register_switch(self, switch: SwitchInfo) -> None:
        """A new switch that does not answer is not registered."""
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
            if not known and not ledger.contexts_on(name) and not self._connections.held_by(name):
                ledger.fabric.remove_switch(name)
                self._threads.pop(name).close()
                with self._store.transaction():
                    self._store.drop_switch(name)
                self._fabric_changed()
        raise ManagerError(Code.UNREACHABLE if error.unreachable else Code.REFUSED, of_switch(name, error))

    @override
    def switch(self, name: str) -> SwitchInfo:
        with self._changed:
            found = self._ledger.fabric.switches.get(name)
        if found is None:
            raise ManagerError(Code.NOT_FOUND, f"there is no switch '{name}'")
        return found

    @override
    def register_host(self, host: HostInfo) -> HostAddresses:
        """Raises ``REFUSED``, without a given topology, until a switch has a link to the host."""
        fabric = self._ledger.fabric
        with self._changed:
            self._check_open()
            if fabric.add_host(host):
                with self._store.transaction():
                    self._store.put_host(host, fabric.hosts[host.name])
                self._ledger.check_pairs(host.name)
                if host.nic.owns_numbers:
                    LOGGER.info("host %s has a NIC with %s", host.name, host.nic)
                self._fabric_changed()
            if host.name not in fabric.view.topology.hosts:
                raise ManagerError(Code.REFUSED, f"no registered switch has a link to {host.name} yet")
            return fabric.addresses(host.name)

    @override
    def report_links(self, switch: str, ports: Mapping[int, bool]) -> None:
        """A link is down when either end reports it down."""
        fabric = self._ledger.fabric
        with self._changed:
            self._check_open()
            if fabric.set_links(switch, ports):
                with self._store.transaction():
                    self._store.put_ports_down(sorted(fabric.ports_down))
                self._fabric_changed()

    @override
    def cordon(self, node: str, *, on: bool) -> None:
        with self._changed:
            self._check_open()
            topology, known = self._ledger.fabric.view.topology, self._ledger.fabric.cordoned
            if node not in topology.switches and node not in topology.hosts and node not in known:
                raise ManagerError(Code.NOT_FOUND, f"there is no switch and no host '{node}'")
            with self._store.transaction():
                self._store.put_cordoned(node, on=on)
            (known.add if on else known.discard)(node)
            self._fabric_changed()

    @override
    def cordoned(self) -> list[str]:
        with self._changed:
            return sorted(self._ledger.fabric.cordoned)

    def _fabric_changed(self) -> None:
        self._ledger.version += 1
        self._connections.refresh()
        self._repair.wake()

    # --- connections ---

    @override
    def register_connection(self, spec: ConnectionSpec) -> ConnectionStatus:
        with self._changed:
            self._check_open()
        return self._connections.register(spec)

    @override
    def release_connection(self, number: int) -> None:
        with self._changed:
            self._check_open()
        self._connections.release(number)

    @override
    def spray_connection(self, number: int, *, spray: bool) -> ConnectionStatus:
        with self._changed:
            self._check_open()
        return self._connections.spray(number, spray=spray)

    @override
    def connections(self) -> list[ConnectionStatus]:
        with self._changed:
            return self._connections.statuses()

    def hear(self, switch: str, frame: bytes) -> None:
        """A switch has copied a message with which hosts set up or end a connection. Returns at once."""
        self._handshakes.hear(switch, frame)

    # --- groups ---

    @override
    def init_group(self, spec: GroupSpec) -> GroupStatus:
        with self._changed:
            self._check_open()
            memory = self._check(spec)
            if spec.term != 1 or spec.gone:
                raise ManagerError(Code.INVALID, f"group {spec.name}: the manager sets terms, and ranks that are gone")
            if spec.name in self._ledger.records:
                raise ManagerError(Code.EXISTS, f"there is already a group '{spec.name}'")
            self._ledger.quotas.check_group(spec.name)
            record = Record(spec, busy=True)
            self._ledger.records[spec.name] = record
        try:
            if memory:
                record.spec = spec = self._offers.complete(record, spec, memory)
            try:
                self._lifecycle.settle(record, spec)
            except NoPlaceError as error:
                if not spec.fallback or error.code is Code.INVALID:
                    raise
                with self._changed:
                    record.tried = self._ledger.version
                    self._lifecycle.park(record, spec, error.reason)
            return self._status(record)
        except BaseException:
            with self._changed:
                if not self._ended:
                    self._ledger.drop(record)
            raise
        finally:
            self._lifecycle.idle(record)

    @override
    def destroy_group(self, name: str) -> None:
        with self._changed:
            self._check_open()
            record = self._lifecycle.busy(name, GroupState.ACTIVE, GroupState.BROKEN, GroupState.FAILED)
        try:
            self._lifecycle.destroy(record)
        finally:
            self._lifecycle.idle(record)
            self._repair.wake()

    @override
    def resize_group(self, name: str, slots: int) -> GroupStatus:
        """If there is no room for both generations at once, the old one goes before the new one is made."""
        return self._again(name, lambda spec: replace(spec, slots=slots))

    @override
    def move_group(self, name: str, root: str | None = None) -> GroupStatus:
        """If there is no room for both generations at once, the old one goes before the new one is made."""
        return self._again(name, lambda spec: replace(spec, root=root))

    @override
    def set_ranks(self, name: str, ranks: Sequence[str], term: int) -> GroupStatus:
        def changed(spec: GroupSpec) -> GroupSpec:
            if spec.term != term:
                raise ManagerError(Code.REFUSED, f"group {name} has the ranks of term {spec.term}, not {term}")
            other = replace(spec, ranks=tuple(ranks), term=term + 1, gone=(), memories=())
            if spec.memories and not memory_needed(other, self._ledger.fabric.view.specs.values()):
                raise ManagerError(Code.REFUSED, f"group {name}: its ranks offer memory, and cannot be replaced")
            return other

        return self._again(name, changed, GroupState.BROKEN, GroupState.FAILED)

    def _again(self, name: str, changed: Callable[[GroupSpec], GroupSpec], *states: GroupState) -> GroupStatus:
        with self._changed:
            self._check_open()
            record = self._lifecycle.busy(name, GroupState.ACTIVE, *states)
        try:
            spec = changed(record.spec)
            with self._changed:
                memory = self._check(spec)
            if memory:
                spec = self._offers.complete(record, spec, memory)
            self._lifecycle.settle(record, spec, beside=True)
            return self._status(record)
        finally:
            self._lifecycle.idle(record)
            self._repair.wake()

    def _check(self, spec: GroupSpec) -> int:
        """Refuse a request that is wrong for every placement. Returns the bytes of memory that its ranks have yet to
        offer."""
        view = self._ledger.fabric.view
        memory = memory_needed(spec, view.specs.values())
        check(replace(spec, memories=(Memory(0, 0, memory),) * len(spec.ranks)) if memory else spec, view)
        return memory

    def _status(self, record: Record) -> GroupStatus:
        with self._changed:
            return record.status()

    @override
    def group(self, name: str) -> GroupStatus:
        with self._changed:
            return self._ledger.get(name).status()

    @override
    def groups(self) -> list[GroupStatus]:
        with self._changed:
            return [record.status() for _, record in sorted(self._ledger.records.items())]

    # --- jobs ---

    @override
    def init_job(self, spec: JobSpec) -> JobStatus:
        return self._jobs.init(spec)

    @override
    def destroy_job(self, name: str) -> None:
        try:
            self._jobs.destroy(name)
        finally:
            self._repair.wake()

    @override
    def job(self, name: str) -> JobStatus:
        return self._jobs.status(name)

    @override
    def jobs(self) -> list[JobStatus]:
        return self._jobs.statuses()

    # --- hosts ---

    @override
    def watch(self, host: str) -> Watch:
        """``close`` of the result ends the watch, from any thread."""
        with self._changed:
            self._check_open()
            return self._ledger.watch(host)

    @override
    def ready(self, group: str, generation: int, rank: int, completed: int, timeout: float = 60.0) -> int:
        if not 0 <= timeout <= MAX_WAIT_S:  # NaN is refused, too
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

    @override
    def offer_memory(self, group: str, host: str, memory: Memory) -> None:
        self._offers.offer(group, host, memory)

    @override
    def begin_call(self, group: str, generation: int, call: int) -> bool:
        return self._leases.begin_call(group, generation, call)

    @override
    def end_call(self, group: str, generation: int, rank: int, completed: int) -> None:
        self._leases.end_call(group, generation, rank, completed)

    @override
    def report_rank(self, report: RankReport) -> None:
        with self._changed:
            record = self._ledger.get(report.group)
            if not 0 <= report.rank < len(record.spec.ranks):
                raise ManagerError(Code.INVALID, f"group {report.group} has no rank {report.rank}")
            record.reports[report.rank] = report

    # --- status ---

    @override
    def status(self) -> Status:
        """A switch that does not answer within ``COUNTING`` seconds has the counters that were read last."""
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
                self._handshakes.counts,
                tuple(self._connections.statuses()),
                self._leases.counts,
            )

    def _switch_status(self, name: str) -> SwitchStatus:
        thread, fabric = self._threads[name], self._ledger.fabric
        program = fabric.switches[name].spec
        spec = serving(program) if program.serves_groups else None
        contexts: list[GroupContext] = self._ledger.contexts_on(name)
        silent = fabric.silent.get(name)
        return SwitchStatus(
            name,
            reachable=thread.stale_since is None and silent is None,
            problem=thread.problem or silent or "",
            contexts=len(contexts),
            contexts_total=spec.groups if spec is not None else 0,
            slots=sum(end - first for _, first, end in {(c.pipeline, *each) for c in contexts for each in c.ranges()}),
            slots_total=spec.total_slots * spec.pipelines if spec is not None else 0,
            entries=thread.entries,
            drops=thread.drops,
            links_down=fabric.links_down(name),
            ticks_per_second=thread.ticks_per_second,
            writes=thread.writes,
        )

    def agent_lost(self, switch: str) -> None:
        """Called by agents, from any thread: the connection to a switch has broken. Returns at once."""
        thread = self._threads.get(switch)
        if thread is not None:
            thread.lost()

    # --- called by the switches' threads (switches.Owner) ---

    def view(self) -> View:
        """The current state of the fabric."""
        with self._changed:
            return self._ledger.fabric.view

    def switch_trouble(self, switch: str) -> None:
        """A switch has become stale."""
        self._repair.wake()

    def switch_back(self, switch: str) -> None:
        """A switch holds its configuration again, so groups without a place may find one."""
        with self._changed:
            if self._ledger.fabric.set_silent(switch, None):
                self._fabric_changed()
            else:
                self._ledger.version += 1
                self._repair.wake()
                self._connections.wake()

    def switch_lost(self, switch: str, keys: set[Key]) -> None:
        """A switch was restarted and lost the state of these placements."""
        with self._changed:
            for record in self._ledger.records.values():
                record.lost |= record.placed is not None and record.key in keys
                record.pending_lost |= record.pending is not None and record.pending_key in keys
            self._repair.wake()

    def slowest_answer(self) -> float:
        """Seconds that the slowest switch took to answer when it was last asked: how busy the machine is."""
        with self._changed:
            return max((thread.answer_s for thread in self._threads.values()), default=0.0)

    def edges_given_up(self, switch: str, ports: set[int]) -> None:
        """Treat links over which nothing is acknowledged as down for a while. Their groups are placed elsewhere, or are
        broken."""
        fabric = self._ledger.fabric
        with self._changed:
            for port in sorted(ports):
                if fabric.doubt(switch, port, time.monotonic() + DOUBT):
                    other = fabric.view.topology.ports[switch][port].other(switch)
                    LOGGER.warning("%s: %s acknowledges nothing and is given up for %g s", switch, other, DOUBT)
                    self._fabric_changed()

    def switch_restarted(self, switch: str) -> None:
        """A switch's program was loaded again, so all epochs are unused."""
        with self._changed:
            self._ledger.forget_epochs(switch)
            self._connections.lost(switch)
