"""A manager with tenants, served over mutual TLS, and a client with each one's certificate."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4gen.manager.access.tenants import load_tenants
from p4gen.manager.api import ManagerError
from p4gen.manager.remote.client import ManagerClient
from p4gen.manager.remote.service import ManagerServer
from p4gen.manager.remote.tls import read_identity

from .certificates import certificates
from .rig import Rig

TENANTS = """
operators: [ops]
tenants:
  alice: {hosts: [h0, h1], groups: 2, contexts: 3, slots: 64}
  bob:
    certificates: [bob]
    hosts: [h2, h3]
    connections: 0
"""


@dataclass
class Site:
    """The manager of a rig, and a client of each certificate; ``local`` comes by the socket, ``carol`` is no tenant."""

    rig: Rig
    server: ManagerServer
    clients: dict[str, ManagerClient]


@contextlib.contextmanager
def site(file: Path, rig: Rig, folder: Path) -> Iterator[Site]:
    """Serve the manager of a rig at a socket in ``folder``, and at a port with TLS, to the tenants in ``file``."""
    identity, tenants = read_identity(certificates() / "manager"), load_tenants(file)
    with contextlib.ExitStack() as stack:
        addresses = f"unix:{folder / 'm.sock'}", "127.0.0.1:0"
        server = stack.enter_context(ManagerServer(rig.manager, *addresses, identity=identity, tenants=tenants))
        names = ("alice", "bob", "carol", "ops")
        made = {name: ManagerClient(server.addresses[1], tls=certificates() / name) for name in names}
        made["local"] = ManagerClient(server.address)
        for client in made.values():
            stack.enter_context(client)
        yield Site(rig, server, made)


def outcome(ask: Callable[[], Any]) -> str:
    """``OK``, or the name of the error's code."""
    try:
        ask()
    except ManagerError as error:
        return error.code.name
    return "OK"
