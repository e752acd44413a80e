"""Calls of v1model's extern methods and functions (v1model.p4, simple_switch.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from p4gen.arch.ports import DROP_PORT
from p4gen.model.hashes import ALGORITHMS, Algorithm
from p4gen.model.interp.build import Build, unsupported, unsupported_extern
from p4gen.model.interp.context import Eval, Frame
from p4gen.model.interp.expressions import bits_of, field_index
from p4gen.model.interp.extern_args import (
    Compiler,
    Externs,
    Out,
    argument,
    constant,
    joined,
    leaves,
    parts_of_data,
    trap,
)
from p4gen.model.state import Digest
from p4gen.model.trace import show
from p4gen.model.values import StructValue
from p4gen.p4 import ir
from p4gen.p4 import types as t

# --- methods ---


def _register_read(b: Build, call: ir.ExternCall) -> Eval:
    assert call.instance is not None
    register = b.state.registers[call.instance.name]
    cells, size, out, index = register.cells, register.size, Out(b, call.args[0]), argument(b, call, 1)
    name, pos, state, traced = register.name, call.pos, b.state, b.traced

    def read(f: Frame) -> None:
        place = out.locate(f)
        i = index(f)
        if i >= size:
            _out_of_range(f, "read", name, i, size)
            return
        value = cells[i]
        if traced:
            f[0].trace.add("read", f"{name}[{i}] is {show(value)}", pos, register=name, index=i, value=value)
        out.store(f, place, value)

    def _out_of_range(f: Frame, verb: str, name: str, i: int, size: int) -> None:
        trap(f, state.trap, pos, f"register {name}: {verb} at index {i}, it has {size} elements")

    return read


def _register_write(b: Build, call: ir.ExternCall) -> Eval:
    assert call.instance is not None
    register = b.state.registers[call.instance.name]
    cells, size, index, value = register.cells, register.size, argument(b, call, 0), argument(b, call, 1)
    name, pos, state, traced = register.name, call.pos, b.state, b.traced

    def write(f: Frame) -> None:
        i, new = index(f), value(f)
        if i >= size:
            trap(f, state.trap, pos, f"register {name}: write at index {i}, it has {size} elements")
            return
        if traced:
            what = f"{name}[{i}] becomes {show(new)} (was {show(cells[i])})"
            f[0].trace.add("write", what, pos, register=name, index=i, value=new, old=cells[i])
        cells[i] = new

    return write


def _uncast(e: ir.Expr) -> ir.Expr:
    """An index without its casts: often an enum, whose names are more informative than numbers."""
    while isinstance(e, ir.Cast):
        e = e.operand
    return e


def _enum_in(e: ir.Expr) -> ir.Expr | None:
    """The part of a sum that is an enum, as in an array with a cell for each connection and verdict."""
    e = _uncast(e)
    if isinstance(e.type, t.SerEnum):
        return e
    if not isinstance(e, ir.Binary) or e.op != "+":
        return None
    return _enum_in(e.left) or _enum_in(e.right)


def _counter_count(b: Build, call: ir.ExternCall) -> Eval:
    assert call.instance is not None
    counter, index = b.state.counters[call.instance.name], argument(b, call, 0)
    pos, state, traced = call.pos, b.state, b.traced
    whole = call.args[0].expr
    assert whole is not None
    part = _enum_in(whole) if traced else None
    enum = None if part is None else b.expr(part)
    shown_as = _uncast(whole).type

    def count(f: Frame) -> None:
        i, ctx = index(f), f[0]
        if i >= counter.size:
            trap(f, state.trap, pos, f"counter {counter.name}: index {i}, it has {counter.size} elements")
            return
        counter.count(i, ctx.ingress_length)
        if traced:
            cell = show(i, shown_as)
            if part is not None and enum is not None and part.type is not shown_as:
                cell += f": {show(enum(f), part.type)}"
            what = f"count {counter.name}[{cell}]: {counter.packets[i]} packets"
            ctx.trace.add("count", what, pos, counter=counter.name, index=i)

    return count


def _direct_counter_count(b: Build, call: ir.ExternCall) -> Eval:
    # The table counts every hit, whether or not its action calls this (simple_switch.md).
    return lambda f: None


def _meter_execute(b: Build, call: ir.ExternCall) -> Eval:
    assert call.instance is not None
    meter, index, out = b.state.meters[call.instance.name], argument(b, call, 0), Out(b, call.args[1])
    pos, state, traced = call.pos, b.state, b.traced

    def execute(f: Frame) -> None:
        i, ctx = index(f), f[0]
        place = out.locate(f)
        if i >= meter.size:
            trap(f, state.trap, pos, f"meter {meter.name}: index {i}, it has {meter.size} elements")
            return
        color = meter.buckets[i].mark(ctx.ingress_length if meter.in_bytes else 1, state.clock())
        if traced:
            what = f"meter {meter.name}[{i}]: {('green', 'yellow', 'red')[color]}"
            ctx.trace.add("meter", what, pos, meter=meter.name, index=i, color=color)
        out.store(f, place, color)

    return execute


def _direct_meter_read(b: Build, call: ir.ExternCall) -> Eval:
    out = Out(b, call.args[0])
    return lambda f: out.store(f, out.locate(f), f[0].color)


# --- hashes and checksums ---


def _checksum16_get(b: Build, call: ir.ExternCall) -> Eval:
    """``Checksum16.get``: deprecated, the same as ``hash`` with csum16."""
    data, algorithm = _data(b, call, 0, valid_only=True), ALGORITHMS["csum16"]
    return lambda f: algorithm(data(f))


def _algorithm(call: ir.ExternCall, position: int) -> Algorithm:
    name = constant(call, position)
    if name not in ALGORITHMS:
        raise unsupported(call.pos, f"hash algorithm {name}")
    return ALGORITHMS[str(name)]


def _data(b: Build, call: ir.ExternCall, position: int, *, valid_only: bool) -> Callable[[Frame], bytes]:
    expr = call.args[position].expr
    if expr is None:
        raise unsupported(call.pos, f"{call.method} without data")
    return joined(parts_of_data(b, expr, valid_only))


def _hash(b: Build, call: ir.ExternCall) -> Eval:
    out, algorithm = Out(b, call.args[0]), _algorithm(call, 1)
    base, data, most = argument(b, call, 2), _data(b, call, 3, valid_only=False), argument(b, call, 4)
    traced, pos, mask = b.traced, call.pos, out.mask

    def run(f: Frame) -> None:
        place = out.locate(f)
        start = base(f)
        octets = data(f)
        limit = most(f)
        result = (start + algorithm(octets) % limit if limit >= 1 else start) & mask
        if traced:
            f[0].trace.add("hash", f"hash over {len(octets)} bytes is {show(result)}", pos, data=octets, result=result)
        out.store(f, place, result)

    return run


def _verify_checksum(b: Build, call: ir.ExternCall) -> Eval:
    condition, data = argument(b, call, 0), _data(b, call, 1, valid_only=True)
    wanted, algorithm = argument(b, call, 2), _algorithm(call, 3)
    payload = call.method.endswith("_with_payload")
    target = call.args[2].expr
    in_header = isinstance(target, ir.FieldOf) and isinstance(t.strip(target.base.type), t.Header)
    header = b.expr(target.base) if isinstance(target, ir.FieldOf) and in_header else None
    kind = bits_of(target.type) if target is not None else None
    mask, traced, pos = (1 << kind.width) - 1 if kind else 0, b.traced, call.pos

    def verify(f: Frame) -> None:
        if not condition(f) or (header is not None and not header(f).valid):
            return
        ctx = f[0]
        found = algorithm(_with_payload(f, data(f), payload)) & mask
        good = found == wanted(f)
        ctx.checksum_error = ctx.checksum_error or not good
        if traced:
            ctx.trace.add("hash", f"checksum {'verified' if good else 'is wrong'}", pos, computed=found, good=good)

    return verify


def _update_checksum(b: Build, call: ir.ExternCall) -> Eval:
    condition, data = argument(b, call, 0), _data(b, call, 1, valid_only=True)
    algorithm = _algorithm(call, 3)
    out, payload = Out(b, call.args[2]), call.method.endswith("_with_payload")
    mask, traced, pos = out.mask, b.traced, call.pos

    def update(f: Frame) -> None:
        if not condition(f):
            return
        value = algorithm(_with_payload(f, data(f), payload)) & mask
        if traced:
            f[0].trace.add("hash", f"checksum becomes {show(value)}", pos, computed=value)
        out.store(f, out.locate(f), value)

    return update


def _with_payload(f: Frame, head: bytes, payload: bool) -> bytes:
    if not payload:
        return head
    ctx = f[0]
    rest: bytes = ctx.data[(ctx.at + 7) >> 3 :]
    return head + rest


# --- requests to the traffic manager ---


def _mark_to_drop(b: Build, call: ir.ExternCall) -> Eval:
    target = call.args[0].expr if call.args else None
    if target is None:
        raise unsupported_extern(call, "mark_to_drop without standard_metadata")
    metadata = b.expr(target)
    spec, group = field_index(target.type, "egress_spec"), field_index(target.type, "mcast_grp")
    pos = call.pos
    traced = b.traced

    def mark(f: Frame) -> None:
        fields = metadata(f).fields
        fields[spec], fields[group] = DROP_PORT, 0
        if traced:
            f[0].trace.add("request", "mark_to_drop", pos, request="drop")

    return mark


def _request(b: Build, call: ir.ExternCall, name: str, make: Callable[[Frame], Any]) -> Eval:
    """Records a request to the traffic manager; the last request of its kind in a pass counts."""
    pos, traced, method = call.pos, b.traced, call.method

    def request(f: Frame) -> None:
        value = make(f)
        setattr(f[0], name, value)
        if traced:
            f[0].trace.add("request", f"{method}{value}", pos, request=method, value=value)

    return request


def _clone(b: Build, call: ir.ExternCall) -> Eval:
    session = argument(b, call, 1)
    if call.method == "clone":
        return _request(b, call, "clone", lambda f: (session(f), None))
    index = argument(b, call, 2)
    return _request(b, call, "clone", lambda f: (session(f), index(f)))


def _again(name: str) -> Callable[[Build, ir.ExternCall], Eval]:
    def compiled(b: Build, call: ir.ExternCall) -> Eval:
        index = argument(b, call, 0)
        return _request(b, call, name, lambda f: (index(f),))

    return compiled


def _truncate(b: Build, call: ir.ExternCall) -> Eval:
    length = argument(b, call, 0)

    def shorter(f: Frame) -> int:
        wanted, before = length(f), f[0].truncate
        return int(wanted if before is None else min(wanted, before))

    return _request(b, call, "truncate", shorter)


def _digest(b: Build, call: ir.ExternCall) -> Eval:
    receiver, data, expr = argument(b, call, 0), argument(b, call, 1), call.args[1].expr
    assert expr is not None
    kind, pos, traced = t.strip(expr.type), call.pos, b.traced
    name = kind.name if isinstance(kind, t.Fields) else ""

    def send(f: Frame) -> None:
        receiver(f)
        digest = Digest(name, tuple(leaves("", data(f), kind)))
        f[0].digests.append(digest)
        if traced:
            f[0].trace.add("digest", f"digest {name} {dict(digest.fields)}", pos, name=name)

    return send


# --- the rest ---


def _random(b: Build, call: ir.ExternCall) -> Eval:
    out, low, high, state = Out(b, call.args[0]), argument(b, call, 1), argument(b, call, 2), b.state

    def draw(f: Frame) -> None:
        place, lo, hi = out.locate(f), low(f), high(f)
        if lo <= hi:  # otherwise BMv2 does not change the result
            out.store(f, place, state.random.randint(lo, hi))

    return draw


def _log_msg(b: Build, call: ir.ExternCall) -> Eval:
    text, state, pos = str(constant(call, 0)), b.state, call.pos
    data = argument(b, call, 1) if len(call.args) > 1 else None

    def log(f: Frame) -> None:
        message = text
        if data is not None:
            value = data(f)
            for part in value.fields if isinstance(value, StructValue) else [value]:
                message = message.replace("{}", str(part), 1)
        state.log.append(message)
        if f[0].trace is not None:
            f[0].trace.add("log", f'log "{message}"', pos)

    return log


def _assert(b: Build, call: ir.ExternCall) -> Eval:
    check, state, pos, what = argument(b, call, 0), b.state, call.pos, f"{call.method} does not hold"

    def run(f: Frame) -> None:
        if not check(f):
            trap(f, state.trap, pos, what)

    return run


METHODS: Mapping[tuple[str, str], Compiler] = {
    ("register", "read"): _register_read,
    ("register", "write"): _register_write,
    ("counter", "count"): _counter_count,
    ("direct_counter", "count"): _direct_counter_count,
    ("meter", "execute_meter"): _meter_execute,
    ("direct_meter", "read"): _direct_meter_read,
    ("Checksum16", "get"): _checksum16_get,
}

FUNCTIONS: Mapping[str, Compiler] = {
    "mark_to_drop": _mark_to_drop,
    "hash": _hash,
    "verify_checksum": _verify_checksum,
    "verify_checksum_with_payload": _verify_checksum,
    "update_checksum": _update_checksum,
    "update_checksum_with_payload": _update_checksum,
    "clone": _clone,
    "clone_preserving_field_list": _clone,
    "resubmit_preserving_field_list": _again("resubmit"),
    "recirculate_preserving_field_list": _again("recirculate"),
    "truncate": _truncate,
    "digest": _digest,
    "random": _random,
    "log_msg": _log_msg,
    "assert": _assert,
    "assume": _assert,
}


V1MODEL = Externs(METHODS, FUNCTIONS)
"""The externs of v1model's programs."""
