"""Packet I/O, digests and idle-timeout notifications (sections 9.8 and 16)."""

from __future__ import annotations

from typing import Any

import pytest
from patience import PATIENCE_S

from p4gen.p4rt.status import Code
from p4gen.protos import p4runtime as pb

from .conftest import CPU, DELETE, INSERT, MODIFY, World, eventually, frame


def packet_out(*metadata: tuple[int, bytes], payload: bytes = b"") -> Any:
    request = pb.StreamMessageRequest()
    request.packet.payload = payload or frame(0)
    for number, value in metadata:
        request.packet.metadata.add(metadata_id=number, value=value)
    return request


@pytest.fixture
def sent(world: World) -> list[tuple[int, bytes]]:
    """What leaves the switch when controllers have it send something."""
    outputs: list[tuple[int, bytes]] = []
    world.device.inject = lambda port, data: outputs.extend(world.device.send(port, data))
    return outputs


# --- 16.1 packet I/O ---


def test_a_packet_out_goes_where_its_metadata_say(world: World, sent: list[tuple[int, bytes]]) -> None:
    world.session.stream_out_q.put(packet_out((1, b"\4"), (2, b"\0")))
    assert eventually(lambda: sent) == [(4, frame(0))]


def test_a_packet_in_has_its_metadata(world: World) -> None:
    world.insert(world.entry("exact_table", (1, "exact", b"\5"), action="to_cpu"))
    assert world.send(0, 5, port=9) == []
    message = world.session.get_stream_packet("packet")
    assert message.packet.payload == frame(0, 5)
    assert [(m.metadata_id, m.value) for m in message.packet.metadata] == [(1, b"\x09"), (2, b"\0")]


@pytest.mark.parametrize(
    "metadata",
    [
        [(1, b"\4")],
        [(1, b"\4"), (2, b"\0"), (3, b"\0")],
        [(1, b"\4"), (1, b"\4"), (2, b"\0")],
        [(1, b"\2\0"), (2, b"\0")],
        [(1, b""), (2, b"\0")],
    ],
)
def test_metadata_that_do_not_match_the_p4info(
    world: World, sent: list[tuple[int, bytes]], metadata: list[tuple[int, bytes]]
) -> None:
    request = packet_out(*metadata)
    world.session.stream_out_q.put(request)
    error = world.session.get_stream_packet("error", PATIENCE_S).error
    assert error.canonical_code == Code.INVALID_ARGUMENT
    assert error.packet_out.packet_out == request.packet
    assert sent == []


def test_a_backup_s_packets_are_dropped(world: World, sent: list[tuple[int, bytes]]) -> None:
    backup = world.connect(0, 5)
    backup.stream_out_q.put(packet_out((1, b"\4"), (2, b"\0")))
    assert backup.get_stream_packet("error", PATIENCE_S).error.canonical_code == Code.PERMISSION_DENIED
    assert sent == []


def test_only_the_primary_gets_packets(world: World) -> None:
    backup = world.connect(0, 5)
    world.insert(world.entry("exact_table", (1, "exact", b"\5"), action="to_cpu"))
    world.send(0, 5)
    assert world.session.get_stream_packet("packet") is not None
    assert backup.get_stream_packet("packet", 0.1) is None


def test_without_a_cpu_port_there_is_no_packet_out(world: World) -> None:
    world.device.cpu_port = 0
    world.session.stream_out_q.put(packet_out((1, b"\4"), (2, b"\0")))
    error = world.session.get_stream_packet("error", PATIENCE_S).error
    assert error.canonical_code == Code.INVALID_ARGUMENT
    assert "CPU port" in error.message
    world.device.cpu_port = CPU


def test_stream_messages_of_no_known_kind(world: World) -> None:
    request = pb.StreamMessageRequest()
    request.other.type_url = "x/y"
    world.session.stream_out_q.put(request)
    error = world.session.get_stream_packet("error", PATIENCE_S).error
    assert error.canonical_code == Code.UNIMPLEMENTED
    assert error.WhichOneof("details") == "other"


# --- 9.8 and 16.3 digests ---


def digest(world: World, timeout: int = 0, size: int = 1, ack: int = 0) -> Any:
    message = pb.DigestEntry(digest_id=next(iter(world.schema.digests)))
    message.config.max_timeout_ns, message.config.max_list_size, message.config.ack_timeout_ns = timeout, size, ack
    return message


def learning(world: World, **config: int) -> Any:
    world.insert(*(world.entry("exact_table", (1, "exact", bytes([k])), action="learn") for k in (5, 6)))
    message = digest(world, **config)
    world.insert(message)
    return message


def next_list(world: World, timeout: float = PATIENCE_S) -> Any:
    message = world.session.get_stream_packet("digest", timeout)
    return None if message is None else message.digest


