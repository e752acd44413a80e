"""Interfaces between a queue pair and its two halves.

``requester`` and ``responder`` know only these interfaces, so they are in a layer below ``rc``, which combines them.
"""

from __future__ import annotations

from typing import Protocol

from p4gen.host.transport.clock import Clock
from p4gen.host.transport.memory import ProtectionDomain
from p4gen.host.transport.verbs import Completion, QpConfig, Status
from p4gen.host.transport.wire import Writer


class Sending(Protocol):
    """The part of the requester that the responder uses."""

    @property
    def high(self) -> int:
        """The number after that of the last packet ever sent."""
        ...

    def outstanding(self, seq: int) -> bool:
        """Whether a packet is sent and not acknowledged."""
        ...

    def miss(self, seq: int) -> None:
        """The result of packet ``seq`` is missing: send the packet again."""
        ...


class Receiving(Protocol):
    """The part of the responder that the requester uses."""

    @property
    def misses(self) -> bool:
        """Whether the responder itself requests missing packets, so that no timer has to."""
        ...

    def await_rest(self) -> None:
        """Everything sent is acknowledged: from now on wait for the results that are still missing."""
        ...


class Pair(Protocol):
    """The part of a queue pair that its halves use."""

    @property
    def config(self) -> QpConfig:
        """The queue pair's parameters."""
        ...

    @property
    def clock(self) -> Clock:
        """The clock that all parts of the NIC use."""
        ...

    @property
    def domain(self) -> ProtectionDomain:
        """The memory that the peer may write to."""
        ...

    @property
    def writer(self) -> Writer:
        """The writer of frames to the peer."""
        ...

    @property
    def broken(self) -> Status | None:
        """The error that broke the pair; None while it works."""
        ...

    @property
    def requester(self) -> Sending:
        """The sending half, as the responder sees it."""
        ...

    @property
    def responder(self) -> Receiving:
        """The receiving half, as the requester sees it."""
        ...

    def complete(self, completion: Completion) -> None:
        """Give a completion to the application."""
        ...

    def fail(self, status: Status) -> None:
        """Break the pair: the oldest send ends with ``status``, everything else is flushed."""
        ...

    def acknowledge(self) -> None:
        """Queue an ACK for everything that has arrived in order."""
        ...

    def answer(self, psn: int, syndrome: int, msn: int | None = None) -> None:
        """Queue a NAK; by default with the MSN that is current when it is sent."""
        ...

    def respond(self, opcode: int, psn: int, msn: int | None, data: memoryview | bytes) -> None:
        """Queue a response packet of a READ or an atomic operation; one without MSN has no AETH."""
        ...

    def kick(self) -> None:
        """There may be packets to send."""
        ...
