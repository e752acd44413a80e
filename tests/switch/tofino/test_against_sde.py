"""Requests against those of open-p4studio's Python client, byte by byte. ``P4STUDIO`` names a checkout of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from p4gen.model.entries import Action, CloneSession, Entry, Exact, Lpm, Match, MulticastGroup, Range, Replica, Ternary
from p4gen.protos.package import Package
from p4gen.switch.tofino.bfrt import protos
from p4gen.switch.tofino.bfrt.control import BfrtControlPlane
from p4gen.switch.tofino.bfrt.ports import PortMap
from p4gen.switch.tofino.bfrt.requests import DELETE, INSERT, MODIFY, Requests, Row
from p4gen.switch.tofino.bfrt.schema import LAST_PRIORITY, Bfrt

from .described import CHIP, ROUTE
from .recorder import Recorder
from .sde import MISSING, PROTO, Wire, chip, forget_client, sde_client
from .standins import TESTS

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"missing: {', '.join(MISSING)}")


@pytest.fixture(scope="module")
def messages() -> Package:
    return protos.load(PROTO)


@pytest.fixture(scope="module")
def client(messages: Package) -> Iterator[Any]:
    """open-p4studio's client."""
    try:
        yield sde_client(messages)
    finally:
        forget_client()


Theirs = Callable[..., bytes]
SHAPES = [
    "insert exact", "insert two", "insert ternary and range", "modify", "delete", "clear", "set default",
    "reset default", "sync", "read all", "read a register", "node", "group", "session", "port", "buffer",
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_bytes_as_their_client(shape: str, client: Any, messages: Package) -> None:
    wire = Wire(messages)
    sde = chip("tf2")
    info = client._BfRtInfo("route", json.dumps(ROUTE).encode(), json.dumps(sde).encode(), wire)
    bfrt, requests = Bfrt(ROUTE, sde), Requests(messages)
    requests.client = 0
    wire.client_id = 0  # type: ignore[attr-defined]
    target, key, value = client.Target(), client.KeyTuple, client.DataTuple
    rollback = {"atomicity": 1}
    theirs, ours = None, None

    def named(name: str) -> Any:
        return info.table_get(name)

    route, screen, last = (named(f"pipe.Ingress.{name}") for name in ("route", "screen", "last"))
    table = {name: bfrt.tables.named(name) for name in ("route", "screen", "last", "seen")}
    if shape == "insert exact":
        route.entry_add(target, [route.make_key([key("hdr.ethernet.dst", 7)])],
                        [route.make_data([value("port", 300)], "Ingress.send")])  # fmt: skip
        ours = requests.write(INSERT, table["route"], [Row({"hdr.ethernet.dst": 7}, {"port": 300}, "send")])
    elif shape == "insert two":
        keys = [route.make_key([key("hdr.ethernet.dst", n)]) for n in (1, 2)]
        datas = [route.make_data([value("port", 3)], "Ingress.send"), route.make_data([], "Ingress.drop")]
        route.entry_add(target, keys, datas, **rollback)
        rows = [Row({"dst": 1}, {"port": 3}, "send"), Row({"dst": 2}, {}, "drop")]
        ours = requests.write(INSERT, table["route"], rows, all_or_none=True)
    elif shape == "insert ternary and range":
        made = screen.make_key([key("$MATCH_PRIORITY", LAST_PRIORITY - 5),
                                key("hdr.ethernet.src", 0xAB00, mask=0xFF00),
                                key("hdr.ethernet.type", low=2, high=9)])  # fmt: skip
        screen.entry_add(target, [made], [screen.make_data([], "Ingress.drop")], **rollback)
        recorder = Recorder()
        match: dict[str, Match] = {"src": Ternary(0xABCD, 0xFF00), "type": Range(2, 9)}
        BfrtControlPlane(requests, bfrt, recorder).insert(Entry("screen", match, Action("drop"), 5))
        (ours,) = recorder.written
    elif shape == "modify":
        route.entry_mod(target, [route.make_key([key("hdr.ethernet.dst", 7)])],
                        [route.make_data([value("group", 9)], "Ingress.flood")])  # fmt: skip
        ours = requests.write(MODIFY, table["route"], [Row({"dst": Exact(7)}, {"group": 9}, "flood")])
    elif shape == "delete":
        route.entry_del(target, [route.make_key([key("hdr.ethernet.dst", 7)])])
        ours = requests.write(DELETE, table["route"], [Row({"dst": 7}, {"port": 1}, "send")])
    elif shape == "clear":
        last.entry_del(target)
        ours = requests.clear(table["last"])
    elif shape == "set default":
        route.default_entry_set(target, route.make_data([value("port", 6)], "Ingress.send"))
        ours = requests.default(table["route"], Row({}, {"port": 6}, "send"))
    elif shape == "reset default":
        route.default_entry_reset(target)
        ours = requests.default(table["route"], None)
    elif shape == "sync":
        last.operations_execute(target, "Sync")
        ours = requests.operation(table["last"], "Sync")
    elif shape == "read all":
        list(named("pipe.Ingress.seen").entry_get(target, flags={"from_hw": False}))
        ours = requests.read(table["seen"], hardware=False)
    elif shape == "read a register":
        list(last.entry_get(target, [last.make_key([key("$REGISTER_INDEX", 3)])]))
        ours = requests.read(table["last"], [{"$REGISTER_INDEX": 3}])
    elif shape in ("node", "group", "session", "port"):
        recorder = Recorder()
        control = BfrtControlPlane(requests, bfrt, recorder, ports=PortMap({8: 8, 9: 9} if shape != "port" else {8: 8}))
        if shape in ("node", "group"):
            control.set_multicast_group(MulticastGroup(5, (Replica(8, 1), Replica(9, 1), Replica(8, 2))))
        elif shape == "session":
            control.set_clone_session(CloneSession(3, (Replica(9),), 128))
        else:
            control.add_ports()
        if shape == "node":
            table_ = named("$pre.node")
            keys = [table_.make_key([key("$MULTICAST_NODE_ID", n)]) for n in (1, 2)]
            table_.entry_add(target, keys, [
                table_.make_data([value("$MULTICAST_RID", rid), value("$MULTICAST_LAG_ID", int_arr_val=[]),
                                  value("$DEV_PORT", int_arr_val=ports)])
                for rid, ports in ((1, [8, 9]), (2, [8]))])  # fmt: skip
            ours = recorder.written[0]
        elif shape == "group":
            table_ = named("$pre.mgid")
            made = [value("$MULTICAST_NODE_ID", int_arr_val=[1, 2]),
                    value("$MULTICAST_NODE_L1_XID_VALID", bool_arr_val=[False, False]),
                    value("$MULTICAST_NODE_L1_XID", int_arr_val=[0, 0])]  # fmt: skip
            table_.entry_add(target, [table_.make_key([key("$MGID", 5)])], [table_.make_data(made)])
            ours = recorder.written[1]
        elif shape == "session":
            table_ = named("$mirror.cfg")
            made = [value("$direction", str_val="BOTH"), value("$ucast_egress_port", 9),
                    value("$ucast_egress_port_valid", bool_val=True), value("$session_enable", bool_val=True),
                    value("$mcast_grp_a", 0), value("$mcast_grp_a_valid", bool_val=False),
                    value("$max_pkt_len", 128)]  # fmt: skip
            table_.entry_add(target, [table_.make_key([key("$sid", 3)])], [table_.make_data(made, "$normal")])
            (ours,) = recorder.written
        else:
            table_ = named("$PORT")
            made = [value("$SPEED", str_val="BF_SPEED_100G"), value("$FEC", str_val="BF_FEC_TYP_NONE"),
                    value("$PORT_ENABLE", bool_val=True)]  # fmt: skip
            table_.entry_add(target, [table_.make_key([key("$DEV_PORT", 8)])], [table_.make_data(made)])
            (ours,) = recorder.written
    elif shape == "buffer":
        table_ = named("tf2.pktgen.pkt_buffer")
        made_key = table_.make_key([key("pkt_buffer_offset", 16), key("pkt_buffer_size", 4)])
        table_.entry_add(target, [made_key], [table_.make_data([value("buffer", bytearray(b"abcd"))])])
        row = Row({"pkt_buffer_offset": 16, "pkt_buffer_size": 4}, {"buffer": b"abcd"})
        ours = requests.write(INSERT, bfrt.tables.named("tf2.pktgen.pkt_buffer"), [row])
    assert ours is not None
    assert wire.last, "their client sent nothing"
    theirs = wire.last
    assert ours.SerializeToString().hex() == theirs.hex()


def test_the_chips_tables_are_as_we_describe_them() -> None:
    sde, ours = Bfrt(ROUTE, chip("tf2")), Bfrt(ROUTE, CHIP)
    for table in ours.tables.all:
        real = sde.tables.named(table.name)
        assert (real.id, real.type) == (table.id, table.type)
        for mine, other in ((table.keys, real.keys), (table.data, real.data)):
            for field in mine.all:
                found = other.named(field.name)
                assert (found.id, found.type, found.bits, found.repeated, found.mandatory) == (
                    field.id, field.type, field.bits, field.repeated, field.mandatory), field.name  # fmt: skip


def test_lpm_like_theirs(messages: Package, client: Any) -> None:
    changed = json.loads(json.dumps(ROUTE))
    changed["tables"][0]["key"][0]["match_type"] = "LPM"
    wire = Wire(messages)
    wire.client_id = 0  # type: ignore[attr-defined]
    info = client._BfRtInfo("route", json.dumps(changed).encode(), b'{"tables": []}', wire)
    route = info.table_get("pipe.Ingress.route")
    made = route.make_key([client.KeyTuple("hdr.ethernet.dst", 0x0A0000000000, prefix_len=8)])
    route.entry_add(client.Target(), [made], [route.make_data([], "Ingress.drop")])
    table = Bfrt(changed, {"tables": []}).tables.named("route")
    ours = Requests(messages).write(INSERT, table, [Row({"dst": Lpm(0x0A0000000000, 8)}, {}, "drop")])
    assert ours.SerializeToString() == wire.last


SPEC = {"mode": "II", "lanes": 8, "ports": 8, "groups": 2, "fan_in": 4, "window": 2, "message": 2}
SOME = "test_forwarding,test_static_groups,test_validation"


@pytest.mark.parametrize("arch", ["t2na", "tna"])
def test_the_calls_of_the_suite(arch: str, request: pytest.FixtureRequest) -> None:
    """Every control-plane call of some scenarios, with --full of all, is made on BF-Runtime's client, too."""
    tests = "" if request.config.getoption("--full") else SOME
    words = ["-m", "switch.tofino.shadow", json.dumps({**SPEC, "arch": arch}), tests, "interp"]
    done = subprocess.run([sys.executable, *words], cwd=TESTS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert not found["failed"]
    assert found["outcomes"]["passed"] > 10
    assert not found["wrong"]
    assert not found["different"], found["differences"]
    assert {"insert", "group", "reset", "counters", "registers"} <= set(found["calls"])
