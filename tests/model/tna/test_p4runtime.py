"""A program for Tofino behind P4Runtime."""

from __future__ import annotations

from p4gen.model.entries import Action
from p4gen.p4.compile import compile_text
from p4gen.p4rt.codec import encode_table_action
from p4gen.p4rt.schema import Schema
from p4gen.p4rt.server import P4RuntimeServer
from p4gen.p4rt.session import Session
from p4gen.protos import p4runtime as pb
from p4gen.switch.device import Device
from p4gen.switch.running import scratch

from . import programs
from .programs import frame, text

LOCAL = """Counter<bit<32>, bit<8>>(2, CounterType_t.PACKETS_AND_BYTES) cnt;
    action send(PortId_t port) { cnt.count(1); tm.ucast_egress_port = port; }
    table ports { key = { hdr.h.a : exact; } actions = { send; } }"""


def test_a_controller_loads_a_program_writes_an_entry_and_reads_a_counter() -> None:
    source = text("ports.apply();", LOCAL)
    p4info = compile_text(source, "t.p4", ()).p4info
    schema = Schema(p4info)
    device = Device(1, cpu_port=64, ports=range(16), clock=lambda: 0, engine=programs.ENGINE)
    with scratch() as folder, P4RuntimeServer(device, f"unix:{folder / 's'}") as server:
        session = Session(server.address, 1, (0, 1))
        session.set_config(pb.ForwardingPipelineConfig(p4info=p4info, p4_device_config=source.encode()))
        table = schema.tables.named("ports")
        entity = pb.Entity()
        entity.table_entry.table_id = table.id
        match = entity.table_entry.match.add(field_id=1)
        match.exact.value = b"\1"
        entity.table_entry.action.CopyFrom(encode_table_action(table, Action("send", {"port": 5})))
        session.write_all([pb.Update(type=pb.Update.INSERT, entity=entity)], 0)
        assert list(device.send(1, frame(1))) == [(5, frame(1))]
        assert list(device.send(1, frame(2))) == []
        wanted = pb.Entity()
        wanted.counter_entry.counter_id = schema.counters.named("cnt").id
        found = [e.counter_entry.data.packet_count for e in session.read_all(wanted)]
        assert found == [0, 1]
        session.tear_down()
