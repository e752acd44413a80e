"""The trace of a packet: its events, with source positions.

Tracing has no cost while it is off: the interpreter compiles a second, tracing form of the program when it is first
needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from p4gen.errors import Pos
from p4gen.model.values import HeaderValue, StackValue, StructValue, Varbit
from p4gen.p4 import types as t


@dataclass(frozen=True)
class Event:
    """An event of a trace. ``kind`` is one of: packet, block, state, extract, reject, table, selector, action, assign,
    condition, read, write, count, meter, hash, request, decision, drop, emit, output, log, trap, digest; ``data`` holds
    its details by name; ``pos`` is None for events of the traffic manager."""

    kind: str
    what: str
    pos: Pos | None = None
    data: dict[str, Any] = field(default_factory=dict)


class Trace:
    """The events of one or more packets, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, kind: str, what: str, pos: Pos | None = None, **data: Any) -> None:
        """Append an event; ``data`` are its details by name."""
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


_SHOWN = 16
"""The most fields of a header in a trace: all of IPv4's and of the BTH's, some of a payload's."""


def show(value: Any, of: t.Type | None = None) -> str:
    """A value as traces print it: numbers in hexadecimal from ten on, those of serialisable enums by name."""
    kind = t.strip(of) if of is not None else None
    if isinstance(value, HeaderValue) and not value.valid:
        return "invalid"
    if isinstance(value, StructValue | HeaderValue) and isinstance(kind, t.Fields):
        return f"{{{fields(value, kind)}}}"
    if isinstance(value, StructValue):
        return f"{{{', '.join(map(show, value.fields[:_SHOWN]))}{', …' if len(value.fields) > _SHOWN else ''}}}"
    if isinstance(value, StackValue):
        element = kind.element if isinstance(kind, t.Stack) else None
        return f"[{', '.join(show(each, element) for each in value.fields)}]"
    if isinstance(value, Varbit):
        return f"{value.value:#x} of {value.width} bits"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, int):
        return str(value)
    if isinstance(kind, t.SerEnum):
        name = next((name for name, number in kind.members if number == value), None)
        if name is not None:
            return f"{name} ({value})"
    return str(value) if -10 < value < 10 else f"{value} ({value:#x})" if value < 1 << 16 else f"{value:#x}"


def fields(value: StructValue | HeaderValue, of: t.Fields) -> str:
    """The fields of a struct or header with their values, the first of them where there are many."""
    listed = list(zip(of.fields, value.fields, strict=True))
    shown = ", ".join(f"{field.name}={show(each, field.type)}" for field, each in listed[:_SHOWN])
    return f"{shown}, …" if len(listed) > _SHOWN else shown
