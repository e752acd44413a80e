"""The interface between an application and an RNIC: work requests, completions, attributes of a queue pair.

Names follow the verbs of the InfiniBand Architecture Specification (volume 1, chapters 10 and 11).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from p4gen.host.transport.clock import US
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.dcqcn_timed import TimedDcqcnConfig


class Recovery(StrEnum):
    """How a queue pair recovers from loss."""

    GO_BACK_N = "gbn"
    """Packets out of order are dropped. A NAK, at most one for each expected PSN, makes the requester send everything
    from there on again (InfiniBand 9.7.5.1, and NICs up to ConnectX-5)."""
    SELECTIVE_REPEAT = "sr"
    """NIC-SR (Themis §2.2): packets out of order are kept. A NAK carries only the expected PSN, and there is at most
    one for each. The requester retransmits that packet, and after a timeout everything that is not acknowledged."""
    IDEAL = "ideal"
    """What packet-level simulators assume (EPIC §K.4); no NIC does this. Like ``sr``, but every missing packet is
    requested at once, and again after each timeout until it arrives. In Mode II a result and the contribution have the
    same PSN, and a rank that lacks the result sends the contribution again; a rank without a contribution sends NAKs as
    in ``sr``. In Mode III every rank sends selective NAKs (``QpConfig.selective_naks``), and exactly the named packets
    are retransmitted."""
    ORACLE = "oracle"
    """The bound for the others, which no NIC reaches: packets out of order are kept, no NAK is sent, and the network
    tells a sender which of its packets it has dropped; exactly these are retransmitted (``Nic.on_loss``)."""


RECOVERIES: Final = tuple(recovery for recovery in Recovery if recovery is not Recovery.ORACLE)
"""The recoveries of NICs on trees. ``oracle`` is not one: it needs a host that has sent what is lost, and results come
from switches."""


class Resumption(StrEnum):
    """How a responder serves a READ that is requested again (InfiniBand 9.7.5.1.6)."""

    STRICT = "strict"
    """Any part of a READ that is remembered is read again, as a READ of its own."""
    RXE = "rxe"
    """As Linux's rdma_rxe: a part that begins later narrows what is remembered, so that an earlier part is refused
    afterwards; its packets are MIDDLEs and a LAST."""


class Operation(StrEnum):
    """What a work request does beyond SEND and WRITE."""

    READ = "read"
    FETCH_ADD = "fetch and add"
    COMPARE_SWAP = "compare and swap"


class Status(StrEnum):
    """How a work request ended (InfiniBand 11.6.2)."""

    SUCCESS = "success"
    LOCAL_LENGTH_ERROR = "local length error"
    REMOTE_INVALID_REQUEST = "remote invalid request error"
    REMOTE_ACCESS_ERROR = "remote access error"
    REMOTE_OPERATION_ERROR = "remote operation error"
    BAD_RESPONSE = "bad response error"
    RETRY_EXCEEDED = "transport retry counter exceeded"
    RNR_RETRY_EXCEEDED = "RNR retry counter exceeded"
    FLUSHED = "work request flushed"
    ACCESS_VIOLATION = "local access violation"
    """This end has refused a request that named no memory of it (11.6.3.2); nothing that is posted ends so, but a pair
    may be broken for it."""


class SendWr(NamedTuple):
    """A SEND, or with ``rkey`` an RDMA WRITE to ``remote_address``; ``immediate`` is 32 bits, None for none. With
    ``solicited`` the last packet is marked as an event that the receiver waits for (InfiniBand 9.2.3).

    With ``operation`` it is a READ from that address, which fills ``data``, or an atomic operation on the eight bytes
    there, a little-endian number. The operation adds ``swap_or_add`` to the number, or replaces the number by it if the
    number equals ``compare``; ``data`` gets the old number. ``data`` must be writable; for an atomic operation it has
    eight bytes.
    """

    wr_id: int
    data: memoryview | bytes = b""
    immediate: int | None = None
    rkey: int | None = None
    remote_address: int = 0
    solicited: bool = False
    operation: Operation | None = None
    swap_or_add: int = 0
    compare: int = 0


class RecvWr(NamedTuple):
    """A buffer for one SEND, or (if empty) for the notification of a WRITE with immediate data."""

    wr_id: int
    buffer: memoryview | bytearray = memoryview(b"")


class Completion(NamedTuple):
    """The completion of a work request. ``length`` and ``immediate`` are those of a received message."""

    wr_id: int
    status: Status
    receive: bool = False
    length: int = 0
    immediate: int | None = None


@dataclass(frozen=True)
class Peer:
    """The other end of a connection and its addresses (MAC 48 bits, IPv4 32, QP 24)."""

    mac: int
    ip: int
    qp: int
    udp_src_port: int = 49152


@dataclass(frozen=True)
class QpConfig:
    """Attributes of a queue pair (``ibv_modify_qp``) and policies of its NIC.

    ``timeout_ps`` 0 disables the retransmission timer. With a retry count of None the NIC never gives up; otherwise it
    ends with an error completion.
    """

    mtu: int = 1024
    initial_psn: int = 0
    """The first PSN that is sent and, unless ``rq_psn`` says otherwise, received; Mode II requires them to be equal
    (EPIC §4.3)."""
    recovery: Recovery = Recovery.GO_BACK_N
    max_outstanding: int = 128
    """The most packets that may be sent and not yet acknowledged."""
    ack_every: int = 32
    """AckReq is set on the last packet of a message, on every ``ack_every``-th packet inside it, and on the packet that
    fills a window of fewer packets."""
    timeout_ps: int = 100 * US
    adaptive: bool = False
    """Whether the retransmission timer adapts to round trips; it is never shorter than ``timeout_ps``. See
    ``roundtrips``."""
    retry_count: int | None = 7
    rnr_retry: int | None = 7
    rnr_timer: int = 1
    """Code of the delay that this end's RNR NAKs ask for (InfiniBand 9.7.5.2.8); 1 is 10 us."""
    dcqcn: DcqcnConfig | TimedDcqcnConfig | None = None
    pace: int | None = None
    """The most bit/s, with the overhead on the wire, that this end sends; None: DCQCN or the line decides."""
    selective_naks: bool = False
    """Whether missing results are always requested with selective NAKs: ``ideal`` in Mode III, where a contribution is
    acknowledged before its result arrives."""
    max_rd_atomic: int = 16
    """READs and atomic operations that this end may have outstanding (``max_rd_atomic`` of ``ibv_modify_qp``)."""
    max_dest_rd_atomic: int = 16
    """The same of the other end: how many this end remembers, to serve them again; ConnectX allows 16."""
    resumption: Resumption = Resumption.STRICT
    rq_psn: int | None = None
    """The first PSN that is received; None: ``initial_psn``."""
    priority: int = 0
    """Of all packets that this end sends, 0 to 7: the upper three bits of their DSCP."""

    def __post_init__(self) -> None:
        if self.mtu < 4 or self.mtu % 4:
            raise ValueError(f"MTU {self.mtu}: must be a positive multiple of 4")
        for psn in (self.initial_psn, self.received_psn):
            if not 0 <= psn < 1 << 24:
                raise ValueError(f"initial PSN {psn} does not fit into 24 bits")
        if self.pace is not None and (self.pace < 1 or self.dcqcn is not None):
            raise ValueError("pace must be positive, and is for connections without DCQCN")
        if not 0 < self.max_outstanding < 1 << 23 or self.ack_every < 1:
            raise ValueError("max_outstanding must be 1 to 2^23 - 1, ack_every at least 1")

    @property
    def received_psn(self) -> int:
        """The first PSN that is received."""
        return self.initial_psn if self.rq_psn is None else self.rq_psn


def timeout_ps(code: int) -> int:
    """The local ACK timeout that a 5-bit code stands for: 4.096 us x 2^code, 0 for none (InfiniBand 11.2.4.2)."""
    if not 0 <= code < 32:
        raise ValueError(f"a timeout code has five bits: {code}")
    return 4096 * 1000 << code if code else 0
