"""New plans in the background: groups move to trees on which they are faster by a tenth at least, and groups with
leases to homes that have time for them.

When groups or links have changed, and then nothing more for a while, each group's policy is asked again, one group
after the other, without the ledger's lock. A group is moved as ``MoveGroup`` would move it, if a tree that the policy
proposes has room and gives each flow at least ``GAIN`` times the rate of its present tree beside all others. Calls that
are under way are repeated.

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
from p4gen.manager.store.ledger import Ledger
from p4gen.manager.store.record import Record
from p4gen.manager.store.store import ClosedError
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
            self._lifecycle.settle(record, record.spec, beside=True, gain=GAIN)
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


def _may_move(record: Record) -> bool:
    """Whether the policy chooses a group's place, which is on one tree so far, and no caller works on it. A tree with a
    rate is of a plan, which the group leaves for others with rates only."""
    chosen = record.spec.root is None and record.home is None and record.state is GroupState.ACTIVE
    single = record.placed is not None and len(record.placed.parts) == 1
    return chosen and single and not record.busy and not record.lost
