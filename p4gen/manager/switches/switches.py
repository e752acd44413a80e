"""A thread for each switch: only this thread uses the switch's agent, and it establishes the switch's configuration.

The configuration consists of the routes, of connections, and of the placements that are *admitted* here. A placement is
admitted only by its own ``install``, a connection by ``connect``, so that an entry that the switch refuses can be
attributed to its cause. A switch whose state is unknown is *stale*: its state is read, and its configuration written
again, with back-off, until it answers and has its configuration.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, Protocol

from typing_extensions import override

from p4gen.errors import P4genError
from p4gen.families import collective
from p4gen.groups.connections import Tally
from p4gen.groups.family import group_entries
from p4gen.groups.group import PlacedEdge
from p4gen.manager.api import Agent, AgentError, ConnectionCount, Durations, SwitchInfo
from p4gen.manager.connections.tallies import Tallies
from p4gen.manager.switches.givenup import GivenUp
from p4gen.manager.switches.wanted import (
    HeldConnection,
    HeldConnections,
    Item,
    Key,
    contexts_of,
    holds,
    items_of,
    wanted_config,
)
from p4gen.manager.worker import Worker
from p4gen.plan.placement.placed import PlacedTrees
from p4gen.plan.placement.planner import View

Agents = Callable[[SwitchInfo], Agent]

FIRST_RETRY: Final = 0.05
"""Seconds until a stale switch is tried again; doubled each time, up to ``LAST_RETRY``."""
LAST_RETRY: Final = 5.0
HEARTBEAT: Final = 1.0
"""Seconds without a job after which a switch's counters are read, to check whether it answers."""


class Owner(Protocol):
    """The manager, as a switch's thread uses it. Methods are called without any lock held."""

    def view(self) -> View:
        """The current state of the fabric."""
        ...

    def switch_trouble(self, switch: str) -> None:
        """A switch has become stale."""

    def switch_back(self, switch: str) -> None:
        """A switch answers again, and has its configuration."""

    def switch_lost(self, switch: str, keys: set[Key]) -> None:
        """A switch was restarted and has lost these placements."""

    def slowest_answer(self) -> float:
        """Seconds that the slowest switch took for its last answer."""
        ...

    def edges_given_up(self, switch: str, ports: set[int]) -> None:
        """Nothing that a switch sends over these ports is acknowledged, and it has given up retransmitting (Mode
        III)."""

    def switch_restarted(self, switch: str) -> None:
        """The manager has loaded a switch's program again; all its state is lost."""


