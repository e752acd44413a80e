"""The share of a link's bandwidth that a rank's data has, beside headers and the ACKs of data in the other
direction."""

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
    """The payload's share of a link's bandwidth in AllReduce. Each message shares the link with the ACKs of a message
    in the other direction: one at its end, and one after every ``ack_every`` packets."""
    payload = spec.message * spec.payload_bytes
    acks = -(-spec.message // ack_every)
    return payload / (payload + spec.message * HEADERS + acks * _ACK)


def pace(rate: float, spec: CollectiveSpec, ack_every: int) -> int:
    """The rate at which a rank sends its messages, in bit/s, if it has ``rate`` bit/s of a link. ACKs of messages in
    the other direction take the rest."""
    share = payload_share(spec, ack_every) * (spec.payload_bytes + HEADERS) / spec.payload_bytes
    return max(1, int(rate * share))
