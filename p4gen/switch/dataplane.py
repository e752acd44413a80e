"""Frames to and from BMv2 without root: simple_switch_grpc's data-plane interface (``--dp-grpc-server-addr``).

One client streams frames in both directions. After the client has closed its side of the stream, BMv2 ends it only when
it has processed every packet (``block_until_all_packets_processed``), including recirculated ones: ``settle`` uses
this. Messages are those of behavioral-model's services/p4/bm/dataplane_interface.proto.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import grpc

from p4gen.errors import FailedError
from p4gen.p4rt import wire
from p4gen.switch.fence import Marker
from p4gen.switch.veth import VethDataplane

_METHOD = "/p4.bm.DataplaneInterface/PacketStream"
_DEVICE, _PORT, _PACKET = 2, 3, 4
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
_TIMEOUT_S = 600.0
LOG_FILE = "switch.log"
"""BMv2's log, beside its sockets."""
_OUTGROWN = "bm::PacketBuffer::push"
"""A text in the log of a BMv2 that ended because a packet had no room for the headers that the program put in front of
it."""
BURST = 24
"""Number of frames that may be in flight. BMv2's queues hold 64 frames per port, and a frame may cause two at one
port."""


def open_dataplane(
    arguments: Mapping[str, Any],
    received: Callable[[int, bytes], None],
    markers: Mapping[int, Marker] | None = None,
) -> Dataplane | VethDataplane:
    """Open the ports of a running BMv2, by its ``platform_args``: an address, or interfaces by port. With interfaces
    also those of tofino-model, with ``slower``. ``markers`` are a fence for interfaces."""
    if "interfaces" in arguments:
        return VethDataplane(arguments["interfaces"], received, slower=arguments.get("slower", 1.0), markers=markers)
    return Dataplane(str(arguments["address"]), received, int(arguments["device_id"]))


class Dataplane:
    """The ports of a simple_switch_grpc. ``received`` is called with each (port, frame) in a separate thread, in order
    per port.

    Set the pipeline first, because BMv2 refuses a stream before. Only one user at a time. Use as a context manager, or
    call ``close``.
    """

    def __init__(self, address: str, received: Callable[[int, bytes], None], device_id: int = 1) -> None:
        self._address, self._received = address, received
        self._device = wire.number(_DEVICE, device_id)
        self._channel = grpc.insecure_channel(address, options=_OPTIONS)
        self._open_stream = self._channel.stream_stream(_METHOD, request_serializer=bytes, response_deserializer=bytes)
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stream: Any = None
        self._receiver: threading.Thread | None = None
        self._problem: str | None = None
        self._unsettled = 0

    def __enter__(self) -> Dataplane:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, port: int, frame: bytes) -> None:
        """Send a frame to the switch, which handles frames in the order of these calls, whatever their ports.

        Waits for the switch now and then, because BMv2 silently drops what exceeds its queues.
        """
        if self._unsettled == BURST:
            self.settle()
        self._unsettled += 1
        if self._stream is None:
            self._outgoing = queue.SimpleQueue()
            self._stream = self._open_stream(iter(self._outgoing.get, None))
            self._receiver = threading.Thread(target=self._receive, args=(self._stream,), daemon=True)
            self._receiver.start()
        self._outgoing.put(self._device + wire.number(_PORT, port) + wire.blob(_PACKET, frame))

    def settle(self, timeout: float = _TIMEOUT_S) -> None:
        """Wait until the switch has handled everything sent, and ``received`` has been called with all the output.

        Raises ``FailedError`` when the switch has ended, or does not finish within ``timeout`` seconds.
        """
        if self._stream is None or self._receiver is None:
            return
        self._unsettled = 0
        self._outgoing.put(None)
        self._receiver.join(timeout)
        if self._receiver.is_alive():
            self._stream.cancel()
            self._problem = f"it did not finish within {timeout:g} s"
        self._stream = self._receiver = None
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise FailedError(f"BMv2's data plane at {self._address}: {self._cause() or problem}")

    def _cause(self) -> str:
        """The cause of BMv2's end, if a program can be the cause; otherwise ""."""
        log = Path(self._address.removeprefix("unix:")).with_name(LOG_FILE)
        if log.exists() and _OUTGROWN in log.read_text(errors="replace"):
            return (
                "it has ended, as a packet grew by more than the 512 bytes that it has room for (see docs/targets.md)"
            )
        return ""

    def close(self) -> None:
        """Close the stream and the connection."""
        if self._stream is not None:
            self._outgoing.put(None)
            self._stream.cancel()
        self._channel.close()

    def _receive(self, stream: Any) -> None:
        try:
            for message in stream:
                port, frame = 0, b""
                for field, value in wire.fields(message):
                    if field == _PORT and isinstance(value, int):
                        port = value
                    elif field == _PACKET and isinstance(value, bytes):
                        frame = value
                self._received(port, frame)
        except grpc.RpcError as error:
            self._problem = f"{error.code().name}: {error.details()}"
