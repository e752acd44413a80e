"""Repairs in the background: groups are moved off switches that do not answer, and groups whose tree is cut are placed
again."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from p4gen.manager.api import GroupState, ManagerError
from p4gen.manager.groups.lifecycle import Lifecycle
from p4gen.manager.store.ledger import Ledger
from p4gen.manager.store.record import Record
from p4gen.manager.store.store import ClosedError
from p4gen.manager.switches.switches import SwitchThread
from p4gen.plan.placement.planner import NoPlaceError

AT_ONCE: Final = 4
"""Number of groups that are placed again at the same time."""
TROUBLED, QUIET = 0.05, 0.5
"""Seconds between two checks while there is something to do, and while there is nothing."""
FIRST_DELAY, LAST_DELAY = 0.1, 2.0
"""Seconds until a group that a switch refused is tried again: at first, and at most; doubled each time."""


class Repair:
    """A thread that monitors switches and groups. ``grace``: seconds that a switch may be stale before its groups are
    placed elsewhere. ``refresh`` makes switches update their routes; it is called with the ledger's lock held."""

    def __init__(
        self,
        ledger: Ledger,
        threads: Mapping[str, SwitchThread],
        lifecycle: Lifecycle,
        grace: float,
        patience: float,
        refresh: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._threads = threads
        self._lifecycle = lifecycle
        self._grace = grace
        self._patience = patience
        self._refresh = refresh
        self._wake = threading.Event()
        self._closed = False
        self._repairs: set[threading.Thread] = set()
        self._thread = threading.Thread(target=self._work, name="inc-repair", daemon=True)

    def start(self) -> None:
        """Start the thread that repairs."""
        self._thread.start()

    def wake(self) -> None:
        """Check now, without waiting for the interval."""
        self._wake.set()

    def close(self, deadline: float) -> None:
        """End the thread. Waits until ``deadline`` for repairs in progress, which may be waiting for a switch that
        hangs."""
        self._closed = True
        self._wake.set()
        with self._ledger.changed:
            repairs = [self._thread, *self._repairs]
        for thread in repairs:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while not self._closed:
            self._wake.clear()
            troubled = self._look()
            self._wake.wait(TROUBLED if troubled else QUIET)

    def _look(self) -> bool:
        """Check everything. Returns whether to check again soon."""
        ledger = self._ledger
        with ledger.changed:
            troubled, changed = False, False
            for name, thread in list(self._threads.items()):
                reason, soon = self._silence(name, thread)
                troubled |= soon
                changed |= ledger.fabric.set_silent(name, reason)
            changed |= ledger.fabric.trust(time.monotonic())
            if changed:
                ledger.version += 1
                self._refresh()
            for record in list(ledger.records.values()):
                if record.busy or not self._needs_place(record):
                    continue
                if len(self._repairs) == AT_ONCE or record.not_before > time.monotonic() or self._closed:
                    troubled = True
                    continue
                record.busy, record.tried = True, ledger.version
                repair = threading.Thread(target=self._place, args=(record,), name="inc-repair-group", daemon=True)
                self._repairs.add(repair)
                repair.start()
        return troubled

    def _silence(self, name: str, thread: SwitchThread) -> tuple[str | None, bool]:
        """Why a switch must not be used (None: it may be), and whether it has problems."""
        now = time.monotonic()
        busy, stale = thread.busy_since, thread.stale_since
        if busy is not None and now - busy > self._patience:
            return f"switch {name} does not answer", True
        # A switch that is being written to counts as answering.
        if stale is not None and now - stale > self._grace and (busy is None or name in self._ledger.fabric.silent):
            return f"switch {name} does not answer ({thread.problem})", True
        return None, stale is not None

    def _needs_place(self, record: Record) -> bool:
        if record.state is GroupState.BROKEN:
            return record.tried != self._ledger.version
        if record.state is not GroupState.ACTIVE:
            return False
        if record.placed is None:
            return record.lost or (record.waits and record.tried != self._ledger.version)
        return record.lost or not record.placed.links <= self._ledger.fabric.view.links

    def _place(self, record: Record) -> None:
        try:
            self._lifecycle.settle(record, record.spec, beside=record.ring is not None)
        except Exception as error:
            with contextlib.suppress(ClosedError):  # the manager has ended meanwhile
                self._postpone(record, error)
        finally:
            with self._ledger.changed:
                self._repairs.discard(threading.current_thread())
            self._lifecycle.idle(record)
            self._wake.set()

    def _postpone(self, record: Record, error: Exception) -> None:
        with self._ledger.changed:
            if not isinstance(error, NoPlaceError):
                record.delay = min(max(2 * record.delay, FIRST_DELAY), LAST_DELAY)
                record.not_before = time.monotonic() + record.delay
            reason = error.reason if isinstance(error, ManagerError) else f"{type(error).__name__}: {error}"
            if not record.spec.fallback and record.home is None:
                self._lifecycle.uproot(record, reason)
            elif record.ring is None or record.lost:
                try:
                    self._lifecycle.park(record, record.spec, reason)
                except ManagerError as no_ring:
                    self._lifecycle.uproot(record, no_ring.reason)
            else:
                record.reason = reason
