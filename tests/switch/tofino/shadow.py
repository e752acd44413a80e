"""Scenarios on p4gen's model of Tofino, each of whose control-plane calls also goes through BF-Runtime's client.

Its messages go to the stand-in server, which checks them and keeps rows, and are compared byte by byte with what
open-p4studio's client sends for the same call. Run as a program, in a process of its own: PTF keeps state.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from p4gen.arch import architecture
from p4gen.families import parse_spec
from p4gen.model import ControlError
from p4gen.model.entries import Action, CloneSession, CounterValue, Entry, Exact, Lpm, MulticastGroup, Range, Ternary
from p4gen.program.compilation import compile_spec
from p4gen.ptf.family import scenario_modules, suite_of
from p4gen.ptf.memory import TestedSwitch, load_suite, run_in_memory
from p4gen.ptf.report import Outcome, TestResult
from p4gen.switch.tofino import files
from p4gen.switch.tofino.bfrt import protos
from p4gen.switch.tofino.bfrt.control import BfrtControlPlane
from p4gen.switch.tofino.bfrt.ports import PortMap
from p4gen.switch.tofino.bfrt.requests import Requests
from p4gen.switch.tofino.bfrt.schema import Bfrt

from .from_p4info import bfrt
from .runtime import Runtime, WrongError
from .sde import PROTO, Wire, chip, sde_client

LAST_PRIORITY = (1 << 24) - 1


class Direct:
    """The transport: no connection, but the stand-in server's checks and rows."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.sent = runtime, list[Any]()

    def write(self, request: Any) -> None:
        self.sent.append(request)
        self._carry(lambda: self.runtime.take(request))

    def read(self, request: Any) -> Sequence[Any]:
        self.sent.append(request)
        found: list[Any] = []
        self._carry(lambda: found.append(self.runtime.answer(request)))
        return found

    def _carry(self, action: Callable[[], object]) -> None:
        try:
            action()
        except WrongError as wrong:
            raise ControlError(str(wrong)) from None


