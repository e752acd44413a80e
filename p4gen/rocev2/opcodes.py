"""BTH opcodes, mostly of the reliable connection service, their extension headers, and AETH syndromes.

Follows the InfiniBand Architecture Specification, volume 1: opcodes §9.2.1, AETH syndromes §9.7.5.1, RNR timer
values §9.7.5.2.8; RoCEv2's own additions (UDP port, CNP) from its annex A17.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

from p4gen.rocev2.layouts import SYNDROME

CREDIT_NONE: Final = 31
"""The ACK credit code for "no end-to-end flow control": the requester may send without limit."""


class Opcode(IntEnum):
    """BTH opcodes of the reliable connection (RC) service, and RoCEv2's congestion notification."""

    SEND_FIRST = 0x00
    SEND_MIDDLE = 0x01
    SEND_LAST = 0x02
    SEND_LAST_IMM = 0x03
    SEND_ONLY = 0x04
    SEND_ONLY_IMM = 0x05
    WRITE_FIRST = 0x06
    WRITE_MIDDLE = 0x07
    WRITE_LAST = 0x08
    WRITE_LAST_IMM = 0x09
    WRITE_ONLY = 0x0A
    WRITE_ONLY_IMM = 0x0B
    READ_REQUEST = 0x0C
    READ_RESPONSE_FIRST = 0x0D
    READ_RESPONSE_MIDDLE = 0x0E
    READ_RESPONSE_LAST = 0x0F
    READ_RESPONSE_ONLY = 0x10
    ACKNOWLEDGE = 0x11
    ATOMIC_ACKNOWLEDGE = 0x12
    COMPARE_SWAP = 0x13
    FETCH_ADD = 0x14
    CNP = 0x81


class UcOpcode(IntEnum):
    """BTH opcodes of the unreliable connection (UC) service."""

    UC_WRITE_ONLY_IMM = 0x2B


class Extension(StrEnum):
    """The extension headers that may follow a BTH."""

    RETH = "reth"
    AETH = "aeth"
    IMMDT = "immdt"
    ATOMIC_ETH = "atomic_eth"
    ATOMIC_ACK_ETH = "atomic_ack_eth"


_O = Opcode
_EXTENSIONS: Final[dict[int, tuple[Extension, ...]]] = {
    _O.SEND_LAST_IMM: (Extension.IMMDT,),
    _O.SEND_ONLY_IMM: (Extension.IMMDT,),
    _O.WRITE_FIRST: (Extension.RETH,),
    _O.WRITE_LAST_IMM: (Extension.IMMDT,),
    _O.WRITE_ONLY: (Extension.RETH,),
    _O.WRITE_ONLY_IMM: (Extension.RETH, Extension.IMMDT),
    UcOpcode.UC_WRITE_ONLY_IMM: (Extension.RETH, Extension.IMMDT),
    _O.READ_REQUEST: (Extension.RETH,),
    _O.READ_RESPONSE_FIRST: (Extension.AETH,),
    _O.READ_RESPONSE_LAST: (Extension.AETH,),
    _O.READ_RESPONSE_ONLY: (Extension.AETH,),
    _O.ACKNOWLEDGE: (Extension.AETH,),
    _O.ATOMIC_ACKNOWLEDGE: (Extension.AETH, Extension.ATOMIC_ACK_ETH),
    _O.COMPARE_SWAP: (Extension.ATOMIC_ETH,),
    _O.FETCH_ADD: (Extension.ATOMIC_ETH,),
}

_FIRST: Final = frozenset({_O.SEND_FIRST, _O.WRITE_FIRST, _O.READ_RESPONSE_FIRST})
_LAST: Final = frozenset({_O.SEND_LAST, _O.SEND_LAST_IMM, _O.WRITE_LAST, _O.WRITE_LAST_IMM, _O.READ_RESPONSE_LAST})
_ONLY: Final = frozenset({_O.SEND_ONLY, _O.SEND_ONLY_IMM, _O.WRITE_ONLY, _O.WRITE_ONLY_IMM, _O.READ_RESPONSE_ONLY})


def extensions(opcode: int) -> tuple[Extension, ...]:
    """The extension headers of ``opcode`` in wire order; none for an opcode this module does not name."""
    return _EXTENSIONS.get(opcode, ())


def has_reth(opcode: int) -> bool:
    """Whether a RETH follows the BTH."""
    return Extension.RETH in extensions(opcode)


def has_imm(opcode: int) -> bool:
    """Whether immediate data follows."""
    return Extension.IMMDT in extensions(opcode)


def is_first(opcode: int) -> bool:
    """Whether it is the first of several packets of a message (FIRST, not ONLY)."""
    return opcode in _FIRST


def is_last(opcode: int) -> bool:
    """Whether it is the last of several packets of a message (LAST, not ONLY)."""
    return opcode in _LAST


