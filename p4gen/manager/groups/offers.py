"""Memory that ranks offer to a group whose switches write results there (EPIC section 4.3, footnote 5).

How much it is follows from the program, which ranks do not know before they are in the group. So the manager asks all
ranks by their watches, and each offers what it has registered. Every placement of the group has these addresses and
keys, until it gets other ranks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from p4gen.groups.group import Memory
from p4gen.manager.api import Code, GroupSpec, ManagerError
from p4gen.manager.store.ledger import Ledger
from p4gen.manager.store.record import Record


class Offers:
    """Offers of ranks, for which a request waits ``patience`` seconds. ``check_open`` raises when the manager has
    ended."""

    def __init__(self, ledger: Ledger, patience: float, check_open: Callable[[], None]) -> None:
        self._ledger, self._patience, self._check_open = ledger, patience, check_open

    def complete(self, record: Record, spec: GroupSpec, size: int) -> GroupSpec:
        """The request with memory of ``size`` bytes of each rank. ``record`` is busy for this caller; until it is idle,
        ranks are asked. Raises ``ManagerError`` with those that offer none."""
        ledger, until = self._ledger, time.monotonic() + self._patience
        with ledger.changed:
            ledger.ask(record, spec.ranks, size)
            while away := [host for host in spec.ranks if host not in record.offers]:
                self._check_open()
                left = until - time.monotonic()
                if left <= 0:
                    what = f"{', '.join(away)} {'has' if len(away) == 1 else 'have'} offered no memory"
                    raise ManagerError(Code.UNREACHABLE, f"group {spec.name}: {what} in {self._patience:g} s")
                ledger.changed.wait(left)
            return replace(spec, memories=tuple(record.offers[host] for host in spec.ranks))

    def offer(self, group: str, host: str, memory: Memory) -> None:
        """Implement ``HostManager.offer_memory``."""
        with self._ledger.changed:
            record = self._ledger.get(group)
            wanted = record.asked.get(host)
            if wanted is None:
                raise ManagerError(Code.REFUSED, f"group {group} asks {host} for no memory")
            if memory.size < wanted:
                raise ManagerError(Code.INVALID, f"group {group} takes {wanted:,} bytes of {host}, not {memory.size:,}")
            record.offers[host] = memory
            self._ledger.changed.notify_all()
