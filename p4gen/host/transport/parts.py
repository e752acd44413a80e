"""What each half of a queue pair sees of the pair and of the other half.

``requester`` and ``responder`` know these interfaces only, so they stand below ``rc``, which makes a pair of them.
"""

from __future__ import annotations

from typing import Protocol

from p4gen.host.transport.clock import Clock
from p4gen.host.transport.memory import ProtectionDomain
from p4gen.host.transport.verbs import Completion, QpConfig, Status
from p4gen.host.transport.wire import Writer


class Sending(Protocol):
    """What a responder sees of the requester."""

    @property
    def high(self) -> int:
        """One past the last packet ever sent."""
        ...

    def outstanding(self, seq: int) -> bool:
        """Whether a packet is sent and not acknowledged."""
        ...

    def miss(self, seq: int) -> None:
        """A result is missing, so the packet it answers is sent again."""
        ...


class Receiving(Protocol):
    """What a requester sees of the responder."""

    @property
    def misses(self) -> bool:
        """Whether it has outstanding packets sent again itself."""
        ...

    def await_rest(self) -> None:
        """All that was sent is acknowledged: results that are still missing are waited for."""
        ...


class Pair(Protocol):
    """What both halves see of their queue pair."""

    @property
    def config(self) -> QpConfig:
        """Its parameters."""
        ...

    @property
    def clock(self) -> Clock:
        """The time, and what happens later."""
        ...

    @property
    def domain(self) -> ProtectionDomain:
        """The memory that a peer may write."""
        ...

    @property
    def writer(self) -> Writer:
        """What makes frames to the peer."""
        ...

    @property
    def broken(self) -> Status | None:
        """Why the pair is in error, None while it works."""
        ...

    @property
    def requester(self) -> Sending:
        """The half that sends."""
        ...

    @property
    def responder(self) -> Receiving:
        """The half that receives."""
        ...

    def complete(self, completion: Completion) -> None:
        """Hand a completion to the application."""
        ...

    def fail(self, status: Status) -> None:
        """Break the pair."""
        ...

    def acknowledge(self) -> None:
        """An ACK for all that has arrived in order is to leave."""
        ...

    def answer(self, psn: int, syndrome: int, msn: int | None = None) -> None:
        """A NAK is to leave."""
        ...

    def kick(self) -> None:
        """There may be something to send."""
        ...
