"""A client's connection to bf_switchd's BF-Runtime server: its stream, its binding to the program, its requests."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

import grpc

from p4gen.errors import FailedError
from p4gen.model.errors import ControlError
from p4gen.p4rt.session import GoneError
from p4gen.p4rt.status import Code
from p4gen.protos import rpc
from p4gen.switch.tofino.bfrt.protos import PACKAGE
from p4gen.switch.tofino.bfrt.requests import Requests
from p4gen.switch.tofino.bfrt.schema import Bfrt

_SERVICE: Final = f"/{PACKAGE}.BfRuntime/"
_LONGEST: Final = 1 << 30
_DETAILS: Final = "grpc-status-details-bin"


class Transport(Protocol):
    """Carries requests to a switch."""

    def write(self, request: Any) -> Any:
        """Carry out a write request. Raises ``ControlError`` when the switch refuses it."""

    def read(self, request: Any) -> Iterable[Any]:
        """Carry out a read request. Returns the switch's answers."""
        ...


class Connection:
    """A transport over gRPC, bound to the program that ``requests`` names.

    Raises ``GoneError`` when nothing answers within ``timeout`` seconds, which also limits each request.
    """

    def __init__(self, address: str, requests: Requests, timeout: float) -> None:
        self._address, self._requests, self._timeout = address, requests, timeout
        options = [("grpc.max_send_message_length", _LONGEST), ("grpc.max_receive_message_length", _LONGEST)]
        # A proxy would answer in place of the switch.
        self._channel = grpc.insecure_channel(address, [*options, ("grpc.enable_http_proxy", 0)])
        protos = requests.protos
        self._write = self._unary("Write", protos.WriteResponse)
        self._bind = self._unary("SetForwardingPipelineConfig", protos.SetForwardingPipelineConfigResponse)
        self._describe = self._unary("GetForwardingPipelineConfig", protos.GetForwardingPipelineConfigResponse)
        self._read = self._channel.unary_stream(
            f"{_SERVICE}Read", request_serializer=_serialize, response_deserializer=protos.ReadResponse.FromString
        )
        self._outgoing: queue.Queue[Any] = queue.Queue()
        self._stream: Any = None
        try:
            self._subscribe()
            self._call(self._bind, requests.bind())
        except BaseException:
            self.close()
            raise

    def _unary(self, name: str, answer: Any) -> Any:
        return self._channel.unary_unary(
            _SERVICE + name, request_serializer=_serialize, response_deserializer=answer.FromString
        )

    def _subscribe(self) -> None:
        """Open the stream, and wait for the answer. The server knows this client as long as the stream is open."""
        open_stream = self._channel.stream_stream(
            f"{_SERVICE}StreamChannel",
            request_serializer=_serialize,
            response_deserializer=self._requests.protos.StreamMessageResponse.FromString,
        )
        until = time.monotonic() + self._timeout
        try:
            grpc.channel_ready_future(self._channel).result(self._timeout)
        except grpc.FutureTimeoutError:
            raise GoneError(f"no BF-Runtime server answers at {self._address} within {self._timeout:g} s") from None
        self._outgoing.put(self._requests.subscribe())
        self._stream = open_stream(self._messages(), timeout=None)
        answers: queue.Queue[Any] = queue.Queue()

        # gRPC gives a stream's answers only to whoever waits for them, without a time limit.
        def wait() -> None:
            try:
                for answer in self._stream:
                    answers.put(answer)
            except grpc.RpcError as error:
                answers.put(error)

        threading.Thread(target=wait, name="BF-Runtime stream", daemon=True).start()
        try:
            answer = answers.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            raise GoneError(f"the BF-Runtime server at {self._address} does not answer a subscription") from None
        if isinstance(answer, grpc.RpcError):
            raise self._failure(answer)
        if answer.subscribe.status.code:
            raise FailedError(f"the BF-Runtime server refuses a client: {answer.subscribe.status.message}")

    def _messages(self) -> Iterator[Any]:
        while (message := self._outgoing.get()) is not None:
            yield message

    def description(self) -> Bfrt:
        """The tables of the program and of the chip, as the server describes them."""
        answer = self._call(self._describe, self._requests.description())
        for config in answer.config:
            if config.p4_name == self._requests.program:
                return Bfrt(json.loads(config.bfruntime_info), json.loads(answer.non_p4_config.bfruntime_info))
        names = ", ".join(config.p4_name for config in answer.config) or "none"
        raise FailedError(f"the switch has not loaded {self._requests.program}; it has: {names}")

    def write(self, request: Any) -> Any:
        """Carry out a write request. Raises ``ControlError`` when the switch refuses it."""
        return self._call(self._write, request)

    def read(self, request: Any) -> list[Any]:
        """Carry out a read request. Returns the switch's answers."""
        answers: list[Any] = self._call(lambda message, timeout: list(self._read(message, timeout=timeout)), request)
        return answers

    def _call(self, call: Callable[..., Any], request: Any) -> Any:
        try:
            return call(request, timeout=self._timeout)
        except grpc.RpcError as error:
            raise self._failure(error) from None

    def _failure(self, error: Any) -> FailedError | ControlError:
        code = error.code()
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED):
            return GoneError(f"the BF-Runtime server at {self._address} does not answer any more: {error.details()}")
        return ControlError(*(refusals(self._requests, error) or [f"{code.name}: {error.details()}"]))

    def close(self) -> None:
        """Close the stream and the connection."""
        self._outgoing.put(None)
        if self._stream is not None:
            self._stream.cancel()
        self._channel.close()


def _serialize(message: Any) -> bytes:
    return bytes(message.SerializeToString())


def refusals(requests: Requests, error: Any) -> list[str]:
    """One line for each update that the server refuses; the others of the batch are not listed."""
    found = []
    for name, value in error.trailing_metadata() or ():
        if name == _DETAILS:
            for number, detail in enumerate(rpc.Status.FromString(value).details, 1):
                one = requests.protos.Error.FromString(detail.value)
                if one.canonical_code:
                    found.append(f"update {number}: {_name(one.canonical_code)}: {one.message}")
    return found


def _name(code: int) -> str:
    return Code(code).name if code in set(Code) else f"error {code}"
