"""NICs, as applications see them: ``VerbsNic`` is what every NIC with verbs offers, ``Nic`` is ours.

The queue pairs of our NIC share a line. Answers are sent first; then the queue pairs take turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from p4gen.host.transport.clock import Clock
from p4gen.host.transport.memory import Domain, ProtectionDomain
from p4gen.host.transport.rc import QueuePair, VerbsPair
from p4gen.host.transport.verbs import Completion, Peer, QpConfig

BURST: Final = 8
"""Number of packets given to the line at once, as a NIC's pipeline holds some. An ACK may have to wait for that
many."""


class Line(Protocol):
    """The line on which a NIC sends."""

    def transmit(self, frame: bytes, at: int) -> int:
        """Send a frame at time ``at``, which is not before now. Returns when the line is free again."""
        ...


class VerbsNic(Protocol):
    """A NIC with one port, ours or a device of the host."""

    clock: Clock
    checks_icrc: bool
    """Whether frames with a wrong ICRC are dropped, as by default. Programs of ``icrc ignore`` change packets but not
    their ICRC, so NICs beside them must not check it; they then accept corrupt data. Devices always check."""

    @property
    def compiled(self) -> bool:
        """Whether machine code runs the phases of collectives on its queue pairs."""
        ...

    @property
    def domain(self) -> Domain:
        """The memory that peers may use."""
        ...

    @property
    def pairs(self) -> Mapping[int, VerbsPair]:
        """The queue pairs, by their numbers."""
        ...

    @property
    def dropped(self) -> Counter[str]:
        """Number of received frames that were dropped, by reason."""
        ...

    def create_pair(
        self, number: int, peer: Peer, config: QpConfig, on_completion: Callable[[Completion], None]
    ) -> VerbsPair:
        """Create a connected queue pair. ``number`` has 24 bits; raises ``ValueError`` when it is in use."""
        ...

    def destroy_pair(self, pair: VerbsPair) -> None:
        """Destroy a queue pair. Packets for it are dropped from now on."""
        ...

    def own_numbers(self, count: int) -> tuple[int, ...]:
        """Numbers for ``count`` queue pairs between hosts, which no manager gives, and no earlier one of which packets
        may be under way. Raises ``FailedError`` if there are not so many."""
        ...


class Nic(VerbsNic, Protocol):
    """Our NIC (``p4gen.host.compiled.nics``)."""

    mac: int
    ip: int
    domain: ProtectionDomain
    line: Line
    datagrams: list[Callable[[bytes], bool]]
    """Applications: each takes frames that are for no queue pair, such as UDP datagrams, and says whether it did."""

    @property
    def pairs(self) -> Mapping[int, QueuePair]:
        """The queue pairs, by their numbers."""
        ...

    def create_pair(
        self, number: int, peer: Peer, config: QpConfig, on_completion: Callable[[Completion], None]
    ) -> QueuePair:
        """Create a connected queue pair. ``number`` has 24 bits; raises ``ValueError`` when it is in use."""
        ...

    def receive(self, frame: bytes) -> None:
        """Receive a frame: drop it, or give it to its queue pair."""
        ...

    def send(self, frame: bytes) -> None:
        """Send a frame of no queue pair now, behind those that the line has. Call it on the NIC's loop."""
        ...

    def parts(self) -> dict[str, object]:
        """The parts that have state, by name."""
        ...
