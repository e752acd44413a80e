"""The headers of ATP's programs, outermost first."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from p4gen.layout import Header, HeaderField
from p4gen.papers.atp.spec import AtpSpec
from p4gen.rocev2 import layouts

PORT: Final = 0xA7B0
"""The UDP port of workers and parameter servers: our own choice, as the authors' packets have no UDP header."""


class Message(IntEnum):
    """What a packet is."""

    GRADIENT = 0
    RESEND = 1
    FLOATS = 2
    RESULT = 3
    FLOAT_RESULT = 4
    ASK = 5


MESSAGES: Final = {
    Message.GRADIENT: "a worker's elements, or a sum of several workers'",
    Message.RESEND: "a worker's once more, as it has no result: what there is goes on to the server",
    Message.FLOATS: "a worker's once more, as float32: switches only pass it on",
    Message.RESULT: "the server's result; all that follow come from the server, too",
    Message.FLOAT_RESULT: "the same, as float32",
    Message.ASK: "the sum does not fit into int32: workers send floats",
}
"""What each says, for programs and documents."""
GRADIENTS: Final = frozenset({Message.GRADIENT, Message.RESEND, Message.FLOATS})
"""What workers send."""
ATP: Final = Header(
    "atp",
    "ATP's header: whose elements are behind it",
    (
        HeaderField("job", 8, "the job", type="job_t", noted=True),
        HeaderField("epoch", 8, "its generation", type="epoch_t", noted=True),
        HeaderField("message", 8, "what it is", type="message_t", noted=True),
        HeaderField("congested", 1, "a packet of the sum met a long queue", noted=True),
        HeaderField("collision", 1, "its aggregator was another packet's", noted=True),
        HeaderField("reserved", 6, "0", noted=True),
        HeaderField("sequence", 32, "number of the packet in its job", type="sequence_t", noted=True),
        HeaderField("workers", 32, "who is in the sum", type="workers_t", noted=True),
    ),
    noted=True,
)


def vector(spec: AtpSpec) -> Header:
    """The header of a packet's elements."""
    element = HeaderField("element", 32, "an int32", type="element_t")
    return Header("vector", "Elements of gradients, or their sums", (element,), noted=True, count=spec.lanes)


def headers(spec: AtpSpec) -> tuple[Header, ...]:
    """All headers that the parser knows."""
    around = layouts.ETHERNET, layouts.VLAN, layouts.ARP, layouts.IPV4, layouts.UDP
    return (*around, ATP, vector(spec))
