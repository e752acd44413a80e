"""Requests against those of open-p4studio's Python client, byte by byte. ``P4STUDIO`` names a checkout of it."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from p4gen.model.entries import Action, CloneSession, Entry, Exact, Lpm, Match, MulticastGroup, Range, Replica, Ternary
from p4gen.switch.tofino.bfrt import protos
from p4gen.switch.tofino.bfrt.control import BfrtControlPlane
from p4gen.switch.tofino.bfrt.requests import DELETE, INSERT, MODIFY, Requests, Row
from p4gen.switch.tofino.bfrt.schema import LAST_PRIORITY, Bfrt

from .described import CHIP, ROUTE, SDE_TABLES
from .recorder import Recorder

BFRT = Path(os.environ.get("P4STUDIO", "/nowhere")) / "pkgsrc/bf-drivers/src/bf_rt"
CLIENT = BFRT / "bfruntime_grpc_client/python"
NEEDED = {"P4STUDIO, a checkout of open-p4studio": CLIENT.is_dir(), "protoc": shutil.which("protoc") is not None}
NEEDED["six"] = importlib.util.find_spec("six") is not None
pytestmark = pytest.mark.skipif(
    not all(NEEDED.values()), reason="missing: " + ", ".join(name for name, there in NEEDED.items() if not there)
)


def chip(name: str) -> dict[str, Any]:
    """The SDE's own description of a Tofino 2's tables, those that we use."""
    found = []
    for wanted, part in SDE_TABLES.items():
        document = json.loads((BFRT / f"bf_rt_{part}" / f"bf_rt_{part}_{name}.json").read_text())
        found += [table for table in document["tables"] if table["name"] == wanted]
    for table in found:
        table.setdefault("size", 0)
    return {"tables": found}


@pytest.fixture(scope="module")
def messages() -> protos.Protos:
    return protos.load(BFRT / "proto/bfruntime.proto")


@pytest.fixture(scope="module")
def client(messages: protos.Protos) -> Iterator[Any]:
    """open-p4studio's client, on message classes made as ours are: it uses the same proto."""
    numbers = types.SimpleNamespace(Value=["WARM_INIT_STARTED", "WARM_INIT_FINISHED"].index)
    generated = types.ModuleType("bfrt_grpc.bfruntime_pb2")
    generated.__getattr__ = lambda name: getattr(messages, name)  # type: ignore[method-assign]
    generated.__dict__["SetForwardingPipelineConfigResponseType"] = numbers
    stubs = types.ModuleType("bfrt_grpc.bfruntime_pb2_grpc")
    stubs.__dict__["bfruntime__pb2"] = generated
    modules = {"bfrt_grpc": types.ModuleType("bfrt_grpc"), "bfrt_grpc.bfruntime_pb2_grpc": stubs}
    modules["bfrt_grpc"].__dict__["bfruntime_pb2_grpc"] = stubs
    package = types.ModuleType("sde_client")
    package.__path__ = [str(CLIENT)]
    modules["sde_client"] = package
    sys.modules |= modules
    try:
        yield importlib.import_module("sde_client.client")
    finally:
        for name in [*modules, "sde_client.client", "sde_client.info_parse"]:
            sys.modules.pop(name, None)


class Wire:
    """What stands behind the client in place of a server: the last request, without an answer."""

    def __init__(self, messages: protos.Protos) -> None:
        self.last, self._answer = b"", messages.WriteResponse()

    def _write(self, request: Any, metadata: object = None) -> Any:
        self.last = request.SerializeToString()
        return self._answer

    def _read(self, request: Any, metadata: object = None) -> Any:
        self.last = request.SerializeToString()
        return iter(())


Theirs = Callable[..., bytes]
SHAPES = [
    "insert exact", "insert two", "insert ternary and range", "modify", "delete", "clear", "set default",
    "reset default", "sync", "read all", "read a register", "node", "group", "session", "port", "buffer",
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_bytes_as_their_client(shape: str, client: Any, messages: protos.Protos) -> None:
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
        control = BfrtControlPlane(requests, bfrt, recorder)
        if shape in ("node", "group"):
            control.set_multicast_group(MulticastGroup(5, (Replica(8, 1), Replica(9, 1), Replica(8, 2))))
        elif shape == "session":
            control.set_clone_session(CloneSession(3, (Replica(9),), 128))
        else:
            control.add_ports([8])
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


def test_lpm_like_theirs(messages: protos.Protos, client: Any) -> None:
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
