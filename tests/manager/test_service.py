"""IncManager's service and its client, with a manager behind it that does what the test tells it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from queue import Queue
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from patience import PATIENCE_S

from p4gen.errors import FailedError, InputError
from p4gen.groups.group import Memory
from p4gen.manager.api import (
    Code,
    ConnectionSpec,
    ConnectionStatus,
    GroupSpec,
    GroupState,
    GroupStatus,
    HostAddresses,
    HostInfo,
    JobSpec,
    JobStatus,
    ManagerError,
    Membership,
    RankReport,
    Status,
    SwitchInfo,
)
from p4gen.manager.remote.client import ManagerClient
from p4gen.manager.remote.service import SERVICE, ManagerServer
from p4gen.papers.epic.spec import EpicSpec
from p4gen.protos import incmanager as pb
from p4gen.switch.running import free_port, scratch

from . import samples
from .processes import eventually

NEWS = [Membership(f"g{n}", GroupState.BROKEN, n, reason="why") for n in range(4)]


class Feed:
    """A watch: an iterator that another thread may close."""

    def __init__(self) -> None:
        self.queue: Queue[Membership | None] = Queue()
        self.closed = threading.Event()

    def __iter__(self) -> Iterator[Membership]:
        return self

    def __next__(self) -> Membership:
        found = self.queue.get()
        if found is None:
            raise StopIteration
        return found

    def close(self) -> None:
        self.closed.set()
        self.queue.put(None)


class FakeManager:
    """Notes what it is asked, and answers what ``answer`` says or raises it."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.answer: Any = None
        self.feeds: list[Feed] = []
        self.present: list[Membership] = []

    def _asked(self, *what: Any) -> Any:
        self.asked.append(what)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer() if callable(self.answer) else self.answer

    def register_switch(self, switch: SwitchInfo) -> None:
        self._asked("register_switch", switch)

    def switch(self, name: str) -> SwitchInfo:
        return self._asked("switch", name)  # type: ignore[no-any-return]

    def register_host(self, host: HostInfo) -> HostAddresses:
        return self._asked("register_host", host)  # type: ignore[no-any-return]

    def report_links(self, switch: str, ports: Mapping[int, bool]) -> None:
        self._asked("report_links", switch, ports)

    def cordon(self, node: str, *, on: bool) -> None:
        self._asked("cordon", node, on)

    def cordoned(self) -> list[str]:
        return self._asked("cordoned") or []

    def init_group(self, spec: GroupSpec) -> GroupStatus:
        return self._asked("init_group", spec)  # type: ignore[no-any-return]

    def destroy_group(self, name: str) -> None:
        self._asked("destroy_group", name)

    def resize_group(self, name: str, slots: int) -> GroupStatus:
        return self._asked("resize_group", name, slots)  # type: ignore[no-any-return]

    def move_group(self, name: str, root: str | None = None) -> GroupStatus:
        return self._asked("move_group", name, root)  # type: ignore[no-any-return]

    def set_ranks(self, name: str, ranks: Sequence[str], term: int) -> GroupStatus:
        return self._asked("set_ranks", name, ranks, term)  # type: ignore[no-any-return]

    def init_job(self, spec: JobSpec) -> JobStatus:
        return self._asked("init_job", spec)  # type: ignore[no-any-return]

    def destroy_job(self, name: str) -> None:
        self._asked("destroy_job", name)

    def job(self, name: str) -> JobStatus:
        return self._asked("job", name)  # type: ignore[no-any-return]

    def jobs(self) -> list[JobStatus]:
        return self._asked("jobs") or []

    def register_connection(self, spec: ConnectionSpec) -> ConnectionStatus:
        return self._asked("register_connection", spec)  # type: ignore[no-any-return]

    def release_connection(self, number: int) -> None:
        self._asked("release_connection", number)

    def spray_connection(self, number: int, *, spray: bool) -> ConnectionStatus:
        return self._asked("spray_connection", number, spray)  # type: ignore[no-any-return]

    def connections(self) -> list[ConnectionStatus]:
        return self._asked("connections") or []

    def group(self, name: str) -> GroupStatus:
        return self._asked("group", name)  # type: ignore[no-any-return]

    def groups(self) -> list[GroupStatus]:
        return self._asked("groups") or []

    def status(self) -> Status:
        return self._asked("status")  # type: ignore[no-any-return]

    def watch(self, host: str) -> Iterator[Membership]:
        self._asked("watch", host)
        feed = Feed()
        for membership in self.present:
            feed.queue.put(membership)
        self.feeds.append(feed)
        return feed

    def ready(self, group: str, generation: int, rank: int, completed: int, timeout: float = 60.0) -> int:
        return self._asked("ready", group, generation, rank, completed, timeout)  # type: ignore[no-any-return]

    def begin_call(self, group: str, generation: int, call: int) -> bool:
        return self._asked("begin_call", group, generation, call)  # type: ignore[no-any-return]

    def offer_memory(self, group: str, host: str, memory: Memory) -> None:
        self._asked("offer_memory", group, host, memory)

    def end_call(self, group: str, generation: int, rank: int, completed: int) -> None:
        self._asked("end_call", group, generation, rank, completed)

    def report_rank(self, report: RankReport) -> None:
        self._asked("report_rank", report)


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch() as made:
        yield made


