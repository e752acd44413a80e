"""Packets inside the switch: their memory, the queues before ingress and egress, and the replication engine."""

from __future__ import annotations

from collections.abc import Callable

from p4gen.chips.tna.chip import PORTS
from p4gen.chips.tna.jit.module import TofinoModule
from p4gen.chips.tna.jit.state import EXCLUSION_BIT, NODE, RETURNS
from p4gen.model.jit import exchange as x
from p4gen.model.jit.blocks import SESSION_BIT
from p4gen.model.jit.build import EXCHANGE, STATE
from p4gen.model.jit.driver import PASSED, SLACK, function, send
from p4gen.model.jit.emit import Address, Function, Value, const
from p4gen.model.jit.runtime import grow, grow_output, set_word, word
from p4gen.model.passes import MAX_PASSES

HEAD = 128
"""Room in front of a packet for the intrinsic metadata of either gress, and the port's."""

(DEPARTURE_DATA, DEPARTURE_SIZE, DEPARTURE_PORT, DEPARTURE_RID, DEPARTURE_FIRST, DEPARTURE_COS,
 DEPARTURE_QUEUE) = range(0, 56, 8)  # fmt: skip
DEPARTURE = 64
"""A packet on its way to egress: 8 bytes each."""

ARRIVAL_DATA, ARRIVAL_SIZE, ARRIVAL_PORT, ARRIVAL_TAKEN = range(0, 32, 8)
ARRIVAL = 32
"""A packet on its way to ingress; the last one is what a resubmitted packet has in place of the port's metadata, or
null."""


def queues(module: TofinoModule) -> list[str]:
    """The functions of this module."""
    return [_room(), _depart(), _arrive(), _leave(module), _multicast(), _mirror()]


def _room() -> str:
    """Memory for a packet of ``size`` bytes, with room in front of it."""
    fn = Function("room", [("ptr", "io"), ("i64", "size")], "ptr", "noinline")
    used, result = word(fn, EXCHANGE, x.ARENA_USED), fn.alloca("ptr")
    rounded = fn.op("and", fn.op("add", Value("%size", 64), const(HEAD + SLACK + 63, 64)), const(-64, 64))
    end = fn.op("add", used, rounded)
    inside, outside, after = fn.label(), fn.label(), fn.label()
    fn.branch(fn.compare("ule", end, word(fn, EXCHANGE, x.ARENA_ROOM)), inside, outside, rare=False)
    fn.begin(inside)
    set_word(fn, EXCHANGE, x.ARENA_USED, end)
    fn.store_pointer(fn.offset(fn.load_pointer(Address(EXCHANGE, x.ARENA)), used), Address(result))
    fn.br(after)
    fn.begin(outside)
    chunk = fn.ins(f"call ptr @malloc(i64 {fn.op('add', rounded, const(64, 64)).ref})")
    fn.store_pointer(fn.load_pointer(Address(EXCHANGE, x.ARENA_CHUNKS)), Address(chunk))
    fn.store_pointer(chunk, Address(EXCHANGE, x.ARENA_CHUNKS))
    fn.store_pointer(fn.pointer(Address(chunk, 64)), Address(result))
    fn.begin(after)
    fn.ret(f"ptr {fn.pointer(Address(fn.load_pointer(Address(result)), HEAD))}")
    return fn.text()


def _queued(fn: Function, area: int, room: int, tail: int, step: int) -> str:
    """A new last element of a queue."""
    last = word(fn, EXCHANGE, tail)
    more = fn.op("add", last, const(1, 64))
    grow(fn, area, room, fn.op("mul", more, const(step, 64)))
    set_word(fn, EXCHANGE, tail, more)
    return fn.offset(fn.load_pointer(Address(EXCHANGE, area)), last, step)


def _depart() -> str:
    params = ["size", "port", "rid", "first", "cos", "queue"]
    fn = Function("depart", [("ptr", "io"), ("ptr", "data"), *(("i64", name) for name in params)])
    entry = _queued(fn, x.QUEUE, x.QUEUE_ROOM, x.QUEUE_TAIL, DEPARTURE)
    fn.store_pointer("%data", Address(entry, DEPARTURE_DATA))
    for i, name in enumerate(params, 1):
        set_word(fn, entry, 8 * i, Value(f"%{name}", 64))
    fn.ret()
    return fn.text()


def _arrive() -> str:
    fn = Function("arrive", [("ptr", "io"), ("ptr", "data"), ("i64", "size"), ("i64", "port"), ("ptr", "taken")])
    entry = _queued(fn, x.ARRIVALS, x.ARRIVALS_ROOM, x.ARRIVALS_TAIL, ARRIVAL)
    fn.store_pointer("%data", Address(entry, ARRIVAL_DATA))
    set_word(fn, entry, ARRIVAL_SIZE, Value("%size", 64))
    set_word(fn, entry, ARRIVAL_PORT, Value("%port", 64))
    fn.store_pointer("%taken", Address(entry, ARRIVAL_TAKEN))
    fn.ret()
    return fn.text()


_COPY = [("ptr", "data"), ("i64", "size")]
_REST = [("i64", "cos"), ("i64", "queue"), ("i1", "past")]


