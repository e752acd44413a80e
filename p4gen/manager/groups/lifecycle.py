"""The life cycle of placements: they are recorded, installed on all their switches or none, and undone when that
fails."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Final

from p4gen.manager.api import AgentError, Code, GroupSpec, GroupState, ManagerError
from p4gen.manager.store.ledger import Faster, Ledger
from p4gen.manager.store.record import Record
from p4gen.manager.switches.switches import SwitchThread
from p4gen.manager.switches.wanted import Key
from p4gen.plan.placement.placed import PlacedTrees
from p4gen.plan.placement.planner import NoPlaceError, Plan

UNLOCKED: Final = 5
"""Attempts to place a group for which the policy is asked without the ledger's lock."""
Answers = Mapping[str, Future[Any]]
"""The futures of requests to switches, by name of switch."""


class Lifecycle:
    """The operations that requests and repairs share. ``patience`` is the time, in s, to wait for a switch's answer."""

    def __init__(self, ledger: Ledger, threads: Mapping[str, SwitchThread], patience: float) -> None:
        self._ledger = ledger
        self._threads = threads
        self._patience = patience

    def settle(self, record: Record, spec: GroupSpec, *, beside: bool = False, faster: Faster | None = None) -> None:
        """Place a group and install it; ``record`` is busy for this caller. A switch that refuses or does not answer is
        avoided in another attempt. Only trees count that are ``faster``, if that is given.

        Raises ``ManagerError``; then no part of a new placement is left. The placement that was in use is still in use
        with ``beside``, otherwise not.
        """
        try:
            self._settle(record, spec, beside, faster)
        except Exception:
            with self._ledger.changed:
                if record.pending is not None:  # an error of the store or a defect: undo it in any case
                    self.uninstall(record.pending_key, record.pending)
                    self._ledger.abandon(record)
            raise

    def _settle(self, record: Record, spec: GroupSpec, beside: bool, faster: Faster | None) -> None:
        ledger = self._ledger
        avoid: dict[str, str] = {}
        restarted: set[str] = set()
        first: ManagerError | None = None
        while True:
            try:
                begun = self._begin(record, spec, avoid, faster, beside=beside)
            except NoPlaceError as error:
                again = self.empty(error.epochs - restarted, None if beside else record)
                alone = beside and first is None and record.placed is not None
                if not again and alone and error.code is Code.NO_ROOM:
                    self._swap(record, spec, faster, error)
                    return
                if not again:
                    raise first or error from None
                restarted |= again
                self.restart(again)
                continue
            if begun is None:
                return
            key, placed = begun
            failures = self.install(key, placed)
            with ledger.changed:
                if not failures and not record.pending_lost:
                    old = (record.key, record.placed)
                    ledger.activate(record, spec)
                    self.activate(key, placed)
                    answers = self.uninstall(*old)
                    break
                answers = self.uninstall(key, placed)
                ledger.abandon(record)
            self.wait(answers)
            if failures:
                avoid |= {switch: f"switch {switch}: {error.reason}" for switch, error in failures.items()}
                first = first or refusal(failures)
        self.wait(answers)

    def _swap(self, record: Record, spec: GroupSpec, faster: Faster | None, no_room: ManagerError) -> None:
        """Replace the placement in use, because there is no room for both. Packets in flight are lost and sent again.
        If this fails, the old placement is restored; its state has not been touched."""
        ledger = self._ledger
        with ledger.changed:
            try:
                plan = ledger.plan(spec, {}, record, faster)
            except NoPlaceError:
                raise no_room from None
            placed, pools = plan.placed, plan.pools
            old_key, old = record.key, record.placed
            assert old is not None
            ledger.swap(record, placed, pools)
            was_lost, record.lost = record.lost, True  # unless it is restored
            key = record.pending_key
            self.uninstall(old_key, old)
        failures = self.install(key, placed)
        with ledger.changed:
            if not failures and not record.pending_lost:
                ledger.activate(record, spec)
                self.activate(key, placed)
                return
            answers = self.uninstall(key, placed)
            ledger.swap_back(record)
        self.wait(answers)
        lost = self.install(old_key, old)
        with ledger.changed:
            record.lost = was_lost or record.pending_lost or bool(lost)
            self.activate(old_key, old)
        raise refusal(failures or {"": AgentError("a switch was restarted meanwhile")})

    def _begin(
        self, record: Record, spec: GroupSpec, avoid: Mapping[str, str], faster: Faster | None, *, beside: bool
    ) -> tuple[Key, PlacedTrees] | None:
        """Find a place for a group, and record it. Returns None if the group is to have its switches by leases: there
        is nothing to install. The policy is asked without the lock; its proposal counts only if nothing has changed
        since."""
        ledger, instead_of = self._ledger, None if beside else record
        for _ in range(UNLOCKED):
            with ledger.changed:
                search, stamp = ledger.search(spec, avoid, instead_of, faster), ledger.stamp
            current = True
            for candidate in search.candidates():
                with ledger.changed:
                    current = ledger.stamp == stamp and ledger.fabric.view is search.view
                    if not current:
                        break
                    if (plan := search.attempt(candidate, ledger.room(instead_of))) is not None:
                        if beside and search.without_stripes and self._several_instead(record, spec, avoid, faster):
                            raise search.failure()
                        return self._take(record, spec, plan, beside=beside)
            with ledger.changed:
                current &= ledger.stamp == stamp and ledger.fabric.view is search.view
            if current:
                raise search.failure()
        with ledger.changed:
            return self._take(record, spec, ledger.plan(spec, avoid, instead_of, faster), beside=beside)

    def _several_instead(
        self, record: Record, spec: GroupSpec, avoid: Mapping[str, str], faster: Faster | None
    ) -> bool:
        """Whether a group gets several trees in place of its present tree, and only one of them fits beside it."""
        try:
            return record.placed is not None and bool(self._ledger.plan(spec, avoid, record, faster).placed.rates)
        except NoPlaceError:
            return False

    def _take(self, record: Record, spec: GroupSpec, plan: Plan, *, beside: bool) -> tuple[Key, PlacedTrees] | None:
        if plan.leased:
            record.home = plan.placed.first.tree
            self.park(record, spec)
            return None
        record.home = None
        old = (record.key, record.placed)
        self._ledger.begin(record, plan.placed, plan.pools, beside=beside)
        if not beside:
            self.uninstall(*old)
        return record.pending_key, plan.placed

    def install(self, key: Key, placed: PlacedTrees) -> dict[str, AgentError]:
        """Install a placement on all its switches at the same time. Returns the errors by switch."""
        return self.wait(self.start_install(key, placed, {}))

    def start_install(self, key: Key, placed: PlacedTrees, instead_of: Mapping[str, Collection[Key]]) -> Answers:
        """Ask all its switches to install a placement and, at the same time, to remove the placements in
        ``instead_of``, by switch; other switches only remove those. Call it together with freeing resources, as
        ``uninstall``."""
        answers: dict[str, Future[Any]] = {}
        for switch in placed.switches:
            if switch in self._threads:
                answers[switch] = self._threads[switch].install(key, placed, instead_of.get(switch, ()))
            else:
                answers[switch] = Future()
                answers[switch].set_exception(AgentError("it is no longer registered", unreachable=True))
        for switch in instead_of.keys() & self._threads.keys() - answers.keys():
            for gone in instead_of[switch]:
                self._threads[switch].remove(gone)
        return answers

    def activate(self, key: Key, placed: PlacedTrees) -> None:
        """Tell all its switches that a placement is used."""
        for switch in placed.switches:
            if switch in self._threads:
                self._threads[switch].activate(key)

    def uninstall(self, key: Key, placed: PlacedTrees | None) -> Answers:
        """Ask all switches of a placement to remove it. Call this together with freeing its resources: each switch then
        gets the requests of later users of these resources afterwards."""
        return self.remove(key, placed.switches if placed is not None else ())

    def remove(self, key: Key, switches: Iterable[str]) -> Answers:
        """Ask these switches to remove a placement."""
        return {name: self._threads[name].remove(key) for name in switches if name in self._threads}

    def park(self, record: Record, spec: GroupSpec, reason: str = "") -> Answers:
        """Record that a group's calls run on a ring, and uninstall it. The ledger's lock is held."""
        old = (record.key, record.placed)
        self._ledger.to_ring(record, spec, reason)
        return self.uninstall(*old)

    def uproot(self, record: Record, reason: str, state: GroupState = GroupState.BROKEN) -> None:
        """Record that a group currently has no place, and uninstall it. The ledger's lock is held."""
        old = (record.key, record.placed)
        self._ledger.break_(record, reason, state)
        self.uninstall(*old)

    def destroy(self, record: Record) -> None:
        """Destroy a group; ``record`` is busy for this caller."""
        ledger = self._ledger
        with ledger.changed:
            ledger.mark_removing(record)
            answers = self.uninstall(record.key, record.placed)
        self.wait(answers)
        with ledger.changed:
            ledger.drop(record)

    def wait(self, answers: Answers, patience: float | None = None) -> dict[str, AgentError]:
        """Wait for all answers. Returns the errors by switch. A missing answer is an error."""
        patience = self._patience if patience is None else patience
        concurrent.futures.wait(answers.values(), timeout=patience)
        failures = {}
        for switch, answer in answers.items():
            if not answer.done():
                failures[switch] = AgentError(f"it did not answer for {patience:g} s", unreachable=True)
                continue
            error = answer.exception()
            if isinstance(error, AgentError):
                failures[switch] = error
            elif isinstance(error, Exception):
                failures[switch] = AgentError(f"{type(error).__name__}: {error}")
            elif error is not None:
                raise error
        return failures

    def empty(self, switches: Iterable[str], without: Record | None = None) -> set[str]:
        """The switches among these that hold no group, if ``without`` gives up what it holds, which it then does."""
        ledger = self._ledger
        with ledger.changed:
            lived = {name for other, placed in ledger.live() if other is not without for name in placed.switches}
            if without is not None and without.placed is not None and set(switches) - lived:
                self.uproot(without, "the program of a switch in its tree is loaded again")
            return set(switches) - lived

    def restart(self, switches: Iterable[str]) -> None:
        """Load the programs of switches again that hold nothing, so that all epochs are unused."""
        answers = {name: self._threads[name].restart() for name in switches if name in self._threads}
        self.wait(answers)

    def busy(self, name: str, *states: GroupState) -> Record:
        """Reserve a group for this caller, once no other one works on it. The ledger's lock is held. Raises
        ``ManagerError`` when there is no such group, it is in another state, or others take too long."""
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
        """End the reservation of a group by ``busy``."""
        with self._ledger.changed:
            record.busy = False
            self._ledger.ask_no_longer(record)
            self._ledger.changed.notify_all()


def of_switch(name: str, error: AgentError) -> str:
    """The text of a switch's failure, with its name, which most agents already include."""
    return error.reason if error.reason.startswith((f"{name}:", f"{name} ")) else f"{name}: {error.reason}"


def refusal(failures: Mapping[str, AgentError]) -> ManagerError:
    """The error of a request that switches have failed."""
    unreachable = all(error.unreachable for error in failures.values())
    reasons = "\n".join(of_switch(switch, error) for switch, error in failures.items())
    return ManagerError(Code.UNREACHABLE if unreachable else Code.REFUSED, reasons)