@pytest.fixture
def manager() -> FakeManager:
    return FakeManager()


@pytest.fixture
def server(folder: Path, manager: FakeManager) -> Iterator[ManagerServer]:
    with ManagerServer(manager, f"unix:{folder / 'm.sock'}") as made:
        yield made
        for feed in manager.feeds:
            feed.close()


@pytest.fixture
def client(server: ManagerServer) -> Iterator[ManagerClient]:
    with ManagerClient(server.address, timeout=PATIENCE_S) as made:
        yield made


CALLS: list[tuple[str, tuple[st.SearchStrategy[Any], ...], st.SearchStrategy[Any]]] = [
    ("register_switch", (samples.switches,), st.none()),
    ("switch", (samples.names,), samples.switches),
    ("register_host", (samples.hosts,), samples.addresses),
    ("report_links", (samples.names, st.dictionaries(samples.small, st.booleans(), max_size=4)), st.none()),
    ("init_group", (samples.group_specs,), samples.group_statuses),
    ("destroy_group", (samples.names,), st.none()),
    ("resize_group", (samples.names, samples.small), samples.group_statuses),
    ("set_ranks", (samples.names, st.tuples(samples.names), samples.large), samples.group_statuses),
    ("move_group", (samples.names, st.none() | samples.names), samples.group_statuses),
    ("group", (samples.names,), samples.group_statuses),
    ("groups", (), st.lists(samples.group_statuses, max_size=3)),
    ("cordoned", (), st.lists(samples.names, max_size=3)),
    ("init_job", (samples.job_specs,), samples.job_statuses),
    ("destroy_job", (samples.names,), st.none()),
    ("job", (samples.names,), samples.job_statuses),
    ("jobs", (), st.lists(samples.job_statuses, max_size=2)),
    ("status", (), samples.statuses),
    (
        "ready",
        (samples.names, samples.large, samples.small, samples.large, st.floats(0.001, 100)),
        st.integers(0, 1 << 40),
    ),
    ("begin_call", (samples.names, samples.large, samples.large), st.booleans()),
    ("end_call", (samples.names, samples.large, samples.small, samples.large), st.none()),
    ("report_rank", (samples.reports,), st.none()),
]


@pytest.mark.parametrize(("method", "arguments", "answers"), CALLS, ids=[call[0] for call in CALLS])
def test_every_call_arrives_as_it_was_made(
    manager: FakeManager,
    client: ManagerClient,
    method: str,
    arguments: tuple[st.SearchStrategy[Any], ...],
    answers: st.SearchStrategy[Any],
) -> None:
    @settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
    @given(st.tuples(*arguments), answers)
    def check(given_arguments: tuple[Any, ...], answer: Any) -> None:
        manager.answer = answer
        assert getattr(client, method)(*given_arguments) == answer
        assert manager.asked[-1] == (method, *given_arguments)

    check()


REQUESTS: list[Callable[[ManagerClient], Any]] = [
    lambda c: c.register_switch(SwitchInfo("s0", "unix:/x", EpicSpec(), "", b"")),
    lambda c: c.switch("s0"),
    lambda c: c.register_host(HostInfo("h0")),
    lambda c: c.report_links("s0", {1: True}),
    lambda c: c.init_group(GroupSpec("g", ("h0",))),
    lambda c: c.destroy_group("g"),
    lambda c: c.resize_group("g", 8),
    lambda c: c.move_group("g"),
    lambda c: c.set_ranks("g", ("h0",), 1),
    lambda c: c.group("g"),
    lambda c: c.groups(),
    lambda c: c.cordon("s0", on=True),
    lambda c: c.cordoned(),
    lambda c: c.init_job(JobSpec("j", 2)),
    lambda c: c.destroy_job("j"),
    lambda c: c.job("j"),
    lambda c: c.jobs(),
    lambda c: c.status(),
    lambda c: next(iter(c.watch("h0"))),
    lambda c: c.ready("g", 1, 0, 0),
    lambda c: c.begin_call("g", 1, 0),
    lambda c: c.end_call("g", 1, 0, 1),
    lambda c: c.report_rank(RankReport("g", 0)),
]


