from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.rocev2 import opcodes
from p4gen.rocev2.opcodes import Ack, Nak, NakCode, Opcode, ReservedSyndrome, RnrNak, decode_syndrome


def test_values_of_the_specification() -> None:
    assert [int(op) for op in Opcode] == [*range(0x15), 0x81]


@pytest.mark.parametrize("op", Opcode)
def test_classes_partition_the_opcodes(op: Opcode) -> None:
    positions = [opcodes.is_first(op), op.name.endswith("_MIDDLE"), opcodes.is_last(op), opcodes.is_only(op)]
    assert sum(positions) == opcodes.carries_payload(op)


@pytest.mark.parametrize(
    ("op", "headers"),
    [
        (Opcode.SEND_MIDDLE, []),
        (Opcode.SEND_LAST_IMM, ["immdt"]),
        (Opcode.WRITE_FIRST, ["reth"]),
        (Opcode.WRITE_MIDDLE, []),
        (Opcode.WRITE_LAST_IMM, ["immdt"]),
        (Opcode.WRITE_ONLY_IMM, ["reth", "immdt"]),
        (Opcode.READ_REQUEST, ["reth"]),
        (Opcode.READ_RESPONSE_MIDDLE, []),
        (Opcode.READ_RESPONSE_LAST, ["aeth"]),
        (Opcode.ACKNOWLEDGE, ["aeth"]),
        (Opcode.ATOMIC_ACKNOWLEDGE, ["aeth", "atomic_ack_eth"]),
        (Opcode.FETCH_ADD, ["atomic_eth"]),
        (Opcode.CNP, []),
    ],
)
def test_extension_headers(op: Opcode, headers: list[str]) -> None:
    assert list(opcodes.extensions(op)) == headers
    assert (opcodes.has_reth(op), opcodes.has_imm(op)) == ("reth" in headers, "immdt" in headers)


def test_message_boundaries() -> None:
    assert opcodes.starts_message(Opcode.SEND_ONLY)
    assert opcodes.ends_message(Opcode.SEND_ONLY)
    assert opcodes.starts_message(Opcode.WRITE_FIRST)
    assert not opcodes.ends_message(Opcode.WRITE_FIRST)
    assert not opcodes.starts_message(Opcode.SEND_LAST)


@given(st.integers(0, 255))
def test_syndromes_round_trip(value: int) -> None:
    assert decode_syndrome(value).syndrome == value


def test_syndromes_mean_what_the_specification_says() -> None:
    assert decode_syndrome(0x1F) == Ack(opcodes.CREDIT_NONE)
    assert decode_syndrome(0x00) == Ack(0)
    assert decode_syndrome(0x20 | 14) == RnrNak(14)
    assert RnrNak(14).delay_us == 1280
    assert RnrNak(0).delay_us == 655_360
    assert decode_syndrome(0x60) == Nak(NakCode.PSN_SEQUENCE_ERROR)
    assert decode_syndrome(0x62) == Nak(NakCode.REMOTE_ACCESS_ERROR)
    assert decode_syndrome(0x40) == ReservedSyndrome(0x40)
    assert decode_syndrome(0xE0) == ReservedSyndrome(0xE0)


@pytest.mark.parametrize("make", [Ack, RnrNak, Nak])
@pytest.mark.parametrize("code", [-1, 32])
def test_codes_of_more_than_five_bits_are_refused(make: type[Ack | RnrNak | Nak], code: int) -> None:
    with pytest.raises(ValueError, match="does not fit 5 bits"):
        _ = make(code).syndrome


@pytest.mark.parametrize("value", [-1, 256])
def test_a_syndrome_is_one_byte(value: int) -> None:
    with pytest.raises(ValueError, match="does not fit 8 bits"):
        decode_syndrome(value)
