"""Events that both switches get, in order: frames, and control-plane requests."""

from __future__ import annotations

from dataclasses import dataclass

from p4gen.model.control import describe_match
from p4gen.model.entries import CloneSession, Entry, MulticastGroup


@dataclass(frozen=True)
class Packet:
    """A frame arrives. ``kind`` is the kind of packet that the generator intended."""

    port: int
    frame: bytes
    kind: str = ""

    def __str__(self) -> str:
        return f"packet on port {self.port}, {len(self.frame)} bytes ({self.kind})"


@dataclass(frozen=True)
class Request:
    """A request about a table entry: ``insert``, ``modify`` or ``delete``."""

    verb: str
    entry: Entry

    def __str__(self) -> str:
        return f"{self.verb} {self.entry.table} [{describe_match(self.entry)}]"


@dataclass(frozen=True)
class Replication:
    """A multicast group is set, or removed if it has no replicas."""

    group: MulticastGroup

    def __str__(self) -> str:
        return f"multicast group {self.group.group_id} to {len(self.group.replicas)} edges"


@dataclass(frozen=True)
class Mirroring:
    """A clone session is set, or removed if it has no replicas."""

    session: CloneSession

    def __str__(self) -> str:
        return f"clone session {self.session.session_id} to {len(self.session.replicas)} ports"


Event = Packet | Request | Replication | Mirroring
