"""Random traffic for EPIC's programs, which differential tests send through two switches."""

from typing import Final

from p4gen.difftest.family import Traffic
from p4gen.papers.epic.codes import OwnOpcode
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.traffic.across import AcrossTraffic
from p4gen.papers.epic.traffic.source import RandomTraffic
from p4gen.rocev2.codes import ETHERTYPE_VLAN, ROCE_UDP_PORT
from p4gen.rocev2.layouts import ROCE, VLAN
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.places import places_in

_STARTS_CURSOR: Final = (Opcode.ACKNOWLEDGE, OwnOpcode.TICK)
_PORT: Final = ROCE_UDP_PORT.to_bytes(2)


def _goes_round(spec: EpicSpec, frame: bytes) -> bool:
    if frame[ROCE.bytes("ethernet.ether_type")] == ETHERTYPE_VLAN.to_bytes(2):
        frame = frame[VLAN.size :]  # what follows the tag is where it is in frames without one
    places = places_in(frame)
    if places is None:
        return False
    opcode = places.opcode_at
    datagram = frame[places.udp_port] == _PORT and len(frame) > opcode
    if spec.pipelines > 1 or spec.mode.stores:
        return datagram  # a contribution that makes a message whole goes on as a cursor
    return spec.mode.augmented and datagram and frame[opcode] in _STARTS_CURSOR


FACET: Traffic[EpicSpec] = Traffic(source=RandomTraffic, across=AcrossTraffic, goes_round=_goes_round)
