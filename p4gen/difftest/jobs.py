"""Random traffic for programs whose jobs are entries of a table ``jobs``, by number, with an epoch."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from p4gen.difftest import noise
from p4gen.difftest.events import Event, Packet, Replication, Request
from p4gen.groups.group import SwitchConfig
from p4gen.model.entries import Entry, Exact
from p4gen.vocabulary import ProgramSpec

_REQUEST_EVERY, _REMEMBERED = 40, 30
JOBS: Final = 3
"""The most jobs that are served at once."""


class JobTraffic(ABC):
    """An endless source of events for a program of ``spec``, all derived from one seed. Entries are removed and
    restored, and jobs begin anew."""

    def __init__(self, spec: ProgramSpec, seed: int, config: SwitchConfig, more: Iterable[Entry] = ()) -> None:
        self.random = random.Random(seed)  # noqa: S311 - tests are to be repeated
        self._config = config
        self._entries = [*config.entries, *noise.routes(spec), *more]
        self._removed: list[Entry] = []
        self._recent: list[Packet] = []

    @abstractmethod
    def renewed(self, match: dict[str, Exact]) -> int:
        """Begin the job anew that an entry of ``jobs`` matches. Returns its next epoch."""

    @abstractmethod
    def packet(self, chance: float) -> Packet:
        """A packet; the larger the ``chance``, from 0.1 to 1, the more may be wrong with it."""

    def setup(self) -> list[Event]:
        """The initial configuration."""
        groups = (Replication(group) for group in self._config.multicast_groups)
        return [*(Request("insert", entry) for entry in self._entries), *groups]

    def packets(self) -> Iterator[Event]:
        """Endless packets, with requests between them."""
        rng = self.random
        while True:
            if rng.randrange(_REQUEST_EVERY) == 0:
                yield self._request()
            chance = rng.random()
            again = self._recent and chance < 0.1
            packet = replace(rng.choice(self._recent), kind="repeated") if again else self.packet(chance)
            self._recent = [*self._recent[-_REMEMBERED:], packet]
            yield packet

    def _request(self) -> Event:
        rng = self.random
        if self._removed and rng.random() < 0.6:
            return Request("insert", self._removed.pop())
        entry = rng.choice([entry for entry in self._entries if entry not in self._removed])
        if entry.table != "jobs" or rng.random() < 0.2:
            self._removed.append(entry)
            return Request("delete", entry)
        epoch = self.renewed({name: key for name, key in entry.match.items() if isinstance(key, Exact)})
        anew = replace(entry, action=replace(entry.action, args={**entry.action.args, "epoch": epoch}))
        self._entries[self._entries.index(entry)] = anew
        return Request("modify", anew)


def next_epoch(epoch: int) -> int:
    """The epoch after one of 1 to 255."""
    return epoch % 255 + 1
