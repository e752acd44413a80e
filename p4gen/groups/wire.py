"""The share of a link's bandwidth that a rank's data has, beside headers and the ACKs of data in the other
direction."""

from __future__ import annotations

from p4gen.host.transport.wire import OVERHEAD
from p4gen.rocev2.layouts import AETH
from p4gen.rocev2.places import IPV4, IPV6
from p4gen.vocabulary import CollectiveSpec


def headers(spec: CollectiveSpec) -> int:
    """Bytes on the wire of a packet without payload."""
    return (IPV6 if spec.roce_ipv6 else IPV4).shortest + OVERHEAD


def payload_share(spec: CollectiveSpec, ack_every: int) -> float:
    """The payload's share of a link's bandwidth in AllReduce. Each message shares the link with the ACKs of a message
    in the other direction: one at its end, and one after every ``ack_every`` packets."""
    payload = spec.message * spec.payload_bytes
    acks = -(-spec.message // ack_every)
    return payload / (payload + spec.message * headers(spec) + acks * (headers(spec) + AETH.size))


def pace(rate: float, spec: CollectiveSpec, ack_every: int) -> int:
    """The rate at which a rank sends its messages, in bit/s, if it has ``rate`` bit/s of a link. ACKs of messages in
    the other direction take the rest."""
    share = payload_share(spec, ack_every) * (spec.payload_bytes + headers(spec)) / spec.payload_bytes
    return max(1, int(rate * share))
