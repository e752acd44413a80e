"""A controller's connection to a P4Runtime server."""

from __future__ import annotations

import contextlib
import queue
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import grpc

from p4gen.errors import FailedError
from p4gen.model.errors import ControlError
from p4gen.p4rt import wire
from p4gen.p4rt.status import Code
from p4gen.protos import p4runtime as pb
from p4gen.protos import rpc

Election = tuple[int, int]
_OPTIONS = [
    ("grpc.max_receive_message_length", 64 << 20),
    # A refused batch has an error for each update, in metadata, of which gRPC takes some kilobytes by default.
    ("grpc.max_metadata_size", 4 << 20),
    ("grpc.absolute_max_metadata_size", 4 << 20),
    ("grpc.use_local_subchannel_pool", 1),
]
_SERVICE = "/p4.v1.P4Runtime"
_DETAILS = "grpc-status-details-bin"
_KINDS = ("arbitration", "packet", "digest", "idle_timeout_notification", "error", "unknown")
_GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)


_LOOK_S = 0.2
"""Seconds between checks whether the switch is still there, while a session is not connected."""
_MOST_WAITING = 1000
"""The most stream messages that may wait for the switch."""


class RequestError(ControlError):
    """A request that the switch refused; ``failures`` has (number of the update, code, message) for a batch."""

    def __init__(self, *diagnostics: Any, code: Code = Code.UNKNOWN, failures: Any = ()) -> None:
        super().__init__(*diagnostics)
        self.code = code
        self.failures: tuple[tuple[int, Code, str], ...] = tuple(failures)

    def __reduce__(self) -> Any:
        return ControlError, self.diagnostics


class GoneError(FailedError):
    """The switch does not answer, or has stopped answering."""


class Stub:
    """P4Runtime's calls on a channel. They take messages or their bytes."""

    def __init__(self, channel: Any) -> None:
        def call(kind: Any, name: str, answer: Any) -> Any:
            return kind(f"{_SERVICE}/{name}", _on_the_wire, answer.FromString)

        unary = channel.unary_unary
        self.Write = call(unary, "Write", pb.WriteResponse)
        self.Read = call(channel.unary_stream, "Read", pb.ReadResponse)
        self.SetForwardingPipelineConfig = call(
            unary, "SetForwardingPipelineConfig", pb.SetForwardingPipelineConfigResponse
        )
        self.GetForwardingPipelineConfig = call(
            unary, "GetForwardingPipelineConfig", pb.GetForwardingPipelineConfigResponse
        )
        self.StreamChannel = call(channel.stream_stream, "StreamChannel", pb.StreamMessageResponse)
        self.Capabilities = call(unary, "Capabilities", pb.CapabilitiesResponse)


