"""Numbers that EPIC's programs share with hosts, agents and the control plane, beside those of RoCEv2."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from p4gen.program.repair import RNR_10_US
from p4gen.rocev2.opcodes import Ack, Nak, NakCode, RnrNak
from p4gen.vocabulary import ticks


class OwnOpcode(IntEnum):
    """BTH opcodes of mode III, of those for the manufacturer's use (InfiniBand 9.2.1)."""

    TICK = ticks.InternalOpcode.TICK
    CURSOR = ticks.InternalOpcode.CURSOR
    """Of a retransmission cursor, which never leaves the switch."""
    CHECKED = 0xC2
    """On a Tofino: of an answer in its second pass, which never leaves the switch."""
    COUNTED = 0xC3
    """The same in its third pass."""


class Traffic(IntEnum):
    """The program's ``traffic_t``: UP arrives over any edge except the one toward the root, DOWN over that one."""

    UP_DATA = 1
    DOWN_DATA = 2
    UP_ANSWER = 3
    DOWN_ANSWER = 4


SYNDROMES: Final = {
    "ack": Ack().syndrome,
    "rnr": RnrNak(RNR_10_US).syndrome,
    "nak": Nak(NakCode.PSN_SEQUENCE_ERROR).syndrome,
    "invalid": Nak(NakCode.INVALID_REQUEST).syndrome,
    "selective": Nak(NakCode.SELECTIVE).syndrome,
}
"""AETH syndromes that programs write or look for."""