def _leave(module: TofinoModule) -> str:
    """A copy of what the ingress deparser made goes to egress, or past it."""
    numbers = [("i64", "port"), ("i64", "rid"), ("i64", "first")]
    fn = Function("leave", [("ptr", "state"), ("ptr", "io"), *_COPY, *numbers, *_REST])
    past, through = fn.label(), fn.label()
    fn.branch(Value("%past", 1), past, through)
    fn.begin(through)
    fn.do("call void @depart(ptr %io, ptr %data, i64 %size, i64 %port, i64 %rid, i64 %first, i64 %cos, i64 %queue)")
    fn.ret()
    fn.begin(past)
    # The port has 9 bits, or is one of a group's.
    inside = fn.compare("ult", Value("%port", 64), const(PORTS, 64))
    port = fn.select(inside, Value("%port", 64), const(0, 64))
    returns = fn.offset(fn.pointer(Address(STATE, module.state.settings[RETURNS])), port)
    again = fn.op("and", inside, fn.compare("ne", fn.load(returns, 8), const(0, 8)))
    with fn.when(again):
        fn.do("call void @arrive(ptr %io, ptr %data, i64 %size, i64 %port, ptr null)")
        fn.ret()
    set_word(fn, EXCHANGE, x.OUT_AT, 0)
    grow_output(fn, fn.op("add", Value("%size", 64), const(SLACK, 64)))
    fn.copy(fn.load_pointer(Address(EXCHANGE, x.OUT_BASE)), "%data", Value("%size", 64))
    send(fn, Value("%size", 64), Value("%port", 64))
    fn.ret()
    return fn.text()


def _each(fn: Function, slot: str, code: Callable[[Value, Value], None]) -> None:
    """Run code on the two numbers of each replica of a slot."""
    number = fn.local(64)
    fn.store(const(0, 64), number)
    first, count = fn.offset(STATE, word(fn, slot, 8)), word(fn, slot, 16)
    with fn.loop() as (_, after):
        i, more = fn.load(number, 64), fn.label()
        fn.branch(fn.compare("ult", i, count), more, after)
        fn.begin(more)
        fn.store(fn.op("add", i, const(1, 64)), number)
        replica = fn.offset(first, i, 8)
        a, b = fn.load(Address(replica, 0), 32, 4), fn.load(Address(replica, 4), 32, 4)
        code(fn.resize(a, 64), fn.resize(b, 64))


def _slot(fn: Function, key: Value) -> str:
    """The slot of a key in the replication index; returns from the function if there is none."""
    slot = fn.ins(f"call ptr @replicas(ptr {STATE}, i64 {key.ref})")
    with fn.when(Value(fn.ins(f"icmp eq ptr {slot}, null"), 1)):
        fn.ret()
    return slot


def _multicast() -> str:
    """The copies of a group. ``level1``, ``rid`` and ``level2`` are the packet's ids + 1, or 0."""
    ids = [("i64", "group"), ("i64", "level1"), ("i64", "rid"), ("i64", "level2")]
    fn = Function("multicast", [("ptr", "state"), ("ptr", "io"), *ids, *_COPY, *_REST], attributes="noinline")
    slot = _slot(fn, Value("%group", 64))
    excluded = fn.alloca("ptr")
    fn.store_pointer("null", Address(excluded))
    with fn.when(fn.compare("ne", Value("%level2", 64), const(0, 64)), rare=True):
        number = fn.op("sub", Value("%level2", 64), const(1, 64))
        key = fn.op("or", number, const(EXCLUSION_BIT, 64))
        fn.store_pointer(fn.ins(f"call ptr @replicas(ptr {STATE}, i64 {key.ref})"), Address(excluded))
    first, barred = fn.local(64), fn.local(1)
    fn.store(const(1, 64), first)

    def copy(a: Value, rid: Value) -> None:
        port, node = fn.op("and", a, const((1 << NODE) - 1, 64)), fn.op("lshr", a, const(NODE, 64))
        same = fn.compare("eq", node, Value("%level1", 64))
        fn.store(fn.op("and", same, fn.compare("ne", node, const(0, 64))), barred)
        own = fn.compare("eq", fn.op("add", rid, const(1, 64)), Value("%rid", 64))
        known = Value(fn.ins(f"icmp ne ptr {fn.load_pointer(Address(excluded))}, null"), 1)
        with fn.when(fn.op("and", own, known), rare=True):

            def compare(other: Value, _: Value) -> None:
                fn.store(fn.op("or", fn.load(barred, 1), fn.compare("eq", other, port)), barred)

            _each(fn, fn.load_pointer(Address(excluded)), compare)
        with fn.when(fn.op("xor", fn.load(barred, 1), const(1, 1))):
            now_first = fn.load(first, 64)
            fn.do(
                f"call void @leave(ptr {STATE}, ptr %io, ptr %data, i64 %size, i64 {port.ref}, i64 {rid.ref}, "
                f"i64 {now_first.ref}, i64 %cos, i64 %queue, i1 %past)"
            )
            fn.store(const(0, 64), first)

    _each(fn, slot, copy)
    fn.ret()
    return fn.text()