class Theirs:
    """What the SDE's client sends for the calls of the suite."""

    def __init__(self, program: dict[str, Any], sde: dict[str, Any], messages: Any, devices: dict[int, int]) -> None:
        self.client, self.messages, self.devices = sde_client(messages), messages, devices
        self.wire = Wire(messages)
        self.wire.client_id = 0  # type: ignore[attr-defined]
        self.tables = {table["name"]: table for table in (*program["tables"], *sde["tables"])}
        self.info = self.client._BfRtInfo("p", json.dumps(program).encode(), json.dumps(sde).encode(), self.wire)
        self.target = self.client.Target()
        self.nodes: dict[int, list[int]] = {}
        self.next_node = 1

    def _named(self, name: str, found: Sequence[dict[str, Any]]) -> dict[str, Any]:
        (one,) = (each for each in found if each["name"] == name or each["name"].endswith(f".{name}"))
        return one

    def _table(self, name: str) -> tuple[dict[str, Any], Any]:
        table = self._named(name, list(self.tables.values()))
        return table, self.info.table_get(table["name"])

    def _last(self) -> bytes:
        taken, self.wire.last = self.wire.last, b""
        return taken

    def _key(self, table: dict[str, Any], theirs: Any, entry: Entry) -> Any:
        given = {self._named(name, table["key"])["name"]: match for name, match in entry.match.items()}
        fields = []
        for info in table["key"]:
            name, match = info["name"], given.get(info["name"])
            port = info["type"].get("width") == 9
            make = self.client.KeyTuple
            if name == "$MATCH_PRIORITY":
                fields.append(make(name, LAST_PRIORITY - entry.priority))
            elif isinstance(match, Lpm):
                fields.append(make(name, match.value, prefix_len=match.prefix_len))
            elif isinstance(match, Range):
                fields.append(make(name, low=match.low, high=match.high))
            elif isinstance(match, Ternary):
                fields.append(make(name, match.value & match.mask, mask=match.mask))
            elif match is not None:
                value = match.value if isinstance(match, Exact) else match
                fields.append(make(name, self.devices[value] if port else value))
            elif info["match_type"] == "Ternary":
                fields.append(make(name, 0, mask=0))
            elif info["match_type"] == "LPM":
                fields.append(make(name, 0, prefix_len=0))
            else:
                fields.append(make(name, low=0, high=(1 << info["type"]["width"]) - 1))
        return theirs.make_key(fields)

    def _data(self, table: dict[str, Any], theirs: Any, action: Action) -> Any:
        spec = self._named(action.name, table["action_specs"])
        widths = {info["name"]: info["type"]["width"] for info in spec["data"]}
        values = {n: self.devices[v] if widths[n] == 9 else v for n, v in action.args.items()}
        return theirs.make_data([self.client.DataTuple(n, v) for n, v in values.items()], spec["name"])

    def added(self, *entries: Entry) -> list[bytes]:
        return self._written("entry_add", entries)

    def modified(self, *entries: Entry) -> list[bytes]:
        return self._written("entry_mod", entries)

    def deleted(self, *entries: Entry) -> list[bytes]:
        return self._written("entry_del", entries)

    def _written(self, how: str, entries: Sequence[Entry]) -> list[bytes]:
        """One request for all tables: their client has one for each, whose updates are put together."""
        by_table: dict[str, list[Entry]] = {}
        for entry in entries:
            by_table.setdefault(entry.table, []).append(entry)
        whole: Any = None
        for name, group in by_table.items():
            table, theirs = self._table(name)
            keys = [self._key(table, theirs, entry) for entry in group]
            datas = [self._data(table, theirs, entry.action) for entry in group] if how != "entry_del" else []
            getattr(theirs, how)(self.target, keys, *([datas] if datas else []), atomicity=1)
            one = self.messages.WriteRequest.FromString(self._last())
            if whole is None:
                whole = one
            else:
                whole.updates.extend(one.updates)
        return [whole.SerializeToString()] if whole is not None else []

    def set_multicast_group(self, group: MulticastGroup) -> list[bytes]:
        """New nodes, then the group, then the old nodes go."""
        make, datum = self.client.KeyTuple, self.client.DataTuple
        mgid, node = self.info.table_get("$pre.mgid"), self.info.table_get("$pre.node")
        made: list[tuple[int, list[int]]] = []
        for replica in group.replicas:
            device = self.devices[replica.port]
            fitting = [ports for rid, ports in made if rid == replica.rid and device not in ports]
            if fitting:
                fitting[0].append(device)
            else:
                made.append((replica.rid, [device]))
        ids = list(range(self.next_node, self.next_node + len(made)))
        self.next_node += len(ids)
        sent, old = [], self.nodes.pop(group.group_id, [])
        if ids:
            keys = [node.make_key([make("$MULTICAST_NODE_ID", number)]) for number in ids]
            datas = [
                node.make_data([datum("$MULTICAST_RID", rid), datum("$MULTICAST_LAG_ID", int_arr_val=[]),
                                datum("$DEV_PORT", int_arr_val=ports)]) for rid, ports in made]  # fmt: skip
            node.entry_add(self.target, keys, datas)
            sent.append(self._last())
            data = mgid.make_data([
                datum("$MULTICAST_NODE_ID", int_arr_val=ids),
                datum("$MULTICAST_NODE_L1_XID_VALID", bool_arr_val=[False] * len(ids)),
                datum("$MULTICAST_NODE_L1_XID", int_arr_val=[0] * len(ids))])  # fmt: skip
            (mgid.entry_mod if old else mgid.entry_add)(
                self.target, [mgid.make_key([make("$MGID", group.group_id)])], [data]
            )
            sent.append(self._last())
            self.nodes[group.group_id] = ids
        elif old:
            mgid.entry_del(self.target, [mgid.make_key([make("$MGID", group.group_id)])])
            sent.append(self._last())
        if old:
            node.entry_del(self.target, [node.make_key([make("$MULTICAST_NODE_ID", number)]) for number in old])
            sent.append(self._last())
        return sent

    def cells(self, name: str, index: int | None = None) -> list[bytes]:
        """All cells of a counter or a register after ``Sync``, or one from the chip."""
        table, theirs = self._table(name)
        if index is not None:
            field = table["key"][0]["name"]
            list(theirs.entry_get(self.target, [theirs.make_key([self.client.KeyTuple(field, index)])]))
            return [self._last()]
        theirs.operations_execute(self.target, "Sync")
        sync = self._last()
        list(theirs.entry_get(self.target, flags={"from_hw": False}))
        return [sync, self._last()]

    def entries(self, name: str) -> list[bytes]:
        list(self._table(name)[1].entry_get(self.target, flags={"from_hw": False}))
        return [self._last()]