class SwitchThread(Worker):
    """The thread of one switch. Public methods may be called from any thread, and return at once."""

    def __init__(
        self,
        info: SwitchInfo,
        agents: Agents,
        owner: Owner,
        admitted: Mapping[Key, PlacedTrees] | None = None,
        connections: HeldConnections | None = None,
    ) -> None:
        super().__init__(info.name, f"inc-switch {info.name}")
        self.stale_since: float | None = time.monotonic()
        """The time (``time.monotonic``) since which the switch is stale; None if it is not."""
        self.problem = "not reached yet"
        self.entries = 0
        self.drops: Mapping[str, int] = {}
        self._info = info
        self._agents = agents
        self._owner = owner
        self._agent: Agent | None = None
        self._admitted: dict[Key, PlacedTrees] = dict(admitted or {})
        self._ticking: set[Key] = set(self._admitted)
        self._connections: HeldConnections = dict(connections or {})
        self._tallies = Tallies(info.name)
        self._retry_at, self._delay = time.monotonic(), FIRST_RETRY
        self._applied: frozenset[Item] = frozenset()
        """The configuration that the agent got last."""
        self._refreshing: Future[Any] | None = None
        self._counting: Future[Any] | None = None
        self._edges: tuple[PlacedEdge, ...] = ()
        """The edges that get ticks."""
        self._given_up = GivenUp()
        self.answer_s = 0.0
        """Seconds that the switch took for its last answer with counters."""
        self._thread.start()

    # --- for any thread ---

    def register(self, info: SwitchInfo) -> Future[Any]:
        """Register the switch, possibly again or with another program. The future raises ``AgentError``."""
        return self._submit(lambda: self._register(info))

    def install(self, key: Key, placed: PlacedTrees, instead_of: Collection[Key] = ()) -> Future[Any]:
        """Install a placement, and remove others at the same time. The future raises ``AgentError``; then the switch
        holds none of them, or is stale."""
        return self._submit(lambda: self._install(key, placed, instead_of))

    def remove(self, key: Key) -> Future[Any]:
        """Remove a placement. The future raises ``AgentError`` when this made the switch stale."""
        return self._submit(lambda: self._remove(key))

    def activate(self, key: Key) -> Future[Any]:
        """Mark a placement as used: its edges get ticks from now on."""
        return self._submit(lambda: self._activate(key))

    def connect(self, changes: Mapping[int, HeldConnection | None]) -> Future[Any]:
        """Change the connections that the switch holds (None: remove). The future raises ``AgentError``; then the
        switch holds none of these connections. If it does not answer, it will hold the wanted ones when it answers
        again."""
        return self._submit(lambda: self._connect(changes))

    def restart(self) -> Future[Any]:
        """Load the switch's program again, unless it holds a placement or a connection."""
        return self._submit(self._restart)

    def lost(self) -> None:
        """The agent has lost its connection, so the state of the switch has to be read."""
        self._submit(self._disconnected, first=True)

    def refresh(self) -> None:
        """Update the routes, which may have changed."""
        with self._wakes:
            if self._refreshing is None:
                self._refreshing = self._submit(self._refresh)

    def count(self) -> Future[Any]:
        """Read the switch's counters into ``drops``."""
        with self._wakes:
            if self._counting is None or self._counting.done():
                self._counting = self._submit(self._count)
            return self._counting

    def counted(self, number: int) -> tuple[ConnectionCount, ...]:
        """The counters of a connection, as ``count`` read them last."""
        return self._tallies.of(number)

    def forget(self, number: int) -> None:
        """Forget the counters of a connection."""
        self._submit(lambda: self._tallies.forget(number))

    @property
    def ticks_per_second(self) -> float:
        """The agent's number of ticks per second."""
        return float(getattr(self._agent, "ticks_per_second", 0.0))

    @property
    def writes(self) -> Durations:
        """How long the agent's requests that write took."""
        found: Durations = getattr(self._agent, "writes", Durations())
        return found

    # --- the thread ---

    @override
    def _otherwise(self) -> tuple[float, Callable[[], Any]]:
        if self.stale_since is None:
            return HEARTBEAT, self._heartbeat
        return self._retry_at - time.monotonic(), self._retry

    @override
    def _leave(self) -> None:
        if self._agent is not None:
            self._agent.close()

    # --- jobs ---

    def _register(self, info: SwitchInfo) -> None:
        before, self._info = self._info, info
        if self._agent is not None:
            self._agent.close()
            self._agent = None
        if (before.p4info, before.device_config, before.spec) != (info.p4info, info.device_config, info.spec):
            self._lose(set(self._admitted))
            self._connections = {}
            self._owner.switch_restarted(self.name)
        self._trouble("not reached yet")
        self._reconcile()

    def _install(self, key: Key, placed: PlacedTrees, instead_of: Collection[Key]) -> None:
        self._ticking -= set(instead_of)
        for gone in instead_of:
            self._admitted.pop(gone, None)
        if self.stale_since is not None:
            try:
                self._reconcile()
            except AgentError as error:
                raise AgentError(error.reason, unreachable=True) from error  # another error than this group's
        self._admitted[key] = placed
        try:
            self._apply(fresh=key)
            if instead_of:
                self._tick()
        except AgentError as error:
            del self._admitted[key]
            if error.unreachable:
                self._trouble(error.reason)
            else:
                self._undo()
            raise

    def _undo(self) -> None:
        try:
            self._apply()
        except AgentError as error:
            self._trouble(error.reason)

    def _remove(self, key: Key) -> None:
        self._ticking.discard(key)
        if self._admitted.pop(key, None) is None and self.stale_since is None:
            return
        self._settle()

    def _connect(self, changes: Mapping[int, HeldConnection | None]) -> None:
        wanted = {number: held for number, held in {**self._connections, **changes}.items() if held is not None}
        if self.stale_since is not None:
            try:
                self._reconcile()
            except AgentError as error:
                self._connections = wanted
                raise AgentError(error.reason, unreachable=True) from error  # not the error of these connections
        if self._agent is not None:
            begun = {number: held for number, held in changes.items() if held is not None}
            kept = {number: held for number, held in self._connections.items() if number in changes}
            removed = [number for number, held in changes.items() if held is None]
            with contextlib.suppress(AgentError):  # only counters would be wrong
                self._tallies.update(self._info.spec, kept, self._read_tallies, removed)
                self._tallies.begin(self._info.spec, begun, self._read_tallies)
        self._connections = wanted
        try:
            self._apply()
        except AgentError as error:
            if error.unreachable:
                self._trouble(error.reason)
            else:
                self._connections = {number: held for number, held in wanted.items() if number not in changes}
                self._undo()
            raise

    def _refresh(self) -> None:
        with self._wakes:
            self._refreshing = None
        if self.stale_since is None:
            self._settle()

    def _settle(self) -> None:
        """Establish the configuration; errors cannot be attributed to a group."""
        if self.stale_since is not None:
            self._reconcile()
            return
        try:
            self._apply()
            self._tick()
        except AgentError as error:
            self._trouble(error.reason)
            raise

    def _activate(self, key: Key) -> None:
        if key in self._admitted:
            self._ticking.add(key)
            self._tick()

    def _restart(self) -> None:
        if self._admitted or self._connections:
            raise AgentError(f"{self.name}: it holds a group or a connection")
        if self._agent is None:
            raise AgentError(f"{self.name}: not reached yet", unreachable=True)
        self._trouble("its program is being loaded again")
        _call_agent(self._agent.restart)
        self._owner.switch_restarted(self.name)
        self._reconcile()

    def _count(self) -> None:
        self._heartbeat()
        if self._agent is not None and self.stale_since is None:
            self._tallies.update(self._info.spec, self._connections, self._read_tallies)

    def _read_tallies(self, tallies: Sequence[Tally]) -> Sequence[int]:
        agent = self._agent
        assert agent is not None
        found: Sequence[int] = _call_agent(lambda: agent.tallies(tallies))
        return found

    def _heartbeat(self) -> None:
        if self._agent is None or self.stale_since is not None:
            return
        asked = time.monotonic()
        try:
            self.drops = _call_agent(self._agent.drops)
            self.answer_s = time.monotonic() - asked
            self._look_at_edges(self._agent)
        except AgentError as error:
            if error.unreachable:
                self._trouble(error.reason)
            raise

    def _look_at_edges(self, agent: Agent) -> None:
        """Report edges that the switch has given up. An edge stays given up as long as there is no progress."""
        if not self._edges:
            return
        dead = self._given_up.dead(_call_agent(agent.given_up), time.monotonic(), self._owner.slowest_answer())
        spec = collective(self._info.spec)
        ports = {p.edge.port for p in self._edges if p.index(spec) in dead and not p.internal}
        if ports:
            self._owner.edges_given_up(self.name, {spec.architecture.front_number(port) for port in ports})

    def _disconnected(self) -> None:
        if self.stale_since is None:
            self._trouble("the connection is lost")
            self._reconcile()

    def _retry(self) -> None:
        try:
            self._reconcile()
        finally:  # if the job was done, this error does not matter
            self._delay = min(2 * self._delay, LAST_RETRY)
            self._retry_at = time.monotonic() + self._delay

    def _reconcile(self) -> None:
        """Read the switch's state and correct it."""
        try:
            if self._agent is None:
                self._agent = _call_agent(lambda: self._agents(self._info))
            held = _call_agent(self._agent.read)
            spec, admitted = self._info.spec, self._admitted.items()
            self._lose({key for key, placed in admitted if not holds(spec, held, placed, self.name)})
            self._apply(resync=True)
            self._tick()
        except AgentError as error:
            self._trouble(error.reason)
            raise
        self.stale_since, self.problem = None, ""
        self._owner.switch_back(self.name)

    def _lose(self, keys: set[Key]) -> None:
        if keys:
            for key in keys:
                del self._admitted[key]
            self._ticking -= keys
            self._owner.switch_lost(self.name, keys)

    def _trouble(self, problem: str) -> None:
        self.problem = problem
        if self.stale_since is None:
            self.stale_since = time.monotonic()
            self._retry_at, self._delay = self.stale_since + FIRST_RETRY, FIRST_RETRY
            self._owner.switch_trouble(self.name)

    def _apply(self, *, resync: bool = False, fresh: Key | None = None) -> None:
        """Write the configuration; ``fresh`` is a placement that the switch has not held before."""
        agent, view = self._agent, self._owner.view()
        assert agent is not None
        try:
            wanted = wanted_config(self._info, view, self._admitted, self._connections)
        except P4genError as error:
            raise AgentError(f"{self.name}: {error.reason}") from error
        before, self._applied = self._applied, frozenset()
        changes = _call_agent(lambda: agent.apply(wanted, resync=resync))
        self._applied = items = items_of(wanted)
        self.entries = len(wanted.entries)
        if not resync and changes.inserted > len(items - before):
            # The switch was restarted, and the agent has written everything again; the state is lost.
            self._lose({key for key, p in self._admitted.items() if key != fresh and p.contexts_on(self.name)})
            self._apply()

    def _tick(self) -> None:
        agent, spec = self._agent, self._info.spec
        if agent is not None and spec.wants_ticks:
            contexts = contexts_of(self.name, {key: p for key, p in self._admitted.items() if key in self._ticking})
            ticked = group_entries(spec).ticked
            edges = tuple(
                PlacedEdge(self.name, context.pipeline, context.context, edge)
                for context in contexts
                for edge in context.edges
                if ticked(spec, context, edge)
            )
            _call_agent(lambda: agent.set_ticks(edges))
            if not group_entries(spec).given_up:
                return
            if edges != self._edges:
                self._edges, self._given_up = edges, GivenUp()


def _call_agent(question: Callable[[], Any]) -> Any:
    """The result of a call to an agent. Every exception becomes an ``AgentError``."""
    try:
        return question()
    except AgentError:
        raise
    except Exception as error:
        raise AgentError(f"{type(error).__name__}: {error}") from error
