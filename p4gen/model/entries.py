"""The objects that a control plane writes to a switch, with P4Info names.

Tables, actions, keys and parameters are named by their full P4Info name or a unique suffix of it. Values are
non-negative integers as on the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


class Text(int):
    """A string as a value, for types whose values P4Runtime translates to strings.

    The number is that of its bytes, as the protocol carries it.
    """

    def __new__(cls, text: str) -> Text:
        """The value for the string ``text``."""
        return super().__new__(cls, int.from_bytes(text.encode()))

    def __str__(self) -> str:
        return self.to_bytes((self.bit_length() + 7) // 8).decode()

    def __repr__(self) -> str:
        return f"Text({str(self)!r})"


@dataclass(frozen=True)
class Exact:
    """A match on exactly one value."""

    value: int


@dataclass(frozen=True)
class Lpm:
    """The first ``prefix_len`` bits of ``value``."""

    value: int
    prefix_len: int


@dataclass(frozen=True)
class Ternary:
    """The bits of ``value`` where ``mask`` is one."""

    value: int
    mask: int


@dataclass(frozen=True)
class Range:
    """``low`` to ``high``, both included."""

    low: int
    high: int


Match = int | Exact | Lpm | Ternary | Range
"""The match of a key. A plain int is an exact (or optional) match. An omitted key is a wildcard."""


@dataclass(frozen=True)
class Action:
    """An action and its arguments by name."""

    name: str
    args: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Indirect(Action):
    """The action of an entry of a table with an action profile: a member, a group, or its own set of (action, weight,
    watch port). Exactly one is given; ``name`` and ``args`` are not used."""

    name: str = ""
    member: int | None = None
    group: int | None = None
    actions: tuple[tuple[Action, int, int | None], ...] = ()


@dataclass(frozen=True)
class Entry:
    """A table entry; ``priority`` (larger wins) exactly for tables with ternary, range or optional
    keys."""

    table: str
    match: Mapping[str, Match]
    action: Action
    priority: int = 0


@dataclass(frozen=True)
class Replica:
    """One copy that the packet replication engine makes."""

    port: int
    rid: int = 0


@dataclass(frozen=True)
class MulticastGroup:
    """A multicast group, which ``mcast_grp`` selects."""

    group_id: int
    replicas: tuple[Replica, ...]


@dataclass(frozen=True)
class CloneSession:
    """A clone (mirror) session."""

    session_id: int
    replicas: tuple[Replica, ...]
    packet_length: int = 0
    """Bytes kept of each clone; 0 keeps all."""


@dataclass(frozen=True)
class CounterValue:
    """The packets and bytes that a counter cell has counted."""

    packets: int
    bytes: int