@pytest.mark.parametrize("code", Code)
def test_every_error_arrives_with_code_and_message(manager: FakeManager, client: ManagerClient, code: Code) -> None:
    for request in REQUESTS:
        text = f"switch s0 lacks 3 slots;\n  „s1“ lacks a context ({code})"
        manager.answer = ManagerError(code, text)
        with pytest.raises(ManagerError) as caught:
            request(client)
        assert caught.value.code is code
        assert caught.value.diagnostics[0].message == text


def test_long_errors_arrive_whole(manager: FakeManager, client: ManagerClient) -> None:
    text = "\n".join(f"root s{n}: s{n}: 9 contexts are needed; 3 of 4 are free (groups), ünlängst" for n in range(500))
    manager.answer = ManagerError(Code.NO_ROOM, text)
    with pytest.raises(ManagerError) as caught:
        client.groups()
    assert (caught.value.code, caught.value.diagnostics[0].message) == (Code.NO_ROOM, text)


def test_errors_of_other_kinds(manager: FakeManager, client: ManagerClient, caplog: pytest.LogCaptureFixture) -> None:
    for error, code, text in (
        (InputError("no such thing"), Code.INVALID, "no such thing"),
        (FailedError("one", "two"), Code.REFUSED, "one\ntwo"),
        (KeyError("x"), Code.REFUSED, "the manager failed: INTERNAL: KeyError: 'x'"),
    ):
        manager.answer = error
        with pytest.raises(ManagerError) as caught:
            client.groups()
        assert (caught.value.code, caught.value.diagnostics[0].message) == (code, text)
    assert [record.levelno for record in caplog.records if record.name == "p4gen.manager"] == [logging.ERROR]


@pytest.mark.parametrize(
    "request_", [lambda c: c.resize_group("g", -1), lambda c: c.resize_group("g", 1 << 40), lambda c: c.group(7)]
)
def test_what_cannot_be_sent(client: ManagerClient, manager: FakeManager, request_: Callable[[Any], Any]) -> None:
    with pytest.raises(ManagerError, match="the request cannot be sent") as caught:
        request_(client)
    assert caught.value.code is Code.INVALID
    assert manager.asked == []


def test_a_switch_with_a_large_program(client: ManagerClient, manager: FakeManager) -> None:
    switch = SwitchInfo("s0", "unix:/x", EpicSpec(), "p" * 100_000, bytes(9_000_000))
    client.register_switch(switch)
    assert manager.asked == [("register_switch", switch)]


# --- watch ---


def test_news_arrive_in_order_as_they_come(manager: FakeManager, client: ManagerClient) -> None:
    manager.present = NEWS[:2]
    watch = client.watch("h0")
    assert [next(watch), next(watch)] == NEWS[:2]
    manager.feeds[0].queue.put(NEWS[2])
    assert next(watch) == NEWS[2]
    watch.close()
    assert list(watch) == []
    assert manager.feeds[0].closed.wait(PATIENCE_S), "the manager's watch ends with the client's"


def test_a_watch_that_waits_is_closed_by_another_thread(manager: FakeManager, client: ManagerClient) -> None:
    watch = client.watch("h0")
    found: list[Membership] = []
    thread = threading.Thread(target=lambda: found.extend(watch))
    thread.start()
    eventually(lambda: manager.feeds)
    watch.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert found == []


def test_a_client_s_end_ends_its_watches(server: ManagerServer, manager: FakeManager) -> None:
    client = ManagerClient(server.address)
    watches = [client.watch(f"h{n}") for n in range(3)]
    threads = [threading.Thread(target=lambda watch=watch: list(watch)) for watch in watches]
    for thread in threads:
        thread.start()
    eventually(lambda: len(manager.feeds) == 3)
    client.close()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    for feed in manager.feeds:
        assert feed.closed.wait(PATIENCE_S)
    assert list(client.watch("h0")) == [], "of a client that is closed"
    with pytest.raises(ManagerError, match="the connection to the manager was closed"):
        client.groups()


