"""The client of BF-Runtime and a stand-in for its server, which checks messages: calls, refusals, time-outs, ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from patience import PATIENCE_S, until

from p4gen.errors import FailedError
from p4gen.model import ControlError
from p4gen.model.entries import (
    Action,
    CloneSession,
    CounterValue,
    Entry,
    Exact,
    MulticastGroup,
    Range,
    Replica,
    Ternary,
)
from p4gen.p4rt.session import GoneError
from p4gen.switch.running import free_port
from p4gen.switch.tofino.bfrt import protos
from p4gen.switch.tofino.control import connect

from .described import CHIP, ROUTE
from .runtime import Runtime, serving
from .standins import MISSING, PROTO

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"missing: {', '.join(MISSING)}")
SEND = Action("Ingress.send", {"port": 1})
KEPT = Entry("route", {"dst": 99}, SEND)


def runtime(**plan: Any) -> Runtime:
    tables = [*ROUTE["tables"], *CHIP["tables"]]
    return Runtime(
        protos.load(PROTO), "route", json.dumps(ROUTE).encode(), json.dumps(CHIP).encode(), tables, **plan
    )  # fmt: skip


def arguments(program: str = "route", timeout: float = PATIENCE_S) -> dict[str, Any]:
    return {"proto": str(PROTO), "program": program, "ports": [[0, 8], [1, 9]], "timeout": timeout}


@pytest.fixture
def served() -> Iterator[Any]:
    """Starts servers that live as long as the test."""
    with ExitStack() as stack:
        yield lambda runtime: stack.enter_context(serving(runtime))


def test_everything_that_the_suite_asks_for(served: Any) -> None:
    server = runtime()
    control = connect(served(server), arguments(), [KEPT])
    assert server.calls[:3] == ["subscribe", "bind", "describe"]
    port = server.tables[4278255617]
    assert port["name"] == "$PORT"
    assert len(server.rows[port["id"]]) == 2
    control.reset()
    entry = Entry("pipe.Ingress.route", {"hdr.ethernet.dst": Exact(1)}, SEND)
    control.insert(entry)
    assert control.entries("route") == [entry]
    changed = Entry(entry.table, entry.match, Action("Ingress.send", {"port": 0}))
    control.modify(changed)
    assert control.entries("route") == [changed]
    screen = Entry("screen", {"src": Ternary(1, 1), "type": Range(2, 3)}, Action("drop"), 5)
    control.insert(screen, Entry("route", {"dst": 2}, Action("flood", {"group": 7})))
    control.delete(changed, screen)
    control.set_default("route", Action("flood", {"group": 7}))
    control.set_default("route", None)
    control.set_multicast_group(MulticastGroup(7, (Replica(0, 1), Replica(1, 1), Replica(1, 2))))
    control.set_multicast_group(MulticastGroup(7, (Replica(1, 2),)))
    control.set_clone_session(CloneSession(3, (Replica(1),), 128))
    control.set_clone_session(CloneSession(3, (Replica(0), Replica(1))))
    control.set_clone_session(CloneSession(3, ()))
    assert control.counter("seen", 3) == CounterValue(0, 0)
    assert control.counters("seen") == [CounterValue(0, 0)] * 4
    assert control.register("last", 2) == 0
    assert control.registers("last") == [0] * 4
    control.reset()
    control.set_generator(1, b"tick" * 16, port=6, nanoseconds=1_000_000)
    control.stop_generator(1)
    assert not server.wrong
    left = {server.tables[number]["name"]: len(rows) for number, rows in server.rows.items() if rows}
    assert left == {
        "pipe.Ingress.route": 1,  # what is kept
        "$PORT": 2, "tf2.pktgen.port_cfg": 1, "tf2.pktgen.app_cfg": 1, "tf2.pktgen.pkt_buffer": 1,
    }  # fmt: skip


def test_refused_updates_are_named_and_nothing_changes(served: Any) -> None:
    control = connect(served(runtime()), arguments())
    entry = Entry("route", {"dst": 1}, SEND)
    control.insert(entry)
    with pytest.raises(ControlError, match=r"update 1: ALREADY_EXISTS: pipe\.Ingress\.route: there is such an entry"):
        control.insert(Entry("route", {"dst": 2}, SEND), entry)
    assert len(control.entries("route")) == 1
    with pytest.raises(ControlError, match="NOT_FOUND"):
        control.delete(Entry("route", {"dst": 3}, SEND))


def test_the_stand_in_refuses_what_is_wrong(served: Any) -> None:
    """Otherwise it would be no check."""
    server = runtime()
    control = connect(served(server), arguments())
    request = control._requests.write(1, control._match_table("route"), [])
    update = request.updates.add(type=1)
    update.entity.table_entry.table_id = 1
    update.entity.table_entry.key.fields.add(field_id=1).exact.value = bytes(5)
    with pytest.raises(ControlError, match="5 bytes for 48 bits"):
        control._transport.write(request)
    update.entity.table_entry.key.fields[0].exact.value = bytes(6)
    update.entity.table_entry.data.action_id = 11
    with pytest.raises(ControlError, match=r"the data lack \['port'\]"):
        control._transport.write(request)
    update.entity.table_entry.data.fields.add(field_id=1).stream = b"\2\0"
    with pytest.raises(ControlError, match="has more than 9 bits"):
        control._transport.write(request)
    assert len(server.wrong) == 3


def test_another_program_and_a_busy_server(served: Any) -> None:
    with pytest.raises(ControlError, match="the program is route"):
        connect(served(runtime()), arguments("other"))
    with pytest.raises(FailedError, match="refuses a client: there is such a client"):
        connect(served(runtime(busy=True)), arguments())


def test_a_second_client_is_refused(served: Any) -> None:
    server = runtime()
    server.bound = 7
    with pytest.raises(ControlError, match="ALREADY_EXISTS: bound to another client"):
        connect(served(server), arguments())


def _no_stream_is_left() -> None:
    def names() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name == "BF-Runtime stream"]

    until(lambda: not names(), lambda: f"threads: {names()}")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("subscribe", "does not answer a subscription"),
        ("bind", "does not answer any more: Deadline Exceeded"),
        ("describe", "does not answer any more: Deadline Exceeded"),
        ("read", "does not answer any more: Deadline Exceeded"),
        ("write", "does not answer any more: Deadline Exceeded"),
    ],
)
def test_a_call_without_an_answer(call: str, message: str, served: Any) -> None:
    server = runtime(silent_at=call)
    with pytest.raises(GoneError, match=message):
        connect(served(server), arguments(timeout=5.0))
    assert server.calls[-1] == call
    server.over.set()
    _no_stream_is_left()


def test_nothing_listens() -> None:
    with pytest.raises(GoneError, match="no BF-Runtime server answers at 127"):
        connect(f"127.0.0.1:{free_port()}", arguments(timeout=0.5))
    _no_stream_is_left()


def test_the_server_ends() -> None:
    with serving(runtime()) as address:
        control = connect(address, arguments())
    with pytest.raises(GoneError, match="does not answer any more"):
        control.insert(Entry("route", {"dst": 1}, SEND))
