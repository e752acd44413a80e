"""The transitions of a search, as a stream of numbers, and the states that reach an end over them (Numba).

The transitions of a state follow each other: the states that they lead to, their number, and the state that they leave.
A stream is read from its end, so a mark spreads through many states in one sweep.
"""

from __future__ import annotations

from typing import Any

from p4gen.compiled.cached import compiled_with
from p4gen.verification.search.events import END, EXPIRE


@compiled_with(nogil=True)
def pack(sources: Any, events: Any, targets: Any, packets: Any, timers: Any) -> Any:
    """Write transitions, those of a state one after the other, to two streams: those of packets, and by timers. Returns
    how long they are."""
    p = t = i = 0
    while i < len(sources):
        source = sources[i]
        of_packets, of_timers = p, t
        while i < len(sources) and sources[i] == source:
            if (events[i] >> 24) & 7 < EXPIRE:
                packets[p] = targets[i]
                p += 1
            elif events[i] != END:
                timers[t] = targets[i]
                t += 1
            i += 1
        if p > of_packets:
            packets[p], packets[p + 1] = p - of_packets, source
            p += 2
        if t > of_timers:
            timers[t], timers[t + 1] = t - of_timers, source
            t += 2
    return p, t


@compiled_with(nogil=True)
def some(marks: Any, stream: Any) -> bool:
    """Mark states from which a transition leads to a marked one, in one sweep. Returns whether it found any."""
    return bool(_sweep(marks, stream, True))


@compiled_with(nogil=True)
def every(marks: Any, stream: Any) -> bool:
    """Mark states all of whose transitions lead to marked ones, in one sweep. Returns whether it found any."""
    return bool(_sweep(marks, stream, False))


@compiled_with(inline="always")
def _sweep(marks: Any, stream: Any, enough: Any) -> Any:
    changed = False
    i = len(stream) - 1
    while i > 0:
        source, count = stream[i], int(stream[i - 1])
        i -= 2 + count
        if not marks[source]:
            marked = not enough
            for j in range(i + 1, i + 1 + count):
                if (marks[stream[j]] != 0) == enough:
                    marked = enough
                    break
            if marked:
                marks[source] = 1
                changed = True
    return changed


@compiled_with(nogil=True)
def unmark(marks: Any, stream: Any) -> None:
    """Remove the marks of all states that the transitions leave."""
    i = len(stream) - 1
    while i > 0:
        marks[stream[i]] = 0
        i -= 2 + int(stream[i - 1])
