"""The counters of connections at one switch, from the registration of each connection on.

A switch's counters outlive the connections that they count. Those of entries begin again when an entry is removed, as
when paths change. So sums are kept here. A restarted manager knows only the counters' present values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from p4gen.groups.connections import ConnectionHere, Tally, connection_entries
from p4gen.manager.api import ConnectionCount
from p4gen.manager.switches.wanted import HeldConnection, HeldConnections
from p4gen.vocabulary import ProgramSpec

Read = Callable[[Sequence[Tally]], Sequence[int]]
"""An agent's function that reads tallies; 0 for those that it cannot read."""


@dataclass
class _Counted:
    """A connection's sums, and the counter values that these already include."""

    sums: dict[str, int] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)


class Tallies:
    """The counters of the connections of ``switch``. Only the switch's thread may use them; ``of`` may be called from
    any."""

    def __init__(self, switch: str) -> None:
        self._switch = switch
        self._counted: dict[int, _Counted] = {}

    def of(self, number: int) -> tuple[ConnectionCount, ...]:
        """The sums of a connection, in the family's order."""
        counted = self._counted.get(number)
        return () if counted is None else tuple(ConnectionCount(*each) for each in list(counted.sums.items()))

    def forget(self, number: int) -> None:
        """A connection has been released."""
        self._counted.pop(number, None)

    def begin(self, spec: ProgramSpec, held: HeldConnections, read: Read) -> None:
        """Count new connections from now on: the present values of their counters belong to earlier ones."""
        new = {number: each for number, each in held.items() if number not in self._counted}
        for number, name, value, _ in self._values(spec, new, read):
            counted = self._counted.setdefault(number, _Counted())
            counted.sums[name], counted.seen[name] = 0, value

    def update(self, spec: ProgramSpec, held: HeldConnections, read: Read, removed: Iterable[int] = ()) -> None:
        """Read the counters of connections. Those of the entries of ``removed`` begin again afterwards."""
        gone = set(removed)
        for number, name, value, by_entry in self._values(spec, held, read):
            counted = self._counted.setdefault(number, _Counted())
            last = counted.seen.get(name, 0)
            counted.sums[name] = counted.sums.get(name, 0) + (value - last if value >= last else value)
            counted.seen[name] = 0 if by_entry and number in gone else value

    def _values(self, spec: ProgramSpec, held: HeldConnections, read: Read) -> Iterable[tuple[int, str, int, bool]]:
        """Number of the connection, name, value, and whether it is an entry's counter."""
        facet = connection_entries(spec)
        if facet is None:
            return
        named = [(number, tally) for number, each in held.items() for tally in facet.tallies(spec, self._here(each))]
        values = read([tally for _, tally in named]) if named else ()
        for (number, tally), value in zip(named, values, strict=True):
            yield number, tally.name, value, tally.entry is not None

    def _here(self, held: HeldConnection) -> ConnectionHere:
        return held.placed.here(self._switch, filtered=held.filtered)
