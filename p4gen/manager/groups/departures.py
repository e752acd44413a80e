"""Hosts that have gone: their groups are destroyed, or fail if they are elastic. The calls of the other ranks end, and
say why.

A host follows its groups with a watch. When its process ends, so does the watch. A host that has lost only its
connection watches again at once.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from typing import Final

from p4gen.manager.api import GroupState, ManagerError
from p4gen.manager.groups.lifecycle import Lifecycle
from p4gen.manager.store.ledger import Ledger
from p4gen.manager.store.store import ClosedError

LOGGER = logging.getLogger("p4gen.manager")
AWAY: Final = 4.0
"""Seconds without a watch after which a host has gone."""


class Departures:
    """A thread that ends the groups of hosts that have been without a watch for ``away`` seconds."""

    def __init__(self, ledger: Ledger, lifecycle: Lifecycle, away: float = AWAY) -> None:
        self._ledger, self._lifecycle, self._away = ledger, lifecycle, away
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="inc-departures", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self, deadline: float) -> None:
        """End the thread, and wait for it until ``deadline``."""
        with self._ledger.changed:
            self._closing = True
            self._ledger.changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        ledger = self._ledger
        while True:
            with ledger.changed:
                while not self._closing and not (hosts := self._gone()):
                    first = min(ledger.unwatched.values(), default=None)
                    ledger.changed.wait(None if first is None else max(0.0, first + self._away - time.monotonic()))
                if self._closing:
                    return
                groups = [(name, host) for name, r in ledger.records.items() for host in r.spec.ranks if host in hosts]
            for group, host in groups:
                self._end(group, host)

    def _gone(self) -> set[str]:
        """Hosts that have now been away for long enough; they are told of once."""
        left = self._ledger.unwatched
        hosts = {host for host, since in left.items() if since + self._away <= time.monotonic()}
        for host in hosts:
            del left[host]
        return hosts

    def _end(self, group: str, host: str) -> None:
        """An elastic group stays as long as some of its ranks do."""
        try:
            with self._ledger.changed:
                record = self._lifecycle.busy(group, GroupState.ACTIVE, GroupState.BROKEN, GroupState.FAILED)
            try:
                gone = (*(each for each in record.spec.gone if each != host), host)
                reason = f"{', '.join(gone)} {'has' if len(gone) == 1 else 'have'} gone away"
                stays = record.spec.elastic and not set(record.spec.ranks) <= set(gone)
                LOGGER.warning("group %s %s: %s", group, "fails" if stays else "is destroyed", reason)
                if stays:
                    with self._ledger.changed:
                        record.spec = replace(record.spec, gone=gone)
                        self._lifecycle.uproot(record, reason, GroupState.FAILED)
                else:
                    record.reason = reason
                    self._lifecycle.destroy(record)
            finally:
                self._lifecycle.idle(record)
        except (ManagerError, ClosedError) as error:
            LOGGER.info("group %s: %s", group, error)
