"""A PTF platform for simple_switch_grpc's data-plane interface: BMv2's ports without interfaces or privilege.

Use it as ``ptf --platform-dir <this folder> --platform dataplane --platform-args "{'address': 'unix:/run/x/dp.sock',
'ports': 4, 'device_id': 1}"``. BMv2 takes one such client, and only after its pipeline has been set. With
``"{'interfaces': {0: 'veth0'}, 'ports': 1}"`` ports are interfaces instead. With ``'marked': True``, routed markers are
the fence (p4gen.ptf.markers).
"""

from __future__ import annotations

import ast
import socket
import time
from collections.abc import MutableMapping
from typing import Any, ClassVar

from ptf.dataplane import DataPlanePacketSourceIface, DataPlanePortIface

from p4gen.model.recirculation import REFUSED, SETTLE
from p4gen.ptf import markers
from p4gen.switch.dataplane import Dataplane, open_dataplane
from p4gen.switch.veth import VethDataplane
from p4gen.vocabulary import ticks

MAX_FRAME = 65536


class BmPort(DataPlanePortIface, DataPlanePacketSourceIface):  # type: ignore[misc]  # PTF is untyped
    """A port of the switch under test, seen from outside. All ports share one connection."""

    link: ClassVar[Dataplane | VethDataplane | None] = None
    arguments: ClassVar[dict[str, Any]] = {}
    ports: ClassVar[dict[int, BmPort]] = {}

    def __init__(self, interface_name: str, device_number: int, port_number: int, _config: object = None) -> None:
        self._where = (device_number, port_number)
        self._reader, self._writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if BmPort.link is None:
            marked = markers.of_ports(BmPort.arguments["interfaces"]) if BmPort.arguments.get("marked") else None
            BmPort.link = open_dataplane(BmPort.arguments, _received, marked)
        BmPort.ports[port_number] = self

    def get_packet_source(self) -> BmPort:
        """The port itself: PTF waits on its descriptor."""
        return self

    def fileno(self) -> int:
        """A descriptor for ``select``."""
        return self._reader.fileno()

    def recv(self) -> tuple[int, int, bytes, float]:
        """(device, port, frame, time in seconds)."""
        return (*self._where, self._reader.recv(MAX_FRAME), time.time())

    def deliver(self, frame: bytes) -> None:
        """Queue ``frame`` as output of the switch at this port."""
        self._writer.send(frame)

    def send(self, frame: bytes) -> int:
        """Send a frame to the switch. Returns its length."""
        assert BmPort.link is not None
        BmPort.link.send(self._where[1], bytes(frame))
        return len(frame)

    def settle(self, request: bytes = SETTLE) -> int:
        """Wait until the switch has handled everything sent through any port, and its output can be read. Returns 0:
        BMv2 does not say how many passes frames have caused. It refuses other requests."""
        assert BmPort.link is not None
        BmPort.link.settle()
        return 0 if request == SETTLE else REFUSED


def _received(port: int, frame: bytes) -> None:
    if port in BmPort.ports:
        BmPort.ports[port].deliver(frame)


def platform_config_update(config: MutableMapping[str, Any]) -> None:
    """PTF's hook: add ports 0 to ``ports`` - 1 of device 0, as ``--platform-args`` says. Raises ``ValueError`` for
    wrong arguments."""
    try:
        arguments = ast.literal_eval(config["platform_args"] or "")
        ports = int(arguments["ports"])
        BmPort.arguments = arguments if "interfaces" in arguments else {**arguments, "address": arguments["address"]}
    except (SyntaxError, KeyError, TypeError) as error:
        raise ValueError(
            "--platform-args must be a dict with 'ports', and 'address' and 'device_id', or 'interfaces'"
        ) from error
    config["port_map"] = {(0, port): str(port) for port in arguments.get("interfaces", range(ports))}
    if "interfaces" not in arguments:
        config["port_map"][0, ticks.PORT] = str(ticks.PORT)
    config["dataplane"] = {"portclass": BmPort}
