"""Random traffic for EPIC's programs, which differential tests send through two switches."""

from typing import Final

from p4gen.difftest.family import Traffic
from p4gen.families.epic.spec import EpicSpec, Mode
from p4gen.families.epic.traffic.source import RandomTraffic
from p4gen.rocev2.codes import ROCE_UDP_PORT
from p4gen.rocev2.opcodes import Opcode
from p4gen.spec import ticks

_UDP_PORT_AT: Final = 36
_OPCODE_AT: Final = 42
"""Offsets in a frame without a tag."""
_STARTS_CURSOR: Final = (Opcode.ACKNOWLEDGE, ticks.OPCODE)


def _goes_round(spec: EpicSpec, frame: bytes) -> bool:
    tag = 4 if frame[12:14] == b"\x81\x00" else 0
    port = frame[_UDP_PORT_AT + tag : _UDP_PORT_AT + tag + 2]
    datagram = port == ROCE_UDP_PORT.to_bytes(2) and len(frame) > _OPCODE_AT + tag
    if spec.pipelines > 1:
        return datagram
    return spec.mode is Mode.III and datagram and frame[_OPCODE_AT + tag] in _STARTS_CURSOR


FACET = Traffic(source=RandomTraffic, goes_round=_goes_round)
