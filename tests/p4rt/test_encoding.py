"""Binary strings (section 8.3), the wire format by hand, entries there and back, and Thrift's few bytes."""

from __future__ import annotations

import socket
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.model import ControlError
from p4gen.model.entries import Action, Entry, Exact, Lpm, Match, Range, Ternary
from p4gen.p4.compile import Compiled
from p4gen.p4rt import bytestrings, codec, wire
from p4gen.p4rt.schema import Schema
from p4gen.p4rt.status import Code, StatusError
from p4gen.protos import p4runtime as pb
from p4gen.switch.bm_thrift import ThriftRegisters


@given(st.integers(0, 2**80))
def test_the_canonical_string_is_the_shortest(value: int) -> None:
    data = bytestrings.encode(value)
    assert data == b"\0" or data[0] != 0
    assert bytestrings.decode(data, 0, "it") == value
    assert bytestrings.decode(b"\0\0" + data, 81, "it") == value


@given(st.integers(1, 70), st.data())
def test_signed_strings_are_the_shortest(width: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, (1 << width) - 1))
    encoded = bytestrings.encode_signed(value, width)
    assert bytestrings.decode_signed(encoded, width, "it") == value
    extended = (b"\xff" if encoded[0] & 0x80 else b"\0") + encoded
    assert bytestrings.decode_signed(extended, width, "it") == value
    assert len(encoded) == 1 or int.from_bytes(encoded[1:], signed=True) != int.from_bytes(encoded, signed=True)


@pytest.mark.parametrize(("data", "width"), [(b"", 8), (b"\1\0", 8), (b"\x20", 5)])
def test_strings_out_of_range(data: bytes, width: int) -> None:
    with pytest.raises(StatusError) as caught:
        bytestrings.decode(data, width, "it")
    assert caught.value.code is Code.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("value", "width", "data"), [(99, 8, b"\x63"), (0, 8, b"\0"), (128, 8, b"\x80"), (99, 16, b"\x63")]
)
def test_the_specification_s_examples(value: int, width: int, data: bytes) -> None:
    assert bytestrings.encode(value) == data
    assert bytestrings.decode(data, width, "it") == value


@pytest.mark.parametrize(
    ("value", "width", "data"), [(99, 8, b"\x63"), (-1, 8, b"\xff"), (-128, 8, b"\x80"), (128, 16, b"\0\x80")]
)
def test_the_specification_s_signed_examples(value: int, width: int, data: bytes) -> None:
    assert bytestrings.encode_signed(value & (1 << width) - 1, width) == data
    assert bytestrings.decode_signed(data, width, "it") == value & (1 << width) - 1


@given(st.integers(0, 2**32 - 1), st.integers(0, 1000), st.binary(max_size=300))
def test_the_wire_format_is_protobuf_s(number: int, index: int, blob: bytes) -> None:
    message = pb.RegisterEntry(register_id=number)
    message.index.index = index
    message.data.bitstring = blob
    by_hand = wire.number(1, number) + wire.blob(2, wire.number(1, index)) + wire.blob(3, wire.blob(1, blob))
    assert by_hand == message.SerializeToString()
    assert dict(wire.fields(by_hand)).get(1, 0) == number


ENTRIES = st.one_of(
    st.builds(lambda v: ("exact_table", {"hdr.frame.key": Exact(v)}, 0), st.integers(0, 2**32 - 1)),
    st.builds(
        lambda v, n: ("lpm_table", {"hdr.frame.key": Lpm(v >> (32 - n) << (32 - n), n)}, 0),
        st.integers(0, 2**32 - 1),
        st.integers(1, 32),
    ),
    st.builds(
        lambda v, m, a: ("ternary_table", {"hdr.frame.key": Ternary(v & m, m), "hdr.frame.aux": Exact(a)}, 7),
        st.integers(0, 2**32 - 1),
        st.integers(1, 2**32 - 1),
        st.integers(0, 65535),
    ),
    st.builds(
        lambda a, b: ("range_table", {"hdr.frame.aux": Range(min(a, b), max(a, b))}, 1),
        st.integers(0, 65534),
        st.integers(0, 65534),
    ),
)


@given(ENTRIES, st.integers(0, 511))
def test_entries_come_back_as_they_went(
    compiled: Compiled, entry: tuple[str, dict[str, Match], int], port: int
) -> None:
    schema = Schema(compiled.p4info)
    name, match, priority = entry
    written = Entry(f"I.{name}", match, Action("I.forward", {"port": port}), priority)
    table = schema.tables.named(name)
    message = pb.TableEntry.FromString(codec.encode_entry(table, written).SerializeToString())
    key = codec.decode_key(table, message)
    assert (key.match, key.priority) == (written.match, written.priority)
    assert codec.decode_table_action(schema, table, message.action) == written.action
    assert codec.decode_entry(schema, message) == written


def test_thrift_registers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked: list[bytes] = []

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                for reply in (2, 3):
                    asked.append(peer.recv(4096))
                    head = struct.pack("!I", 0x80010000 | reply) + struct.pack("!i", 3) + b"abc" + struct.pack("!i", 0)
                    if reply == 2:
                        peer.sendall(head + struct.pack("!bhbiqqb", 15, 0, 10, 2, 5, 2**63 - 1, 0))
                    else:
                        peer.sendall(head + struct.pack("!bhib", 11, 1, 0, 0))

        thread = threading.Thread(target=answer)
        thread.start()
        registers = ThriftRegisters(server.getsockname()[1])
        assert registers.registers("I.r") == [5, 2**63 - 1]
        with pytest.raises(ControlError, match=r"register I\.nix"):
            registers.registers("I.nix")
        thread.join()
    assert b"standard:bm_register_read_all" in asked[0]
    assert asked[0].endswith(b"\x0b\0\2\0\0\0\3I.r\0")


def test_thrift_writes_registers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked: list[bytes] = []

        def answer() -> None:
            for rest in (b"\0", b"\0", struct.pack("!bhb", 12, 1, 0) + b"\0"):  # two successes, an error of BMv2
                if not asked or len(asked) == 2:
                    peer, _ = server.accept()
                asked.append(peer.recv(4096))
                peer.sendall(struct.pack("!Ii", 0x80010002, 3) + b"abc" + struct.pack("!i", 0) + rest)
                if len(asked) == 3:
                    peer.close()

        thread = threading.Thread(target=answer)
        thread.start()
        registers = ThriftRegisters(server.getsockname()[1])
        registers.reset("I.r")
        registers.write("I.r", 2, 5)
        with pytest.raises(ControlError, match=r"register I\.r: .* takes no number as large as 0x8000000000000000"):
            registers.write("I.r", 2, 1 << 63)
        registers.close()
        with pytest.raises(ControlError, match=r"register I\.nix"):
            registers.reset("I.nix")
        thread.join()
    assert b"standard:bm_register_reset" in asked[0]
    assert asked[0].endswith(b"\x08\0\1\0\0\0\0\x0b\0\2\0\0\0\3I.r\0")
    assert b"standard:bm_register_write" in asked[1]
    assert asked[1].endswith(b"I.r\x08\0\3\0\0\0\2\x0a\0\4\0\0\0\0\0\0\0\5\0")
