"""The connection of a test to the control plane of a running tofino-model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from p4gen.model.entries import Entry
from p4gen.switch.tofino.bfrt import protos
from p4gen.switch.tofino.bfrt.connection import Connection
from p4gen.switch.tofino.bfrt.control import BfrtControlPlane
from p4gen.switch.tofino.bfrt.ports import PortMap
from p4gen.switch.tofino.bfrt.requests import Requests


def connect(address: str, arguments: Mapping[str, Any], kept: Iterable[Entry] = ()) -> BfrtControlPlane:
    """Connect to a BF-Runtime server, bind to the program, enable its ports, and insert ``kept``, entries that every
    reset inserts again. ``arguments`` are the SDE's ``proto``, the name of the ``program``, the ``ports`` as pairs
    (their number for tests, the device port), and the ``timeout`` of a request in seconds.

    Raises ``MissingToolError`` without protoc, ``GoneError`` when nothing answers.
    """
    requests = Requests(protos.load(Path(arguments["proto"])), program=arguments["program"])
    connection = Connection(address, requests, float(arguments["timeout"]))
    try:
        ports = PortMap(dict(arguments["ports"]))
        control = BfrtControlPlane(requests, connection.description(), connection, ports=ports)
        control.add_ports()
        control.keep(*kept)
    except BaseException:
        connection.close()
        raise
    return control
