"""``BfrtControlPlane``: what it writes, what it makes of answers, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from p4gen.errors import MissingToolError
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
from p4gen.switch.tofino.bfrt import protos
from p4gen.switch.tofino.bfrt.control import BfrtControlPlane
from p4gen.switch.tofino.bfrt.ports import PortMap
from p4gen.switch.tofino.bfrt.requests import INSERT, Requests, Row
from p4gen.switch.tofino.bfrt.schema import LAST_PRIORITY, Bfrt

from .described import CHIP, ROUTE
from .recorder import Recorder
from .standins import MISSING, PROTO

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"missing: {', '.join(MISSING)}")
SEND = Action("send", {"port": 9})


@pytest.fixture(scope="module")
def requests() -> Requests:
    return Requests(protos.load(PROTO))


Make = Callable[..., tuple[BfrtControlPlane, Recorder]]


@pytest.fixture
def make(requests: Requests) -> Make:
    def made(*answers: Any, pipe: int = 0, ports: dict[int, int] | None = None) -> tuple[BfrtControlPlane, Recorder]:
        recorder = Recorder(*answers)
        return BfrtControlPlane(requests, Bfrt(ROUTE, CHIP), recorder, pipe, PortMap(ports or {})), recorder

    return made


def answer(requests: Requests, table: str, *rows: tuple[dict[int, int], list[tuple[int, int]]]) -> Any:
    """A ReadResponse: by row, the exact key by id, and the data as (id, number)."""
    message = requests.protos.ReadResponse()
    for keys, data in rows:
        entry = message.entities.add().table_entry
        entry.table_id = Bfrt(ROUTE, CHIP).tables.named(table).id
        for number, value in keys.items():
            entry.key.fields.add(field_id=number).exact.value = value.to_bytes(4)
        for number, value in data:
            entry.data.fields.add(field_id=number).stream = value.to_bytes(8)
    return message


def test_entries_are_all_or_none_in_one_request(make: Make) -> None:
    control, recorder = make()
    screen = Entry("screen", {"hdr.ethernet.src": Ternary(6, 7)}, Action("drop"), 3)
    control.insert(Entry("route", {"dst": 1}, SEND), screen, Entry("Ingress.route", {"dst": 2}, SEND))
    (request,) = recorder.written
    assert request.atomicity == 1
    entries = [update.entity.table_entry for update in request.updates]
    assert [entry.table_id for entry in entries] == [1, 1, 2]
    rank, source, kind = entries[2].key.fields
    assert (rank.field_id, int.from_bytes(rank.exact.value)) == (65537, LAST_PRIORITY - 3)
    assert (source.field_id, source.ternary.mask) == (1, bytes(5) + b"\7")
    assert (kind.range.low, kind.range.high) == (b"\0\0", b"\xff\xff")  # omitted: any
    control.insert()
    assert len(recorder.written) == 1


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (Entry("nix", {}, SEND), "there is no match table nix; there are: pipe.Ingress.route, pipe.Ingress.screen"),
        (Entry("seen", {}, SEND), "there is no match table seen"),
        (Entry("route", {}, SEND), "the key needs hdr.ethernet.dst"),
        (Entry("route", {"dst": 1 << 48}, SEND), "281474976710656 does not fit 48 bits"),
        (Entry("route", {"dst": Ternary(1, 1)}, SEND), "ternary match on a key that is exact"),
        (Entry("route", {"src": 1}, SEND), "there is no key of pipe.Ingress.route src"),
        (Entry("route", {"dst": 1}, Action("nix")), "there is no action of pipe.Ingress.route nix"),
        (Entry("route", {"dst": 1}, Action("send")), r"send needs port"),
        (Entry("route", {"dst": 1}, Action("send", {"port": 512})), "512 does not fit 9 bits"),
        (Entry("route", {"dst": 1}, Action("send", {"port": 1, "x": 1})), "there is no parameter of Ingress.send x"),
        (Entry("route", {"dst": 1}, SEND, 1), "an entry has no priority"),
        (Entry("screen", {"src": Ternary(1, 1)}, Action("drop")), "an entry needs a priority"),
        (Entry("screen", {"src": 1}, Action("drop"), 1), "exact match on a key that is ternary"),
        (Entry("screen", {}, Action("drop"), 1 << 24), "priority 16777216 is not in 1..16777215"),
    ],
)
def test_what_does_not_fit_changes_nothing(entry: Entry, message: str, make: Make) -> None:
    control, recorder = make()
    with pytest.raises(ControlError, match=message):
        control.insert(Entry("route", {"dst": 5}, SEND), entry)
    assert not recorder.written


def test_entries_as_they_were_inserted(make: Make, requests: Requests) -> None:
    entry = Entry("pipe.Ingress.screen", {"hdr.ethernet.type": Range(3, 4)}, Action("Ingress.drop"), 7)
    control, recorder = make()
    control.insert(entry)
    held = requests.protos.ReadResponse()
    held.entities.add().table_entry.CopyFrom(recorder.written[0].updates[0].entity.table_entry)
    held.entities.add().table_entry.CopyFrom(recorder.written[0].updates[0].entity.table_entry)
    held.entities[1].table_entry.is_default_entry = True
    control, _ = make(held)
    assert control.entries("screen") == [entry]


def test_counters_are_synced_and_in_order(make: Make, requests: Requests) -> None:
    rows = [({65556: index}, [(65553, index * 100), (65554, index)]) for index in (2, 0, 3, 1)]
    control, recorder = make(answer(requests, "seen", *rows))
    assert control.counters("seen") == [CounterValue(index, 100 * index) for index in range(4)]
    (sync,) = recorder.written
    assert sync.updates[0].entity.table_operation.table_operations_type == "Sync"
    assert not recorder.asked[0].entities[0].table_entry.table_flags.from_hw
    control, _ = make(answer(requests, "seen", *rows[:3]))
    with pytest.raises(ControlError, match=r"gives 3 cells of pipe\.Ingress\.seen, which has 4"):
        control.counters("seen")


@pytest.mark.parametrize("pipe", [0, 3])
def test_registers_of_a_pipe(pipe: int, make: Make, requests: Requests) -> None:
    def row(index: int) -> tuple[dict[int, int], list[tuple[int, int]]]:
        return {65557: index}, [(1, 10 * index + p) for p in range(4)] + [(2, 7 + p) for p in range(4)]

    control, recorder = make(answer(requests, "last", *map(row, range(4))), pipe=pipe)
    assert control.registers("last") == [(10 * index + pipe) << 32 | 7 + pipe for index in range(4)]
    assert recorder.written[0].updates[0].entity.table_operation.table_id == 4
    control, recorder = make(answer(requests, "last", row(2)), pipe=pipe)
    assert control.register("last", 2) == (20 + pipe) << 32 | 7 + pipe
    assert recorder.asked[0].entities[0].table_entry.table_flags.from_hw
    with pytest.raises(ControlError, match="register last: registers of a Tofino are read only here"):
        control.write_register("last", 2, 1)
    control, recorder = make()
    with pytest.raises(ControlError, match="has 4 cells, none with index 4"):
        control.register("last", 4)
    assert not recorder.asked


def test_a_pipe_that_is_not_there(make: Make, requests: Requests) -> None:
    control, _ = make(answer(requests, "last", ({65557: 0}, [(1, 1), (1, 1), (2, 1), (2, 1)])), pipe=2)
    with pytest.raises(ControlError, match="of 2 pipes, not of pipe 2"):
        control.register("last", 0)


def test_groups_are_replaced_before_their_old_nodes_go(make: Make) -> None:
    control, recorder = make()
    control.set_multicast_group(MulticastGroup(1, (Replica(8, 5), Replica(8, 5))))
    control.set_multicast_group(MulticastGroup(1, (Replica(9, 6),)))
    control.set_multicast_group(MulticastGroup(1, ()))
    control.set_multicast_group(MulticastGroup(2, ()))
    done = [
        (update.type, update.entity.table_entry.table_id - 4278321153, update.entity.table_entry.key.fields[0])
        for request in recorder.written
        for update in request.updates
    ]
    assert [(kind, table, int.from_bytes(key.exact.value)) for kind, table, key in done] == [
        (1, 1, 1), (1, 1, 2), (1, 0, 1),  # two nodes, as a node sends one copy to a port
        (1, 1, 3), (2, 0, 1), (4, 1, 1), (4, 1, 2),
        (4, 0, 1), (4, 1, 3),
    ]  # fmt: skip


def test_a_clone_session_of_several_replicas_is_a_group(make: Make) -> None:
    control, recorder = make()
    control.set_clone_session(CloneSession(3, (Replica(8), Replica(9))))
    node, group, session = (request.updates[0].entity.table_entry for request in recorder.written)
    assert (node.table_id, group.table_id, session.table_id) == (4278321154, 4278321153, 4278452225)
    assert int.from_bytes(group.key.fields[0].exact.value) == 0xFFFC
    values = {field.field_id: field for field in session.data.fields}
    assert (values[23].stream, values[24].bool_val, values[17].bool_val) == (b"\xff\xfc", True, False)
    assert values[32].stream == b"\0\0"  # the whole packet
    assert session.data.action_id == 2


def test_a_generator_of_ticks(make: Make) -> None:
    control, recorder = make()
    control.set_generator(1, b"tick" * 16, port=6, nanoseconds=1_000_000, batch=4)
    control.stop_generator(1)
    tables = [request.updates[0].entity.table_entry.table_id for request in recorder.written]
    assert tables == [4278386689, 4278386691, 4278386690, 4278386690]
    app = recorder.written[2].updates[0].entity.table_entry
    assert {field.field_id: field.stream for field in app.data.fields}[1] == (1_000_000).to_bytes(4)
    assert recorder.written[3].updates[0].type == 2


def test_reset_clears_everything(make: Make, requests: Requests) -> None:
    control, recorder = make(
        answer(requests, "$pre.mgid", ({1: 5}, [])), answer(requests, "$pre.node", ({1: 1}, []), ({1: 2}, []))
    )
    control.reset()
    done = []
    for request in recorder.written:
        for update in request.updates:
            entry = update.entity.table_entry
            assert update.type == 4
            done.append((entry.table_id, entry.is_default_entry, len(entry.key.fields)))
    assert done == [
        (1, False, 0), (1, True, 0), (2, False, 0), (4278452225, False, 0),
        (4278321153, False, 1), (4278321154, False, 1), (4278321154, False, 1), (3, False, 0), (4, False, 0),
    ]  # fmt: skip


def test_only_ports_that_are_not_there_are_added(make: Make, requests: Requests) -> None:
    control, recorder = make(answer(requests, "$PORT", ({1: 8}, [])), ports={0: 8, 1: 9})
    control.add_ports()
    ((update,),) = (request.updates for request in recorder.written)
    assert update.entity.table_entry.key.fields[0].exact.value == (9).to_bytes(4)


def test_ports_are_device_ports_in_requests_and_ports_in_answers(make: Make, requests: Requests) -> None:
    ports = {0: 8, 1: 9}
    control, recorder = make(ports=ports)
    sent = Entry("pipe.Ingress.route", {"hdr.ethernet.dst": Exact(1)}, Action("Ingress.send", {"port": 1}))
    control.insert(sent)
    control.set_multicast_group(MulticastGroup(1, (Replica(0, 5), Replica(1, 5))))
    control.set_clone_session(CloneSession(3, (Replica(1),)))
    entry, node, _, session = (request.updates[0].entity.table_entry for request in recorder.written)
    assert entry.data.fields[0].stream == (9).to_bytes(2)
    assert node.data.fields[0].int_arr_val.val == [8, 9]
    assert {field.field_id: field.stream for field in session.data.fields}[16] == (9).to_bytes(4)
    held = requests.protos.ReadResponse()
    held.entities.add().table_entry.CopyFrom(entry)
    control, _ = make(held, ports=ports)
    assert control.entries("route") == [sent]


def test_a_port_that_is_not_there_changes_nothing(make: Make) -> None:
    control, recorder = make(ports={0: 8, 1: 9})
    with pytest.raises(ControlError, match="port 2: the switch has ports 0 to 1"):
        control.insert(Entry("route", {"dst": 1}, Action("send", {"port": 2})))
    for replicas in ((Replica(0), Replica(7)), (Replica(7),)):
        with pytest.raises(ControlError, match="port 7"):
            control.set_multicast_group(MulticastGroup(1, replicas))
        with pytest.raises(ControlError, match="port 7"):
            control.set_clone_session(CloneSession(1, replicas))
    assert not recorder.written


def test_kept_entries_come_back_after_a_reset_and_are_not_listed(make: Make, requests: Requests) -> None:
    kept, other = Entry("route", {"dst": 5}, SEND), Entry("route", {"dst": 6}, SEND)
    control, recorder = make()
    control.keep(kept)
    control.insert(other)
    added = [request.updates[0].entity.table_entry for request in recorder.written]
    recorder.written.clear()
    control.reset()
    last = recorder.written[-1].updates[0]
    assert (last.type, last.entity.table_entry) == (INSERT, added[0])
    held = requests.protos.ReadResponse()
    for entry in added:
        held.entities.add().table_entry.CopyFrom(entry)
    control, _ = make(held)
    control.keep(kept)
    assert [entry.match["hdr.ethernet.dst"] for entry in control.entries("route")] == [Exact(6)]


def test_ambiguous_names_and_wrong_values(make: Make, requests: Requests) -> None:
    table = Bfrt(ROUTE, CHIP).tables.named("$mirror.cfg")
    wrong = Row({"$sid": Exact(1)}, {"$direction": "UP"}, "$normal")
    with pytest.raises(ControlError, match="none of INGRESS, EGRESS, BOTH"):
        requests.write(INSERT, table, [wrong])
    with pytest.raises(ControlError, match="has no operation Fly; it has: Sync"):
        requests.operation(Bfrt(ROUTE, CHIP).tables.named("last"), "Fly")


def test_no_proto(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match=r"none\.proto is missing: set SDE_INSTALL"):
        protos.load(tmp_path / "none.proto")
