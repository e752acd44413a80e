"""An HTTP server for a manager's metrics: ``/metrics`` (Prometheus), ``/healthz``, ``/readyz``."""

from __future__ import annotations

import logging
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from typing_extensions import override

from p4gen.errors import FailedError, InputError
from p4gen.manager.access.tenants import ALONE, OPERATOR, Tenants
from p4gen.manager.api import Manager, ManagerError
from p4gen.manager.metrics import ManagerMetrics
from p4gen.manager.remote.tls import CA, CERTIFICATE, KEY, read_identity
from p4gen.switch.address import checked, socket_of

LOGGER = logging.getLogger("p4gen.manager")
_TEXT: Final = "text/plain; charset=utf-8"


class MetricsServer:
    """Serves the metrics of ``manager`` at ``address`` (``host:port``) until ``close``. Use as a context manager.

    With ``tls``, the folder of a certificate, it is HTTPS, and metrics are for clients with the certificate of an
    operator, as ``tenants`` says; health and readiness are for everybody. Raises ``InputError`` for a wrong address or
    certificate, ``FailedError`` when the address cannot be used.
    """

    def __init__(self, manager: Manager, address: str, tls: Path | None = None, tenants: Tenants = ALONE) -> None:
        if socket_of(checked(address)) is not None:
            raise InputError(f"metrics are served at HOST:PORT, not at {address}")
        host, _, port = address.rpartition(":")
        registry = CollectorRegistry()
        registry.register(ManagerMetrics(manager))

        class Handler(_Handler):
            """The handler of this server's requests."""

        Handler.manager, Handler.registry, Handler.tenants = manager, registry, tenants if tls is not None else None
        context = None if tls is None else _context(tls)
        try:
            self._server = _Server((host.strip("[]"), int(port)), Handler)
        except OSError as error:
            raise FailedError(f"cannot serve metrics at {address}: {error.strerror or error}") from None
        if context is not None:
            # The thread of each request shakes hands: a slow client delays nobody else.
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.url = f"http{'s' if tls is not None else ''}://{host}:{self._server.server_address[1]}/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever, name="inc-metrics", daemon=True)
        self._thread.start()

    def __enter__(self) -> MetricsServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End, and release the address."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _context(tls: Path) -> ssl.SSLContext:
    read_identity(tls)  # which says what is wrong with it
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls / CERTIFICATE, tls / KEY)
    context.load_verify_locations(tls / CA)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go, or do not get through the handshake, are no defects."""
        LOGGER.debug("a request for metrics from %s failed", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    timeout = 10.0
    manager: Manager
    registry: CollectorRegistry
    tenants: Tenants | None
    """None for a server without TLS."""

    def do_GET(self) -> None:
        match self.path.partition("?")[0]:
            case "/metrics" if self._may_read():
                encode, kind = choose_encoder(self.headers.get("Accept", ""))
                self._answer(200, encode(self.registry), kind)
            case "/metrics":
                self._answer(403, b"metrics are for operators, who show their certificates\n", _TEXT)
            case "/healthz":
                self._answer(200, b"ok\n", _TEXT)
            case "/readyz":
                self._answer(*self._readiness(), _TEXT)
            case _:
                self._answer(404, b"there are /metrics, /healthz and /readyz\n", _TEXT)

    def _may_read(self) -> bool:
        if self.tenants is None:
            return True
        certificate: dict[str, Any] = self.connection.getpeercert() or {}
        if not certificate:
            return False
        names = [name for _, name in certificate.get("subjectAltName", ())] or [
            name for part in certificate.get("subject", ()) for key, name in part if key == "commonName"
        ]
        try:
            return self.tenants.identify(names) == OPERATOR
        except ManagerError:
            return False

    def _readiness(self) -> tuple[int, bytes]:
        """Ready is a manager that answers. Switches that do not are its work, not its end."""
        try:
            switches = self.manager.status().switches
        except ManagerError as error:
            return 503, f"not ready: {error.reason}\n".encode()
        answer = sum(switch.reachable for switch in switches)
        return 200, f"ready; {answer} of {len(switches)} switches answer\n".encode()

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        LOGGER.debug("metrics: " + format, *args)
