"""What happened to a packet, event by event, with source positions.

Tracing costs nothing while it is off: the interpreter compiles a second, tracing form of the program
when it is first asked for one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from p4gen.errors import Pos
from p4gen.p4 import types as t


@dataclass(frozen=True)
class Event:
    """One thing that happened. ``kind`` is one of: packet, block, state, extract, reject, table, action,
    read, write, count, meter, hash, request, decision, drop, emit, output, log, trap, digest; ``data``
    holds its particulars by name; ``pos`` is None for what the traffic manager does."""

    kind: str
    what: str
    pos: Pos | None = None
    data: dict[str, Any] = field(default_factory=dict)


class Trace:
    """The events of one or more packets, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, kind: str, what: str, pos: Pos | None = None, **data: Any) -> None:
        """Append an event."""
        self.events.append(Event(kind, what, pos, data))

    def of(self, *kinds: str) -> list[Event]:
        """The events of these kinds."""
        return [e for e in self.events if e.kind in kinds]

    def __str__(self) -> str:
        return "\n".join(render(self.events))


_TOP = ("packet", "block", "decision", "drop", "output")


def render(events: Iterable[Event]) -> list[str]:
    """``file:line  what`` lines, positions aligned; the traffic manager's own events stand out left."""
    listed = list(events)
    places = [f"{e.pos.file}:{e.pos.line}" if e.pos else "" for e in listed]
    width = max(map(len, places), default=0)
    return [
        f"{place:<{width}}  {'' if event.kind in _TOP else '  '}{event.what}".rstrip()
        for place, event in zip(places, listed, strict=True)
    ]


def show(value: Any, of: t.Type | None = None) -> str:
    """A value as traces print it: numbers in hexadecimal from ten on, those of serialisable enums by name."""
    if isinstance(value, bool) or not isinstance(value, int):
        return str(value)
    kind = t.strip(of) if of is not None else None
    if isinstance(kind, t.SerEnum):
        name = next((name for name, number in kind.members if number == value), None)
        if name is not None:
            return f"{name} ({value})"
    return str(value) if -10 < value < 10 else f"{value} ({value:#x})" if value < 1 << 16 else f"{value:#x}"
