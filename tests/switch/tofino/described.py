"""What p4c's back end says of route.p4's tables, and the SDE of a chip's: as far as the harness uses them.

Both are written by hand after p4c's generator (backends/tofino/bf-p4c/control-plane) and the SDE's bf_rt_*.json, with
which ``test_against_sde`` compares them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SDE_TABLES = {"$pre.mgid": "pre", "$pre.node": "pre", "$mirror.cfg": "mirror", "$PORT": "port"} | {
    f"tf2.pktgen.{name}": "pktgen" for name in ("port_cfg", "app_cfg", "pkt_buffer")
}


def _type(kind: str | int) -> dict[str, Any]:
    return {"type": "bytes", "width": kind} if isinstance(kind, int) else {"type": kind}


def key(number: int, name: str, kind: str | int, match: str = "Exact", mandatory: bool = False) -> dict[str, Any]:
    return {"id": number, "name": name, "match_type": match, "mandatory": mandatory, "type": _type(kind)}


def data(number: int, name: str, kind: str | int, **more: Any) -> dict[str, Any]:
    mandatory = more.pop("mandatory", False)
    single = {"id": number, "name": name, "repeated": False, "annotations": [], "type": _type(kind), **more}
    return {"mandatory": mandatory, "read_only": False, "singleton": single}


def parameter(number: int, name: str, width: int) -> dict[str, Any]:
    return {"id": number, "name": name, "repeated": False, "mandatory": True, "annotations": [], "type": _type(width)}


def action(number: int, name: str, *parameters: dict[str, Any]) -> dict[str, Any]:
    return {"id": number, "name": name, "action_scope": "TableAndDefault", "annotations": [], "data": list(parameters)}


def table(number: int, name: str, kind: str, size: int, keys: list[Any], **more: Any) -> dict[str, Any]:
    given = {"id": number, "name": name, "table_type": kind, "size": size, "key": keys}
    return {**given, "data": [], "supported_operations": [], "attributes": [], "annotations": [], **more}


_REGISTER = {"annotations": [{"name": "$bfrt_field_class", "value": "register_data"}], "mandatory": True}
_SEND = action(11, "Ingress.send", parameter(1, "port", 9))
_FLOOD = action(12, "Ingress.flood", parameter(1, "group", 16))
_DROP, _NOTHING = action(13, "Ingress.drop"), action(14, "NoAction")

ROUTE: dict[str, Any] = {
    "schema_version": "1.0.0",
    "tables": [
        table(1, "pipe.Ingress.route", "MatchAction_Direct", 64, [key(1, "hdr.ethernet.dst", 48)],
              action_specs=[_SEND, _FLOOD, _DROP], has_const_default_action=False, attributes=["EntryScope"]),
        table(2, "pipe.Ingress.screen", "MatchAction_Direct", 16,
              [key(1, "hdr.ethernet.src", 48, "Ternary"), key(2, "hdr.ethernet.type", 16, "Range"),
               key(65537, "$MATCH_PRIORITY", "uint32")],
              action_specs=[_DROP, _NOTHING], has_const_default_action=True, attributes=["EntryScope"]),
        table(3, "pipe.Ingress.seen", "Counter", 4, [key(65556, "$COUNTER_INDEX", "uint32", mandatory=True)],
              data=[data(65553, "$COUNTER_SPEC_BYTES", "uint64"), data(65554, "$COUNTER_SPEC_PKTS", "uint64")],
              supported_operations=["Sync"]),
        table(4, "pipe.Ingress.last", "Register", 4, [key(65557, "$REGISTER_INDEX", "uint32", mandatory=True)],
              data=[data(1, "Ingress.last.first", 32, **_REGISTER), data(2, "Ingress.last.second", 32, **_REGISTER)],
              supported_operations=["Sync"]),
    ],
    "learn_filters": [],
}  # fmt: skip

_SESSION = [
    data(6, "$session_enable", "bool"), data(15, "$direction", "string"), data(16, "$ucast_egress_port", "uint32"),
    data(17, "$ucast_egress_port_valid", "bool"), data(23, "$mcast_grp_a", "uint16"),
    data(24, "$mcast_grp_a_valid", "bool"), data(32, "$max_pkt_len", "uint16"),
]  # fmt: skip
_SESSION[1]["singleton"]["type"]["choices"] = ["INGRESS", "EGRESS", "BOTH"]
_APP = [
    data(12, "app_enable", "bool"), data(13, "pkt_len", 16), data(14, "pkt_buffer_offset", 16),
    data(15, "pipe_local_source_port", "uint32"), data(16, "increment_source_port", "bool"),
    data(17, "batch_count_cfg", 16), data(18, "packets_per_batch_cfg", 16), data(28, "assigned_chnl_id", 8),
]  # fmt: skip

CHIP: dict[str, Any] = {
    "tables": [
        table(4278321153, "$pre.mgid", "PreMgid", 0, [key(1, "$MGID", "uint16", mandatory=True)], data=[
            data(1, "$MULTICAST_NODE_ID", "uint32", repeated=True),
            data(2, "$MULTICAST_NODE_L1_XID_VALID", "bool", repeated=True),
            data(3, "$MULTICAST_NODE_L1_XID", "uint16", repeated=True)]),
        table(4278321154, "$pre.node", "PreNode", 0, [key(1, "$MULTICAST_NODE_ID", "uint32", mandatory=True)], data=[
            data(1, "$MULTICAST_RID", "uint16", mandatory=True),
            data(2, "$MULTICAST_LAG_ID", "uint8", repeated=True, mandatory=True),
            data(3, "$DEV_PORT", "uint32", repeated=True, mandatory=True)]),
        table(4278452225, "$mirror.cfg", "MirrorCfg", 0, [key(1, "$sid", "uint16", mandatory=True)],
              action_specs=[action(1, "$coalescing"), action(2, "$normal")], data=_SESSION),
        table(4278255617, "$PORT", "PortConfigure", 0, [key(1, "$DEV_PORT", "uint32", mandatory=True)], data=[
            data(1, "$SPEED", "string"), data(2, "$FEC", "string"), data(4, "$PORT_ENABLE", "bool")]),
        table(4278386689, "tf2.pktgen.port_cfg", "PktgenPortCfg", 0, [key(1, "dev_port", "uint32")],
              data=[data(2, "pktgen_enable", "bool")]),
        table(4278386690, "tf2.pktgen.app_cfg", "PktgenAppCfg", 0, [key(1, "app_id", "uint32")], data=_APP,
              action_specs=[{"id": 2, "name": "trigger_timer_periodic", "data": [data(1, "timer_nanosec", "uint32")]}]),
        table(4278386691, "tf2.pktgen.pkt_buffer", "PktgenPktBufferCfg", 0,
              [key(1, "pkt_buffer_offset", "uint32"), key(2, "pkt_buffer_size", "uint32")],
              data=[data(1, "buffer", 8, repeated=True)]),
    ],
}  # fmt: skip
