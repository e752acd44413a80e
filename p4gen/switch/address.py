"""gRPC addresses, host:port or unix:path, as far as one has to look into them."""

from __future__ import annotations

import os
import socket
from pathlib import Path

UNIX = "unix:"
START_S = 300.0
"""How long a process of ours is waited for that has not ended, and does not listen yet: the machine may be loaded."""


def socket_of(address: str) -> Path | None:
    """The socket of a ``unix:path``; None for host:port."""
    return Path(address.removeprefix(UNIX)) if address.startswith(UNIX) else None


def listens(address: str) -> bool:
    """Whether something accepts connections there."""
    path = socket_of(address)
    if path is not None:
        if not os.path.exists(path):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1)
            return probe.connect_ex(str(path)) == 0
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        probe.settimeout(1)
        try:
            return probe.connect_ex((host, int(port))) == 0
        except (ValueError, OSError):  # no such host, no number
            return False
