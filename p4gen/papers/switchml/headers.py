"""The headers of SwitchML's programs, outermost first."""

from __future__ import annotations

from typing import Final

from p4gen.layout import Header, HeaderField
from p4gen.papers.switchml.spec import SwitchmlSpec
from p4gen.rocev2 import layouts

PORT: Final = 0xBEE0
"""The UDP port of switches and workers: the first of those that the authors' implementation uses."""
SWITCHML: Final = Header(
    "switchml",
    "SwitchML's header: what the vector behind it is for. The worker is known by its address",
    (
        HeaderField("job", 8, "the job", type="job_t", noted=True),
        HeaderField("epoch", 8, "its generation", type="epoch_t", noted=True),
        HeaderField("version", 1, "which buffer of the slot", noted=True),
        HeaderField("slot", 15, "slot of the job's pool", noted=True),
        HeaderField("offset", 32, "the first element's place; only workers read it", noted=True),
    ),
    noted=True,
)


def vector(spec: SwitchmlSpec) -> Header:
    """The header of a packet's elements."""
    element = HeaderField("element", 32, "an int32", type="element_t")
    return Header("vector", "Elements of a worker's vector, or their sums", (element,), noted=True, count=spec.lanes)


def headers(spec: SwitchmlSpec) -> tuple[Header, ...]:
    """All headers that the parser knows."""
    around = layouts.ETHERNET, layouts.VLAN, layouts.ARP, layouts.IPV4, layouts.UDP
    return (*around, SWITCHML, vector(spec))
