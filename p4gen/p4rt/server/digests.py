"""Digests: buffered, sent as lists, and not repeated until acknowledged (sections 9.8 and 16.3)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from p4gen.model import Digest
from p4gen.p4rt import p4data
from p4gen.p4rt.schema import DigestInfo
from p4gen.p4rt.server.pipeline import Pipeline
from p4gen.p4rt.status import Code, StatusError, invalid, not_found
from p4gen.protos import p4runtime as pb

Undo = Callable[[], None]
Leaves = tuple[int | bool | str, ...]
INSERT, MODIFY, DELETE = pb.Update.INSERT, pb.Update.MODIFY, pb.Update.DELETE


def write(pipeline: Pipeline, kind: int, message: Any) -> Undo:
    """Enable, configure or disable a digest."""
    digest = pipeline.schema.digests.known(message.digest_id)
    before = pipeline.digests.get(digest.id)
    if kind == INSERT and before is not None:
        raise StatusError(Code.ALREADY_EXISTS, f"digest {digest.name} is already enabled")
    if kind in (MODIFY, DELETE) and before is None:
        raise not_found(f"digest {digest.name} is not enabled")
    if kind == DELETE:
        del pipeline.digests[digest.id]
    else:
        config = message.config
        if min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
            raise invalid(f"digest {digest.name}: timeouts and sizes cannot be negative")
        kept = pb.DigestEntry()
        kept.CopyFrom(message)
        pipeline.digests[digest.id] = kept

    def undo() -> None:
        if before is None:
            pipeline.digests.pop(digest.id, None)
        else:
            pipeline.digests[digest.id] = before

    return undo


def read(pipeline: Pipeline, message: Any) -> Iterator[Any]:
    """The configuration of one digest, or of all that are enabled."""
    for digest in pipeline.schema.digests.select(message.digest_id):
        if digest.id in pipeline.digests:
            yield pb.Entity(digest_entry=pipeline.digests[digest.id])


@dataclass(eq=False)
class _Buffer:
    waiting: dict[Leaves, None] = field(default_factory=dict)
    since: int = 0
    sent: dict[int, tuple[int, tuple[Leaves, ...]]] = field(default_factory=dict)
    """Lists that are not acknowledged yet, by id: the time of sending, and the contents."""


class DigestEngine:
    """Turns digests into DigestList messages, for one pipeline. The caller serialises all calls."""

    def __init__(self, send: Callable[[Any], None], clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._send, self._clock = send, clock
        self._buffers: dict[int, _Buffer] = {}
        self._lists = 0

    def reset(self) -> None:
        """Discard everything, because the pipeline or the primary controller has changed."""
        self._buffers.clear()

    def add(self, pipeline: Pipeline, digests: Iterable[Digest]) -> None:
        """Take digests from the data plane and send the lists that are due."""
        by_name = {d.name: d for d in pipeline.schema.digests.values()}
        for digest in digests:
            info = by_name.get(digest.name)
            entry = pipeline.digests.get(info.id) if info is not None else None
            if info is None or entry is None:
                continue  # learning is not enabled
            leaves = tuple(value for _, value in digest.fields)
            buffer = self._buffers.setdefault(info.id, _Buffer())
            self._expire(buffer, entry.config.ack_timeout_ns)
            if leaves in buffer.waiting or any(leaves in sent for _, sent in buffer.sent.values()):
                continue
            if not buffer.waiting:
                buffer.since = self._clock()
            buffer.waiting[leaves] = None
            self._flush(pipeline, info, buffer, entry.config)

    def tick(self, pipeline: Pipeline) -> None:
        """Send digests that have waited for max_timeout_ns."""
        for digest_id, buffer in self._buffers.items():
            entry = pipeline.digests.get(digest_id)
            if entry is not None and buffer.waiting:
                self._flush(pipeline, pipeline.schema.digests[digest_id], buffer, entry.config)

    def acknowledge(self, pipeline: Pipeline, message: Any) -> None:
        """Handle a DigestListAck: digests in that list may be sent again. INVALID_ARGUMENT for an unknown digest."""
        pipeline.schema.digests.known(message.digest_id, Code.INVALID_ARGUMENT)
        buffer = self._buffers.get(message.digest_id)
        if buffer is not None:
            buffer.sent.pop(message.list_id, None)

    def _expire(self, buffer: _Buffer, timeout: int) -> None:
        now = self._clock()
        for number in [n for n, (when, _) in buffer.sent.items() if now - when >= timeout]:
            del buffer.sent[number]

    def _flush(self, pipeline: Pipeline, info: DigestInfo, buffer: _Buffer, config: Any) -> None:
        full = bool(config.max_list_size) and len(buffer.waiting) >= config.max_list_size
        if not full and self._clock() - buffer.since < config.max_timeout_ns:
            return
        self._lists += 1
        message = pb.StreamMessageResponse()
        message.digest.digest_id, message.digest.list_id = info.id, self._lists
        message.digest.timestamp = time.time_ns()
        types, strings = pipeline.schema.info.type_info, pipeline.schema.translations.by_type
        message.digest.data.extend(
            p4data.encode(info.type_spec, types, iter(leaves), strings) for leaves in buffer.waiting
        )
        if config.ack_timeout_ns:
            buffer.sent[self._lists] = (self._clock(), tuple(buffer.waiting))
        buffer.waiting = {}
        self._send(message)