def _mirror() -> str:
    """The copies of a mirror session, with a header in front, cut to the session's length."""
    params = [("ptr", "state"), ("ptr", "io"), ("i64", "session"), ("ptr", "front"), ("i64", "fronts"), *_COPY]
    fn = Function("mirror", [*params, ("i64", "barred")], attributes="noinline")
    slot = _slot(fn, fn.op("or", Value("%session", 64), const(SESSION_BIT, 64)))
    keep = word(fn, slot, 24)
    with fn.when(fn.compare("ne", fn.op("and", keep, Value("%barred", 64)), const(0, 64))):
        fn.ret()
    most = fn.op("and", keep, const((1 << 32) - 1, 64))
    whole = fn.op("add", Value("%fronts", 64), Value("%size", 64))
    copied = fn.ins(f"call ptr @room(ptr %io, i64 {whole.ref})")
    fn.copy(copied, "%front", Value("%fronts", 64))
    fn.copy(fn.offset(copied, Value("%fronts", 64)), "%data", Value("%size", 64))
    shorter = fn.op("and", fn.compare("ne", most, const(0, 64)), fn.compare("ult", most, whole))
    size = fn.select(shorter, most, whole)

    def copy(port: Value, rid: Value) -> None:
        number = fn.op("and", port, const((1 << NODE) - 1, 64))
        fn.do(
            f"call void @depart(ptr %io, ptr {copied}, i64 {size.ref}, i64 {number.ref}, i64 {rid.ref}, i64 0, "
            "i64 0, i64 0)"
        )

    _each(fn, slot, copy)
    fn.ret()
    return fn.text()


def run_packet(module: TofinoModule) -> str:
    """One received packet and everything it causes."""
    g = function(module, "run_packet", [("ptr", "data"), ("i64", "size"), ("i64", "port"), ("i64", "time")])
    fn = g.fn
    for offset in (x.QUEUE_HEAD, x.QUEUE_TAIL, x.ARRIVALS_HEAD, x.ARRIVALS_TAIL, x.ARENA_USED):
        set_word(fn, EXCHANGE, offset, 0)
    set_word(fn, EXCHANGE, x.NOW, Value("%time", 64))
    received = fn.ins(f"call ptr @room(ptr {EXCHANGE}, i64 %size)")
    fn.copy(received, "%data", Value("%size", 64))
    fn.do(f"call void @arrive(ptr {EXCHANGE}, ptr {received}, i64 %size, i64 %port, ptr null)")
    passes = fn.local(64)
    fn.store(const(0, 64), passes)
    with fn.loop() as (again, after):
        head, tail = word(fn, EXCHANGE, x.QUEUE_HEAD), word(fn, EXCHANGE, x.QUEUE_TAIL)
        next_one, last = word(fn, EXCHANGE, x.ARRIVALS_HEAD), word(fn, EXCHANGE, x.ARRIVALS_TAIL)
        leaving, coming = fn.compare("ult", head, tail), fn.compare("ult", next_one, last)
        go_on, out, into = fn.label(), fn.label(), fn.label()
        fn.branch(fn.op("or", leaving, coming), go_on, after)
        fn.begin(go_on)
        count = fn.op("add", fn.load(passes, 64), const(1, 64))
        fn.store(count, passes)
        with fn.when(fn.compare("ugt", count, const(MAX_PASSES, 64)), rare=True):
            what = f"one packet caused more than {MAX_PASSES} passes, the rest is dropped"
            g.trap(module.position, what)
            fn.br(after)
        fn.branch(leaving, out, into)
        # A pass may enlarge the queues, so it gets a copy of its entry.
        entry = fn.alloca("[8 x i64]", 8)
        fn.begin(out)
        set_word(fn, EXCHANGE, x.QUEUE_HEAD, fn.op("add", head, const(1, 64)))
        fn.copy(entry, fn.offset(fn.load_pointer(Address(EXCHANGE, x.QUEUE)), head, DEPARTURE), DEPARTURE)
        fn.do(f"call void @egress({PASSED}, ptr {entry})")
        fn.br(again)
        fn.begin(into)
        set_word(fn, EXCHANGE, x.ARRIVALS_HEAD, fn.op("add", next_one, const(1, 64)))
        fn.copy(entry, fn.offset(fn.load_pointer(Address(EXCHANGE, x.ARRIVALS)), next_one, ARRIVAL), ARRIVAL)
        fn.do(f"call void @ingress({PASSED}, ptr {entry})")
    _release(fn)
    fn.ret()
    return fn.text()


def _release(fn: Function) -> None:
    """Free the memory that the packet took beyond the arena."""
    with fn.loop() as (_, after):
        chunk, more = fn.load_pointer(Address(EXCHANGE, x.ARENA_CHUNKS)), fn.label()
        fn.branch(Value(fn.ins(f"icmp eq ptr {chunk}, null"), 1), after, more)
        fn.begin(more)
        fn.store_pointer(fn.load_pointer(Address(chunk)), Address(EXCHANGE, x.ARENA_CHUNKS))
        fn.do(f"call void @free(ptr {chunk})")
