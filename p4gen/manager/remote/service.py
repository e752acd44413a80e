"""IncManager's service on gRPC (``incmanager.proto``): any ``Manager``, for callers in other processes."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc

from p4gen.errors import FailedError, InputError, P4genError
from p4gen.manager.api import ConnectionSpec, GroupSpec, HostInfo, Manager, ManagerError, RankReport, SwitchInfo
from p4gen.manager.groups.departures import AWAY
from p4gen.manager.remote.messages import from_message, to_message
from p4gen.manager.remote.tls import Identity
from p4gen.p4rt.serving import start_server
from p4gen.protos import incmanager as pb
from p4gen.switch.address import checked, listens, socket_of

SERVICE = "p4gen.manager.v1.IncManager"
MAX_MESSAGE = 64 << 20
"""Size limit of messages in bytes: a switch registers with its program, and BMv2's JSON for 256 lanes has several
megabytes."""
MAX_TEXT = 1 << 20
"""Size limit of an error's text in bytes; it lists every candidate of a placement."""
OURS = ("p4gen-manager", "v1")
"""Metadata that marks errors of the manager, because gRPC itself uses some of the same codes."""
LOGGER = logging.getLogger("p4gen.manager")
_LOGGED = (
    "RegisterSwitch", "RegisterHost", "InitGroup", "DestroyGroup", "ResizeGroup", "MoveGroup", "SetRanks",
    "RegisterConnection", "ReleaseConnection", "SprayConnection",
)  # fmt: skip
"""Requests that change registrations, groups or connections; they are logged."""
_THREADS = 1024
"""Number of threads. Each ``watch``, and each waiting ``ready``, uses one. They are created when needed."""


