"""Temporal sharing (EPIC §6.2, §L.2): groups have their trees' switches by leases, for one call at a time.

A lease is a placement: contexts, slots (pointers: base and N), addresses and queue pairs, all with epochs that their
state has not had, and with a generation of its own. So packets of an earlier holder find no entry, words that the
holder has left count as empty, and a call that was begun without the lease is begun again with it. While a group has no
lease, its generation is a ring of its hosts.

Rank 0 asks before each call, and all ranks report when they have completed it. A group keeps its lease until another
group wants it: asking again costs nothing then. A lease is taken for the whole tree or not at all, under the ledger's
lock. A group goes over to another generation when all its ranks have completed the call before, which would otherwise
be repeated.

Windows of groups say which of them share a switch (``p4gen.plan.placement.windows``), and not when a lease is granted:
a group that calls outside its windows gets the lease if nobody holds it, and the ring otherwise. So no promise that is
broken can mix the data of two groups.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from p4gen.errors import InputError
from p4gen.manager.api import Code, GroupState, ManagerError
from p4gen.manager.groups.lifecycle import Answers, Lifecycle
from p4gen.manager.store.ledger import LOGGER, Ledger
from p4gen.manager.store.record import Lease, Record
from p4gen.manager.switches.wanted import Key
from p4gen.plan.placement.placed import PlacedTrees
from p4gen.plan.placement.placer import Placer
from p4gen.plan.placement.planner import NoPlaceError, group_request
from p4gen.plan.placement.pools import Pools
from p4gen.plan.placement.spans import NoRoomError
from p4gen.plan.placement.tree import IncTree, tree_links

LONGEST: Final = 10.0
"""Seconds for which a call keeps its lease although another group wants it."""
FALLBACKS: Final = 3
"""Calls in a row that a group makes without the lease; for the next one it waits."""
_WAITS: Final = 3
"""A group waits for this many times the longest call."""
_NAP_S: Final = 0.01


@dataclass(frozen=True)
class Granted:
    """A lease that is to be installed."""

    record: Record
    key: Key
    placed: PlacedTrees
    answers: Answers
    """The answers of its switches, which have been asked to install it."""


@dataclass(frozen=True)
class Reload:
    """Switches whose epochs are used up, and whose idle leases have been ended: their programs are loaded again."""

    record: Record
    switches: frozenset[str]


class Leases:
    """Leases of all groups. ``longest``: seconds for which a call keeps a lease that others want. ``fallbacks``: calls
    in a row that a group does without. ``check_open`` raises when the manager has ended."""

    def __init__(
        self, ledger: Ledger, lifecycle: Lifecycle, longest: float, fallbacks: int, check_open: Callable[[], None]
    ) -> None:
        self._ledger, self._lifecycle = ledger, lifecycle
        self._longest, self._fallbacks, self._check_open = longest, fallbacks, check_open
        self._waiting: list[Record] = []
        """Groups that wait for a lease, the first one first."""
        self._counts = Counter(granted=0, refused=0, outside=0)
        for record in ledger.records.values():
            if record.home is not None and record.placed is not None:  # it may be in a call
                record.lease = Lease(-1, time.monotonic())

    def begin_call(self, group: str, generation: int, call: int) -> bool:
        """Implement ``HostManager.begin_call``."""
        until = time.monotonic() + _WAITS * self._longest
        while True:
            with self._ledger.changed:
                turn = self._turn(group, generation, call, until)
            if isinstance(turn, bool):
                return turn
            if isinstance(turn, Granted):
                return not self._install(turn, call)
            self._lifecycle.restart(turn.switches)
            self._lifecycle.idle(turn.record)

    def end_call(self, group: str, generation: int, rank: int, completed: int) -> None:
        """Implement ``HostManager.end_call``."""
        with self._ledger.changed:
            record = self._ledger.get(group)
            if not 0 <= rank < len(record.spec.ranks):
                raise ManagerError(Code.INVALID, f"group {group} has no rank {rank}")
            if record.home is not None and record.generation == generation:
                record.completed[rank] = max(completed, record.completed.get(rank, -1))
                if not self._behind(record, completed):
                    self._ledger.changed.notify_all()

    # --- with the ledger's lock ---

    @property
    def counts(self) -> dict[str, int]:
        """``Status.leases``."""
        held = sum(each.home is not None and each.placed is not None for each in self._ledger.records.values())
        return {"held": held, **self._counts}

    def _turn(self, group: str, generation: int, call: int, until: float) -> bool | Granted | Reload:
        """Decide about a call. Waits if the group has often made calls without the lease."""
        ledger = self._ledger
        record = self._current(group, generation)
        behind_until = time.monotonic() + self._longest
        try:
            while True:
                now = time.monotonic()
                behind = now < behind_until and self._behind(record, call)
                if not record.busy:
                    turn = self._decide(record, call, behind=behind, late=now >= until)
                    if turn is not None:
                        return turn
                elif now >= until:
                    return True
                ledger.changed.wait(self._nap(min(until, behind_until) if behind else until))
                record = self._current(group, generation)
        finally:
            if record in self._waiting:
                self._waiting.remove(record)

    def _decide(self, record: Record, call: int, *, behind: bool, late: bool) -> bool | Granted | Reload | None:
        """The decision, or None to wait: for other groups, or for ranks that are ``behind``, which would have to repeat
        a call in a new generation. A caller that is ``late`` does not wait."""
        if record.home is None:
            return True
        if record.placed is not None:
            return self._keep(record, call, behind=behind)
        if not self._find_home(record):
            return True
        found = None if self._others_first(record) else self._in_the_way(record)
        if found is not None:
            return None if behind else self._take(record, *found)
        if record.refusals < self._fallbacks or late:
            self._refuse(record)
            return True
        if record not in self._waiting:
            self._waiting.append(record)
        return None

    def _current(self, group: str, generation: int) -> Record:
        self._check_open()
        record = self._ledger.get(group)
        if record.generation != generation or record.state is not GroupState.ACTIVE:
            at = f"{record.state}, generation {record.generation or record.last}"
            raise ManagerError(Code.REFUSED, f"group {group} is {at}; not {generation}")
        return record

    def _keep(self, record: Record, call: int, *, behind: bool) -> bool | None:
        """Decide about the next call of the group that holds the lease: it goes on unless others wait for the lease."""
        if self._others_first(record):
            if behind:
                return None
            self._refuse(record)
            self._lifecycle.park(record, record.spec)
            return False
        record.lease = Lease(call, time.monotonic())
        record.refusals = 0
        return True

    def _refuse(self, record: Record) -> None:
        record.refusals += 1
        strays = self._strays(record)
        self._counts["outside" if strays else "refused"] += 1
        if strays and record.refusals == 1:
            LOGGER.warning("group %s or %s is outside its windows", record.spec.name, ", ".join(strays))

    def _strays(self, record: Record) -> list[str]:
        """The groups that hold leases in a group's way, if by their windows none of them should."""
        schedule, mine = record.spec.own_schedule, _switches(record.home)
        if schedule is None:
            return []
        others = [each for each in self._ledger.records.values() if each is not record and each.placed is not None]
        near = [each.spec for each in others if each.home is not None and mine & _switches(each.home)]
        return [] if any(schedule.meets(spec.own_schedule) for spec in near) else [spec.name for spec in near]

    def _others_first(self, record: Record) -> bool:
        """Whether another group has waited longer than this one for a switch that this one wants."""
        mine = _switches(record.home)
        before = self._waiting[: self._waiting.index(record)] if record in self._waiting else self._waiting
        return any(mine & _switches(other.home) for other in before if other is not record)

    def _find_home(self, record: Record) -> bool:
        """Find a home whose switches and links can all be used: the present one, or another one that the policy
        proposes. Returns whether there is one."""
        view = self._ledger.fabric.view
        home = record.home
        assert home is not None
        usable = not any(name in view.down for name in tree_links(home, view.topology))
        if usable and _switches(home) <= view.specs.keys():
            return True
        try:
            plan = self._ledger.plan(record.spec, {}, record)
        except NoPlaceError:
            return False
        if plan.leased:
            self._ledger.settle_home(record, plan.placed.first.tree)
        return plan.leased

    def _take(self, record: Record, others: Sequence[Record], reload: frozenset[str]) -> Granted | Reload:
        """Take the lease. The leases of ``others``, which are idle, end."""
        if reload:
            for other in others:
                self._lifecycle.park(other, other.spec)
            record.busy = True
            return Reload(record, reload)
        ending = [(other, other.key, other.placed.switches) for other in others if other.placed is not None]
        gone: defaultdict[str, list[Key]] = defaultdict(list)
        for _, key, switches in ending:
            for switch in switches:
                gone[switch].append(key)
        try:
            for other, _, _ in ending:
                self._ledger.to_ring(other, other.spec, "")
            placed, pools = self._place(record, ())  # now, as rings have received queue pair numbers
            self._ledger.begin(record, placed, pools, beside=True)
        except BaseException:
            for other, key, switches in ending:
                if other.key != key:
                    self._lifecycle.remove(key, switches)
            raise
        record.busy = True
        key = record.pending_key
        return Granted(record, key, placed, self._lifecycle.start_install(key, placed, gone))

    def _in_the_way(self, record: Record) -> tuple[list[Record], frozenset[str]] | None:
        """The idle leases that have to end for this one; and the switches that are empty then and whose epochs are used
        up. None if calls of other groups are in the way."""
        mine = _switches(record.home)
        idle = [each for each in self._ledger.records.values() if each is not record and self._idle(each)]
        near = [each for each in idle if each.placed is not None and mine & {*each.placed.switches}]
        near.sort(key=lambda each: each.lease.since if each.lease is not None else 0.0)
        lacking: frozenset[str] = frozenset()
        for count in range(len(near) + 1):
            try:
                self._place(record, near[:count])
            except InputError as error:
                lacking = error.epochs if isinstance(error, NoRoomError) else frozenset()
            else:
                return near[:count], frozenset()
        used = {name for each, placed in self._ledger.live() if each not in near for name in placed.switches}
        return (near, lacking - used) if lacking - used else None

    def _place(self, record: Record, without: Sequence[Record]) -> tuple[PlacedTrees, Pools]:
        """The resources that a lease takes, as if these groups held nothing. Raises ``InputError`` if it does not
        fit."""
        ledger, view = self._ledger, self._ledger.fabric.view
        assert record.home is not None
        pools = ledger.pools([placed for each, placed in ledger.live() if each not in without])
        placer = Placer(view.topology, view.names, view.specs, pools)
        placed = PlacedTrees((placer.place(group_request(record.spec, ledger.draw_psn(), view), record.home),))
        if over := [*ledger.quotas.lacks(record.spec.name, placed, without)]:
            raise InputError(*over)
        return placed, pools

    def _idle(self, record: Record) -> bool:
        """Whether a group holds a lease that may be taken away: its call has ended at all ranks, or takes too long."""
        lease = record.lease
        if record.home is None or record.placed is None or record.busy:
            return False
        if lease is None:
            return True
        ended = all(record.completed.get(rank, -1) > lease.call for rank in range(len(record.spec.ranks)))
        return ended or time.monotonic() - lease.since > self._longest

    def _behind(self, record: Record, call: int) -> bool:
        """Whether a rank is known not to have completed all calls before this one."""
        known = record.arrived | record.completed
        return any(completed < call for completed in known.values())

    def _nap(self, until: float) -> float:
        """Seconds after which a waiting caller checks again without being notified: a call may take too long."""
        held = [each.lease.since + self._longest for each in self._ledger.records.values() if each.lease is not None]
        now = time.monotonic()
        return max(_NAP_S, min([until, *(end for end in held if end > now)]) - now)

    # --- installing ---

    def _install(self, granted: Granted, call: int) -> bool:
        """Install a lease on all switches. Returns whether it is in use now; otherwise no part of it is left."""
        ledger, lifecycle = self._ledger, self._lifecycle
        record, key, placed = granted.record, granted.key, granted.placed
        done = False
        try:
            failures = lifecycle.wait(granted.answers)
            with ledger.changed:
                if not failures and not record.pending_lost:
                    ledger.activate(record, record.spec)
                    lifecycle.activate(key, placed)
                    record.lease, record.refusals, done = Lease(call, time.monotonic()), 0, True
                    self._counts["granted"] += 1
                else:
                    reasons = "; ".join(f"{switch}: {error.reason}" for switch, error in failures.items())
                    LOGGER.warning("group %s gets no lease: %s", record.spec.name, reasons or "a switch was restarted")
        finally:
            with ledger.changed:
                if not done and record.pending is not None:
                    lifecycle.uninstall(key, placed)
                    ledger.abandon(record)
            lifecycle.idle(record)
        return done


def _switches(tree: IncTree | None) -> frozenset[str]:
    return frozenset(node.key.switch for node in tree.nodes) if tree is not None else frozenset()
