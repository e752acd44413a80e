"""One received packet and everything it causes: passes through ingress and egress until none is left."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Any, Generic, TypeVar

from p4gen.errors import Pos
from p4gen.model.state import ModelState
from p4gen.model.trace import Trace

MAX_PASSES = 1000
"""Passes through ingress or egress that one received packet may cause; more is endless recirculation."""

HELD = 1 << 16
"""The number that takes the place of a port where the switch holds packets back: those that recirculate leave and
return by it."""

A = TypeVar("A")
D = TypeVar("D")


class Passes(ABC, Generic[A, D]):
    """The packets that wait for ingress (``A``) and for egress (``D``), and those that have left by ports.

    ``at`` is the position in the program that a trap for too many passes names.
    """

    def __init__(self, state: ModelState, at: Pos, trace: Trace | None) -> None:
        self._state = state
        self._at = at
        self._trace = trace
        self._arrivals: deque[A] = deque()
        self._departures: deque[D] = deque()
        self._outputs: list[tuple[int, bytes]] = []

    def packet(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        """Process a received packet. Returns the output as (port, packet), in order of transmission."""
        self._note("packet", f"packet of {len(packet)} bytes on port {port}", port=port, size=len(packet))
        self._arrivals.append(self._arrival(port, packet))
        passes = into = 0
        while self._departures or self._arrivals:
            passes += 1
            if passes > MAX_PASSES:
                what = f"one packet caused more than {MAX_PASSES} passes, the rest is dropped"
                self._state.trap(self._at, what)
                self._note("trap", f"trap: {what}")
                break
            if self._departures:
                self._egress(self._departures.popleft())
            else:
                into += 1
                self._ingress(self._arrivals.popleft())
        self._state.most_passes = max(self._state.most_passes, into)
        return self._outputs

    @abstractmethod
    def _arrival(self, port: int, packet: bytes) -> A:
        """The packet at the start of ingress."""

    @abstractmethod
    def _ingress(self, arrival: A) -> None: ...

    @abstractmethod
    def _egress(self, packet: D) -> None: ...

    def _note(self, kind: str, what: str, **data: Any) -> None:
        if self._trace is not None:
            self._trace.add(kind, what, None, **data)
