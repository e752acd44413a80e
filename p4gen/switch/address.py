"""gRPC addresses, host:port or unix:path: validation and tests whether a server listens."""

from __future__ import annotations

import os
import socket
from ipaddress import AddressValueError, IPv6Address
from pathlib import Path
from typing import Final

from p4gen.errors import InputError
from p4gen.inputs import quote

UNIX: Final = "unix:"
START_S: Final = 300.0
"""Seconds to wait for a child process that runs but does not listen yet; the machine may be loaded."""
MAX_PORT: Final = 65535
MAX_PATH: Final = 107
"""Bytes of a unix socket's path (sun_path of unix(7))."""
_MAX_HOST: Final = 253


def checked(address: str) -> str:
    """The address, if it is valid. Raises ``InputError``, because gRPC takes ports modulo 65536 and only logs
    errors."""
    path = socket_of(address)
    if path is not None:
        if len(os.fsencode(path)) > MAX_PATH:
            raise InputError(f"{quote(str(path), marks=False)}: too long for a socket's address ({MAX_PATH} bytes)")
        if str(path) in ("", "."):
            raise InputError(f"address {quote(address)}: a path follows, as in unix:/run/p4gen.sock")
        return address
    host, colon, port = address.rpartition(":")
    if not colon or not host or len(host) > _MAX_HOST or not host.isprintable() or any(c in host for c in " /,"):
        raise InputError(f"address {quote(address)}: say HOST:PORT, such as 127.0.0.1:9559, or unix:PATH")
    if (":" in host or "[" in host) and not _ipv6(host):
        raise InputError(f"address {quote(address)}: an IPv6 address stands in brackets, as in [::1]:9559")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= MAX_PORT):
        raise InputError(f"address {quote(address)}: a port is a number from 0 to {MAX_PORT}")
    return address


def socket_of(address: str) -> Path | None:
    """The socket of a ``unix:path``; None for host:port."""
    return Path(address.removeprefix(UNIX)) if address.startswith(UNIX) else None


def listens(address: str) -> bool:
    """Whether something accepts connections there."""
    return _tried(address) is None


def refuses(address: str) -> bool:
    """Whether nothing listens there. Unlike ``not listens``, it is false if a busy server does not accept in time."""
    return isinstance(_tried(address), ConnectionRefusedError | FileNotFoundError)


def _tried(address: str) -> Exception | None:
    """The error of an attempt to connect; None if it succeeds."""
    path = socket_of(address)
    try:
        if path is not None:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.settimeout(1)
                probe.connect(str(path))
        else:
            host, _, port = address.rpartition(":")
            with socket.create_connection((host.strip("[]"), int(port)), timeout=1):
                pass
    except (ValueError, OSError) as error:  # not a number, no such host, or no listener
        return error
    return None


def _ipv6(host: str) -> bool:
    """Whether a host is an IPv6 address in brackets."""
    try:
        IPv6Address(host.removeprefix("[").removesuffix("]"))
    except AddressValueError:
        return False
    return host.startswith("[") and host.endswith("]")
