"""``Manager`` over gRPC: group management from another process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import grpc
from typing_extensions import override

from p4gen.groups.group import Memory
from p4gen.manager.api import (
    Code,
    ConnectionSpec,
    ConnectionStatus,
    GroupSpec,
    GroupStatus,
    HostAddresses,
    HostInfo,
    JobSpec,
    JobStatus,
    Manager,
    ManagerError,
    Membership,
    RankReport,
    Status,
    SwitchInfo,
)
from p4gen.manager.remote.access import OURS
from p4gen.manager.remote.messages import from_message, to_message
from p4gen.manager.remote.service import MAX_MESSAGE, MAX_TEXT, SERVICE
from p4gen.manager.remote.tls import VARIABLE, client_identity
from p4gen.protos import incmanager as pb
from p4gen.switch.address import checked, socket_of

T = TypeVar("T")
_AGAIN_S = 0.2
"""Interval in seconds at which a watch tries to reconnect to a manager that has ended."""
_CODES = {code.value: code for code in Code}
_GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
_OPTIONS = [
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_send_message_length", MAX_MESSAGE),
    ("grpc.max_metadata_size", MAX_TEXT),
    ("grpc.use_local_subchannel_pool", 1),
    # Reconnect soon to a manager that was restarted.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    # In spite of its name, this limits an attempt: on a busy machine a manager needs a while to accept a connection.
    ("grpc.min_reconnect_backoff_ms", 10_000),
]


class ManagerClient(Manager):
    """The ``Manager`` at ``address``. It connects when necessary; methods may be called from any thread.

    ``tls`` is the folder with its certificate (``remote.tls``), or P4GEN_TLS is; unix sockets need none. Methods raise
    ``ManagerError`` as the manager does, and with ``UNREACHABLE`` when there is no manager or it does not answer within
    ``timeout`` seconds. Use as a context manager, or call ``close``. The constructor raises ``InputError`` for a
    wrong address or certificate.
    """

    def __init__(self, address: str, *, timeout: float = 60.0, tls: str | Path | None = None) -> None:
        self.address = checked(address)
        self._timeout = timeout
        identity = client_identity(address, tls)
        shown = "it may not accept the certificate that was shown" if identity else "no certificate was shown"
        self._hint = "" if socket_of(address) else f"; {shown} (--tls, {VARIABLE})"
        self._channel = (
            grpc.insecure_channel(address, options=_OPTIONS)
            if identity is None
            else grpc.secure_channel(address, identity.client(), options=_OPTIONS)
        )
        self._calls: dict[str, Any] = {}
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._watches: set[Watch] = set()

    def __enter__(self) -> ManagerClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; all watches end."""
        self._closed.set()
        with self._lock:
            watches = list(self._watches)
        for watch in watches:
            watch.close()
        self._channel.close()

    def wait(self, seconds: float) -> None:
        """Wait until the manager answers. Raises ``ManagerError`` (``UNREACHABLE``) when it does not within
        ``seconds``."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self._call(
                    "ListGroups", pb.ListGroupsRequest(), pb.ListGroupsResponse, max(deadline - time.monotonic(), 0.1)
                )
            except ManagerError as error:
                if error.code is not Code.UNREACHABLE or time.monotonic() > deadline:
                    raise
                if self._closed.wait(0.02):
                    raise
            else:
                return

    # --- Manager ---

    @override
    def register_switch(self, switch: SwitchInfo) -> None:
        self._ask("RegisterSwitch", lambda: to_message(switch), pb.RegisterSwitchResponse)

    @override
    def switch(self, name: str) -> SwitchInfo:
        return from_message(SwitchInfo, self._ask("GetSwitch", lambda: pb.GetSwitchRequest(name=name), pb.SwitchInfo))

    @override
    def register_host(self, host: HostInfo) -> HostAddresses:
        return from_message(HostAddresses, self._ask("RegisterHost", lambda: to_message(host), pb.HostAddresses))

    @override
    def report_links(self, switch: str, ports: Mapping[int, bool]) -> None:
        self._ask("ReportLinks", lambda: pb.ReportLinksRequest(switch=switch, ports=ports), pb.ReportLinksResponse)

    @override
    def cordon(self, node: str, *, on: bool) -> None:
        self._ask("Cordon", lambda: pb.CordonRequest(node=node, on=on), pb.CordonResponse)

    @override
    def cordoned(self) -> list[str]:
        return list(self._ask("ListCordoned", pb.ListCordonedRequest, pb.ListCordonedResponse).nodes)

    @override
    def init_group(self, spec: GroupSpec) -> GroupStatus:
        return self._group("InitGroup", lambda: to_message(spec))

    @override
    def destroy_group(self, name: str) -> None:
        self._ask("DestroyGroup", lambda: pb.DestroyGroupRequest(name=name), pb.DestroyGroupResponse)

    @override
    def resize_group(self, name: str, slots: int) -> GroupStatus:
        return self._group("ResizeGroup", lambda: pb.ResizeGroupRequest(name=name, slots=slots))

    @override
    def move_group(self, name: str, root: str | None = None) -> GroupStatus:
        return self._group("MoveGroup", lambda: pb.MoveGroupRequest(name=name, root=root))

    @override
    def set_ranks(self, name: str, ranks: Sequence[str], term: int) -> GroupStatus:
        return self._group("SetRanks", lambda: pb.SetRanksRequest(name=name, ranks=ranks, term=term))

    @override
    def group(self, name: str) -> GroupStatus:
        return self._group("GetGroup", lambda: pb.GetGroupRequest(name=name))

    @override
    def groups(self) -> list[GroupStatus]:
        found = self._ask("ListGroups", pb.ListGroupsRequest, pb.ListGroupsResponse)
        return [from_message(GroupStatus, group) for group in found.groups]

    @override
    def init_job(self, spec: JobSpec) -> JobStatus:
        return from_message(JobStatus, self._ask("InitJob", lambda: to_message(spec), pb.JobStatus))

    @override
    def destroy_job(self, name: str) -> None:
        self._ask("DestroyJob", lambda: pb.DestroyJobRequest(name=name), pb.DestroyJobResponse)

    @override
    def job(self, name: str) -> JobStatus:
        return from_message(JobStatus, self._ask("GetJob", lambda: pb.GetJobRequest(name=name), pb.JobStatus))

    @override
    def jobs(self) -> list[JobStatus]:
        found = self._ask("ListJobs", pb.ListJobsRequest, pb.ListJobsResponse)
        return [from_message(JobStatus, job) for job in found.jobs]

    @override
    def register_connection(self, spec: ConnectionSpec) -> ConnectionStatus:
        return self._connection("RegisterConnection", lambda: to_message(spec))

    @override
    def release_connection(self, number: int) -> None:
        self._ask("ReleaseConnection", lambda: pb.ReleaseConnectionRequest(number=number), pb.ReleaseConnectionResponse)

    @override
    def spray_connection(self, number: int, *, spray: bool) -> ConnectionStatus:
        return self._connection("SprayConnection", lambda: pb.SprayConnectionRequest(number=number, spray=spray))

    @override
    def connections(self) -> list[ConnectionStatus]:
        found = self._ask("ListConnections", pb.ListConnectionsRequest, pb.ListConnectionsResponse)
        return [from_message(ConnectionStatus, one) for one in found.connections]

    @override
    def status(self) -> Status:
        return from_message(Status, self._ask("GetStatus", pb.GetStatusRequest, pb.Status))

    @override
    def watch(self, host: str) -> Watch:
        """When the manager ends, the watch waits for a new one, and starts again with all current memberships. So it
        ends only with ``close``, its own or the client's."""
        return Watch(self, host)

    @override
    def ready(self, group: str, generation: int, rank: int, completed: int, timeout: float = 60.0) -> int:
        found = self._ask(
            "Ready",
            lambda: pb.ReadyRequest(
                group=group, generation=generation, rank=rank, completed=completed, timeout_s=timeout
            ),
            pb.ReadyResponse,
            timeout + self._timeout,
        )
        return int(found.first_call)

    @override
    def offer_memory(self, group: str, host: str, memory: Memory) -> None:
        self._ask(
            "OfferMemory",
            lambda: pb.OfferMemoryRequest(group=group, host=host, memory=to_message(memory)),
            pb.OfferMemoryResponse,
        )

    @override
    def begin_call(self, group: str, generation: int, call: int) -> bool:
        found = self._ask(
            "BeginCall",
            lambda: pb.BeginCallRequest(group=group, generation=generation, call=call),
            pb.BeginCallResponse,
        )
        return bool(found.go)

    @override
    def end_call(self, group: str, generation: int, rank: int, completed: int) -> None:
        self._ask(
            "EndCall",
            lambda: pb.EndCallRequest(group=group, generation=generation, rank=rank, completed=completed),
            pb.EndCallResponse,
        )

    @override
    def report_rank(self, report: RankReport) -> None:
        self._ask("ReportRank", lambda: to_message(report), pb.ReportRankResponse)

    # --- RPCs ---

    def _group(self, method: str, request: Callable[[], Any]) -> GroupStatus:
        return from_message(GroupStatus, self._ask(method, request, pb.GroupStatus))

    def _connection(self, method: str, request: Callable[[], Any]) -> ConnectionStatus:
        return from_message(ConnectionStatus, self._ask(method, request, pb.ConnectionStatus))

    def _ask(self, method: str, request: Callable[[], Any], response: Any, timeout: float | None = None) -> Any:
        try:
            message = request()
        except (ValueError, TypeError, OverflowError) as problem:  # raised by protobuf for numbers out of range
            raise ManagerError(Code.INVALID, f"the request cannot be sent: {problem}") from None
        return self._call(method, message, response, timeout or self._timeout)

    def _call(self, method: str, message: Any, response: Any, timeout: float) -> Any:
        call = self._calls.get(method)
        if call is None:
            call = self._calls[method] = self._channel.unary_unary(
                f"/{SERVICE}/{method}",
                request_serializer=lambda m: m.SerializeToString(),
                response_deserializer=response.FromString,
            )
        try:
            return call(message, timeout=timeout)
        except grpc.RpcError as error:
            raise self._error(error) from None
        except ValueError:  # raised by gRPC for a closed channel
            raise ManagerError(Code.UNREACHABLE, "the connection to the manager was closed") from None

    def _error(self, error: Any) -> ManagerError:
        code, text = error.code(), error.details() or ""
        if code in _GONE and not _is_from_manager(error):
            return ManagerError(Code.UNREACHABLE, f"no manager answers at {self.address}: {text}{self._hint}")
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return ManagerError(Code.UNREACHABLE, f"the manager at {self.address} did not answer in time")
        known = _CODES.get(code.name)
        if known is None:
            return ManagerError(Code.REFUSED, f"the manager failed: {code.name}: {text}")
        return ManagerError(known, text)


