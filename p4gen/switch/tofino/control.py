"""How a test gets the control plane of a running tofino-model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from p4gen.switch.address import START_S
from p4gen.switch.tofino.bfrt import protos
from p4gen.switch.tofino.bfrt.connection import Connection
from p4gen.switch.tofino.bfrt.control import BfrtControlPlane
from p4gen.switch.tofino.bfrt.requests import Requests


def connect(address: str, arguments: Mapping[str, Any]) -> BfrtControlPlane:
    """Connect to a BF-Runtime server, bind to the program, and enable its ports. ``arguments`` are the SDE's ``proto``,
    the name of the ``program``, and the device ``ports``.

    Raises ``MissingToolError`` without protoc, ``GoneError`` when nothing answers.
    """
    requests = Requests(protos.load(Path(arguments["proto"])), program=arguments["program"])
    connection = Connection(address, requests, START_S)
    control = BfrtControlPlane(requests, connection.description(), connection)
    control.add_ports(arguments["ports"])
    return control
