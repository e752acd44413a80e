"""Queue pairs of the reliable connection service, as applications see them (InfiniBand volume 1, chapter 10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from p4gen.host.transport.clock import Clock
from p4gen.host.transport.memory import ProtectionDomain
from p4gen.host.transport.verbs import Completion, Peer, QpConfig, RecvWr, SendWr, Status


class Sending(Protocol):
    """The sending half. Packets have a number that never wraps (``seq``): the PSN on the wire is the initial PSN + seq
    modulo 2^24."""

    una: int
    """The oldest packet that is not acknowledged."""
    next: int
    """The packet to send next; less than ``high`` while retransmitting."""
    high: int
    """The number after that of the last packet ever sent."""
    end: int
    """The number after that of the last packet posted."""

    @property
    def stats(self) -> SendStats:
        """Counters."""
        ...

    @property
    def rate(self) -> CurrentRate | None:
        """The rate; None if the line's rate is the only limit."""
        ...

    @property
    def idle(self) -> bool:
        """Whether nothing is outstanding."""
        ...

    def psn(self, seq: int) -> int:
        """The PSN of a packet, from its number."""
        ...


class CurrentRate(Protocol):
    """The rate of a connection that DCQCN or a plan limits."""

    @property
    def rate(self) -> float:
        """Bit/s."""
        ...

    def pace(self, now: int, size: int) -> int:
        """The time, in ps, for which ``size`` bytes sent now occupy the connection; 0 if the rate is not limited."""
        ...


class SendStats(Protocol):
    """Counters of one requester, in packets."""

    sent: int
    resent: int
    timeouts: int
    naks: int
    rnr_naks: int
    ghosts: int
    """Acknowledgements of packets that are not outstanding; they are ignored (9.7.5.1.1)."""
    cnps: int
    bytes: int
    """Sent, with the overhead on the wire."""


class Receiving(Protocol):
    """The receiving half."""

    expected: int
    """The next packet in order; its PSN is the ePSN."""
    msn: int
    """Number of completed messages, modulo 2^24."""

    @property
    def stats(self) -> ReceiveStats:
        """Counters."""
        ...

    @property
    def posted(self) -> int:
        """Number of receives that are posted and not used."""
        ...

    @property
    def kept(self) -> list[int]:
        """Packets that arrived out of order and are kept, in order: NIC-SR's bitmap."""
        ...

    def psn(self, seq: int) -> int:
        """The PSN of a packet, from its number."""
        ...


class ReceiveStats(Protocol):
    """Counters of one responder, in packets."""

    received: int
    duplicates: int
    out_of_order: int
    naks: int
    rnr_naks: int
    cnps: int


class VerbsPair(Protocol):
    """One end of a connection, ready to send, on any NIC with verbs.

    The application is called for every completion, in order. After a fatal error the pair is ``broken``: all work
    requests are flushed, and so are those posted later.
    """

    number: int
    peer: Peer
    config: QpConfig
    clock: Clock

    @property
    def broken(self) -> Status | None:
        """The error that broke the pair; None while it works."""
        ...

    def counts(self) -> Mapping[str, int]:
        """The packets that it has ``sent`` and ``resent``, its ``timeouts``, and the ``naks`` and ``cnps`` received; 0
        for what the NIC does not count for each pair."""
        ...

    def post_send(self, wr: SendWr) -> None:
        """Post a SEND, a WRITE, a READ or an atomic operation. It completes when it is acknowledged, or its response is
        there. Raises ``ValueError`` for data that a response cannot fill."""
        ...

    def post_recv(self, wr: RecvWr) -> None:
        """Post a buffer for a message."""
        ...

    def fail(self, status: Status) -> None:
        """Break the pair: its oldest send ends with ``status``, everything else is flushed."""
        ...


class QueuePair(VerbsPair, Protocol):
    """A queue pair of our NIC: its state can be read, and its PSNs can be set."""

    domain: ProtectionDomain
    """The memory that the peer may use."""

    @property
    def requester(self) -> Sending:
        """The sending half."""
        ...

    @property
    def responder(self) -> Receiving:
        """The receiving half."""
        ...

    def set_sq_psn(self, psn: int) -> None:
        """Give the next packet the PSN ``psn`` (``sq_psn`` of ``ibv_modify_qp``; EPIC §4.3, RoCE-refined).

        Raises ``ValueError`` while anything is outstanding, or when ``psn`` is older than what was sent.
        """
        ...

    def set_rq_psn(self, psn: int) -> None:
        """Expect ``psn`` next (``rq_psn``). Everything before it counts as received.

        Raises ``ValueError`` inside a message, or when ``psn`` is older than what was received.
        """
        ...

    def complete(self, completion: Completion) -> None:
        """Give a completion to the application."""
        ...