def _is_from_manager(error: Any) -> bool:
    return any(tuple(item) == OURS for item in error.trailing_metadata() or ())


class Watch:
    """The memberships of a host, as an iterator that other threads may ``close``."""

    def __init__(self, client: ManagerClient, host: str) -> None:
        self._client = client
        self._request = pb.WatchRequest(host=host)
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._stream: Any = None
        with client._lock:
            client._watches.add(self)
        if client._closed.is_set():
            self.close()

    def __iter__(self) -> Iterator[Membership]:
        return self

    def __next__(self) -> Membership:
        while True:
            stream = self._open_stream()
            if stream is None:
                raise StopIteration
            try:
                return from_message(Membership, next(stream))
            except StopIteration:  # the manager has ended
                pass
            except grpc.RpcError as error:
                if not self._closed.is_set() and (error.code() not in _GONE or _is_from_manager(error)):
                    self.close()
                    raise self._client._error(error) from None
            with self._lock:
                self._stream = None
            self._closed.wait(_AGAIN_S)

    def close(self) -> None:
        """End the watch, also while another thread waits in it."""
        self._closed.set()
        with self._lock:
            if self._stream is not None:
                self._stream.cancel()
        with self._client._lock:
            self._client._watches.discard(self)

    def _open_stream(self) -> Any:
        """The stream, opened again if necessary; None when the watch is closed."""
        with self._lock:
            if self._closed.is_set():
                return None
            if self._stream is None:
                call = self._client._channel.unary_stream(
                    f"/{SERVICE}/Watch",
                    request_serializer=lambda m: m.SerializeToString(),
                    response_deserializer=pb.Membership.FromString,
                )
                self._stream = call(self._request)
            return self._stream