def test_a_client_that_goes_without_a_word(server: ManagerServer, manager: FakeManager) -> None:
    channel = grpc.insecure_channel(server.address)
    stream = channel.unary_stream(f"/{SERVICE}/Watch", lambda m: m.SerializeToString(), pb.Membership.FromString)
    call = stream(pb.WatchRequest(host="h0"))
    eventually(lambda: manager.feeds)
    assert call.is_active()
    channel.close()
    assert manager.feeds[0].closed.wait(PATIENCE_S)


def test_a_watch_outlives_the_manager(folder: Path) -> None:
    address = f"unix:{folder / 'm.sock'}"
    with ManagerClient(address) as client:
        watch = client.watch("h0")
        found: Queue[Membership] = Queue()

        def follow() -> None:
            for news in watch:
                found.put(news)

        threading.Thread(target=follow, daemon=True).start()
        for round_ in range(3):  # the first time there is no manager yet
            manager = FakeManager()
            manager.present = NEWS[: round_ + 1]
            with ManagerServer(manager, address):
                assert [found.get(timeout=PATIENCE_S) for _ in manager.present] == manager.present
                for feed in manager.feeds:
                    feed.close()
        watch.close()
        assert found.empty()


def test_many_watches_and_waits_at_once(manager: FakeManager, client: ManagerClient) -> None:
    go = threading.Event()
    watches = [client.watch(f"h{n}") for n in range(100)]
    manager.present = NEWS[:1]
    for watch in watches:
        assert next(watch) == NEWS[0]
    manager.answer = lambda: go.wait(PATIENCE_S) and 7
    found: list[int] = []
    threads = [threading.Thread(target=lambda n=n: found.append(client.ready("g", 1, n, 0))) for n in range(50)]
    for thread in threads:
        thread.start()
    eventually(lambda: sum(asked[0] == "ready" for asked in manager.asked) == 50)
    go.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert found == [7] * 50


# --- addresses, and managers that are not there ---


def test_nobody_is_there(folder: Path) -> None:
    for address in (f"unix:{folder / 'none.sock'}", f"127.0.0.1:{free_port()}"):
        with ManagerClient(address, timeout=PATIENCE_S) as client:
            for request in REQUESTS[:10]:
                with pytest.raises(ManagerError, match=f"no manager answers at {address}") as caught:
                    request(client)
                assert caught.value.code is Code.UNREACHABLE
            with pytest.raises(ManagerError, match=r"no manager answers|did not answer in time"):
                client.wait(0.2)


def test_waiting_for_a_manager(folder: Path) -> None:
    address = f"unix:{folder / 'm.sock'}"
    servers: list[ManagerServer] = []

    def later() -> None:
        time.sleep(0.3)
        servers.append(ManagerServer(FakeManager(), address))

    threading.Thread(target=later).start()
    with ManagerClient(address) as client:
        client.wait(PATIENCE_S)
        assert client.groups() == []
    servers[0].close()


def test_a_manager_that_hangs(server: ManagerServer, manager: FakeManager) -> None:
    go = threading.Event()
    manager.answer = lambda: go.wait(PATIENCE_S)
    with ManagerClient(server.address, timeout=0.2) as client:
        with pytest.raises(ManagerError, match="did not answer in time") as caught:
            client.groups()
        assert caught.value.code is Code.UNREACHABLE
    go.set()


def test_addresses(folder: Path, manager: FakeManager) -> None:
    with ManagerServer(manager, "127.0.0.1:0") as server:
        host, _, port = server.address.rpartition(":")
        assert host == "127.0.0.1"
        assert int(port) > 0
        with ManagerClient(server.address) as client:
            assert client.groups() == []
        with pytest.raises(FailedError, match=f"cannot listen at {server.address}"):
            ManagerServer(manager, server.address)
    path = folder / "m.sock"
    with ManagerServer(manager, f"unix:{path}") as server:
        with pytest.raises(FailedError, match="it is in use"):
            ManagerServer(manager, server.address)
        with ManagerClient(server.address) as client:
            assert client.groups() == [], "the first one is still there"
    assert not path.exists()
    with pytest.raises(InputError, match="too long for a socket's address"):
        ManagerServer(manager, f"unix:{folder / ('x' * 120)}")
    with pytest.raises(FailedError, match=r"cannot listen at 203\.0\.113\.9:1"):
        ManagerServer(manager, "203.0.113.9:1")
