"""Mutual TLS between a manager and its callers: the files of each side, and the names that certificates give."""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import grpc

from p4gen.errors import Diagnostic, InputError
from p4gen.switch.address import socket_of

VARIABLE: Final = "P4GEN_TLS"
"""The environment variable with the folder of a client's certificate."""
CA, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"
"""Files of a folder, all PEM, with the names that they have in Kubernetes: the authority that has signed the other
side's certificates, the own certificate with what it needs of its chain, and the own key."""
_LONGEST: Final = 1 << 20


@dataclass(frozen=True)
class Identity:
    """What one side of a connection shows, and by what it judges the other side."""

    authority: bytes
    chain: bytes
    key: bytes = field(repr=False)

    def server(self) -> Any:
        """gRPC's credentials of a server to which only clients with a certificate of the authority can connect."""
        return grpc.ssl_server_credentials([(self.key, self.chain)], self.authority, require_client_auth=True)

    def client(self) -> Any:
        """gRPC's credentials of a client."""
        return grpc.ssl_channel_credentials(self.authority, self.key, self.chain)


def read_identity(folder: Path) -> Identity:
    """The certificate in a folder. Raises ``InputError`` for a file that is missing or wrong, with its name."""
    found = {name: _read(folder / name) for name in (CA, CERTIFICATE, KEY)}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(folder / CA)
    except ssl.SSLError:
        raise InputError(Diagnostic(str(folder / CA), "holds no certificate in PEM")) from None
    try:
        # A key that needs a password is refused: nobody is there to be asked.
        context.load_cert_chain(folder / CERTIFICATE, folder / KEY, password="")
    except (ssl.SSLError, ValueError) as error:
        why = getattr(error, "reason", None) or str(error)
        raise InputError(Diagnostic(str(folder / KEY), f"does not go with {CERTIFICATE}: {why}")) from None
    return Identity(found[CA], found[CERTIFICATE], found[KEY])


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(_LONGEST)
    except OSError as error:
        raise InputError(Diagnostic(str(file), f"cannot read: {error.strerror}")) from None


def client_identity(address: str, folder: str | Path | None) -> Identity | None:
    """The certificate with which to connect to ``address``: that in ``folder``, or in the folder of P4GEN_TLS. None
    without either, and for a unix socket, which its mode protects."""
    folder = folder or os.environ.get(VARIABLE)
    return read_identity(Path(folder)) if folder and socket_of(address) is None else None


def check_exposed(addresses: Sequence[str], what: str) -> None:
    """Raises ``InputError`` if other machines can reach one of these addresses."""
    for address in addresses:
        if socket_of(address) is None and not _is_loopback(address.rpartition(":")[0].strip("[]")):
            raise InputError(f"{address}: other machines can reach it; {what}")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
