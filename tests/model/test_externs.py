"""Hashes, checksums and meters against published values and RFC 2698."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.model import Model
from p4gen.model.entries import CloneSession, Replica
from p4gen.model.externs import GREEN, RED, YELLOW, Bucket, MeterConfig
from p4gen.model.hashes import ALGORITHMS

from .test_language import model


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        # The check values of the catalogue of parametrised CRC algorithms: CRC-32/ISO-HDLC and CRC-16/ARC.
        ("crc32", b"123456789", 0xCBF43926),
        ("crc16", b"123456789", 0xBB3D),
        ("crc32_custom", b"123456789", 0xCBF43926),
        ("crc16_custom", b"123456789", 0xBB3D),
        # RFC 1071, section 3: the sum is 0xddf2.
        ("csum16", bytes.fromhex("0001f203f4f5f6f7"), 0xDDF2 ^ 0xFFFF),
        ("csum16", b"\x12\x34\x56", (0x1234 + 0x5600) ^ 0xFFFF),
        ("csum16", b"", 0xFFFF),
        ("xor16", bytes.fromhex("1234567801"), 0x1234 ^ 0x5678 ^ 0x0100),
        ("identity", bytes(range(1, 11)), 0x0102030405060708),
        ("identity", b"\1\2", 0x0102),
    ],
)
def test_published_hash_values(name: str, data: bytes, expected: int) -> None:
    assert ALGORITHMS[name](data) == expected


def test_hash_results_lie_in_their_range() -> None:
    """simple_switch.md: "(base + (H % max)) if max >= 1, otherwise base"."""
    call = "hash(hdr.h.{}, HashAlgorithm.crc32, 8w10, {{ hdr.h.d }}, {});"
    switch = model(call.format("a", "8w7") + call.format("b", "8w0"))
    for d in range(50):
        a, b = switch.process(0, bytes([0, 0, 0, d]))[0][1][:2]
        assert 10 <= a < 17
        assert b == 10


def test_hashes_take_fields_of_invalid_headers_as_they_are() -> None:
    """As BMv2 1.15.5 does, observed; the specification leaves such fields undefined."""
    switch = model("hash(hdr.h.b, HashAlgorithm.identity, 16w0, { hdr.h.a, hdr.s[0].x }, 32w0x10000);")
    assert switch.process(0, b"\5\0\0\0")[0][1][1] == 0, "of two bytes the header's is the last, and 0"
    switch = model("hash(hdr.h.b, HashAlgorithm.identity, 16w0, { hdr.h.a }, 32w0x10000);")
    assert switch.process(0, b"\5\0\0\0")[0][1][1] == 5


def test_two_rates_three_colours() -> None:
    """RFC 2698, 3: a packet is red above the peak rate, yellow above the committed one, else green."""
    bucket = Bucket()
    assert bucket.mark(1, 0) == GREEN, "not configured yet"
    bucket.configure(MeterConfig(cir=1, cburst=2, pir=2, pburst=4), 0)
    assert [bucket.mark(1, 0) for _ in range(6)] == [GREEN, GREEN, YELLOW, YELLOW, RED, RED]
    # After a second one committed token and two of the peak have come back; red packets cost nothing.
    assert [bucket.mark(1, 1_000_000) for _ in range(3)] == [GREEN, YELLOW, RED]


@given(st.lists(st.tuples(st.integers(0, 300_000), st.integers(1, 5)), max_size=40))
def test_a_meter_never_lets_more_pass_than_its_rates(steps: list[tuple[int, int]]) -> None:
    config = MeterConfig(cir=10, cburst=8, pir=20, pburst=16)
    bucket, now, green, passed = Bucket(), 0, 0, 0
    bucket.configure(config, now)
    for wait, size in steps:
        now += wait
        color = bucket.mark(size, now)
        green += size if color == GREEN else 0
        passed += size if color != RED else 0
        assert green <= config.cburst + config.cir * now / 1e6
        assert passed <= config.pburst + config.pir * now / 1e6


def test_meters_of_programs_run_on_the_given_clock() -> None:
    local = "meter(2, MeterType.packets) m;"
    switch = model("m.execute_meter((bit<32>)hdr.h.a, hdr.h.b);", local=local)
    switch.set_meter("m", 1, MeterConfig(0, 1, 0, 2))
    assert [switch.process(0, b"\1\0\0\0")[0][1][1] for _ in range(3)] == [GREEN, YELLOW, RED]
    assert switch.process(0, b"\0\xff\0\0")[0][1][1] == GREEN
    assert switch.process(0, b"\2\xff\0\0")[0][1][1] == 0xFF, "out of range: the destination stays"
    assert len(switch.traps()) == 1


def test_random_is_repeatable_and_in_range() -> None:
    def draw(switch: Model) -> list[int]:
        return [switch.process(0, bytes(4))[0][1][0] for _ in range(50)]

    program = model("random(hdr.h.a, 8w3, 8w6);").program
    first = draw(Model(program, seed=1))
    assert set(first) == {3, 4, 5, 6}
    assert draw(Model(program, seed=1)) == first
    assert draw(Model(program, seed=2)) != first


def test_assertions_and_messages_are_kept_with_their_place() -> None:
    switch = model('assert(hdr.h.a == 1); log_msg("a is {}, b is {}", { hdr.h.a, hdr.h.b });')
    switch.process(0, b"\1\2\0\0")
    switch.process(0, b"\3\4\0\0")
    assert switch.log_messages() == ["a is 1, b is 2", "a is 3, b is 4"]
    assert [(t.what, t.count) for t in switch.traps()] == [("assert does not hold", 1)]


@pytest.mark.parametrize("request_", ["resubmit_preserving_field_list(0);", "clone(CloneType.I2E, 1);"])
def test_ingress_port_is_lost_on_the_second_pass(request_: str) -> None:
    """As BMv2 1.15.5 does, observed: metadata start from zero but for the field list, standard_metadata too."""
    first = "if (sm.instance_type == 0 && sm.ingress_port == 1) {{ {} }} hdr.h.a = (bit<8>)sm.ingress_port;"
    switch = model(first.format(request_))
    switch.set_clone_session(CloneSession(1, (Replica(2),)))
    outputs = dict(switch.process(1, bytes([9, 0, 0, 0])))
    if "resubmit" in request_:
        assert outputs == {0: b"\0\0\0\0"}
    else:
        assert outputs == {0: b"\1\0\0\0", 2: b"\x09\0\0\0"}
