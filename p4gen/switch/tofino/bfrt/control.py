"""``ControlPlane`` over BF-Runtime: tables, counters, registers, multicast, mirroring, ports and packet generators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from typing_extensions import override

from p4gen.model.control_plane import ControlPlane
from p4gen.model.entries import (
    Action,
    CloneSession,
    CounterValue,
    Entry,
    Exact,
    Lpm,
    Match,
    MulticastGroup,
    Range,
    Replica,
    Ternary,
)
from p4gen.model.errors import ControlError
from p4gen.switch.tofino.bfrt.connection import Transport
from p4gen.switch.tofino.bfrt.ports import PortMap
from p4gen.switch.tofino.bfrt.requests import DELETE, INSERT, MODIFY, Found, Requests, Row, Value
from p4gen.switch.tofino.bfrt.schema import LAST_PRIORITY, PRIORITY, Bfrt, FieldInfo, TableInfo

_MATCH, _COUNTER, _REGISTER = "MatchAction", "Counter", "Register"
_INDEX: Final = {_COUNTER: "$COUNTER_INDEX", _REGISTER: "$REGISTER_INDEX"}
_PACKETS, _BYTES = "$COUNTER_SPEC_PKTS", "$COUNTER_SPEC_BYTES"
_MGID, _NODE, _MIRROR, _PORT = "$pre.mgid", "$pre.node", "$mirror.cfg", "$PORT"
_SYNC: Final = "Sync"
_LAST_GROUP: Final = 0xFFFF
"""Mirror sessions with several replicas use the multicast groups that count down from here."""


class BfrtControlPlane(ControlPlane):
    """A program on a Tofino.

    Registers are those of ``pipe``: every pipe has its own, although all have the same entries. ``ports`` maps the
    ports of the program under test, which callers use, to those of the device.
    """

    def __init__(
        self, requests: Requests, bfrt: Bfrt, transport: Transport, pipe: int = 0, ports: PortMap | None = None
    ) -> None:
        self._requests, self._bfrt, self._transport, self._pipe = requests, bfrt, transport, pipe
        self._ports = ports or PortMap()
        self._kept: tuple[Entry, ...] = ()
        self._nodes: dict[int, tuple[int, ...]] = {}
        """The nodes of each multicast group."""
        self._next_node = 1

    # --- tables ---

    @override
    def insert(self, *entries: Entry) -> None:
        self._write_entries(INSERT, entries)

    @override
    def modify(self, *entries: Entry) -> None:
        self._write_entries(MODIFY, entries)

    @override
    def delete(self, *entries: Entry) -> None:
        self._write_entries(DELETE, entries)

    @override
    def entries(self, table: str) -> list[Entry]:
        """The entries of ``table``, in the order in which the switch returns them, without the entries that ``keep``
        has added."""
        info = self._match_table(table)
        rows = self._rows(info, hardware=False)
        kept = [self._key(info, entry) for entry in self._kept if self._match_table(entry.table) is info]
        kept = [{name: _exact(match) for name, match in key.items()} for key in kept]
        return [self._entry(info, row) for row in rows if not row.default and row.key not in kept]

    def keep(self, *entries: Entry) -> None:
        """Add entries that every reset adds again."""
        self.insert(*entries)
        self._kept += entries

    @override
    def set_default(self, table: str, action: Action | None) -> None:
        info = self._match_table(table)
        row = None if action is None else Row({}, self._arguments(info, action), action.name)
        self._transport.write(self._requests.default(info, row))

    def _match_table(self, name: str) -> TableInfo:
        return self._bfrt.typed(name, _MATCH, "match table")

    def _write_entries(self, kind: int, entries: Iterable[Entry]) -> None:
        by_table: dict[int, tuple[TableInfo, list[Row]]] = {}
        for entry in entries:
            info = self._match_table(entry.table)
            row = Row(self._key(info, entry), self._arguments(info, entry.action), entry.action.name)
            by_table.setdefault(info.id, (info, []))[1].append(row)
        requests = [self._requests.write(kind, info, rows, all_or_none=True) for info, rows in by_table.values()]
        if not requests:
            return
        # One request, so that either all tables take their entries or none does.
        for other in requests[1:]:
            requests[0].updates.extend(other.updates)
        self._transport.write(requests[0])

    def _arguments(self, table: TableInfo, action: Action) -> dict[str, Value]:
        fields = table.fields(action.name)
        return {name: self._ports.value(fields.named(name), value) for name, value in action.args.items()}

    def _key(self, table: TableInfo, entry: Entry) -> dict[str, Match]:
        """The whole key, with the priority as BF-Runtime counts it: the smallest wins."""
        infos = {name: table.keys.named(name) for name in entry.match}
        given = {info.name: self._ports.match(info, entry.match[name]) for name, info in infos.items()}
        key: dict[str, Match] = {}
        ranked = False
        for info in table.keys.all:
            match = given.get(info.name, _wildcard(info))
            if info.name == PRIORITY:
                ranked = True
            elif match is not None:
                key[info.name] = match
            elif info.match != "Optional":
                raise ControlError(f"table {table.name}: the key needs {info.name}")
        if ranked != bool(entry.priority):
            raise ControlError(f"table {table.name}: an entry {'needs a' if ranked else 'has no'} priority")
        if ranked:
            if not 0 < entry.priority <= LAST_PRIORITY:
                raise ControlError(f"table {table.name}: priority {entry.priority} is not in 1..{LAST_PRIORITY}")
            key[PRIORITY] = LAST_PRIORITY - entry.priority
        return key

    def _entry(self, table: TableInfo, row: Found) -> Entry:
        key = dict(row.key)
        rank = key.pop(PRIORITY, None)
        priority = 0 if rank is None else LAST_PRIORITY - _number(rank)
        infos = {name: table.keys.named(name) for name in key}
        match = {n: self._ports.matched(infos[n], m) for n, m in key.items() if m != _wildcard(infos[n])}
        parameters = table.actions.named(row.action).data.all if row.action else ()
        args = {p.name: self._ports.outside(p, row.data[p.name]) for p in parameters if p.name in row.data}
        return Entry(table.name, match, Action(row.action or "", args), priority)

    # --- packet replication ---

    @override
    def set_multicast_group(self, group: MulticastGroup) -> None:
        number = group.group_id
        old = self._nodes.get(number, ())
        mgid, node = self._bfrt.tables.named(_MGID), self._bfrt.tables.named(_NODE)
        ids = self._make_nodes(node, map(self._ports.replica, group.replicas))
        if ids:
            data: dict[str, Value] = {
                "$MULTICAST_NODE_ID": ids,
                "$MULTICAST_NODE_L1_XID_VALID": [False] * len(ids),
                "$MULTICAST_NODE_L1_XID": [0] * len(ids),
            }
            self._write(MODIFY if old else INSERT, mgid, Row({"$MGID": number}, data))
            self._nodes[number] = tuple(ids)
        elif old:
            self._write(DELETE, mgid, Row({"$MGID": number}))
            del self._nodes[number]
        if old:
            self._write(DELETE, node, *(Row({"$MULTICAST_NODE_ID": one}) for one in old))

    def _make_nodes(self, table: TableInfo, replicas: Iterable[Replica]) -> list[int]:
        """Nodes for replicas. A node has one replication id, and sends one copy to a port. So each replication id has a
        node of its own, and further nodes for ports that occur several times. Returns their ids."""
        nodes: list[tuple[int, list[int]]] = []
        for replica in replicas:
            for rid, ports in nodes:
                if rid == replica.rid and replica.port not in ports:
                    ports.append(replica.port)
                    break
            else:
                nodes.append((replica.rid, [replica.port]))
        ids = list(range(self._next_node, self._next_node + len(nodes)))
        if ids:
            self._write(
                INSERT,
                table,
                *(
                    Row(
                        {"$MULTICAST_NODE_ID": number},
                        {"$MULTICAST_RID": rid, "$MULTICAST_LAG_ID": [], "$DEV_PORT": ports},
                    )
                    for number, (rid, ports) in zip(ids, nodes, strict=True)
                ),
            )
        self._next_node += len(ids)
        return ids

    @override
    def set_clone_session(self, session: CloneSession) -> None:
        """Several replicas are a multicast group."""
        table, key = self._bfrt.tables.named(_MIRROR), {"$sid": session.session_id}
        exists = any(row.key == {"$sid": Exact(session.session_id)} for row in self._rows(table, hardware=False))
        group = _LAST_GROUP - session.session_id
        replicas = session.replicas
        plain = len(replicas) == 1 and not replicas[0].rid
        self.set_multicast_group(MulticastGroup(group, () if plain else replicas))
        if not replicas:
            if exists:
                self._write(DELETE, table, Row(key))
            return
        data: dict[str, Value] = {
            "$session_enable": True,
            "$direction": "BOTH",
            "$ucast_egress_port": self._ports.inside(replicas[0].port) if plain else 0,
            "$ucast_egress_port_valid": plain,
            "$mcast_grp_a": 0 if plain else group,
            "$mcast_grp_a_valid": not plain,
            "$max_pkt_len": session.packet_length,
        }
        self._write(MODIFY if exists else INSERT, table, Row(key, data, "$normal"))

    # --- counters and registers ---

    @override
    def counter(self, name: str, index: int = 0) -> CounterValue:
        """The packets and bytes of all pipes, added."""
        table = self._bfrt.typed(name, _COUNTER, "counter")
        (row,) = self._rows(table, {_INDEX[_COUNTER]: _index(table, index)})
        return _count(row)

    @override
    def counters(self, name: str) -> list[CounterValue]:
        """The packets and bytes of all pipes, added for each cell."""
        table = self._bfrt.typed(name, _COUNTER, "counter")
        return [_count(row) for row in self._cells(table, _COUNTER)]

    @override
    def register(self, name: str, index: int) -> int:
        """The first field of a pair is in the upper half."""
        table = self._bfrt.typed(name, _REGISTER, "register")
        (row,) = self._rows(table, {_INDEX[_REGISTER]: _index(table, index)})
        return self._word(table, row)

    @override
    def registers(self, name: str) -> list[int]:
        """The driver is told to read them from the chip first."""
        table = self._bfrt.typed(name, _REGISTER, "register")
        return [self._word(table, row) for row in self._cells(table, _REGISTER)]

    @override
    def write_register(self, name: str, index: int, value: int) -> None:
        """Always raises ``ControlError``: nothing here needs it."""
        raise ControlError(f"register {name}: registers of a Tofino are read only here")

    def _cells(self, table: TableInfo, kind: str) -> list[Found]:
        self._transport.write(self._requests.operation(table, _SYNC))
        rows = {_number(row.key[_INDEX[kind]]): row for row in self._rows(table, hardware=False)}
        if sorted(rows) != list(range(table.size)):
            raise ControlError(f"the switch gives {len(rows)} cells of {table.name}, which has {table.size}")
        return [rows[index] for index in range(table.size)]

    def _word(self, table: TableInfo, row: Found) -> int:
        word = 0
        for info in table.data.all:
            values = row.data.get(info.name, [])
            if self._pipe >= len(values):
                raise ControlError(f"the switch gives {info.name} of {len(values)} pipes, not of pipe {self._pipe}")
            word = word << info.bits | values[self._pipe]
        return word

    # --- what only Tofino has ---

    def add_ports(self, speed: str = "BF_SPEED_100G") -> None:
        """Enable the device ports of all ports, except those that the driver has enabled by itself."""
        table = self._bfrt.tables.named(_PORT)
        there = {_number(row.key["$DEV_PORT"]) for row in self._rows(table, hardware=False)}
        data: dict[str, Value] = {"$SPEED": speed, "$FEC": "BF_FEC_TYP_NONE", "$PORT_ENABLE": True}
        rows = [Row({"$DEV_PORT": port}, data) for port in self._ports.device.values() if port not in there]
        if rows:
            self._write(INSERT, table, *rows)

    def set_generator(
        self, app: int, packet: bytes, *, port: int, nanoseconds: int, offset: int = 0, batch: int = 1, count: int = 1
    ) -> None:
        """Make packet generator application ``app`` send ``packet`` every ``nanoseconds``: ``count`` batches of
        ``batch`` packets, which arrive on the device port ``port`` of each pipe."""
        self._write(INSERT, self._generator("port_cfg"), Row({"dev_port": port}, {"pktgen_enable": True}))
        self._write(
            INSERT,
            self._generator("pkt_buffer"),
            Row({"pkt_buffer_offset": offset, "pkt_buffer_size": len(packet)}, {"buffer": packet}),
        )
        table = self._generator("app_cfg")
        data: dict[str, Value] = {
            "timer_nanosec": nanoseconds,
            "app_enable": True,
            "pkt_len": len(packet),
            "pkt_buffer_offset": offset,
            "pipe_local_source_port": port & 0x7F,
            "increment_source_port": False,
            "batch_count_cfg": count - 1,
            "packets_per_batch_cfg": batch - 1,
        }
        if "assigned_chnl_id" in table.data:
            data["assigned_chnl_id"] = port & 0x7F
        self._write(INSERT, table, Row({"app_id": app}, data, "trigger_timer_periodic"))

    def stop_generator(self, app: int) -> None:
        """Stop a packet generator application."""
        self._write(MODIFY, self._generator("app_cfg"), Row({"app_id": app}, {"app_enable": False}, _PERIODIC))

    def _generator(self, name: str) -> TableInfo:
        return self._bfrt.typed(f"pktgen.{name}", "Pktgen", "table of the packet generator")

    # --- everything ---

    @override
    def reset(self) -> None:
        for table in self._bfrt.of_type(_MATCH):
            if not table.constant:
                self._transport.write(self._requests.clear(table))
            if not table.fixed_default:
                self._transport.write(self._requests.default(table, None))
        self._transport.write(self._requests.clear(self._bfrt.tables.named(_MIRROR)))
        for name in (_MGID, _NODE):  # these cannot be cleared at once; a node must not be in use when it is removed
            table = self._bfrt.tables.named(name)
            rows = [Row(row.key) for row in self._rows(table, hardware=False)]
            if rows:
                self._write(DELETE, table, *rows)
        self._nodes.clear()
        for kind in (_COUNTER, _REGISTER):
            for table in self._bfrt.of_type(kind):
                self._transport.write(self._requests.clear(table))
        self.insert(*self._kept)

    def _write(self, kind: int, table: TableInfo, *rows: Row) -> None:
        self._transport.write(self._requests.write(kind, table, rows))

    def _rows(self, table: TableInfo, *keys: Mapping[str, Match], hardware: bool = True) -> list[Found]:
        return self._requests.rows(table, self._transport.read(self._requests.read(table, keys, hardware=hardware)))


_PERIODIC: Final = "trigger_timer_periodic"


def _index(table: TableInfo, index: int) -> int:
    if not 0 <= index < table.size:
        raise ControlError(f"{table.name} has {table.size} cells, none with index {index}")
    return index


def _count(row: Found) -> CounterValue:
    return CounterValue(row.data.get(_PACKETS, 0), row.data.get(_BYTES, 0))


def _exact(match: Match) -> Match:
    return Exact(match) if isinstance(match, int) else match


def _number(match: Match) -> int:
    assert isinstance(match, Exact)
    return match.value


def _wildcard(info: FieldInfo) -> Match | None:
    """The match that an omitted key stands for; None if the key cannot be omitted."""
    if info.match == "Ternary":
        return Ternary(0, 0)
    if info.match == "LPM":
        return Lpm(0, 0)
    return Range(0, (1 << info.bits) - 1) if info.match == "Range" else None
