"""Packets between controllers and the switch, and idle-timeout notifications (section 16)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from p4gen.p4rt.schema import Schema
from p4gen.p4rt.server.pipeline import Pipeline
from p4gen.p4rt.status import StatusError, invalid
from p4gen.protos import p4runtime as pb


def frame_of(schema: Schema, message: Any) -> bytes:
    """A PacketOut as the frame that the program parses: its packet_out header, then the payload.

    INVALID_ARGUMENT when the metadata are not exactly those of the P4Info (section 16.1).
    """
    fields = schema.packet_out or ()
    given: dict[int, bytes] = {}
    for metadata in message.metadata:
        if metadata.metadata_id in given:
            raise invalid(f"packet-out metadata {metadata.metadata_id} is given twice")
        given[metadata.metadata_id] = metadata.value
    known = {f.id for f in fields}
    for number in given:
        if number not in known:
            raise invalid(f"packet-out metadata {number} is not in the P4Info")
    bits = width = 0
    for field in fields:
        if field.id not in given:
            raise invalid(f"packet-out metadata {field.name} is missing")
        where = f"packet-out metadata {field.name}"
        bits, width = bits << field.bits | field.decode(given[field.id], where), width + field.bits
    return _to_bytes(bits, width) + bytes(message.payload)


def packet_in_of(schema: Schema, frame: bytes) -> Any:
    """A frame for the controller as a message: the packet_in header's fields as metadata, the rest as payload."""
    message = pb.StreamMessageResponse()
    fields = schema.packet_in or ()
    width = sum(f.bits for f in fields)
    size = (width + 7) // 8
    if len(frame) < size:
        fields, width, size = (), 0, 0  # the frame has no header, so it is sent as it is
    bits = int.from_bytes(frame[:size]) >> (size * 8 - width)
    for field in fields:
        width -= field.bits
        message.packet.metadata.add(metadata_id=field.id, value=field.encode(bits >> width & field.full))
    message.packet.payload = frame[size:]
    return message


def _to_bytes(bits: int, width: int) -> bytes:
    size = (width + 7) // 8
    return (bits << (size * 8 - width)).to_bytes(size)


def packet_error(error: StatusError, packet: Any) -> Any:
    """The StreamError for a PacketOut that was dropped (section 16.6)."""
    message = pb.StreamMessageResponse()
    message.error.canonical_code, message.error.message = error.code, error.message
    message.error.packet_out.packet_out.CopyFrom(packet)
    return message


def digest_error(error: StatusError, acknowledgement: Any) -> Any:
    """The StreamError for a DigestListAck that refers to no digest."""
    message = pb.StreamMessageResponse()
    message.error.canonical_code, message.error.message = error.code, error.message
    message.error.digest_list_ack.digest_list_ack.CopyFrom(acknowledgement)
    return message


def idle_notifications(pipeline: Pipeline) -> Iterator[Any]:
    """A message for each table with entries whose timeout has passed (section 16.4).

    An entry is reported once each time that its timeout passes without a hit.
    """
    if not pipeline.timed:
        return
    for table in pipeline.schema.tables.values():
        if not table.idle_timeout:
            continue
        message = pb.StreamMessageResponse()
        for stored in pipeline.tables[table.id].values():
            timeout = stored.message.idle_timeout_ns // 1000
            if not stored.message.idle_timeout_ns:
                continue
            idle = pipeline.backend.idle_time(stored.entry)
            if idle < stored.notified:
                stored.notified = 0  # the entry has been hit since
            if idle - stored.notified >= max(timeout, 1):
                stored.notified = idle
                message.idle_timeout_notification.table_entry.add().CopyFrom(stored.message)
        if message.HasField("idle_timeout_notification"):
            message.idle_timeout_notification.timestamp = time.time_ns()
            yield message