def is_only(opcode: int) -> bool:
    """Whether it is a message of one packet (ONLY)."""
    return opcode in _ONLY


def starts_message(opcode: int) -> bool:
    """Whether it starts a message (FIRST or ONLY)."""
    return is_first(opcode) or is_only(opcode)


def ends_message(opcode: int) -> bool:
    """Whether it ends a message (LAST or ONLY)."""
    return is_last(opcode) or is_only(opcode)


def is_send(opcode: int) -> bool:
    """Whether it belongs to a SEND, with or without immediate data."""
    return _O.SEND_FIRST <= opcode <= _O.SEND_ONLY_IMM


def is_write(opcode: int) -> bool:
    """Whether it belongs to an RDMA WRITE, with or without immediate data."""
    return _O.WRITE_FIRST <= opcode <= _O.WRITE_ONLY_IMM


def is_read_response(opcode: int) -> bool:
    """Whether it belongs to the response to an RDMA READ."""
    return _O.READ_RESPONSE_FIRST <= opcode <= _O.READ_RESPONSE_ONLY


def is_response(opcode: int) -> bool:
    """Whether it answers an RDMA READ or an atomic operation."""
    return is_read_response(opcode) or opcode == _O.ATOMIC_ACKNOWLEDGE


def carries_payload(opcode: int) -> bool:
    """Whether a message's data may follow the headers."""
    return is_send(opcode) or is_write(opcode) or is_read_response(opcode)


class SyndromeType(IntEnum):
    """What a syndrome is: its upper three bits (``layouts.SYNDROME``); the others are reserved."""

    ACK = 0b000
    RNR_NAK = 0b001
    NAK = 0b011


class NakCode(IntEnum):
    """The reason of a NAK (the low five bits of its syndrome)."""

    PSN_SEQUENCE_ERROR = 0
    INVALID_REQUEST = 1
    REMOTE_ACCESS_ERROR = 2
    REMOTE_OPERATIONAL_ERROR = 3
    INVALID_RD_REQUEST = 4
    SELECTIVE = 31
    """p4gen's selective NAK; a reserved code in the specification. The packets from the PSN on, as many as the MSN
    says, are missing; nothing is acknowledged. NICs do not know it (docs/wire-format.md)."""


_RNR_DELAY_US: Final = (
    655_360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1_280, 1_920,
    2_560, 3_840, 5_120, 7_680, 10_240, 15_360, 20_480, 30_720, 40_960, 61_440, 81_920, 122_880,
    163_840, 245_760, 327_680, 491_520,
)  # fmt: skip


def _syndrome(kind: SyndromeType, value: int) -> int:
    return SYNDROME.pack(upper=kind, value=value)


@dataclass(frozen=True, slots=True)
class Ack:
    """A positive acknowledgement; ``credit`` is the 5-bit code, ``CREDIT_NONE`` for none."""

    credit: int = CREDIT_NONE

    @property
    def syndrome(self) -> int:
        """The syndrome byte; ValueError when the code has more than five bits."""
        return _syndrome(SyndromeType.ACK, self.credit)


@dataclass(frozen=True, slots=True)
class RnrNak:
    """Receiver not ready. ``timer`` is the 5-bit code of the requested delay."""

    timer: int

    @property
    def syndrome(self) -> int:
        """The syndrome byte; ValueError when the code has more than five bits."""
        return _syndrome(SyndromeType.RNR_NAK, self.timer)

    @property
    def delay_us(self) -> int:
        """The requested delay in microseconds."""
        return _RNR_DELAY_US[SYNDROME.unpack(self.syndrome)["value"]]


@dataclass(frozen=True, slots=True)
class Nak:
    """A negative acknowledgement; ``code`` is a ``NakCode``, or another 5-bit value (reserved)."""

    code: int = NakCode.PSN_SEQUENCE_ERROR

    @property
    def syndrome(self) -> int:
        """The syndrome byte; ValueError when the code has more than five bits."""
        return _syndrome(SyndromeType.NAK, self.code)


FIRST_NAK: Final = RnrNak(0).syndrome
"""The syndromes below are those of ACKs."""


@dataclass(frozen=True, slots=True)
class ReservedSyndrome:
    """A syndrome that the specification does not define; a requester that receives one puts the QP in error."""

    syndrome: int


Syndrome = Ack | RnrNak | Nak | ReservedSyndrome


def decode_syndrome(value: int) -> Syndrome:
    """Decode an AETH's syndrome byte (0 to 255)."""
    syndrome = SYNDROME.unpack(value)
    match syndrome["upper"]:
        case SyndromeType.ACK:
            return Ack(syndrome["value"])
        case SyndromeType.RNR_NAK:
            return RnrNak(syndrome["value"])
        case SyndromeType.NAK:
            return Nak(syndrome["value"])
    return ReservedSyndrome(value)
