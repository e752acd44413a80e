"""NICs, as applications see them: queue pairs that share a line. Answers are sent first; then the queue pairs take
turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from p4gen.host.transport.clock import Clock
from p4gen.host.transport.memory import ProtectionDomain
from p4gen.host.transport.rc import QueuePair
from p4gen.host.transport.verbs import Completion, Peer, QpConfig

BURST: Final = 8
"""Number of packets given to the line at once, as a NIC's pipeline holds some. An ACK may have to wait for that
many."""


class Line(Protocol):
    """The line on which a NIC sends."""

    def transmit(self, frame: bytes, at: int) -> int:
        """Send a frame at time ``at``, which is not before now. Returns when the line is free again."""
        ...


class Nic(Protocol):
    """A NIC with one port (``p4gen.host.compiled.nics``)."""

    mac: int
    ip: int
    clock: Clock
    domain: ProtectionDomain
    line: Line
    checks_icrc: bool
    """Whether frames with a wrong ICRC are dropped, as by default. Programs of ``icrc ignore`` change packets but not
    their ICRC, so NICs beside them must not check it; they then accept corrupt data."""

    @property
    def pairs(self) -> Mapping[int, QueuePair]:
        """The queue pairs, by their numbers."""
        ...

    @property
    def dropped(self) -> Counter[str]:
        """Number of received frames that were dropped, by reason."""
        ...

    def create_pair(
        self, number: int, peer: Peer, config: QpConfig, on_completion: Callable[[Completion], None]
    ) -> QueuePair:
        """Create a connected queue pair. ``number`` has 24 bits; raises ``ValueError`` when it is in use."""
        ...

    def destroy_pair(self, pair: QueuePair) -> None:
        """Destroy a queue pair. Packets for it are dropped from now on."""
        ...

    def receive(self, frame: bytes) -> None:
        """Receive a frame: drop it, or give it to its queue pair."""
        ...

    def parts(self) -> dict[str, object]:
        """The parts that have state, by name."""
        ...
