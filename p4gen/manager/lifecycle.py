"""Placements come and go: written down, installed on all their switches or none, and undone when that fails."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from p4gen.manager.api import AgentError, Code, GroupSpec, GroupState, ManagerError
from p4gen.manager.ledger import Ledger, Record
from p4gen.manager.switches import Key, SwitchThread
from p4gen.placement.placed import PlacedGroup
from p4gen.placement.planner import NoPlaceError

Answers = Mapping[str, Future[Any]]
"""Futures of what switches have been asked for, by their names."""


class Lifecycle:
    """What requests and repairs have in common. ``patience`` is how long, in s, a switch's answer is waited for."""

    def __init__(self, ledger: Ledger, threads: Mapping[str, SwitchThread], patience: float) -> None:
        self._ledger = ledger
        self._threads = threads
        self._patience = patience

    def settle(self, record: Record, spec: GroupSpec, *, beside: bool = False) -> None:
        """Place a group and install it; ``record`` is busy for this caller. A switch that refuses or does not answer is
        avoided in another try. Raises ``ManagerError``; then nothing new is left behind, and what was in use is so
        still with ``beside``, else gone."""
        try:
            self._settle(record, spec, beside=beside)
        except Exception:
            with self._ledger.changed:
                if record.pending is not None:  # the store, or a defect: whatever it was, undo it
                    self.uninstall(record.pending_key, record.pending)
                    self._ledger.abandon(record)
            raise

    def _settle(self, record: Record, spec: GroupSpec, *, beside: bool) -> None:
        ledger = self._ledger
        avoid: dict[str, str] = {}
        restarted: set[str] = set()
        first: ManagerError | None = None
        while True:
            try:
                key, placed = self._begin(record, spec, avoid, beside=beside)
            except NoPlaceError as error:
                again = self._empty(error.epochs - restarted, record, beside=beside)
                if not again and beside and first is None and error.code is Code.NO_ROOM:
                    self._swap(record, spec, error)
                    return
                if not again:
                    raise first or error from None
                restarted |= again
                self._restart(again)
                continue
            failures = self._install(key, placed)
            with ledger.changed:
                if not failures and not record.pending_lost:
                    old = (record.key, record.placed)
                    ledger.activate(record, spec)
                    self._activate(key, placed)
                    answers = self.uninstall(*old)
                    break
                answers = self.uninstall(key, placed)
                ledger.abandon(record)
            self.wait(answers)
            if failures:
                avoid |= {switch: f"switch {switch}: {error.reason}" for switch, error in failures.items()}
                first = first or _refusal(failures)
        self.wait(answers)

    def _swap(self, record: Record, spec: GroupSpec, no_room: ManagerError) -> None:
        """Another placement in the place of the one in use, for want of room for both. What is on its way meanwhile is
        lost, and sent again. When it fails the old one is put back; its state has not been touched."""
        ledger = self._ledger
        with ledger.changed:
            try:
                placed, pools = ledger.plan(spec, {}, record)
            except NoPlaceError:
                raise no_room from None
            old_key, old = record.key, record.placed
            assert old is not None
            ledger.swap(record, placed, pools)
            was_lost, record.lost = record.lost, True  # unless it comes back
            key = record.pending_key
            self.uninstall(old_key, old)
        failures = self._install(key, placed)
        with ledger.changed:
            if not failures and not record.pending_lost:
                ledger.activate(record, spec)
                self._activate(key, placed)
                return
            answers = self.uninstall(key, placed)
            ledger.swap_back(record)
        self.wait(answers)
        lost = self._install(old_key, old)
        with ledger.changed:
            record.lost = was_lost or record.pending_lost or bool(lost)
            self._activate(old_key, old)
        raise _refusal(failures or {"": AgentError("a switch was restarted meanwhile")})

    def _begin(
        self, record: Record, spec: GroupSpec, avoid: Mapping[str, str], *, beside: bool
    ) -> tuple[Key, PlacedGroup]:
        ledger = self._ledger
        with ledger.changed:
            placed, pools = ledger.plan(spec, avoid, None if beside else record)
            old = (record.key, record.placed)
            ledger.begin(record, placed, pools, beside=beside)
            if not beside:
                self.uninstall(*old)
            return record.pending_key, placed

    def _install(self, key: Key, placed: PlacedGroup) -> dict[str, AgentError]:
        """On all its switches at the same time; what went wrong where."""
        answers = {}
        failures = {}
        for switch in placed.switches:
            if switch in self._threads:
                answers[switch] = self._threads[switch].install(key, placed)
            else:
                failures[switch] = AgentError("it is not registered any more", unreachable=True)
        return failures | self.wait(answers)

    def _activate(self, key: Key, placed: PlacedGroup) -> None:
        for switch in placed.switches:
            if switch in self._threads:
                self._threads[switch].activate(key)

    def uninstall(self, key: Key, placed: PlacedGroup | None) -> Answers:
        """Ask all its switches to hold a placement no more. In the same breath in which its resources become free: so
        whoever gets them comes later at each switch."""
        names = placed.switches if placed is not None else ()
        return {name: self._threads[name].remove(key) for name in names if name in self._threads}

    def uproot(self, record: Record, reason: str) -> None:
        """A group has no place at present. The ledger's lock is held."""
        old = (record.key, record.placed)
        self._ledger.break_(record, reason)
        self.uninstall(*old)

    def destroy(self, record: Record) -> None:
        """A group goes; ``record`` is busy for this caller."""
        ledger = self._ledger
        with ledger.changed:
            ledger.removing(record)
            answers = self.uninstall(record.key, record.placed)
        self.wait(answers)
        with ledger.changed:
            ledger.drop(record)

    def wait(self, answers: Answers) -> dict[str, AgentError]:
        """All answers, and what is wrong with them, by switch. One that has not come is counted as a failure."""
        concurrent.futures.wait(answers.values(), timeout=self._patience)
        failures = {}
        for switch, answer in answers.items():
            if not answer.done():
                failures[switch] = AgentError(f"it has not answered for {self._patience:g} s", unreachable=True)
                continue
            error = answer.exception()
            if isinstance(error, AgentError):
                failures[switch] = error
            elif isinstance(error, Exception):
                failures[switch] = AgentError(f"{type(error).__name__}: {error}")
            elif error is not None:
                raise error
        return failures

    def _empty(self, switches: Iterable[str], record: Record, *, beside: bool) -> set[str]:
        """Those of the switches on which no group lives."""
        ledger = self._ledger
        with ledger.changed:
            lived = {
                name for other, placed in ledger.live() if beside or other is not record for name in placed.switches
            }
            if not beside and record.placed is not None and set(switches) - lived:
                self.uproot(record, "a switch of its tree is loaded anew")
            return set(switches) - lived

    def _restart(self, switches: Iterable[str]) -> None:
        answers = {name: self._threads[name].restart() for name in switches if name in self._threads}
        self.wait(answers)

    def busy(self, name: str, *states: GroupState) -> Record:
        """A group, for this caller alone, once nobody else is at work on it. Raises ``ManagerError``: there is none,
        it is in another state, or others take too long. The ledger's lock is held."""
        ledger = self._ledger
        deadline = time.monotonic() + self._patience
        while (record := ledger.get(name)).busy:
            left = deadline - time.monotonic()
            if left <= 0:
                raise ManagerError(Code.UNREACHABLE, f"group {name} is busy: {record.state}")
            ledger.changed.wait(left)
        if record.state not in states:
            why = f": {record.reason}" if record.reason else ""
            raise ManagerError(Code.REFUSED, f"group {name} is {record.state}{why}")
        record.busy = True
        return record

    def idle(self, record: Record) -> None:
        """This caller has finished with it."""
        with self._ledger.changed:
            record.busy = False
            self._ledger.changed.notify_all()


def of_switch(name: str, error: AgentError) -> str:
    """A switch's failure, with its name; most agents say it already."""
    return error.reason if error.reason.startswith((f"{name}:", f"{name} ")) else f"{name}: {error.reason}"


def _refusal(failures: Mapping[str, AgentError]) -> ManagerError:
    unreachable = all(error.unreachable for error in failures.values())
    reasons = "\n".join(of_switch(switch, error) for switch, error in failures.items())
    return ManagerError(Code.UNREACHABLE if unreachable else Code.REFUSED, reasons)
