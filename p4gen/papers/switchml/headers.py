"""The headers of SwitchML's programs, outermost first, and the datagrams of those over RoCEv2."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from p4gen.layout import Datagram, Header, HeaderField, Word
from p4gen.papers.switchml.spec import SwitchmlSpec
from p4gen.rocev2 import layouts
from p4gen.rocev2.opcodes import UcOpcode

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
KEY: Final = Word(*SWITCHML.fields[:4])
"""The remote key that RoCEv2 has in place of that header: all of it but the offset, which is the immediate data."""
_RKEY: Final = HeaderField("rkey", KEY.bits, f"{KEY.note}; of a sum, the worker's", KEY, noted=True)
_RETH: Final = replace(
    layouts.RETH, fields=tuple(_RKEY if field.name == _RKEY.name else field for field in layouts.RETH.fields)
)
_IMMEDIATE: Final = replace(
    layouts.IMMEDIATE, fields=(HeaderField("value", 32, "offset: the first element's place", noted=True),)
)


def vector(spec: SwitchmlSpec) -> Header:
    """The header of a packet's elements."""
    element = HeaderField("element", 32, "an int32", type="element_t")
    return Header("vector", "Elements of a worker's vector, or their sums", (element,), noted=True, count=spec.lanes)


_JOB, _EPOCH, *_, _OFFSET = SWITCHML.fields
_BUFFER: Final = HeaderField("buffer", 16, "version (1 bit), and slot of the job's pool", noted=True)
_JOINED: Final = replace(SWITCHML, fields=(_JOB, _EPOCH, _BUFFER, _OFFSET))
"""The same for chips whose instructions take whole containers."""
_BRIDGE: Final = Header(
    "bridge",
    "What ingress tells egress, in front of the packet; it never leaves the switch",
    (HeaderField("worker", 16, "the worker that it is for, if there is one copy", type="worker_t"),),
    noted=True,
)


def headers(spec: SwitchmlSpec) -> tuple[Header, ...]:
    """All headers that the parser knows."""
    around = layouts.ETHERNET, layouts.VLAN, layouts.ARP, layouts.IPV4, layouts.UDP
    if spec.roce:
        return (*around, layouts.BTH, _RETH, _IMMEDIATE, vector(spec), layouts.ICRC)
    if spec.tofino:
        return (_BRIDGE, *around, _JOINED, vector(spec))
    return (*around, SWITCHML, vector(spec))


def datagrams(spec: SwitchmlSpec) -> tuple[Datagram, ...]:
    """What workers and switches send each other over RoCEv2."""
    body = _RETH, _IMMEDIATE, vector(spec)
    return (Datagram("UPDATE", "a vector, or a sum", body, (UcOpcode.UC_WRITE_ONLY_IMM,)),) if spec.roce else ()
