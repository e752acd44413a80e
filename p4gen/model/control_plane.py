"""The interface of every switch: the embedded one, BMv2, Tofino."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

from p4gen.model.entries import Action, CloneSession, CounterValue, Entry, MulticastGroup


class ControlPlane(Protocol):
    """Configuration and state of a running switch, by P4Info names.

    Every method raises ``ControlError`` when the program has no such object, or the request does not fit it (unknown
    name, value too wide, missing key, table full, duplicate or missing entry), and then changes nothing.
    """

    @abstractmethod
    def insert(self, *entries: Entry) -> None:
        """Add table entries; all or none."""

    @abstractmethod
    def modify(self, *entries: Entry) -> None:
        """Change the action of existing entries; all or none."""

    @abstractmethod
    def delete(self, *entries: Entry) -> None:
        """Remove table entries, whatever their action; all or none."""

    @abstractmethod
    def entries(self, table: str) -> list[Entry]:
        """All entries of a table, the program's own included, in the order of insertion."""
        ...

    @abstractmethod
    def set_default(self, table: str, action: Action | None) -> None:
        """Replace a table's default action; None restores the program's."""

    @abstractmethod
    def set_multicast_group(self, group: MulticastGroup) -> None:
        """Create or replace; a group without replicas is removed."""

    @abstractmethod
    def set_clone_session(self, session: CloneSession) -> None:
        """Create or replace; a session without replicas is removed."""

    @abstractmethod
    def counter(self, name: str, index: int = 0) -> CounterValue:
        """One cell of an indexed counter."""
        ...

    @abstractmethod
    def counters(self, name: str) -> list[CounterValue]:
        """All cells of an indexed counter."""
        ...

    @abstractmethod
    def register(self, name: str, index: int) -> int:
        """One cell of a register, as an unsigned number."""
        ...

    @abstractmethod
    def registers(self, name: str) -> list[int]:
        """All cells of a register, as unsigned numbers."""
        ...

    @abstractmethod
    def write_register(self, name: str, index: int, value: int) -> None:
        """Set one cell of a register to an unsigned number."""

    @abstractmethod
    def reset(self) -> None:
        """Return to the state after loading: no entries, groups or sessions; state and counters 0."""
