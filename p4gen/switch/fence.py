"""The fence of a switch that does not report when it has handled everything: markers that it forwards.

A switch handles the frames of a port in the order of their arrival, and sends those for a port in order. So when a
marker that was sent into a port has left the switch, everything that was sent into this port before has passed ingress,
as far as that takes one pass; its copies may still wait in the queue of any port. A marker that is sent then and leaves
by that port leaves after them. Hence there are two rounds of markers, with one for each port that is entered and for
each that is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from p4gen.errors import FailedError

AGAIN_S: Final = 1.0
"""Seconds after which a marker that has not arrived is sent again: it may have been lost at a link that was down."""
PATIENCE_S: Final = 5.0
NUMBER_SIZE: Final = 8
"""Bytes of the number after a marker's sign."""
_ROUNDS: Final = 2


@dataclass(frozen=True)
class Marker:
    """A frame that the program under test forwards, once its route is there."""

    frame: bytes
    """The frame, which ends with ``sign``. A number of ``NUMBER_SIZE`` bytes follows it, for which its lengths have
    room."""
    leaves: int
    """The port by which it leaves."""
    sign: bytes
    """Bytes that no other frame has, and that forwarding keeps."""


class MarkerFence:
    """Waits for the markers of all ports. ``send`` gives a frame to a port. ``wait`` waits for frames until a time at
    most; the caller passes those that arrive to ``arrived``."""

    def __init__(
        self,
        markers: Mapping[int, Marker],
        send: Callable[[int, bytes], None],
        wait: Callable[[float], None],
        *,
        slower: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        signs = {marker.sign for marker in markers.values()}
        if len(signs) != len(markers):
            raise ValueError("markers need different signs")
        self._markers, self._send, self._wait, self._clock = dict(markers), send, wait, clock
        self._patience = PATIENCE_S * slower
        self._missing: set[int] = set()
        self._number = 0

    def arrived(self, port: int, frame: bytes) -> bool:
        """Whether a frame that left the switch is a marker; tests do not see markers. Markers of an earlier round, sent
        again and late, do not count."""
        for enters, marker in self._markers.items():
            if port == marker.leaves and marker.sign in frame:
                if self._numbered(marker.sign) in frame:
                    self._missing.discard(enters)
                return True
        return False

    def settle(self) -> None:
        """Return when the markers of every port have arrived. Raises ``FailedError`` for those that do not."""
        deadline = self._clock() + self._patience
        for _ in range(_ROUNDS):
            self._number += 1
            self._missing = set(self._markers)
            self._pass(deadline)

    def _pass(self, deadline: float) -> None:
        again = self._clock()
        while self._missing:
            now = self._clock()
            if now >= deadline:
                ports = ", ".join(map(str, sorted(self._missing)))
                raise FailedError(f"markers sent into port {ports} did not leave the switch in {self._patience:g} s")
            if now >= again:
                for port in sorted(self._missing):
                    self._send(port, self._numbered(self._markers[port].frame))
                again = now + AGAIN_S
            self._wait(min(again, deadline))

    def _numbered(self, data: bytes) -> bytes:
        return data + self._number.to_bytes(NUMBER_SIZE)
