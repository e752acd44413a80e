"""Registered connections: their entries at the switches of both ends, and changes of their paths.

The destination's switch has its entries before the source's switch sprays, and loses them after it has ended; otherwise
it would not know the packets that are sprayed meanwhile. When paths change, the destination's switch first lets all
NACKs pass. Then the source's switch goes over to the new paths. When no packet of the old paths can be under way any
more, NACKs are filtered again. So no NACK is blocked by the evidence of packets that took other paths.

In between, and without consent of the destination's switch, a connection has the path that ECMP gives it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from p4gen.manager.api import Code, ConnectionSpec, ConnectionState, ConnectionStatus, ManagerError
from p4gen.manager.connections.connection_records import ConnectionRecords, Record
from p4gen.manager.groups.lifecycle import Answers, Lifecycle, refusal
from p4gen.manager.store.ledger import Ledger
from p4gen.manager.store.store import ClosedError
from p4gen.manager.switches.switches import SwitchThread
from p4gen.manager.switches.wanted import HeldConnection, HeldConnections
from p4gen.plan.placement.connections import NoEpochError

LOGGER = logging.getLogger("p4gen.manager")
CONSENT: Final = 1.0
"""Seconds for which a source waits for the switches of destinations. Then it goes over to ECMP without their consent,
because its old paths may be dead."""
WRITING: Final = 5.0
"""Seconds for which a change of paths waits for switches. It fails for connections of switches that have not answered
by then."""
AGAIN: Final = 1.0
"""Seconds between two attempts to spray connections after a switch has failed."""
PATIENCE: Final = 30.0
"""Seconds that a request waits for others that work on the same connection."""
_OFF: Final = "spraying is off"
Changes = dict[str, dict[int, HeldConnection | None]]
"""The new state of connections, by switch and number; None: the switch is to hold nothing for the connection."""


class Connections:
    """The connections of a fabric, and the thread that changes their paths when links and switches come and go.

    ``drain`` is the time in seconds after which packets of old paths, and the answers to them, have arrived or are
    lost: two of the longest round trips.
    """

    def __init__(self, ledger: Ledger, threads: Mapping[str, SwitchThread], lifecycle: Lifecycle, drain: float) -> None:
        self._ledger = ledger
        self._threads = threads
        self._lifecycle = lifecycle
        self._drain = drain
        self._records = ConnectionRecords(ledger, threads)
        self._wake, self._closed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="inc-connections", daemon=True)

    def start(self) -> None:
        """Start the thread that changes paths."""
        self._wake.set()
        self._thread.start()

    def wake(self) -> None:
        """Check now whether connections need other paths."""
        self._wake.set()

    def close(self, deadline: float) -> None:
        """End the thread, which may be waiting for a switch, and wait for it until ``deadline``."""
        self._closed.set()
        self._wake.set()
        self._thread.join(max(0.0, deadline - time.monotonic()))

    # --- the ledger's lock is held ---

    def statuses(self) -> list[ConnectionStatus]:
        """All connections, in order of number."""
        return self._records.statuses()

    def held_by(self, switch: str) -> HeldConnections:
        """The connections that a switch is to hold."""
        return self._records.held_by(switch)

    def refresh(self) -> None:
        """Have switches update their routes, except those whose connections must change paths first."""
        waiting = {record.ends[0] for record in self._records.all.values() if self._records.moves(record)}
        for name, thread in self._threads.items():
            if name not in waiting:
                thread.refresh()
        self._wake.set()

    def lost(self, switch: str) -> None:
        """A switch's program was loaded again, so its connections need new places."""
        for record in self._records.all.values():
            record.lost |= switch in record.ends
        self._wake.set()

    # --- requests ---

    def register(self, spec: ConnectionSpec) -> ConnectionStatus:
        """Implements ``Manager.register_connection``."""
        try:
            return self._register(spec)
        except NoEpochError as lacking:
            name = lacking.switch
            with self._ledger.changed:
                answer = {name: self._threads[name].restart()}
            if self._lifecycle.wait(answer):
                raise
            return self._register(spec)

    def _register(self, spec: ConnectionSpec) -> ConnectionStatus:
        ledger = self._ledger
        with ledger.changed:
            record, placed = self._records.new(spec)
        try:
            for switch in (placed.destination_switch, placed.source_switch):
                failures = self._lifecycle.wait(self._ask({switch: {record.number: HeldConnection(placed)}}))
                if failures:
                    raise refusal(failures)
            with ledger.changed, ledger.store.transaction():
                self._records.put(record, ConnectionState.SPRAYED)
                return self._records.status(record)
        except BaseException:
            self._remove(record)
            with ledger.changed:
                self._records.drop(record)
            raise
        finally:
            self._idle(record)

    def release(self, number: int) -> None:
        """Implements ``Manager.release_connection``."""
        ledger = self._ledger
        with ledger.changed:
            record = self._busy(number)
            with ledger.store.transaction():
                self._records.put(record, ConnectionState.RELEASING)
        try:
            self._remove(record)
            with ledger.changed:
                self._records.drop(record)
        finally:
            self._idle(record)

    def spray(self, number: int, *, spray: bool) -> ConnectionStatus:
        """Implements ``Manager.spray_connection``."""
        with self._ledger.changed:
            record = self._busy(number)
            record.spray = spray
            if spray is (record.state is ConnectionState.SPRAYED) and not self._records.moves(record):
                with self._ledger.store.transaction():
                    self._records.put(record, record.state, record.reason if spray else _OFF)
                self._idle(record)
                return self._records.status(record)
        self._change([record])
        with self._ledger.changed:
            return self._records.status(record)

    def _busy(self, number: int) -> Record:
        """Reserve a connection for the caller, once no other caller works on it. Raises ``ManagerError`` when there is
        none, or others take too long."""
        changed = self._ledger.changed
        deadline = time.monotonic() + PATIENCE
        while (record := self._records.get(number)).busy:
            left = deadline - time.monotonic()
            if left <= 0:
                raise ManagerError(Code.UNREACHABLE, f"connection {number} is {record.state}")
            changed.wait(left)
        record.busy = True
        return record

    def _idle(self, *records: Record) -> None:
        with self._ledger.changed:
            for record in records:
                record.busy = False
            self._ledger.changed.notify_all()
        self._wake.set()

    def _remove(self, record: Record) -> None:
        """Remove a connection's entries, at the source's switch first. A switch that does not answer loses them when it
        answers again."""
        placed = record.placed
        if placed is not None:
            for switch in (placed.source_switch, placed.destination_switch):
                self._lifecycle.wait(self._ask({switch: {record.number: None}}))

    def _ask(self, changes: Mapping[str, Mapping[int, HeldConnection | None]]) -> Answers:
        with self._ledger.changed:
            return {name: self._threads[name].connect(c) for name, c in changes.items() if c and name in self._threads}

    # --- changes of paths ---

    def _work(self) -> None:
        while not self._closed.is_set():
            late = not self._wake.wait(AGAIN)
            self._wake.clear()
            try:
                with self._ledger.changed:
                    due = [] if self._closed.is_set() else [r for r in self._records.all.values() if self._due(r, late)]
                    for record in due:
                        record.busy = True
                if due:
                    self._change(due)
            except ClosedError:  # the manager has ended meanwhile
                return
            except Exception:
                LOGGER.exception("paths of connections cannot be changed")

    def _due(self, record: Record, late: bool) -> bool:
        if record.busy:
            return False
        again = (record.spray and record.tried != self._ledger.version) or (record.failed and late)
        return (record.state is ConnectionState.ECMP and again) or self._records.moves(record)

    def _change(self, records: Sequence[Record]) -> None:
        """Give connections, which are busy for this caller, their paths in the present fabric."""
        view = self._ledger.fabric.view
        try:
            failures: dict[int, str] = {}
            passing, ecmp = self._begin(records, failures)
            self._step(records, passing, failures, CONSENT)
            # Routes and paths do not change at once. Sources spray by neither before both are new.
            self._step(records, ecmp, failures)
            self._step(records, self._spray_changes(records, failures, 0), failures)
            self._closed.wait(self._drain)
            self._step(records, self._spray_changes(records, failures, 1), failures)
            self._step(records, self._revert_changes(records, failures), {}, CONSENT)
            with self._ledger.changed, self._ledger.store.transaction():
                for record in records:
                    reason = failures.get(record.number, "")
                    self._records.put(record, ConnectionState.ECMP if reason else ConnectionState.SPRAYED, reason)
                if self._ledger.fabric.view is not view:  # sources may have waited for this change
                    self.refresh()
        finally:
            self._idle(*records)

    def _begin(self, records: Sequence[Record], failures: dict[int, str]) -> tuple[Changes, Changes]:
        """Record the new places. Returns the changes that let NACKs pass and those that end spraying. ``failures`` gets
        the connections that are not to be sprayed, with the reason."""
        ledger = self._ledger
        passing: Changes = defaultdict(dict)
        ecmp: Changes = defaultdict(dict)
        with ledger.changed, ledger.store.transaction():
            for record in records:
                old, record.tried, record.failed = record.placed, ledger.version, False
                if old is not None:
                    ecmp[old.source_switch][record.number] = passing[old.destination_switch][record.number] = None
                try:
                    if not record.spray:
                        raise ManagerError(Code.REFUSED, _OFF)
                    self._records.check(record.spec)
                    placed = self._records.place(record, None if record.lost else old)
                except ManagerError as error:
                    failures[record.number] = error.reason
                    record.placed = None if record.lost else old
                    self._records.put(record, ConnectionState.CHANGING, error.reason)
                else:
                    record.generation += 1
                    self._records.take(record, ConnectionState.CHANGING, placed)
                record.lost = False
                if record.placed is not None:
                    held = HeldConnection(record.placed, filtered=False)
                    passing[record.placed.destination_switch][record.number] = held
        return passing, ecmp

    def _step(
        self, records: Iterable[Record], changes: Changes, failures: dict[int, str], patience: float = WRITING
    ) -> None:
        """Make changes at all switches together. ``failures`` gets the connections of switches that fail, with the
        reason."""
        wrong = self._lifecycle.wait(self._ask(changes), patience)
        for record in records:
            for switch, error in wrong.items():
                if record.number in changes[switch]:
                    record.failed = True
                    failures.setdefault(record.number, refusal({switch: error}).reason)

    def _spray_changes(self, records: Sequence[Record], failures: Mapping[int, str], end: int) -> Changes:
        """The changes that make sources (``end`` 0) or destinations (``end`` 1) hold sprayed connections."""
        changes: Changes = defaultdict(dict)
        for record in records:
            if record.number not in failures and record.placed is not None:
                changes[record.ends[end]][record.number] = HeldConnection(record.placed)
        return changes

    def _revert_changes(self, records: Sequence[Record], failures: Mapping[int, str]) -> Changes:
        """The changes after a failed step: the source does not spray, and all NACKs pass."""
        changes: Changes = defaultdict(dict)
        for record in records:
            if record.number in failures and record.placed is not None:
                changes[record.placed.source_switch][record.number] = None
                held = HeldConnection(record.placed, filtered=False)
                changes[record.placed.destination_switch][record.number] = held
        return changes
