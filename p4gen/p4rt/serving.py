"""A gRPC server at its addresses: P4Runtime's, and the manager's."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc

from p4gen.errors import FailedError

_OWNER_ONLY: Final = 0o177
"""The mask of permissions with which sockets are made: whoever may connect has full access."""
_MASKING = threading.Lock()


def start_server(
    service: str,
    handlers: Mapping[str, Any],
    addresses: Sequence[str],
    pool: ThreadPoolExecutor,
    options: Sequence[Any],
    credentials: Any = None,
) -> tuple[Any, list[str]]:
    """A server that has started, and its addresses: ``addresses``, with the chosen port where that was 0.

    Only the user of this process can connect to a unix socket, and only those whom ``credentials`` accept to another
    address. Raises ``FailedError`` if an address cannot be used; then the pool is shut down.
    """
    server = grpc.server(pool, options=[*options, ("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, dict(handlers)),))
    found = []
    for address in addresses:
        try:
            port = _add(server, address, credentials)
        except RuntimeError:
            port = 0
        if port == 0:
            server.stop(None)
            pool.shutdown()
            raise FailedError(f"cannot listen at {address}: the address is in use, or does not belong to this machine")
        host, _, wanted = address.rpartition(":")
        found.append(f"{host}:{port}" if wanted == "0" else address)
    server.start()
    return server, found


def _add(server: Any, address: str, credentials: Any) -> int:
    if credentials is not None and not address.startswith("unix:"):
        return int(server.add_secure_port(address, credentials))
    with _MASKING:
        before = os.umask(_OWNER_ONLY)
        try:
            return int(server.add_insecure_port(address))
        finally:
            os.umask(before)
