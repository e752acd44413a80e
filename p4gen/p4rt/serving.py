"""A gRPC server at an address: P4Runtime's, and the manager's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from p4gen.errors import FailedError


def start_server(
    service: str, handlers: Mapping[str, Any], address: str, pool: ThreadPoolExecutor, options: Sequence[Any]
) -> tuple[Any, str]:
    """A server that has started, and its address: ``address``, with the chosen port if that was 0.

    Raises ``FailedError`` if the address cannot be used; then the pool is shut down.
    """
    server = grpc.server(pool, options=[*options, ("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, dict(handlers)),))
    try:
        port = server.add_insecure_port(address)
    except RuntimeError:
        port = 0
    if port == 0:
        pool.shutdown()
        raise FailedError(f"cannot listen at {address}: the address is in use, or does not belong to this machine")
    host, _, wanted = address.rpartition(":")
    server.start()
    return server, f"{host}:{port}" if wanted == "0" else address