class Session:
    """One controller's connection to one device.

    Raises ``GoneError`` when nothing answers at ``address`` within ``timeout`` seconds, ``FailedError`` when the stream
    is refused. Without ``election``, an id is chosen that grows with time, so that the controller that connects last is
    the primary. Every write request is appended to the file ``record``, for ``read_writes``. RPCs end with
    ``GoneError`` after ``limit`` seconds, those that load a program after ``load_limit``; None: never. ``ended`` is
    called, in a separate thread, when the stream ends before ``tear_down``. ``heard`` gets the packets that the switch
    sends, in the same thread; without it they wait for ``get_stream_packet``.
    """

    def __init__(
        self,
        address: str,
        device_id: int = 1,
        election: Election | None = None,
        timeout: float = 10.0,
        record: Path | None = None,
        *,
        limit: float | None = None,
        load_limit: float | None = None,
        ended: Callable[[], None] | None = None,
        refused: Callable[[], bool] | None = None,
        heard: Callable[[bytes], None] | None = None,
    ) -> None:
        self.address = address
        self.device_id = device_id
        self.election_id = election or newest_election()
        self.timeout = timeout
        self.is_primary = False
        self.limit = limit
        self.load_limit = load_limit
        self._record = record
        self._on_end = ended
        self._heard = heard
        self._ended: grpc.RpcError | None = None
        self._closing = False
        self.alive = True
        """False once the stream has ended."""
        self.channel = grpc.insecure_channel(address, options=_OPTIONS)
        try:
            self._await_channel(refused or (lambda: False))
        except BaseException:
            self.channel.close()
            raise
        self.stub = Stub(self.channel)
        self._read_raw = self.channel.unary_stream(f"{_SERVICE}/Read", bytes, bytes)
        try:
            self.set_up_stream()
        except BaseException:
            self.tear_down()
            raise

    def _await_channel(self, refused: Callable[[], bool]) -> None:
        ready, deadline = grpc.channel_ready_future(self.channel), time.monotonic() + self.timeout
        while (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(grpc.FutureTimeoutError):
                ready.result(min(left, _LOOK_S))
                return
            if refused():
                ready.cancel()
                raise GoneError(f"nothing listens at {self.address} any more")
        ready.cancel()
        raise GoneError(f"no P4Runtime server answers at {self.address} within {self.timeout:g} s")

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.tear_down()

    # --- the stream ---

    def set_up_stream(self) -> None:
        """Open the stream and take part in the arbitration."""
        self.stream_out_q: queue.Queue[Any] = queue.Queue()
        self.stream_in_q: dict[str, queue.Queue[Any]] = {kind: queue.Queue() for kind in _KINDS}
        self.stream = self.stub.StreamChannel(iter(self.stream_out_q.get, None))
        self.stream_recv_thread = threading.Thread(target=self._receive, daemon=True)
        self.stream_recv_thread.start()
        self.handshake()

    def _receive(self) -> None:
        try:
            for message in self.stream:
                kind = message.WhichOneof("update")
                if kind == "packet" and self._heard is not None:
                    self._heard(message.packet.payload)
                    continue
                self.stream_in_q[kind if kind in _KINDS else "unknown"].put(message)
        except grpc.RpcError as error:
            self._ended = error
        self.alive = False
        for waiting in self.stream_in_q.values():
            waiting.put(None)
        if self._on_end is not None and not self._closing:
            self._on_end()

    def handshake(self) -> None:
        """Send the election id and wait for the result of the arbitration."""
        request = pb.StreamMessageRequest()
        request.arbitration.device_id = self.device_id
        request.arbitration.election_id.high, request.arbitration.election_id.low = self.election_id
        self.stream_out_q.put(request)
        reply = self.get_stream_packet("arbitration", timeout=self.timeout)
        if reply is None:
            why = f"{self._ended.code().name}: {self._ended.details()}" if self._ended else "no answer to arbitration"
            gone = self._ended is None or self._ended.code() in _GONE
            problem = "does not take" if gone else "refuses"
            raise (GoneError if gone else FailedError)(
                f"the P4Runtime server at {self.address} {problem} a controller: {why}"
            )
        self.is_primary = reply.arbitration.status.code == Code.OK

    def get_stream_packet(self, type_: str, timeout: float = 1.0) -> Any:
        """The next stream message of a kind; None if none arrives within ``timeout`` seconds, or the stream has
        ended."""
        try:
            return self.stream_in_q[type_].get(timeout=timeout)
        except queue.Empty:
            return None

    def packets_out(self, payloads: Iterable[bytes]) -> bool:
        """Send packets without metadata. Returns False, and sends nothing, if too many messages are waiting for the
        switch."""
        if self.stream_out_q.qsize() > _MOST_WAITING:
            return False
        for payload in payloads:
            self.stream_out_q.put(wire.blob(2, wire.blob(1, payload)))
        return True

    def tear_down(self) -> None:
        """Close the connection. May be called more than once."""
        self._closing = True
        self.stream_out_q.put(None)
        self.stream.cancel()
        if self.stream_recv_thread is not threading.current_thread():
            self.stream_recv_thread.join()
        self.channel.close()

    # --- RPCs, with errors that name what failed ---

    def write_all(self, updates: list[Any], atomicity: int = pb.WriteRequest.CONTINUE_ON_ERROR) -> None:
        """The Write RPC. Raises ``RequestError``, with every update that failed, or ``FailedError``."""
        request = pb.WriteRequest(device_id=self.device_id, updates=updates, atomicity=atomicity)
        request.election_id.high, request.election_id.low = self.election_id
        self._write(request.SerializeToString())

    def write_encoded(self, updates: Iterable[tuple[int, bytes]]) -> None:
        """The Write RPC for updates as (type, encoded entity). Raises like ``write_all``."""
        high, low = self.election_id
        parts = [wire.number(1, self.device_id), wire.blob(3, wire.number(1, high) + wire.number(2, low))]
        parts += [wire.blob(4, wire.number(1, kind) + wire.blob(2, entity)) for kind, entity in updates]
        self._write(b"".join(parts))

    def _write(self, data: bytes) -> None:
        if self._record is not None:
            with self._record.open("ab") as file:
                file.write(struct.pack("!I", len(data)) + data)
        try:
            self.stub.Write(data, timeout=self.limit)
        except grpc.RpcError as error:
            raise self._error(error) from None

    def set_config(self, config: Any, action: int = pb.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT) -> None:
        """The SetForwardingPipelineConfig RPC; ``config`` None for COMMIT."""
        request = pb.SetForwardingPipelineConfigRequest(device_id=self.device_id, action=action, config=config)
        request.election_id.high, request.election_id.low = self.election_id
        try:
            self.stub.SetForwardingPipelineConfig(request, timeout=self.load_limit)
        except grpc.RpcError as error:
            raise self._error(error) from None

    def get_config(self, response_type: int = pb.GetForwardingPipelineConfigRequest.ALL) -> Any:
        """The active ForwardingPipelineConfig, or the parts of it that ``response_type`` selects; None if there is
        none."""
        request = pb.GetForwardingPipelineConfigRequest(device_id=self.device_id, response_type=response_type)
        try:
            response = self.stub.GetForwardingPipelineConfig(request, timeout=self.limit)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.FAILED_PRECONDITION:  # BMv2's server answers so
                return None
            raise self._error(error) from None
        return response.config if response.HasField("config") else None

    def read_all(self, *entities: Any) -> Iterator[Any]:
        """The entities that a Read of ``entities`` returns."""
        for data in self.read_bytes(*entities):
            yield from pb.ReadResponse.FromString(data).entities

    def read_bytes(self, *entities: Any) -> list[bytes]:
        """The encoded ReadResponses of a Read of ``entities``."""
        return self.read_encoded(entity.SerializeToString() for entity in entities)

    def read_encoded(self, entities: Iterable[bytes]) -> list[bytes]:
        """The encoded ReadResponses of a Read of encoded entities."""
        request = b"".join([wire.number(1, self.device_id), *(wire.blob(2, entity) for entity in entities)])
        try:
            return list(self._read_raw(request, timeout=self.limit))
        except grpc.RpcError as error:
            raise self._error(error) from None

    def _error(self, error: Any) -> Exception:
        if error.code() in _GONE:
            return GoneError(f"the switch at {self.address} has gone away: {error.details()}")
        code = Code(error.code().value[0])
        failures = tuple(_failures(error))
        if not failures:
            return RequestError(f"{code.name}: {error.details()}", code=code)
        lines = [f"update {number}: {why.name}: {message}" for number, why, message in failures]
        return RequestError(*lines, code=code, failures=failures)


def _on_the_wire(message: Any) -> bytes:
    return message if isinstance(message, bytes) else bytes(message.SerializeToString())


def newest_election() -> Election:
    """An election id above those given before, and above p4runtime-shell's default, (1, 0)."""
    return (1, time.time_ns())


def read_writes(path: Path) -> Iterator[bytes]:
    """The write requests in a record, serialised."""
    data = path.read_bytes()
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from("!I", data, at)
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


def _failures(error: Any) -> Iterator[tuple[int, Code, str]]:
    """The updates of a batch that failed. PI sends details only for batches; other errors have none."""
    for key, value in error.trailing_metadata() or ():
        if key != _DETAILS:
            continue
        for number, detail in enumerate(rpc.Status.FromString(value).details):
            found = pb.Error()
            if detail.Unpack(found) and found.canonical_code != Code.OK:
                yield number, Code(found.canonical_code), found.message
