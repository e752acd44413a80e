"""The entry points of generated code, and parts that the traffic managers of all architectures have.

An architecture's own code has a function ``run_packet`` for one received packet and everything it causes.
"""

from __future__ import annotations

from p4gen.model.jit import exchange as x
from p4gen.model.jit.blocks import PRE_SLOT, PRE_SLOTS
from p4gen.model.jit.build import EXCHANGE, STATE, TEMPORARY, Gen, Module
from p4gen.model.jit.emit import Address, Function, Value, const
from p4gen.model.jit.runtime import grow, set_word, word
from p4gen.p4 import ir
from p4gen.p4 import types as t

COMMON = [("ptr noalias", "state"), ("ptr noalias", "io"), ("ptr noalias", "tmp")]
PASSED = f"ptr {STATE}, ptr {EXCHANGE}, ptr {TEMPORARY}"
SLACK = 64
"""Bytes by which writing whole words may exceed the emitted bytes."""


def function(
    module: Module, name: str, params: list[tuple[str, str]], result: str = "void", attributes: str = ""
) -> Gen:
    """A function under construction, with the parameters that all have."""
    return Gen(module, Function(name, [*COMMON, *params], result, attributes), "")


def replicas(module: Module) -> str:
    """The slot of a multicast group or clone session in the replication index, or null."""
    fn = Function("replicas", [("ptr", "state"), ("i64", "key")], "ptr", "noinline")
    mask = fn.op("sub", word(fn, STATE, PRE_SLOTS), const(1, 64))
    position = fn.local(64)
    fn.store(Value("%key", 64), position)
    with fn.loop() as (_, after):
        i = fn.op("and", fn.load(position, 64), mask)
        slot = fn.offset(fn.pointer(Address(STATE, module.state.fixed)), i, PRE_SLOT)
        key = word(fn, slot, 0)
        filled, found, following = fn.label(), fn.label(), fn.label()
        fn.branch(fn.compare("eq", key, const(0, 64)), after, filled)
        fn.begin(filled)
        fn.branch(fn.compare("eq", key, fn.op("add", Value("%key", 64), const(1, 64))), found, following)
        fn.begin(found)
        fn.ret(f"ptr {slot}")
        fn.begin(following)
        fn.store(fn.op("add", i, const(1, 64)), position)
    fn.ret("ptr null")
    return fn.text()


def send(fn: Function, size: Value, port: Value) -> None:
    """Record that the output, ``size`` bytes, leaves by a port."""
    used = word(fn, EXCHANGE, x.OUT_USED)
    number = word(fn, EXCHANGE, x.RECORDS_COUNT)
    more = fn.op("add", number, const(1, 64))
    grow(fn, x.RECORDS, x.RECORDS_ROOM, fn.op("mul", more, const(x.RECORD, 64)))
    record = fn.offset(fn.load_pointer(Address(EXCHANGE, x.RECORDS)), number, x.RECORD)
    set_word(fn, record, 0, used)
    set_word(fn, record, 8, size)
    fn.store(fn.resize(port, 32), Address(record, 16), 4)
    fn.store(fn.resize(word(fn, EXCHANGE, x.SOURCE), 32), Address(record, 20), 4)
    set_word(fn, EXCHANGE, x.RECORDS_COUNT, more)
    set_word(fn, EXCHANGE, x.OUT_USED, fn.op("add", used, size))


def at_bytes(fn: Function, bits: Value) -> Value:
    """A number of bits in whole bytes."""
    return fn.op("lshr", fn.op("add", bits, const(7, 64)), const(3, 64))


def _begin(fn: Function) -> None:
    for offset in (x.OUT_USED, x.RECORDS_COUNT, x.EVENTS_USED, x.SOURCE):
        set_word(fn, EXCHANGE, offset, 0)


def batch(module: Module) -> str:
    """The entry point that processes all packets of the exchange area."""
    fn = function(module, "batch", []).fn
    _begin(fn)
    times = fn.load_pointer(Address(EXCHANGE, x.IN_TIMES))
    with fn.loop() as (_, after):
        i = word(fn, EXCHANGE, x.SOURCE)
        more, timed, untimed = fn.label(), fn.label(), fn.label()
        fn.branch(fn.compare("ult", i, word(fn, EXCHANGE, x.IN_COUNT)), more, after)
        fn.begin(more)
        start = fn.load(fn.offset(fn.load_pointer(Address(EXCHANGE, x.IN_OFFSETS)), i, 8), 64, 8)
        size = fn.op("sub", fn.load(fn.offset(fn.load_pointer(Address(EXCHANGE, x.IN_ENDS)), i, 8), 64, 8), start)
        data = fn.offset(fn.load_pointer(Address(EXCHANGE, x.IN_DATA)), start)
        port = fn.resize(fn.load(fn.offset(fn.load_pointer(Address(EXCHANGE, x.IN_PORTS)), i, 4), 32, 4), 64)
        time = fn.local(64)
        fn.store(word(fn, EXCHANGE, x.NOW), time)
        fn.branch(Value(fn.ins(f"icmp eq ptr {times}, null"), 1), untimed, timed)
        fn.begin(timed)
        fn.store(fn.load(fn.offset(times, i, 8), 64, 8), time)
        fn.begin(untimed)
        now = fn.load(time, 64)
        fn.do(f"call void @run_packet({PASSED}, ptr {data}, i64 {size.ref}, i64 {port.ref}, i64 {now.ref})")
        set_word(fn, EXCHANGE, x.SOURCE, fn.op("add", i, const(1, 64)))
    fn.ret()
    return fn.text()


def single(module: Module) -> str:
    """The entry point that processes one packet, given as arguments."""
    fn = function(module, "single", [("ptr", "data"), ("i64", "size"), ("i64", "port"), ("i64", "time")]).fn
    _begin(fn)
    fn.do(f"call void @run_packet({PASSED}, ptr %data, i64 %size, i64 %port, i64 %time)")
    fn.ret()
    return fn.text()


def deparser_bytes(deparser: ir.Control | ir.Parser) -> int:
    """Bytes that a deparser emits at most outside loops; inside them ``emit`` makes room by itself."""
    total = 0

    def visit(node: object) -> None:
        nonlocal total
        if isinstance(node, ir.Emit):
            total += -(-t.width_of(node.value.type) // 8) + 16
        for name in getattr(node, "__dataclass_fields__", ()):
            value = getattr(node, name)
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, (ir.Stmt, ir.SwitchCase, ir.Expr, ir.Control, ir.Function, ir.Table, ir.ActionRef)):
                    visit(item)

    visit(deparser)
    return total
