"""The modules of MultiWrite's programs that patch ICRCs: those that do, and what differs in the others.

CRC-32 is linear. What changed headers change of a packet's ICRC follows from the CRC of the headers before and after,
and from the length of the data; the data itself is never read. What came corrupt leaves corrupt, so the destination's
NIC drops it; but the switch has believed its headers, so links must drop what they corrupt.
"""

from __future__ import annotations

from dataclasses import replace

from p4gen.arch import Feature
from p4gen.papers.multiwrite import modules as m
from p4gen.program.module import Metadata, Module

_FOLDER = "multiwrite"
_HEADERS = tuple(name for name in m.SET_ICRC.needs if name != "hdr.payload")

CHECK_ICRC = replace(
    m.CHECK_ICRC,
    purpose="keeps answers with a wrong invariant CRC from any state",
    needs=(*_HEADERS, "hdr.icrc"),
    wanted=lambda spec: spec.icrc.patched,
)

KEEP_HEADER_CRC = Module(
    name="KeepHeaderCrc",
    folder=_FOLDER,
    gress="ingress",
    paper="beside the paper: CRC-32 is linear",
    purpose="keeps the CRC of a write's headers as they came",
    part="arrived",
    needs=_HEADERS,
    provides=(Metadata("header_crc", "bit<32>", "the part of its headers in a write's invariant CRC"),),
    uses=(Feature.PACKET_CRC,),
)

SET_ICRC = replace(m.SET_ICRC, purpose="gives an answer a right invariant CRC", needs=_HEADERS)

PATCH_ICRC = Module(
    name="PatchIcrc",
    folder=_FOLDER,
    gress="egress",
    paper="RoCEv2 (InfiniBand Annex A17.3.3); CRC-32 is linear",
    purpose="changes a copy's invariant CRC by what its new headers change",
    needs=(*_HEADERS, "hdr.icrc", "header_crc"),
    changes=("hdr.icrc",),
    uses=(Feature.PACKET_CRC,),
)

_INSTEAD = {each.name: each for each in (CHECK_ICRC, SET_ICRC)}
_AFTER = {"CombineAcks": (KEEP_HEADER_CRC,), "SetIcrc": (PATCH_ICRC,)}


def instead(every: tuple[Module, ...]) -> tuple[Module, ...]:
    """The modules of a program that patches ICRCs, from those of one that recomputes them."""
    found: list[Module] = []
    for module in every:
        found += [_INSTEAD.get(module.name, module), *_AFTER.get(module.name, ())]
    return tuple(found)
