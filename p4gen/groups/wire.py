"""What of a link's bandwidth a rank's data has: beside its headers, and the ACKs of data that goes the other way."""

from __future__ import annotations

from typing import Final

from p4gen.host.transport.wire import OVERHEAD
from p4gen.rocev2.layouts import ICRC, ROCE
from p4gen.vocabulary import CollectiveSpec

HEADERS: Final = ROCE.size + ICRC.size + OVERHEAD
"""Bytes on the wire of a packet without payload."""
_ACK: Final = HEADERS + 4
"""Bytes of an ACK: with its AETH."""


def payload_share(spec: CollectiveSpec, ack_every: int) -> float:
    """The payload's share of a link's bandwidth in AllReduce: each message goes with the ACKs of one that goes the
    other way, at its end and after every ``ack_every`` packets of it."""
    payload = spec.message * spec.payload_bytes
    acks = -(-spec.message // ack_every)
    return payload / (payload + spec.message * HEADERS + acks * _ACK)


def pace(rate: float, spec: CollectiveSpec, ack_every: int) -> int:
    """Bit/s at which a rank sends its messages where it has ``rate`` bit/s of a link: less than that by what the ACKs
    of messages that go the other way take."""
    share = payload_share(spec, ack_every) * (spec.payload_bytes + HEADERS) / spec.payload_bytes
    return max(1, int(rate * share))
