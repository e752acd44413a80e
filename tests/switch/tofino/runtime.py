"""A stand-in for bf_switchd's BF-Runtime server: checks every message against bfrt.json and the proto, and keeps rows.

It switches nothing: it answers reads with what was written, and with zeros for counters and registers. What it knows of
tables it reads from bfrt.json itself, not by p4gen's reader.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import grpc
from grpc import StatusCode

from p4gen.protos import rpc

INSERT, MODIFY, DELETE = 1, 2, 4
_WIDTHS: Final = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64, "int32": 32, "int64": 64}
_PIPES: Final = 4
_MATCHES: Final = {
    "Exact": ("exact", ("value",)),
    "Ternary": ("ternary", ("value", "mask")),
    "LPM": ("lpm", ("value",)),
    "Range": ("range", ("low", "high")),
}


class WrongError(Exception):
    """A message that the server refuses."""

    def __init__(self, code: StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code


def need(holds: object, text: str, code: StatusCode = StatusCode.INVALID_ARGUMENT) -> None:
    if not holds:
        raise WrongError(code, text)


class Runtime:
    """The server. ``dies_at`` is the name of a call in which the process ends, ``silent_at`` of one without answer;
    ``touches`` is a file that it makes when it is written to."""

    def __init__(
        self, protos: Any, name: str, program: bytes, chip: bytes, tables: Iterable[dict[str, Any]],
        *, dies_at: str = "", silent_at: str = "", touches: str = "", busy: bool = False,
    ) -> None:  # fmt: skip
        self.protos, self.name, self.program, self.chip, self.busy = protos, name, program, chip, busy
        self.dies_at, self.silent_at, self.touches = dies_at, silent_at, touches
        self.tables = {table["id"]: table for table in tables if all("id" in key for key in table["key"])}
        self.rows: dict[int, dict[bytes, Any]] = {number: {} for number in self.tables}
        self.calls: list[str] = []
        self.wrong: list[str] = []
        """Why messages were refused that no client may send, whatever the state of the switch."""
        self.over = threading.Event()
        self.clients: set[int] = set()
        self.bound: int | None = None

    # --- calls ---

    @contextmanager
    def _call(self, name: str, context: grpc.ServicerContext) -> Iterator[None]:
        self.calls.append(name)
        if name == self.dies_at:
            os._exit(9)
        if name == "write" and self.touches:
            Path(self.touches).touch()
        if name == self.silent_at:
            self.over.wait()
        try:
            yield
        except WrongError as wrong:
            if wrong.code is StatusCode.INVALID_ARGUMENT:
                self.wrong.append(f"{name}: {wrong}")
            self._refuse(wrong, context)

    def _refuse(self, wrong: WrongError, context: grpc.ServicerContext) -> None:
        """As the SDE does: a list with an error for each update, the first that is wrong."""
        error = self.protos.Error(canonical_code=wrong.code.value[0], message=str(wrong))
        status = rpc.Status(code=StatusCode.UNKNOWN.value[0], message="errors in updates")
        status.details.add().Pack(error)
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(StatusCode.UNKNOWN, "errors in updates")

    def stream(self, requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        for request in requests:
            with self._call("subscribe", context):
                need(request.WhichOneof("update") == "subscribe", "a client subscribes first")
                answer = self.protos.StreamMessageResponse()
                answer.subscribe.device_id = request.subscribe.device_id
                if self.busy:
                    answer.subscribe.status.code = StatusCode.ALREADY_EXISTS.value[0]
                    answer.subscribe.status.message = "there is such a client"
                self.clients.add(request.client_id)
            yield answer

    def bind(self, request: Any, context: grpc.ServicerContext) -> Any:
        with self._call("bind", context):
            need(request.client_id in self.clients, "the client has not subscribed")
            need(request.action == 0, "only BIND is expected")
            need([config.p4_name for config in request.config] == [self.name], f"the program is {self.name}")
            need(self.bound in (None, request.client_id), "bound to another client", StatusCode.ALREADY_EXISTS)
            self.bound = request.client_id
        return self.protos.SetForwardingPipelineConfigResponse()

    def describe(self, request: Any, context: grpc.ServicerContext) -> Any:
        with self._call("describe", context):
            need(request.client_id in self.clients, "the client has not subscribed")
            answer = self.protos.GetForwardingPipelineConfigResponse()
            answer.config.add(p4_name=self.name, bfruntime_info=self.program)
            answer.non_p4_config.bfruntime_info = self.chip
        return answer

    def write(self, request: Any, context: grpc.ServicerContext) -> Any:
        with self._call("write", context):
            self.take(request)
        return self.protos.WriteResponse()

    def read(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        with self._call("read", context):
            answer = self.answer(request)
        yield answer

    # --- what they do ---

    def take(self, request: Any) -> None:
        """Carry out a write request, or nothing of it. Raises ``WrongError``."""
        self._check_request(request)
        need(request.updates, "no update")
        before = {number: dict(rows) for number, rows in self.rows.items()}
        try:
            for update in request.updates:
                self._update(update)
        except WrongError:
            self.rows = before
            raise

    def answer(self, request: Any) -> Any:
        """The answer to a read request. Raises ``WrongError``."""
        self._check_request(request)
        answer = self.protos.ReadResponse()
        for entity in request.entities:
            entry = entity.table_entry
            table = self._table(entry.table_id)
            whole = not entry.key.fields
            if not whole:
                self._check_key(table, entry.key)
            wanted = entry.key.SerializeToString(deterministic=True)
            for key, row in self._held(table).items():
                if whole or key == wanted:
                    answer.entities.add().table_entry.CopyFrom(row)
        return answer

    # --- messages ---

    def _check_request(self, request: Any) -> None:
        need(request.client_id == self.bound, "the client is not bound")
        need(request.target.device_id == 0, "there is device 0 only")
        need(request.target.pipe_id == 0xFFFF, "entries are those of all pipes")
        plain = type(request).FromString(request.SerializeToString())
        size = plain.ByteSize()
        plain.DiscardUnknownFields()
        need(plain.ByteSize() == size, "the message has fields that the proto does not have")

    def _table(self, number: int) -> dict[str, Any]:
        need(number in self.tables, f"no table has the id {number}")
        return self.tables[number]

    def _update(self, update: Any) -> None:
        if update.entity.WhichOneof("entity") == "table_operation":
            operation = update.entity.table_operation
            table = self._table(operation.table_id)
            need(operation.table_operations_type in table["supported_operations"], f"{table['name']}: operation")
            return
        entry = update.entity.table_entry
        table = self._table(entry.table_id)
        if entry.is_default_entry:
            need(not table.get("has_const_default_action"), f"{table['name']}: the default action is constant")
            need(not entry.key.fields, f"{table['name']}: a default entry has no key")
            if update.type != DELETE:
                self._check_data(table, entry.data, "DefaultOnly", whole=True)
            return
        need("ConstTable" not in table["attributes"], f"{table['name']} is constant")
        rows = self.rows[table["id"]]
        if update.type == DELETE and not entry.key.fields:
            rows.clear()
            return
        self._check_key(table, entry.key)
        key = entry.key.SerializeToString(deterministic=True)
        if update.type == INSERT:
            need(key not in rows, f"{table['name']}: there is such an entry", StatusCode.ALREADY_EXISTS)
            limit = table["size"]
            need(not limit or len(rows) < limit, f"{table['name']} is full", StatusCode.RESOURCE_EXHAUSTED)
        else:
            need(key in rows, f"{table['name']}: there is no such entry", StatusCode.NOT_FOUND)
        if update.type == DELETE:
            need(not entry.data.fields, f"{table['name']}: data in a deletion")
            del rows[key]
            return
        need(update.type in (INSERT, MODIFY), f"{table['name']}: an update of type {update.type}")
        self._check_data(table, entry.data, "TableOnly", whole=update.type == INSERT)
        self._check_references(table, entry)
        rows[key] = entry

    def _check_key(self, table: dict[str, Any], key: Any) -> None:
        infos = {info["id"]: info for info in table["key"]}
        numbers = [field.field_id for field in key.fields]
        need(len(set(numbers)) == len(numbers) and set(numbers) <= set(infos), f"{table['name']}: fields of the key")
        missing = [info["name"] for info in table["key"] if info["id"] not in numbers and info["match_type"] == "Exact"]
        need(not missing, f"{table['name']}: the key lacks {missing}")
        for field in key.fields:
            info = infos[field.field_id]
            kind, parts = _MATCHES[info["match_type"]]
            need(field.WhichOneof("match_type") == kind, f"{info['name']}: {kind} is wanted")
            message = getattr(field, kind)
            for part in parts:
                _check_number(info, getattr(message, part))
            if kind == "lpm":
                need(message.prefix_len <= _width(info), f"{info['name']}: the prefix's length")

    def _check_data(self, table: dict[str, Any], data: Any, scope: str, *, whole: bool) -> None:
        infos = {info["id"]: info for info in _singles(table["data"])}
        if table.get("action_specs"):
            actions = {action["id"]: action for action in table["action_specs"]}
            need(data.action_id in actions, f"{table['name']}: no action has the id {data.action_id}")
            action = actions[data.action_id]
            given = action.get("action_scope", "TableAndDefault")
            need(given in ("TableAndDefault", scope), f"{action['name']} is {given}")
            infos |= {info["id"]: info for info in _singles(action["data"])}
        else:
            need(not data.action_id, f"{table['name']} has no actions")
        numbers = [field.field_id for field in data.fields]
        need(len(set(numbers)) == len(numbers) and set(numbers) <= set(infos), f"{table['name']}: fields of the data")
        missing = [info["name"] for info in infos.values() if info.get("mandatory") and info["id"] not in numbers]
        need(not (whole and missing), f"{table['name']}: the data lack {missing}")
        for field in data.fields:
            _check_value(infos[field.field_id], field)

    def _check_references(self, table: dict[str, Any], entry: Any) -> None:
        """A multicast group's nodes are there."""
        if table["name"] == "$pre.mgid":
            (nodes,) = (number for number, one in self.tables.items() if one["name"] == "$pre.node")
            known = {int.from_bytes(row.key.fields[0].exact.value) for row in self.rows[nodes].values()}
            (field,) = (field for field in entry.data.fields if field.field_id == 1)
            need(set(field.int_arr_val.val) <= known, "the group's nodes are not there", StatusCode.NOT_FOUND)

    def _held(self, table: dict[str, Any]) -> dict[bytes, Any]:
        """The rows of a table; all cells of a counter or register, which are 0."""
        if table["table_type"] not in ("Counter", "Register"):
            return self.rows[table["id"]]
        found = {}
        for index in range(table["size"]):
            row = self.protos.TableEntry(table_id=table["id"])
            row.key.fields.add(field_id=table["key"][0]["id"]).exact.value = index.to_bytes(4)
            for info in _singles(table["data"]):
                for _ in range(_PIPES if table["table_type"] == "Register" else 1):
                    row.data.fields.add(field_id=info["id"]).stream = bytes((_width(info) + 7) // 8)
            found[row.key.SerializeToString(deterministic=True)] = row
        return found


def _singles(data: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for entry in data:
        for info in entry["oneof"] if "oneof" in entry else (entry.get("singleton", entry),):
            yield {**info, "mandatory": entry.get("mandatory", False)}


def _width(info: dict[str, Any]) -> int:
    return int(info["type"].get("width") or _WIDTHS.get(info["type"]["type"], 0))


def _check_number(info: dict[str, Any], value: bytes) -> None:
    bits = _width(info)
    need(len(value) == (bits + 7) // 8, f"{info['name']}: {len(value)} bytes for {bits} bits")
    need(int.from_bytes(value) < 1 << bits, f"{info['name']}: {value.hex()} has more than {bits} bits")


def _check_value(info: dict[str, Any], field: Any) -> None:
    kind, given = info["type"]["type"], field.WhichOneof("value")
    if info.get("repeated"):
        wanted = {"bytes": "stream", "bool": "bool_arr_val"}.get(kind, "int_arr_val")
    else:
        wanted = {"bool": "bool_val", "string": "str_val", "float": "float_val"}.get(kind, "stream")
    need(given == wanted, f"{info['name']}: {given} for {kind}")
    if wanted == "stream" and not info.get("repeated"):
        _check_number(info, field.stream)
    if wanted == "str_val" and info["type"].get("choices"):
        need(field.str_val in info["type"]["choices"], f"{info['name']}: {field.str_val}")


@contextmanager
def serving(runtime: Runtime, address: str = "127.0.0.1:0") -> Iterator[str]:
    """The server while the block runs. Yields its address."""
    protos = runtime.protos
    rpc: dict[str, tuple[Callable[..., Any], Any, Callable[..., Any]]] = {
        "Write": (grpc.unary_unary_rpc_method_handler, protos.WriteRequest, runtime.write),
        "Read": (grpc.unary_stream_rpc_method_handler, protos.ReadRequest, runtime.read),
        "SetForwardingPipelineConfig": (
            grpc.unary_unary_rpc_method_handler, protos.SetForwardingPipelineConfigRequest, runtime.bind),
        "GetForwardingPipelineConfig": (
            grpc.unary_unary_rpc_method_handler, protos.GetForwardingPipelineConfigRequest, runtime.describe),
        "StreamChannel": (grpc.stream_stream_rpc_method_handler, protos.StreamMessageRequest, runtime.stream),
    }  # fmt: skip
    handlers = {
        name: make(call, request_deserializer=kind.FromString, response_serializer=lambda m: m.SerializeToString())
        for name, (make, kind, call) in rpc.items()
    }
    server = grpc.server(ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bfrt_proto.BfRuntime", handlers),))
    port = server.add_insecure_port(address)
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        runtime.over.set()
        server.stop(None)
