"""Hosts that make calls together: in a group of the manager, or over connections of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from p4gen.labs.calls import CallOrder
from p4gen.labs.nodes import Nodes
from p4gen.manager.api import GroupStatus, Status

T = TypeVar("T")
_TOLD: Final = 3


@dataclass(frozen=True)
class Party:
    """Hosts that make calls together."""

    name: str
    """The name by which hosts know it."""
    ranks: tuple[str, ...]
    """The hosts, in order of rank."""
    place: str
    """Where they call, as a line about a call ends: ", group all: s0 (root)"."""
    group: GroupStatus | None = None
    """Its status when calls began; None if it has connections."""
    numbers: tuple[int, ...] = ()
    """Its connections at the manager."""
    refused: tuple[str, ...] = field(default=(), repr=False)
    """Why others are not registered."""

    @property
    def not_registered(self) -> list[str]:
        """The same as lines, the first few of them."""
        lines = [f"not registered: {reason}" for reason in self.refused[:_TOLD]]
        left = len(self.refused) - len(lines)
        return [*lines, f"and {left} more"] if left else lines


class Parties(Protocol):
    """The parties of a lab's hosts. All methods raise ``P4genError`` with the reason."""

    def check_run(self) -> None:
        """Raises ``InputError`` if calls could not end now, because the manager is dead, and its agents do not send the
        ticks that they need."""

    def of(self, ranks: Sequence[str], call: CallOrder, named: GroupStatus | None = None) -> Party:
        """The party of these hosts for a call, or that of a group that was ``named``; created if it is new. All hosts
        can make the call in it."""
        ...

    def give_up(self, party: Party) -> list[str]:
        """End a party, because its ranks are no longer in step. Returns what there is to say about it."""
        ...

    def states(self) -> Any:
        """What the manager says of all groups, or connections."""
        ...

    def changes(self, before: Any, noticed: Callable[[Status], bool]) -> list[str]:
        """How groups, or connections, have changed since ``states`` was asked, once the manager has ``noticed`` an
        event, a line each."""
        ...


def settled(
    lab: Nodes,
    noticed: Callable[[Status], bool],
    states: Callable[[], list[T]],
    changing: Callable[[T], bool],
    quiet: float,
    timeout: float = 30.0,
) -> list[T]:
    """Wait until the manager has noticed an event, and has finished what follows: until no state is ``changing``, and
    none has changed for ``quiet`` seconds. Returns the states then, or after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    before: list[T] | None = None
    while True:
        status = lab.manager.status()
        found = states()
        if (noticed(status) and not any(map(changing, found)) and found == before) or time.monotonic() > deadline:
            return found
        before = found
        time.sleep(quiet)
