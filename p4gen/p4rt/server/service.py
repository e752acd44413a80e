"""The P4Runtime service on gRPC: every RPC's checks, in the order that the specification gives."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError

from p4gen.errors import P4genError
from p4gen.model import Digest
from p4gen.p4rt.server import read, stream, write
from p4gen.p4rt.server.arbitration import Arbiter, Controller, election, role_of
from p4gen.p4rt.server.config import Configuration
from p4gen.p4rt.server.digests import DigestEngine
from p4gen.p4rt.server.pipeline import Pipeline
from p4gen.p4rt.server.target import Target
from p4gen.p4rt.serving import start_server
from p4gen.p4rt.status import VERSION, Code, StatusError, invalid, not_found
from p4gen.protos import p4runtime as pb
from p4gen.protos import rpc

SERVICE = "p4.v1.P4Runtime"
MAX_MESSAGE = 64 << 20
"""Size limit of requests in bytes; section 21 requires at least gRPC's 4 MiB."""
TICK_S = 0.01
"""Seconds between checks of idle timeouts and waiting digests."""
_THREADS = 64
T = TypeVar("T")
_STATUS = {code.value[0]: code for code in grpc.StatusCode}


class P4RuntimeServer:
    """The service for one device. Use as a context manager, or call ``close``.

    ``address`` is a gRPC address (``127.0.0.1:9559``, ``unix:/path``); with port 0 a free port is chosen, and
    ``address`` has its number. Raises ``FailedError`` when the address cannot be used.
    """

    def __init__(self, target: Target, address: str, log: logging.Logger | None = None) -> None:
        self._target = target
        self._log = log or logging.getLogger(__name__)
        self._arbiter = Arbiter(target.device_id)
        self._configuration = Configuration(target)
        self._digests = DigestEngine(self._to_primaries)
        self._work = threading.RLock()
        """Held by what changes the pipeline, from its first change to the last. Nothing that a controller waits for on
        its stream takes it."""
        self._learning = threading.Lock()
        """Held by what uses ``_digests``."""
        self._closing = threading.Event()
        target.subscribe(self._packet_in, self._digest)
        self._pool = futures.ThreadPoolExecutor(_THREADS, "p4runtime")
        options = [("grpc.max_receive_message_length", MAX_MESSAGE)]
        self._server, (self.address,) = start_server(SERVICE, self._handlers(), [address], self._pool, options)
        self._ticker = threading.Thread(target=self._tick, name="p4runtime-ticker", daemon=True)
        self._ticker.start()

    def __enter__(self) -> P4RuntimeServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all RPCs and release the address."""
        self._closing.set()
        self._server.stop(grace=0.2).wait()
        self._ticker.join()
        self._pool.shutdown(cancel_futures=True)

    def _handlers(self) -> dict[str, Any]:
        unary, out_stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        set_config = self._answered(self.set_config)
        return {
            # Decoded by the thread that handles it: gRPC's own one, which all streams share, takes seconds for 60,000
            # updates.
            "Write": unary(self._answered(lambda data, context: self.write(_decoded(data), context)), None, _bytes),
            "Read": out_stream(self.read, pb.ReadRequest.FromString, _bytes),
            "SetForwardingPipelineConfig": unary(set_config, pb.SetForwardingPipelineConfigRequest.FromString, _bytes),
            "GetForwardingPipelineConfig": unary(
                self._answered(self.get_config), pb.GetForwardingPipelineConfigRequest.FromString, _bytes
            ),
            "StreamChannel": grpc.stream_stream_rpc_method_handler(
                self.stream_channel, pb.StreamMessageRequest.FromString, _bytes
            ),
            "Capabilities": unary(self._answered(self.capabilities), pb.CapabilitiesRequest.FromString, _bytes),
        }

    def _answered(self, method: Callable[[Any, Any], T]) -> Callable[[Any, Any], T]:
        """``method``, with a ``StatusError`` turned into the RPC's status."""

        def answer(request: Any, context: Any) -> T:
            try:
                return method(request, context)
            except StatusError as error:
                context.abort(_STATUS[error.code], error.message)
                raise

        return answer

    # --- unary RPCs ---

    def write(self, request: Any, context: Any) -> Any:
        """The Write RPC (section 12)."""
        self._check_device(request.device_id)
        with self._arbiter.writing(role_of(request), election(request)), self._work:
            results = write.batch(self._pipeline(), request.updates, request.atomicity)
        self._log.debug("write of %d updates, %d refused", len(results), sum(r is not None for r in results))
        if any(results):
            self._abort_batch(context, results)
        return pb.WriteResponse()

    def _abort_batch(self, context: Any, results: list[StatusError | None]) -> None:
        """End a Write with UNKNOWN and one p4.v1.Error for each update (section 12.3)."""
        status = rpc.Status(code=Code.UNKNOWN, message="one or more updates failed")
        for result in results:
            error = pb.Error(canonical_code=Code.OK)
            if result is not None:
                error.canonical_code, error.message, error.space = result.code, result.message, "p4gen"
            status.details.add().Pack(error)
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(grpc.StatusCode.UNKNOWN, status.message)

    def read(self, request: Any, context: Any) -> Iterator[bytes]:
        """The Read RPC (section 13). All entities belong to every role, so the role filters nothing out."""
        try:
            self._check_device(request.device_id)
            responses = read.read(self._pipeline(), request.entities)
        except StatusError as error:
            context.abort(_STATUS[error.code], error.message)
        yield from responses

    def set_config(self, request: Any, context: Any) -> Any:
        """The SetForwardingPipelineConfig RPC (section 14)."""
        self._check_device(request.device_id)
        config = request.config if request.HasField("config") else None
        with self._arbiter.writing(role_of(request), election(request)), self._work:
            if self._configuration.set(request.action, config):
                self._forget_digests()
                self._log.info("a controller has set the forwarding pipeline")
        return pb.SetForwardingPipelineConfigResponse()

    def get_config(self, request: Any, context: Any) -> Any:
        """The GetForwardingPipelineConfig RPC (section 15)."""
        self._check_device(request.device_id)
        return self._configuration.get(request.response_type)

    def capabilities(self, request: Any, context: Any) -> Any:
        """The Capabilities RPC (section 17)."""
        return pb.CapabilitiesResponse(p4runtime_api_version=VERSION)

    def load(self, config: Any) -> None:
        """Activate a pipeline when the switch starts, before any controller does. Raises ``StatusError``."""
        with self._work:
            self._configuration.set(pb.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT, config)

    def _check_device(self, device_id: int) -> None:
        if device_id != self._target.device_id:
            raise not_found(f"device {device_id}: this is device {self._target.device_id}")

    def _pipeline(self) -> Pipeline:
        current = self._configuration.current
        if current is None:
            raise StatusError(Code.FAILED_PRECONDITION, "no forwarding pipeline config has been set")
        return current

    # --- the stream ---

    def stream_channel(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        """The StreamChannel RPC (sections 5 and 16): one controller."""
        controller = Controller()
        if not context.add_callback(lambda: self._remove_controller(controller)):
            return
        threading.Thread(target=self._listen, args=(requests, controller), daemon=True).start()
        while (message := controller.outgoing.get()) is not None:
            if isinstance(message, StatusError):
                self._remove_controller(controller)
                context.abort(_STATUS[message.code], message.message)
            yield message
        self._remove_controller(controller)

    def _listen(self, requests: Iterator[Any], controller: Controller) -> None:
        """Handle a controller's messages until it ends the stream; then the sending side ends, too."""
        end: StatusError | None = None
        try:
            for request in requests:
                self._handle(controller, request)
        except StatusError as error:
            end = error
        except grpc.RpcError:
            pass  # the controller has disconnected
        except Exception:  # after a defect of the server the controller must not go on waiting
            self._log.exception("a stream message could not be handled")
            end = StatusError(Code.INTERNAL, "the server failed to handle a stream message; see its log")
        controller.send(end)

    def _handle(self, controller: Controller, request: Any) -> None:
        match request.WhichOneof("update"):
            case "arbitration":
                if self._arbiter.update(controller, request.arbitration):
                    self._log.info("controller with election id %s is now the primary", controller.election)
                    self._forget_digests()
            case "packet":
                self._packet_out(controller, request.packet)
            case "digest_ack":
                self._acknowledge(controller, request.digest_ack)
            case _:
                message = pb.StreamMessageResponse()
                message.error.canonical_code = Code.UNIMPLEMENTED
                message.error.message = "only arbitration, packets and digest acknowledgements are understood"
                message.error.other.other.CopyFrom(request.other)
                controller.send(message)

    def _packet_out(self, controller: Controller, packet: Any) -> None:
        try:
            if not self._arbiter.is_primary(controller):
                raise StatusError(Code.PERMISSION_DENIED, "only a primary controller may send packets")
            pipeline = self._configuration.committed
            if pipeline is None:
                raise StatusError(Code.FAILED_PRECONDITION, "no forwarding pipeline config has been set")
            # A string may get its number here. Without strings the lock, which stops all packets, is not needed.
            with pipeline.lock if pipeline.schema.translations.names else contextlib.nullcontext():
                frame = stream.frame_of(pipeline.schema, packet)
            try:
                self._target.packet_out(frame)
            except P4genError as error:
                raise invalid(error.diagnostics[0].message) from None
        except StatusError as error:
            controller.send(stream.packet_error(error, packet))

    def _acknowledge(self, controller: Controller, message: Any) -> None:
        try:
            if not self._arbiter.is_primary(controller):
                raise StatusError(Code.PERMISSION_DENIED, "only a primary controller may acknowledge digests")
            with self._learning:
                self._digests.acknowledge(self._pipeline(), message)
        except StatusError as error:
            controller.send(stream.digest_error(error, message))

    def _remove_controller(self, controller: Controller) -> None:
        if self._arbiter.remove(controller):
            self._forget_digests()
        controller.send(None)

    def _forget_digests(self) -> None:
        with self._learning:
            self._digests.reset()

    def _to_primaries(self, message: Any) -> None:
        for primary in self._arbiter.primaries():
            primary.send(message)

    # --- messages from the switch ---

    def _packet_in(self, frame: bytes) -> None:
        pipeline = self._configuration.committed
        if pipeline is not None:
            self._to_primaries(stream.packet_in_of(pipeline.schema, frame))

    def _digest(self, digests: list[Digest]) -> None:
        with self._learning:
            pipeline = self._configuration.committed
            if pipeline is not None:
                self._digests.add(pipeline, digests)

    def _tick(self) -> None:
        while not self._closing.wait(TICK_S):
            with self._learning:
                pipeline = self._configuration.committed
                if pipeline is None:
                    continue
                self._digests.tick(pipeline)
            with pipeline.lock:
                messages = list(stream.idle_notifications(pipeline))
            for message in messages:
                self._to_primaries(message)


def _decoded(data: bytes) -> Any:
    try:
        return pb.WriteRequest.FromString(data)
    except DecodeError:
        raise invalid("the request is no WriteRequest") from None


def _bytes(message: Any) -> bytes:
    """An encoded message; bytes are returned unchanged."""
    return message if isinstance(message, bytes) else bytes(message.SerializeToString())


@contextlib.contextmanager
def serve(target: Target, address: str) -> Iterator[P4RuntimeServer]:
    """A server while the block runs."""
    with P4RuntimeServer(target, address) as server:
        yield server