class ManagerServer:
    """Serves ``manager`` at ``addresses`` (``host:port`` or ``unix:path``) until ``close``. Use as a context manager.

    Unix sockets are for the user of this process alone. With ``identity``, clients at other addresses need a
    certificate. A client that is silent is pinged every ``ping`` seconds, and its watches end when it has not answered
    for twice as long: its machine is cut off, or its process has stopped. With port 0 a free port is chosen;
    ``addresses`` has its number, ``address`` is the first one.

    Raises ``InputError`` for a path that is too long, ``FailedError`` when an address cannot be used. A socket left by
    a killed manager is removed.
    """

    def __init__(self, manager: Manager, *addresses: str, identity: Identity | None = None, ping: float = AWAY) -> None:
        self._manager = manager
        self._paths = []
        for address in addresses:
            path = socket_of(checked(address))
            if path is not None:
                if listens(address):
                    raise FailedError(f"cannot listen at {address}: it is in use")
                path.unlink(missing_ok=True)
                self._paths.append(path)
        self._pool = futures.ThreadPoolExecutor(_THREADS, "inc-service")
        pings = [("grpc.keepalive_time_ms", int(ping * 1000)), ("grpc.keepalive_timeout_ms", int(2 * ping * 1000))]
        options = [("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_metadata_size", MAX_TEXT), *pings]
        credentials = None if identity is None else identity.server()
        self._server, self.addresses = start_server(
            SERVICE, self._handlers(), addresses, self._pool, options, credentials
        )
        self.address = self.addresses[0]

    def __enter__(self) -> ManagerServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all requests and release the address. Close the manager first; otherwise requests that wait in it go on
        waiting."""
        self._server.stop(grace=0.2).wait()
        self._pool.shutdown(wait=False, cancel_futures=True)
        for path in self._paths:
            path.unlink(missing_ok=True)

    def _handlers(self) -> dict[str, Any]:
        unary: dict[str, tuple[Any, Callable[[Any], Any]]] = {
            "RegisterSwitch": (pb.SwitchInfo, self._register_switch),
            "RegisterHost": (pb.HostInfo, self._register_host),
            "ReportLinks": (pb.ReportLinksRequest, self._report_links),
            "InitGroup": (pb.GroupSpec, self._init_group),
            "DestroyGroup": (pb.DestroyGroupRequest, self._destroy_group),
            "ResizeGroup": (pb.ResizeGroupRequest, self._resize_group),
            "MoveGroup": (pb.MoveGroupRequest, self._move_group),
            "SetRanks": (pb.SetRanksRequest, self._set_ranks),
            "GetGroup": (pb.GetGroupRequest, self._get_group),
            "ListGroups": (pb.ListGroupsRequest, self._list_groups),
            "RegisterConnection": (pb.ConnectionSpec, self._register_connection),
            "ReleaseConnection": (pb.ReleaseConnectionRequest, self._release_connection),
            "SprayConnection": (pb.SprayConnectionRequest, self._spray_connection),
            "ListConnections": (pb.ListConnectionsRequest, self._list_connections),
            "GetStatus": (pb.GetStatusRequest, self._get_status),
            "Ready": (pb.ReadyRequest, self._ready),
            "BeginCall": (pb.BeginCallRequest, self._begin_call),
            "EndCall": (pb.EndCallRequest, self._end_call),
            "ReportRank": (pb.RankReport, self._report_rank),
        }
        handlers = {name: _unary(name, request, work) for name, (request, work) in unary.items()}
        handlers["Watch"] = grpc.unary_stream_rpc_method_handler(self._watch, pb.WatchRequest.FromString, _on_the_wire)
        return handlers

    def _register_switch(self, request: Any) -> Any:
        self._manager.register_switch(from_message(SwitchInfo, request))
        return pb.RegisterSwitchResponse()

    def _register_host(self, request: Any) -> Any:
        return to_message(self._manager.register_host(from_message(HostInfo, request)))

    def _report_links(self, request: Any) -> Any:
        self._manager.report_links(request.switch, dict(request.ports))
        return pb.ReportLinksResponse()

    def _init_group(self, request: Any) -> Any:
        return to_message(self._manager.init_group(from_message(GroupSpec, request)))

    def _destroy_group(self, request: Any) -> Any:
        self._manager.destroy_group(request.name)
        return pb.DestroyGroupResponse()

    def _resize_group(self, request: Any) -> Any:
        return to_message(self._manager.resize_group(request.name, request.slots))

    def _move_group(self, request: Any) -> Any:
        root = request.root if request.HasField("root") else None
        return to_message(self._manager.move_group(request.name, root))

    def _set_ranks(self, request: Any) -> Any:
        return to_message(self._manager.set_ranks(request.name, tuple(request.ranks), request.term))

    def _get_group(self, request: Any) -> Any:
        return to_message(self._manager.group(request.name))

    def _list_groups(self, _: Any) -> Any:
        return pb.ListGroupsResponse(groups=[to_message(group) for group in self._manager.groups()])

    def _register_connection(self, request: Any) -> Any:
        return to_message(self._manager.register_connection(from_message(ConnectionSpec, request)))

    def _release_connection(self, request: Any) -> Any:
        self._manager.release_connection(request.number)
        return pb.ReleaseConnectionResponse()

    def _spray_connection(self, request: Any) -> Any:
        return to_message(self._manager.spray_connection(request.number, spray=request.spray))

    def _list_connections(self, _: Any) -> Any:
        return pb.ListConnectionsResponse(connections=[to_message(one) for one in self._manager.connections()])

    def _get_status(self, _: Any) -> Any:
        return to_message(self._manager.status())

    def _ready(self, request: Any) -> Any:
        group, generation, rank = request.group, request.generation, request.rank
        first = self._manager.ready(group, generation, rank, request.completed, request.timeout_s)
        return pb.ReadyResponse(first_call=first)

    def _begin_call(self, request: Any) -> Any:
        return pb.BeginCallResponse(go=self._manager.begin_call(request.group, request.generation, request.call))

    def _end_call(self, request: Any) -> Any:
        self._manager.end_call(request.group, request.generation, request.rank, request.completed)
        return pb.EndCallResponse()

    def _report_rank(self, request: Any) -> Any:
        self._manager.report_rank(from_message(RankReport, request))
        return pb.ReportRankResponse()

    def _watch(self, request: Any, context: Any) -> Iterator[Any]:
        try:
            news = self._manager.watch(request.host)
            # The iterator waits for changes in this thread; it ends when the client does.
            if not context.add_callback(lambda: _end(news)):
                _end(news)
            for membership in news:
                yield to_message(membership)
        except Exception as error:
            _abort(context, error)


def _end(news: Any) -> None:
    close = getattr(news, "close", None)
    if close is not None:
        with contextlib.suppress(ValueError):  # a waiting generator: it ends with the next change
            close()


def _unary(name: str, request: Any, work: Callable[[Any], Any]) -> Any:
    """A handler for one request and one answer. Errors become gRPC statuses."""

    logged = name in _LOGGED

    def answer(message: Any, context: Any) -> Any:
        try:
            response = work(message)
        except Exception as error:
            if logged:
                LOGGER.warning("%s %s: %s", name, _subject(message), error)
            _abort(context, error)
            raise
        if logged:
            LOGGER.info("%s %s: done", name, _subject(message))
        return response

    return grpc.unary_unary_rpc_method_handler(answer, request.FromString, _on_the_wire)


def _subject(message: Any) -> str:
    """The subject of a request, for the log: the name of a group, host or switch, or a connection."""
    if isinstance(message, pb.ConnectionSpec):
        return f"{message.source} QP {message.source_qp} to {message.destination} QP {message.destination_qp}"
    return str(message.name if "name" in message.DESCRIPTOR.fields_by_name else message.number)


def _abort(context: Any, error: Exception) -> None:
    context.set_trailing_metadata((OURS,))
    context.abort(*_status(error))


def _on_the_wire(message: Any) -> bytes:
    return bytes(message.SerializeToString())


def _status(error: Exception) -> tuple[grpc.StatusCode, str]:
    """The status of an error for a client. Errors that are defects of the manager are logged."""
    if isinstance(error, ManagerError):
        code = grpc.StatusCode[error.code.value]
    elif isinstance(error, InputError):
        code = grpc.StatusCode.INVALID_ARGUMENT
    elif isinstance(error, P4genError):
        code = grpc.StatusCode.FAILED_PRECONDITION
    else:
        LOGGER.error("a request failed", exc_info=error)
        return grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}"
    return code, "\n".join(diagnostic.message for diagnostic in error.diagnostics)