def test_a_digest_is_sent_once_enabled(world: World) -> None:
    world.insert(world.entry("exact_table", (1, "exact", b"\5"), action="learn"))
    world.send(0, 5)
    world.insert(digest(world))
    world.send(0, 5, port=2)
    found = next_list(world)
    assert found.digest_id == digest(world).digest_id
    (data,) = found.data
    assert [m.bitstring for m in data.struct.members] == [b"\5", b"\2"]
    world.write(DELETE, digest(world))
    world.send(0, 5)
    assert next_list(world, 0.1) is None


def test_digests_that_are_enabled_or_not(world: World) -> None:
    assert world.refused(MODIFY, digest(world)) is Code.NOT_FOUND
    assert world.refused(DELETE, digest(world)) is Code.NOT_FOUND
    world.insert(digest(world))
    assert world.refused(INSERT, digest(world)) is Code.ALREADY_EXISTS
    assert world.refused(MODIFY, digest(world, timeout=-1)) is Code.INVALID_ARGUMENT
    assert world.read(pb.DigestEntry()) == [digest(world)]
    unknown = digest(world)
    unknown.digest_id = 0x17FFFFFF
    assert world.refused(INSERT, unknown) is Code.NOT_FOUND


def test_a_list_is_sent_when_it_is_full_or_when_time_is_up(world: World) -> None:
    world.stop_time()
    learning(world, timeout=300_000_000, size=2)
    world.send(0, 5)
    assert next_list(world, 0.05) is None
    world.send(0, 5)  # the same again does not fill it
    assert next_list(world, 0.05) is None
    world.send(0, 6)
    assert len(next_list(world).data) == 2
    world.send(0, 5)
    assert next_list(world, 0.05) is None
    world.stop_time(300_000_000)
    assert len(next_list(world).data) == 1


def test_what_is_not_acknowledged_is_not_repeated(world: World) -> None:
    learning(world, ack=60_000_000_000)
    world.send(0, 5)
    first = next_list(world)
    world.send(0, 5)
    assert next_list(world, 0.1) is None
    request = pb.StreamMessageRequest()
    request.digest_ack.digest_id, request.digest_ack.list_id = first.digest_id, first.list_id
    world.session.stream_out_q.put(request)

    def again() -> Any:
        world.send(0, 5)
        return next_list(world, 0.02)

    assert eventually(again).list_id != first.list_id


def test_without_acknowledgement_it_is_repeated_after_the_timeout(world: World) -> None:
    world.stop_time()
    learning(world, ack=100_000_000)
    world.send(0, 5)
    assert next_list(world) is not None
    world.send(0, 5)
    assert next_list(world, 0.03) is None
    world.stop_time(100_000_000)
    world.send(0, 5)
    assert next_list(world) is not None


def test_acknowledging_an_unknown_digest(world: World) -> None:
    request = pb.StreamMessageRequest()
    request.digest_ack.digest_id = 0x17FFFFFF
    world.session.stream_out_q.put(request)
    error = world.session.get_stream_packet("error", PATIENCE_S).error
    assert error.canonical_code == Code.INVALID_ARGUMENT
    assert error.digest_list_ack.digest_list_ack.digest_id == 0x17FFFFFF


# --- 16.4 idle timeouts ---


def test_an_idle_entry_is_told_of_once_for_each_timeout(world: World) -> None:
    entry = world.exact("idle_table", 5)
    entry.idle_timeout_ns, entry.metadata = 1_000_000, b"mine"
    world.insert(entry)
    assert world.session.get_stream_packet("idle_timeout_notification", 0.1) is None
    world.now = 1000
    message = world.session.get_stream_packet("idle_timeout_notification", PATIENCE_S)
    (told,) = message.idle_timeout_notification.table_entry
    assert (told.table_id, told.match, told.idle_timeout_ns, told.metadata) == (
        entry.table_id, entry.match, 1_000_000, b"mine",
    )  # fmt: skip
    assert world.session.get_stream_packet("idle_timeout_notification", 0.1) is None
    world.now = 2000
    assert world.session.get_stream_packet("idle_timeout_notification", PATIENCE_S) is not None


def test_a_hit_starts_the_timeout_afresh(world: World) -> None:
    entry = world.exact("idle_table", 5)
    entry.idle_timeout_ns = 1_000_000
    world.insert(entry, world.exact("idle_table", 6))
    world.now = 900
    world.send(6, 5)
    world.now = 1800
    assert world.session.get_stream_packet("idle_timeout_notification", 0.1) is None
    world.now = 1900
    assert world.session.get_stream_packet("idle_timeout_notification", PATIENCE_S) is not None
    world.write(DELETE, entry)
    world.now = 5000
    assert world.session.get_stream_packet("idle_timeout_notification", 0.1) is None