class Shadow(TestedSwitch):
    """A switch under test whose control-plane calls are made on BF-Runtime, too."""

    def __init__(self, program: Any, control: BfrtControlPlane, transport: Direct, theirs: Theirs, engine: Any) -> None:
        self.inside = True
        super().__init__(program, engine=engine)
        self.control, self.transport, self.theirs = control, transport, theirs
        self.calls, self.different = Counter[str](), list[str]()
        self.inside = False

    def _both(self, name: str, model: Any, ours: Any, theirs: Callable[..., list[bytes]], *given: Any) -> Any:
        """Make a call on both; they agree on whether it is refused, and the messages are those of the SDE's client."""
        if self.inside:
            return model(*given)
        self.inside = True
        self.calls[name] += 1
        self.transport.sent.clear()
        refused = [False, False]
        answer: Any = None
        problem: ControlError | None = None
        try:
            try:
                answer = model(*given)
            except ControlError as error:
                problem, refused[0] = error, True
            try:
                ours(*given)
            except ControlError as error:
                refused[1] = True
                if problem is None:
                    self.different.append(f"{name}: BF-Runtime refuses what the model takes: {error}")
            if refused == [True, False]:
                self.different.append(f"{name}: the model refuses what BF-Runtime takes: {problem}")
            if refused == [False, False]:
                sent = [message.SerializeToString().hex() for message in self.transport.sent]
                expected = [data.hex() for data in theirs(*given)]
                if sent != expected:
                    self.different.append(f"{name}: {sent} instead of {expected}")
        finally:
            self.inside = False
        if problem is not None:
            raise problem
        return answer

    def insert(self, *entries: Entry) -> None:
        self._both("insert", super().insert, self.control.insert, self.theirs.added, *entries)

    def modify(self, *entries: Entry) -> None:
        self._both("modify", super().modify, self.control.modify, self.theirs.modified, *entries)

    def delete(self, *entries: Entry) -> None:
        self._both("delete", super().delete, self.control.delete, self.theirs.deleted, *entries)

    def set_multicast_group(self, group: MulticastGroup) -> None:
        ours, theirs = self.control.set_multicast_group, self.theirs.set_multicast_group
        self._both("group", super().set_multicast_group, ours, theirs, group)

    def set_clone_session(self, session: CloneSession) -> None:
        raise AssertionError(f"no program for Tofino has clone sessions: {session}")

    def entries(self, table: str) -> list[Entry]:
        found: list[Entry] = self._both("entries", super().entries, self.control.entries, self.theirs.entries, table)
        return found

    def counters(self, name: str) -> list[CounterValue]:
        ours, theirs = self.control.counters, self.theirs.cells
        found: list[CounterValue] = self._both("counters", super().counters, ours, theirs, name)
        return found

    def registers(self, name: str) -> list[int]:
        ours, theirs = self.control.registers, self.theirs.cells
        found: list[int] = self._both("registers", super().registers, ours, theirs, name)
        return found

    def register(self, name: str, index: int) -> int:
        ours, theirs = self.control.register, self.theirs.cells
        found: int = self._both("register", super().register, ours, theirs, name, index)
        return found

    def reset(self) -> None:
        self._both("reset", super().reset, self.control.reset, self._reset)

    def _reset(self) -> list[bytes]:
        """The messages of a reset are compared with theirs one by one, whatever their order."""
        their, found = self.theirs, []
        for sent in self.transport.sent:
            if not sent.DESCRIPTOR.name.startswith("Write"):
                (name,) = (n for n, t in their.tables.items() if t["id"] == sent.entities[0].table_entry.table_id)
                found += their.entries(name)
                continue
            entries = [update.entity.table_entry for update in sent.updates]
            (name,) = (n for n, t in their.tables.items() if t["id"] == entries[0].table_id)
            table = their.info.table_get(name)
            field = their.tables[name]["key"][0]["name"]
            if entries[0].is_default_entry:
                table.default_entry_reset(their.target)
            elif not entries[0].key.fields:
                table.entry_del(their.target)
            else:
                numbers = [int.from_bytes(entry.key.fields[0].exact.value) for entry in entries]
                table.entry_del(their.target, [table.make_key([their.client.KeyTuple(field, n)]) for n in numbers])
            found.append(their._last())
        their.nodes.clear()
        return found


def main(fields: str, tests: str, engine: str) -> None:
    """Print what came of it as JSON."""
    spec = parse_spec(json.loads(fields))
    compiled = compile_spec(spec)
    described, sde = bfrt(compiled.p4info), chip("tf2" if spec.arch == "t2na" else "tf1")
    messages = protos.load(PROTO)
    tables = [*described["tables"], *sde["tables"]]
    runtime = Runtime(messages, "p", b"", b"", tables)
    runtime.bound = 0
    arch = architecture(spec.arch)
    devices = files.device_ports(
        files.CHIPS["tofino2" if spec.arch == "t2na" else "tofino"], arch.front_ports(arch.ports)
    )
    transport = Direct(runtime)
    requests = Requests(messages)
    control = BfrtControlPlane(requests, Bfrt(described, sde), transport, ports=PortMap(devices))
    theirs = Theirs(described, sde, messages, devices)
    switch = Shadow(compiled.program, control, transport, theirs, engine)
    modules = scenario_modules(spec)
    scenarios = load_suite(suite_of(spec), modules)
    wanted = tests.split(",") if tests else [*modules]
    results: list[TestResult] = []

    def take(result: TestResult) -> bool:
        results.append(result)
        return True

    with contextlib.redirect_stdout(sys.stderr):
        run_in_memory(
            [kind for name, kind in scenarios.items() if name in wanted or name.partition(".")[0] in wanted],
            switch, spec, 1, take,
        )  # fmt: skip
    outcomes = Counter(str(result.outcome) for result in results)
    failed = [f"{r.name}: {r.message}" for r in results if r.outcome not in (Outcome.PASSED, Outcome.SKIPPED)]
    print(json.dumps({  # noqa: T201
        "outcomes": outcomes, "failed": failed, "calls": switch.calls,
        "different": switch.different[:20], "differences": len(switch.different), "wrong": runtime.wrong,
    }))  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
