"""A PTF platform whose ports are AF_UNIX sockets, so that no interface and no privilege is needed.

Use it as ``ptf --platform-dir <this folder> --platform unix --platform-args "{'dir': '/run/x', 'ports': 4}"``:
port N of device 0 is the SOCK_SEQPACKET socket ``/run/x/portN.sock``, on which the switch listens. A frame is a
message; p4gen's switch handles frames in the order in which they were sent, over all ports, and its fence tells when it
has handled them (p4gen.switch.unix).
"""

from __future__ import annotations

import ast
import socket
import time
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, ClassVar, Final

from ptf.dataplane import DataPlanePacketSourceIface, DataPlanePortIface

from p4gen.model.recirculation import SETTLE
from p4gen.vocabulary import ticks

MAX_FRAME: Final = 65536
"""PTF's own 4096-byte receive buffer would cut RoCE frames with 4 KiB of payload."""


def socket_path(directory: Path | str, port: int) -> Path:
    """Where the switch in ``directory`` listens for the peer of ``port``."""
    return Path(directory) / f"port{port}.sock"


def fence_path(directory: Path) -> Path:
    """Where the switch in ``directory`` listens for fences (p4gen.switch.unix)."""
    return directory / "fence.sock"


class UnixPort(DataPlanePortIface, DataPlanePacketSourceIface):  # type: ignore[misc]  # PTF is untyped
    """A port of the switch under test, seen from outside."""

    directory: ClassVar[Path] = Path()
    fence: ClassVar[socket.socket | None] = None

    def __init__(self, interface_name: str, device_number: int, port_number: int, _config: object = None) -> None:
        self._where = (device_number, port_number)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.connect(interface_name)
        self._keep_alive: socket.socket | None = None

    def get_packet_source(self) -> UnixPort:
        """The port itself: PTF waits on its descriptor."""
        return self

    def fileno(self) -> int:
        """The socket's descriptor, for ``select``."""
        return self._socket.fileno()

    def recv(self) -> tuple[int, int, bytes, float] | None:
        """(device, port, frame, time in seconds); None when the switch has ended."""
        frame = self._socket.recv(MAX_FRAME)
        if not frame:
            self._hang_up()
            return None
        return (*self._where, frame, time.time())

    def send(self, frame: bytes) -> int:
        """Send a frame to the switch. Returns its length. Raises ``OSError`` when the switch has ended."""
        return self._socket.send(bytes(frame))

    def settle(self, request: bytes = SETTLE) -> int:
        """Wait until the switch has handled everything sent through any port, has carried out the request
        (``p4gen.model.recirculation``), and what came of it can be read. Returns the most passes that one of these
        frames caused.

        Raises ConnectionError when the switch has gone.
        """
        if UnixPort.fence is None:
            made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            made.connect(str(fence_path(UnixPort.directory)))
            UnixPort.fence = made
            # Only what is sent once the connection is accepted has a time stamp, and so its place among the frames.
            self._pass_fence(SETTLE)
        return self._pass_fence(request)

    @staticmethod
    def _pass_fence(request: bytes) -> int:
        assert UnixPort.fence is not None
        UnixPort.fence.send(request)
        reply = UnixPort.fence.recv(MAX_FRAME)
        if not reply:
            raise ConnectionResetError("the switch has gone")
        return int.from_bytes(reply.removeprefix(request), "big")

    def _hang_up(self) -> None:
        # PTF's thread would find a closed peer readable for ever; an idle pair never is.
        self._socket.close()
        self._socket, self._keep_alive = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._keep_alive.shutdown(socket.SHUT_RD)


def platform_config_update(config: MutableMapping[str, Any]) -> None:
    """PTF's hook: ports 0 to ``ports`` - 1 of device 0, as ``--platform-args`` says. ValueError if it does not."""
    try:
        arguments = ast.literal_eval(config["platform_args"] or "")
        directory, ports = arguments["dir"], int(arguments["ports"])
    except (SyntaxError, KeyError, TypeError) as error:
        raise ValueError("--platform-args must be a dict: {'dir': folder of the sockets, 'ports': how many}") from error
    config["port_map"] = {(0, port): str(socket_path(directory, port)) for port in range(ports)}
    if (agent := socket_path(directory, ticks.PORT)).exists():
        config["port_map"][0, ticks.PORT] = str(agent)
    UnixPort.directory = Path(directory)
    config["dataplane"] = {"portclass": UnixPort}
