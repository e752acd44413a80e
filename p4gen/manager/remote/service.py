"""IncManager's service on gRPC (``incmanager.proto``): any ``Manager``, for callers in other processes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from typing import Any, Final

import grpc

from p4gen.errors import FailedError
from p4gen.groups.group import Memory
from p4gen.manager.access.tenants import ALONE, Tenants
from p4gen.manager.api import ConnectionSpec, GroupSpec, HostInfo, JobSpec, Manager, RankReport, SwitchInfo
from p4gen.manager.groups.departures import AWAY
from p4gen.manager.remote.access import AT_ONCE, Access
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
_THREADS = 2 * AT_ONCE
"""Number of threads. Each ``watch``, and each waiting ``ready``, uses one. They are created when needed."""


class ManagerServer:
    """Serves ``manager`` at ``addresses`` (``host:port`` or ``unix:path``) until ``close``. Use as a context manager.

    Unix sockets are for the user of this process alone, an operator. With ``identity``, clients at other addresses need
    a certificate, which says which of ``tenants`` they are. A silent client is pinged every ``ping`` seconds, and its
    watches end when it has not answered for twice as long: its machine is cut off, or its process has stopped. With
    port 0 a free port is chosen; ``addresses`` has its number, ``address`` is the first one.

    Raises ``InputError`` for a path that is too long, ``FailedError`` when an address cannot be used. A socket left by
    a killed manager is removed.
    """

    def __init__(
        self,
        manager: Manager,
        *addresses: str,
        identity: Identity | None = None,
        tenants: Tenants = ALONE,
        ping: float = AWAY,
    ) -> None:
        self._access = Access(manager, tenants)
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
        access, methods = self._access, METHODS.items()
        handlers = {name: _unary(access, name, request, work) for name, (request, work) in methods}
        handlers["Watch"] = grpc.unary_stream_rpc_method_handler(self._watch, pb.WatchRequest.FromString, _on_the_wire)
        return handlers

    def _watch(self, request: Any, context: Any) -> Iterator[Any]:
        with self._access.request(context, "Watch", request) as caller:
            news = caller.manager.watch(request.host)
            # The iterator waits for changes in this thread; it ends when the client does.
            if not context.add_callback(lambda: _end(news)):
                _end(news)
            for membership in news:
                yield to_message(membership)


def _register_switch(manager: Manager, request: Any) -> Any:
    manager.register_switch(from_message(SwitchInfo, request))
    return pb.RegisterSwitchResponse()


def _get_switch(manager: Manager, request: Any) -> Any:
    return to_message(manager.switch(request.name))


def _register_host(manager: Manager, request: Any) -> Any:
    return to_message(manager.register_host(from_message(HostInfo, request)))


def _report_links(manager: Manager, request: Any) -> Any:
    manager.report_links(request.switch, dict(request.ports))
    return pb.ReportLinksResponse()


def _cordon(manager: Manager, request: Any) -> Any:
    manager.cordon(request.node, on=request.on)
    return pb.CordonResponse()


def _list_cordoned(manager: Manager, _: Any) -> Any:
    return pb.ListCordonedResponse(nodes=manager.cordoned())


def _init_group(manager: Manager, request: Any) -> Any:
    return to_message(manager.init_group(from_message(GroupSpec, request)))


def _destroy_group(manager: Manager, request: Any) -> Any:
    manager.destroy_group(request.name)
    return pb.DestroyGroupResponse()


def _resize_group(manager: Manager, request: Any) -> Any:
    return to_message(manager.resize_group(request.name, request.slots))


def _move_group(manager: Manager, request: Any) -> Any:
    return to_message(manager.move_group(request.name, request.root if request.HasField("root") else None))


def _set_ranks(manager: Manager, request: Any) -> Any:
    return to_message(manager.set_ranks(request.name, tuple(request.ranks), request.term))


def _get_group(manager: Manager, request: Any) -> Any:
    return to_message(manager.group(request.name))


def _list_groups(manager: Manager, _: Any) -> Any:
    return pb.ListGroupsResponse(groups=[to_message(group) for group in manager.groups()])


def _init_job(manager: Manager, request: Any) -> Any:
    return to_message(manager.init_job(from_message(JobSpec, request)))


def _destroy_job(manager: Manager, request: Any) -> Any:
    manager.destroy_job(request.name)
    return pb.DestroyJobResponse()


def _get_job(manager: Manager, request: Any) -> Any:
    return to_message(manager.job(request.name))


def _list_jobs(manager: Manager, _: Any) -> Any:
    return pb.ListJobsResponse(jobs=[to_message(job) for job in manager.jobs()])


def _register_connection(manager: Manager, request: Any) -> Any:
    return to_message(manager.register_connection(from_message(ConnectionSpec, request)))


def _release_connection(manager: Manager, request: Any) -> Any:
    manager.release_connection(request.number)
    return pb.ReleaseConnectionResponse()


def _spray_connection(manager: Manager, request: Any) -> Any:
    return to_message(manager.spray_connection(request.number, spray=request.spray))


def _list_connections(manager: Manager, _: Any) -> Any:
    return pb.ListConnectionsResponse(connections=[to_message(one) for one in manager.connections()])


def _get_status(manager: Manager, _: Any) -> Any:
    return to_message(manager.status())


def _ready(manager: Manager, request: Any) -> Any:
    group, generation, rank = request.group, request.generation, request.rank
    return pb.ReadyResponse(first_call=manager.ready(group, generation, rank, request.completed, request.timeout_s))


def _offer_memory(manager: Manager, request: Any) -> Any:
    manager.offer_memory(request.group, request.host, from_message(Memory, request.memory))
    return pb.OfferMemoryResponse()


def _begin_call(manager: Manager, request: Any) -> Any:
    return pb.BeginCallResponse(go=manager.begin_call(request.group, request.generation, request.call))


def _end_call(manager: Manager, request: Any) -> Any:
    manager.end_call(request.group, request.generation, request.rank, request.completed)
    return pb.EndCallResponse()


def _report_rank(manager: Manager, request: Any) -> Any:
    manager.report_rank(from_message(RankReport, request))
    return pb.ReportRankResponse()


METHODS: Final[Mapping[str, tuple[Any, Callable[[Manager, Any], Any]]]] = {
    "RegisterSwitch": (pb.SwitchInfo, _register_switch),
    "GetSwitch": (pb.GetSwitchRequest, _get_switch),
    "RegisterHost": (pb.HostInfo, _register_host),
    "ReportLinks": (pb.ReportLinksRequest, _report_links),
    "Cordon": (pb.CordonRequest, _cordon),
    "ListCordoned": (pb.ListCordonedRequest, _list_cordoned),
    "InitGroup": (pb.GroupSpec, _init_group),
    "DestroyGroup": (pb.DestroyGroupRequest, _destroy_group),
    "ResizeGroup": (pb.ResizeGroupRequest, _resize_group),
    "MoveGroup": (pb.MoveGroupRequest, _move_group),
    "SetRanks": (pb.SetRanksRequest, _set_ranks),
    "GetGroup": (pb.GetGroupRequest, _get_group),
    "ListGroups": (pb.ListGroupsRequest, _list_groups),
    "InitJob": (pb.JobSpec, _init_job),
    "DestroyJob": (pb.DestroyJobRequest, _destroy_job),
    "GetJob": (pb.GetJobRequest, _get_job),
    "ListJobs": (pb.ListJobsRequest, _list_jobs),
    "RegisterConnection": (pb.ConnectionSpec, _register_connection),
    "ReleaseConnection": (pb.ReleaseConnectionRequest, _release_connection),
    "SprayConnection": (pb.SprayConnectionRequest, _spray_connection),
    "ListConnections": (pb.ListConnectionsRequest, _list_connections),
    "GetStatus": (pb.GetStatusRequest, _get_status),
    "Ready": (pb.ReadyRequest, _ready),
    "OfferMemory": (pb.OfferMemoryRequest, _offer_memory),
    "BeginCall": (pb.BeginCallRequest, _begin_call),
    "EndCall": (pb.EndCallRequest, _end_call),
    "ReportRank": (pb.RankReport, _report_rank),
}
"""Each method with one answer: the message that asks, and what asks the manager."""


def _end(news: Any) -> None:
    close = getattr(news, "close", None)
    if close is not None:
        with contextlib.suppress(ValueError):  # a waiting generator: it ends with the next change
            close()


def _unary(access: Access, name: str, request: Any, work: Callable[[Manager, Any], Any]) -> Any:
    """A handler for one request and one answer."""

    def answer(message: Any, context: Any) -> Any:
        with access.request(context, name, message) as caller:
            return work(caller.manager, message)

    return grpc.unary_unary_rpc_method_handler(answer, request.FromString, _on_the_wire)


def _on_the_wire(message: Any) -> bytes:
    return bytes(message.SerializeToString())
