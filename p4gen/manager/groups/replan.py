"""New plans in the background: groups move to trees on which they are faster by a tenth at least, and groups with
leases to homes that have time for them.

When groups or links have changed, and then nothing more for a while, each group's policy is asked again, one group
after the other, without the ledger's lock. A group is moved as ``MoveGroup`` would move it, if a tree that the policy
proposes has room and gives each flow at least ``GAIN`` times the rate of its present tree beside all others. Calls that
are under way are repeated. When no group can be moved alone, pairs are looked for (``together``).

Groups cannot displace each other for ever. A group that moves to a link gets a higher rate than before, and leaves the
other flows there at least that rate. So with each move the sorted list of all groups' rates grows, the lowest first,
and there are finitely many such lists. A group that moves from one tree to several stays there until a link or a switch
fails, so there are finitely many such moves, too. A link that comes and goes moves a group at most once in ``pause``. A
group with leases moves only away from switches that have promised more time than there is, and only to switches that
have not, its own share included.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

from p4gen.manager.api import GroupState, ManagerError
from p4gen.manager.groups.lifecycle import Lifecycle
from p4gen.manager.groups.together import ChangedError, Move, PairSearch
from p4gen.manager.store.ledger import Faster, Ledger
from p4gen.manager.store.record import Record
from p4gen.manager.store.store import ClosedError
from p4gen.plan.placement.policy import Candidate, Stripe
from p4gen.plan.placement.tree import IncTree

LOGGER = logging.getLogger("p4gen.manager")
GAIN: Final = 1.1
"""How much faster a tree has to be: moving costs a repeated call."""
PAUSE: Final = 10.0
"""Seconds for which a group that has moved stays."""
_QUIET: Final = 0.25
"""Seconds without a change after which groups are checked."""


class Replan:
    """A thread that moves groups. ``pause``: seconds for which a group that has moved stays."""

    def __init__(self, ledger: Ledger, lifecycle: Lifecycle, pause: float = PAUSE) -> None:
        self._ledger, self._lifecycle, self._pause = ledger, lifecycle, pause
        self._closing = threading.Event()
        self._seen: object = None
        """The state at the last check."""
        self._done: object = None
        """The state when all groups had been checked, and none could be moved."""
        self.looks = 0
        """How often all groups have been checked."""
        self._stays: dict[str, float] = {}
        """Groups that have moved, and the time until which they stay."""
        self._failed: tuple[object, set[object]] = None, set()
        """The pairs that could not be moved on this fabric."""
        self._thread = threading.Thread(target=self._work, name="inc-replan", daemon=True)

    def start(self) -> None:
        """Start the thread that moves groups."""
        self._thread.start()

    def close(self, deadline: float) -> None:
        """End the thread. Waits until ``deadline`` for a move in progress."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(max(0.0, deadline - time.monotonic()))

    @property
    def settled(self) -> bool:
        """Whether no group can be moved in the present state. The ledger's lock is held."""
        return self._done == self._state()

    def _state(self) -> object:
        """The state that decides where groups can be; leases do not."""
        ledger = self._ledger
        places = tuple(
            (name, record.state, record.home or record.generation) for name, record in ledger.records.items()
        )
        return ledger.fabric.view, ledger.version, places

    def _work(self) -> None:
        while not self._closing.wait(_QUIET):
            with self._ledger.changed:
                before, self._seen = self._seen, self._state()
                if before != self._seen or self._done == self._seen:
                    continue
                names = [*self._ledger.records]
            waits = [self._consider(name) for name in names if not self._closing.is_set()]
            with self._ledger.changed:
                settled = self._state() == self._seen and not self._closing.is_set()
            if settled:
                waits.append(self._consider_pairs())
            with self._ledger.changed:
                self.looks += 1
                if not any(waits) and self._state() == self._seen:
                    self._done = self._seen

    def _consider(self, name: str) -> bool:
        """Move a group if that is worth it. Returns whether it has to wait for its next move."""
        ledger = self._ledger
        with ledger.changed:
            record = ledger.records.get(name)
            home = record.home if record is not None else None
        if record is not None and home is not None:
            return self._consider_home(record, home)
        with ledger.changed:
            if record is None or not _may_move(record) or record.placed is None:
                return False
            if not record.placed.links <= ledger.fabric.view.links:  # it has to be repaired
                return False
            crowd = ledger.crowd(record)
            now = crowd.rate(record.placed.trees, record.placed.rates)
            if crowd.most(record.spec.ranks) < GAIN * now:
                return False
            if time.monotonic() < self._stays.get(name, 0.0):
                return True
            record.busy = True
        try:
            self._lifecycle.settle(record, record.spec, beside=True, faster=Faster(record, GAIN))
        except ClosedError:
            return False
        except Exception as error:  # it stays where it is
            reason = error.reason if isinstance(error, ManagerError) else f"{type(error).__name__}: {error}"
            LOGGER.debug("group %s stays: %s", name, reason)
            return False
        finally:
            self._lifecycle.idle(record)
        with ledger.changed:
            placed = record.placed
            then = ledger.crowd(record).rate(placed.trees, placed.rates) if placed is not None else 0.0
        self._stays = {each: until for each, until in self._stays.items() if until > time.monotonic()}
        self._stays[name] = time.monotonic() + self._pause
        LOGGER.info("group %s has moved: %.3g Gb/s for each flow, before %.3g", name, then / 1e9, now / 1e9)
        return False

    def _consider_pairs(self) -> bool:
        """Move two groups if that is worth it. Returns whether one of them has to wait for its next move."""
        ledger, now = self._ledger, time.monotonic()
        with ledger.changed:
            view = ledger.fabric.view
            records = [r for r in ledger.records.values() if _may_move(r) and r.placed and r.placed.links <= view.links]
            ready = [record for record in records if self._stays.get(record.spec.name, 0.0) <= now]
            search = PairSearch(ledger, ready, GAIN)
        if self._failed[0] is not view:
            self._failed = view, set()
        try:
            for pair in search.pairs():
                known = tuple((move.record.spec.name, move.trees) for move in pair)
                if known not in self._failed[1]:
                    if not self._move_both(*pair):
                        self._failed[1].add(known)
                    return False
        except ChangedError:
            return False
        except Exception as error:  # the store is closed, the policy has failed: groups stay where they are
            LOGGER.debug("no pair of groups is moved: %s: %s", type(error).__name__, error)
        return 1 < len(records) != len(ready)

    def _move_both(self, first: Move, then: Move) -> bool:
        """Move the group that makes way, then the one that gains, or neither. Returns whether they have moved."""
        ledger = self._ledger
        records = first.record, then.record
        with ledger.changed:
            if not all(ledger.records.get(each.spec.name) is each and _may_move(each) for each in records):
                return True  # others work on them
            for record in records:
                record.busy = True
            old = _candidate(first.record)
        try:
            self._settle(first.record, 0.0, first.candidate)
            if not then.stays:
                try:
                    self._settle(then.record, GAIN, then.candidate)
                except Exception:
                    self._settle(first.record, 0.0, old)
                    raise
        except ManagerError as error:
            LOGGER.debug("groups %s stay: %s", " and ".join(each.spec.name for each in records), error.reason)
            return False
        finally:
            for record in records:
                self._lifecycle.idle(record)
        until = time.monotonic() + self._pause
        self._stays |= {record.spec.name: until for record in records}
        LOGGER.info("group %s has made way for group %s", *(record.spec.name for record in records))
        return True

    def _settle(self, record: Record, gain: float, candidate: Candidate) -> None:
        self._lifecycle.settle(record, record.spec, beside=True, faster=Faster(record, gain, candidate))

    def _consider_home(self, record: Record, home: IncTree) -> bool:
        """Give a group with leases a home that has time for it, if its present home has none. Returns whether the group
        has to wait until its lease has ended."""
        ledger = self._ledger
        with ledger.changed:
            if record.spec.root is not None or record.state is not GroupState.ACTIVE or record.home is not home:
                return False
            search, state = ledger.search(record.spec, {}, record), self._state()
            if not search.overbooked(home):
                return False
            if record.placed is not None or record.busy:
                return True
            record.busy = True
        try:
            for candidate in search.candidates():
                if not candidate.within_time:
                    continue
                with ledger.changed:
                    if self._state() != state or record.placed is not None:
                        return True
                    plan = search.attempt(candidate, ledger.room(record))
                    if plan is not None and plan.leased:
                        ledger.settle_home(record, plan.placed.first.tree)
                        at = plan.placed.first.tree.root.key.switch
                        LOGGER.info("group %s has another home, below %s, which has time for it", record.spec.name, at)
                        return False
        except (ClosedError, ManagerError) as error:  # the policy has failed; the home is as it was
            LOGGER.debug("group %s keeps its home: %s", record.spec.name, error)
        finally:
            self._lifecycle.idle(record)
        return False


def _candidate(record: Record) -> Candidate:
    """A group's present trees, as a policy would propose them."""
    placed = record.placed
    assert placed is not None
    root = placed.first.tree.root.key.switch
    if placed.rates:
        return Candidate(root, stripes=tuple(map(Stripe, placed.trees, placed.rates)))
    return Candidate(root, placed.first.tree)


def _may_move(record: Record) -> bool:
    """Whether the policy chooses a group's place, which is on one tree so far, and no caller works on it. A tree with a
    rate is of a plan, which the group leaves for others with rates only."""
    chosen = record.spec.root is None and record.home is None and record.state is GroupState.ACTIVE
    single = record.placed is not None and len(record.placed.parts) == 1
    return chosen and single and not record.busy and not record.lost
