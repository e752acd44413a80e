"""The fence of a switch that does not say when it has handled everything: markers that it forwards.

A switch handles what arrives at a port in order. So when a frame that was sent into a port has left the switch,
everything that was sent into this port before has been handled, as far as it takes one pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from p4gen.errors import FailedError

AGAIN_S: Final = 1.0
"""After so many seconds a marker that has not come is sent again: it may have been lost at a link that was down."""
PATIENCE_S: Final = 5.0


@dataclass(frozen=True)
class Marker:
    """A frame that the program under test forwards, once its route is there."""

    frame: bytes
    leaves: int
    """The port at which it leaves."""
    sign: bytes
    """Bytes that no other frame has, and that forwarding keeps."""


class MarkerFence:
    """Waits for the markers of all ports. ``send`` hands a frame to a port, ``wait`` waits for frames to arrive until
    a time at most, which ``arrived`` is then told of."""

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
        self._missing: dict[int, Marker] = {}

    def arrived(self, port: int, frame: bytes) -> bool:
        """Whether a frame that left the switch is a marker, of this or an earlier fence; tests do not see markers."""
        for enters, marker in self._markers.items():
            if port == marker.leaves and marker.sign in frame:
                self._missing.pop(enters, None)
                return True
        return False

    def settle(self) -> None:
        """Return when the marker of every port has arrived. Raises ``FailedError`` for those that do not."""
        self._missing = dict(self._markers)
        deadline = self._clock() + self._patience
        again = self._clock()
        while self._missing:
            now = self._clock()
            if now >= deadline:
                ports = ", ".join(map(str, sorted(self._missing)))
                raise FailedError(f"markers sent into port {ports} did not leave the switch in {self._patience:g} s")
            if now >= again:
                for port, marker in list(self._missing.items()):
                    self._send(port, marker.frame)
                again = now + AGAIN_S
            self._wait(min(again, deadline))
