"""What an application and an RNIC say to each other: work requests, completions, a queue pair's attributes.

Names follow the verbs of the InfiniBand Architecture Specification (volume 1, chapters 10 and 11).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from p4gen.host.transport.clock import US
from p4gen.host.transport.dcqcn import DcqcnConfig


class Recovery(StrEnum):
    """How a queue pair repairs loss."""

    GO_BACK_N = "gbn"
    """Nothing out of order is kept; a NAK, at most one for each expected PSN, makes the requester send all again
    from there on (InfiniBand 9.7.5.1, and NICs up to ConnectX-5)."""
    SELECTIVE_REPEAT = "sr"
    """NIC-SR (Themis §2.2): packets out of order are kept; a NAK carries the expected PSN and nothing else, at most
    one for each; the requester sends that packet again, and on a timeout all that is not acknowledged."""
    IDEAL = "ideal"
    """What packet-level simulators assume (EPIC §K.4). No NIC does this. As ``sr``, but what is missing is asked for at
    once, each packet of it, and on a timer until it is there. In Mode II a rank that misses the result of a PSN, which
    is also that of its contribution, sends this again; who has nothing to send again sends NAKs as in ``sr``. In Mode
    III every rank sends selective NAKs (``QpConfig.selective_naks``), on which exactly the named packets go again."""


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


class SendWr(NamedTuple):
    """A SEND, or with ``rkey`` an RDMA WRITE to ``remote_address``; ``immediate`` is 32 bits, None for none."""

    wr_id: int
    data: memoryview | bytes = b""
    immediate: int | None = None
    rkey: int | None = None
    remote_address: int = 0


class RecvWr(NamedTuple):
    """Room for one SEND, or (with an empty buffer) for the notice of a WRITE with immediate."""

    wr_id: int
    buffer: memoryview | bytearray = memoryview(b"")


class Completion(NamedTuple):
    """The end of a work request. ``length`` and ``immediate`` are those of a received message."""

    wr_id: int
    status: Status
    receive: bool = False
    length: int = 0
    immediate: int | None = None


@dataclass(frozen=True)
class Peer:
    """The far end of a connection, and how frames to it are addressed (MAC 48 bits, IPv4 32, QP 24)."""

    mac: int
    ip: int
    qp: int
    udp_src_port: int = 49152


@dataclass(frozen=True)
class QpConfig:
    """Attributes of a queue pair (``ibv_modify_qp``), and the policies of its NIC.

    ``timeout_ps`` 0 switches the retransmission timer off. A retry count of None never gives up; others end in an
    error completion.
    """

    mtu: int = 1024
    initial_psn: int = 0
    """The same both ways, as Mode II needs it (EPIC §4.3)."""
    recovery: Recovery = Recovery.GO_BACK_N
    max_outstanding: int = 128
    """Packets sent and not yet acknowledged."""
    ack_every: int = 32
    """AckReq is set on the last packet of a message and on every ``ack_every``-th inside."""
    timeout_ps: int = 100 * US
    adaptive: bool = False
    """The retransmission timer follows what round trips take, and is never shorter than ``timeout_ps``; see
    ``roundtrips``."""
    retry_count: int | None = 7
    rnr_retry: int | None = 7
    rnr_timer: int = 1
    """Code of the wait that this end's RNR NAKs ask for (InfiniBand 9.7.5.2.8); 1 is 10 us."""
    dcqcn: DcqcnConfig | None = None
    selective_naks: bool = False
    """``ideal`` in Mode III, where a contribution is acknowledged before its result is there: ask for missing results
    with selective NAKs, always."""

    def __post_init__(self) -> None:
        if self.mtu < 4 or self.mtu % 4:
            raise ValueError(f"MTU {self.mtu}: a positive multiple of 4 is needed")
        if not 0 <= self.initial_psn < 1 << 24:
            raise ValueError(f"initial PSN {self.initial_psn} does not fit into 24 bits")
        if not 0 < self.max_outstanding < 1 << 23 or self.ack_every < 1:
            raise ValueError("max_outstanding is 1 to 2^23 - 1, ack_every at least 1")


def timeout_ps(code: int) -> int:
    """The local ACK timeout that a 5-bit code stands for: 4.096 us x 2^code, 0 for none (InfiniBand 11.2.4.2)."""
    if not 0 <= code < 32:
        raise ValueError(f"a timeout code has five bits: {code}")
    return 4096 * 1000 << code if code else 0
