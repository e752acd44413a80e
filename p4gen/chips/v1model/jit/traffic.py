"""v1model around the blocks, in generated code: the work of ``p4gen.chips.v1model.switch``, for batches of packets.

Copies of a packet are made when their turn comes, not when they are requested: a departure holds the frame and the
remaining replicas, and the last replica takes the frame itself.
"""

from __future__ import annotations

from p4gen.arch.ports import DROP_PORT
from p4gen.chips.v1model.jit import frame as at
from p4gen.chips.v1model.jit.pieces import Pieces
from p4gen.chips.v1model.switch import (
    EGRESS_CLONE,
    INGRESS_CLONE,
    NORMAL,
    RECIRCULATED,
    REPLICATION,
    RESUBMITTED,
)
from p4gen.model.jit import exchange as x
from p4gen.model.jit import layout
from p4gen.model.jit.build import EXCHANGE, FRAME, STATE, Gen
from p4gen.model.jit.driver import PASSED, SLACK, at_bytes, batch, replicas, send, single
from p4gen.model.jit.emit import Address, Function, Value, const
from p4gen.model.jit.runtime import grow_output, set_word, word
from p4gen.model.passes import HELD, MAX_PASSES


class Traffic(Pieces):
    """Generates the traffic manager of one program."""

    def functions(self, emitted: int) -> list[str]:
        """All functions; ``emitted``: the most bytes that the deparser emits outside loops."""
        return [
            self._restore(), self._parse(), replicas(self._module), self._depart(), self._ingress(),
            self._egress(emitted), self._packet(), batch(self._module), single(self._module),
        ]  # fmt: skip

    # --- ingress ---

    def _ingress(self) -> str:
        g = self._function("ingress", [("ptr", "arrival")])
        fn = g.fn
        set_word(fn, EXCHANGE, x.FRAMES_USED, 0)
        set_word(fn, EXCHANGE, x.QUEUE_HEAD, 0)
        set_word(fn, EXCHANGE, x.QUEUE_TAIL, 0)
        self._named_frame(fn, self._next_frame(fn))
        fn.do(f"call void @parse_packet({PASSED}, ptr {FRAME}, ptr %arrival, i1 0)")
        fn.do(f"call void @block_ig({PASSED}, ptr {FRAME})")
        with fn.when(fn.compare("ne", g.context(at.CLONE), const(0, 64))):
            self._clone_ingress(g)
            g.set_context(at.CLONE, 0)
        go_on, back = fn.label(), fn.label()
        fn.branch(fn.compare("ne", g.context(at.RESUBMIT), const(0, 64)), back, go_on)
        fn.begin(back)
        data = fn.load_pointer(Address("%arrival", 0))
        self._again(g, data, word(fn, "%arrival", 8), RESUBMITTED, g.context(at.RESUBMIT_LIST), "null")
        fn.ret()
        fn.begin(go_on)
        group = fn.resize(self._get(g, "mcast_grp"), 64)
        many, one = fn.label(), fn.label()
        fn.branch(fn.compare("ne", group, const(0, 64)), many, one)
        fn.begin(many)
        self._set(g, "instance_type", REPLICATION)
        slot = fn.ins(f"call ptr @replicas(ptr {STATE}, i64 {group.ref})")
        with fn.when(Value(fn.ins(f"icmp ne ptr {slot}, null"), 1)):
            fn.do(f"call void @depart(ptr {EXCHANGE}, ptr {STATE}, ptr {FRAME}, ptr {slot}, i64 0, i64 0)")
        fn.ret()
        fn.begin(one)
        port = fn.resize(self._get(g, "egress_spec"), 64)
        with fn.when(fn.compare("ne", port, const(DROP_PORT, 64))):
            self._set(g, "instance_type", NORMAL)
            fn.do(f"call void @depart(ptr {EXCHANGE}, ptr {STATE}, ptr {FRAME}, ptr null, i64 {port.ref}, i64 0)")
        fn.ret()
        return fn.text()

    def _clone_ingress(self, g: Gen) -> None:
        """The received packet, parsed again; new metadata except for the field list."""
        fn = g.fn
        slot = self._wanted_session(g)
        with fn.when(Value(fn.ins(f"icmp ne ptr {slot}, null"), 1)):
            clone = self._next_frame(fn)
            fn.do(f"call void @parse_packet({PASSED}, ptr {clone}, ptr %arrival, i1 1)")
            self._fresh_metadata(g, clone, INGRESS_CLONE)
            keep = word(fn, slot, 24)
            fn.do(f"call void @depart(ptr {EXCHANGE}, ptr {STATE}, ptr {clone}, ptr {slot}, i64 0, i64 {keep.ref})")

    # --- egress ---

    def _egress(self, emitted: int) -> str:
        """The next copy of the departure at the queue's head."""
        g = self._function("egress", [])
        fn, frame = g.fn, self._frame
        head = word(fn, EXCHANGE, x.QUEUE_HEAD)
        entry = fn.offset(fn.load_pointer(Address(EXCHANGE, x.QUEUE)), head, x.DEPARTURE)
        queued, replicas = fn.load_pointer(Address(entry, 0)), fn.load_pointer(Address(entry, 8))
        left = fn.op("sub", word(fn, entry, 16), const(1, 64))
        set_word(fn, entry, 16, left)
        keep = word(fn, entry, 24)
        last = fn.compare("eq", left, const(0, 64))
        position = fn.op("add", head, fn.resize(last, 64))
        set_word(fn, EXCHANGE, x.QUEUE_HEAD, position)
        spare = fn.load_pointer(Address(EXCHANGE, x.WORK))
        self._named_frame(fn, fn.select_pointer(last, queued, spare))
        with fn.when(fn.op("xor", last, const(1, 1))):
            fn.copy(FRAME, queued, frame.size, 64)
        port = fn.local(64)
        fn.store(word(fn, entry, 32), port)
        with fn.when(Value(fn.ins(f"icmp ne ptr {replicas}, null"), 1)):
            # Requests made so far stay with the original.
            fn.clear(fn.pointer(Address(FRAME, at.REQUESTS)), at.REQUESTS_SIZE)
            fn.store(fn.resize(fn.load(replicas, 32, 4), 64), port)
            self._set(g, "egress_rid", fn.load(Address(replicas, 4), 32, 4))
            fn.store_pointer(fn.pointer(Address(replicas, 8)), Address(entry, 8))
        self._set(g, "egress_port", fn.load(port, 64))
        # Any value but the drop port: simple_switch assigns drop port + 1, truncated to nine bits.
        self._set(g, "egress_spec", (DROP_PORT + 1) & 0x1FF)
        self._set(g, "packet_length", g.context(layout.LENGTH))
        self._set(g, "egress_global_timestamp", g.context(layout.NOW))
        fn.do(f"call void @block_eg({PASSED}, ptr {FRAME})")
        with fn.when(fn.compare("ne", g.context(at.CLONE), const(0, 64))):
            self._clone_egress(g)
            g.set_context(at.CLONE, 0)
        with fn.when(fn.compare("eq", self._get(g, "egress_spec"), const(DROP_PORT, 9))):
            fn.ret()
        self._deparse(g, emitted)
        total = word(fn, EXCHANGE, x.OUT_AT)
        with fn.when(fn.compare("ne", g.context(at.RECIRCULATE), const(0, 64))):
            self._hold(g, total)
            copied = fn.ins(f"call ptr @malloc(i64 {fn.op('add', total, const(8, 64)).ref})")
            fn.copy(copied, fn.load_pointer(Address(EXCHANGE, x.OUT_BASE)), total)
            self._again(g, copied, total, RECIRCULATED, g.context(at.RECIRCULATE_LIST), copied)
            fn.ret()
        size = self._limited(g, total, keep)
        send(fn, size, fn.load(port, 64))
        fn.ret()
        return fn.text()

    @property
    def _kept_size(self) -> int:
        """Bytes behind a packet that is held back: its user metadata, and the number of its field list."""
        return self._meta_size + 8

    def _hold(self, g: Gen, total: Value) -> None:
        """If packets are held back: send the packet of ``total`` bytes behind the output on, with its user metadata."""
        fn = g.fn
        with fn.when(fn.compare("ne", word(fn, EXCHANGE, x.HOLD), const(0, 64)), rare=True):
            # OUT_AT is in bits while a deparser writes, and in bytes now.
            set_word(fn, EXCHANGE, x.OUT_AT, fn.op("shl", total, const(3, 64)))
            grow_output(fn, const(self._kept_size + SLACK, 64))
            end = fn.offset(fn.load_pointer(Address(EXCHANGE, x.OUT_BASE)), total)
            fn.copy(end, fn.pointer(Address(FRAME, self._frame.meta)), self._meta_size)
            fn.store(g.context(at.RECIRCULATE_LIST), Address(end, self._meta_size))
            send(fn, fn.op("add", total, const(self._kept_size, 64)), const(HELD, 64))
            fn.ret()

    def _limited(self, g: Gen, total: Value, keep: Value) -> Value:
        """The packet's size after ``truncate`` and what its clone session keeps."""
        fn = g.fn
        size = fn.select(fn.compare("ne", g.context(at.TRUNCATE), const(0, 64)), g.context(at.TRUNCATE_TO), total)
        kept = fn.select(fn.compare("ne", keep, const(0, 64)), keep, total)
        size = fn.select(fn.compare("ult", kept, size), kept, size)
        return fn.select(fn.compare("ult", total, size), total, size)

    def _clone_egress(self, g: Gen) -> None:
        """The headers at the end of egress; new metadata except for the field list."""
        fn, frame = g.fn, self._frame
        slot = self._wanted_session(g)
        with fn.when(Value(fn.ins(f"icmp ne ptr {slot}, null"), 1)):
            clone = self._next_frame(fn)
            fn.copy(clone, FRAME, frame.size, 64)
            self._fresh_metadata(g, clone, EGRESS_CLONE)
            keep = word(fn, slot, 24)
            fn.do(f"call void @depart(ptr {EXCHANGE}, ptr {STATE}, ptr {clone}, ptr {slot}, i64 0, i64 {keep.ref})")

    def _deparse(self, g: Gen, emitted: int) -> None:
        """The packet at ``OUT_BASE``; its size in bytes in ``OUT_AT``."""
        fn = g.fn
        fn.do(f"call void @block_ck({PASSED}, ptr {FRAME})")
        set_word(fn, EXCHANGE, x.OUT_AT, 0)
        size = g.context(layout.SIZE)
        grow_output(fn, fn.op("add", size, const(emitted + SLACK, 64)))
        fn.do(f"call void @block_dep({PASSED}, ptr {FRAME})")
        begin = at_bytes(fn, g.context(layout.AT))
        written = at_bytes(fn, word(fn, EXCHANGE, x.OUT_AT))
        rest = fn.op("sub", size, begin)
        with fn.when(fn.compare("ne", rest, const(0, 64))):
            grow_output(fn, fn.op("add", rest, const(SLACK, 64)))
            to = fn.offset(fn.load_pointer(Address(EXCHANGE, x.OUT_BASE)), written)
            fn.copy(to, fn.offset(fn.load_pointer(Address(FRAME, layout.DATA)), begin), rest)
        set_word(fn, EXCHANGE, x.OUT_AT, fn.op("add", written, rest))

    # --- packets ---

    def _packet(self) -> str:
        """One received packet and everything it causes."""
        g = self._function("run_packet", [("ptr", "data"), ("i64", "size"), ("i64", "port"), ("i64", "time")])
        fn = g.fn
        for offset in (x.QUEUE_HEAD, x.QUEUE_TAIL, x.ARRIVALS_HEAD, x.ARRIVALS_TAIL):
            set_word(fn, EXCHANGE, offset, 0)
        set_word(fn, EXCHANGE, x.NOW, Value("%time", 64))
        self._first(fn)
        passes = fn.local(64)
        fn.store(const(0, 64), passes)
        with fn.loop() as (again, after):
            leaving = fn.compare("ult", word(fn, EXCHANGE, x.QUEUE_HEAD), word(fn, EXCHANGE, x.QUEUE_TAIL))
            coming = fn.compare("ult", word(fn, EXCHANGE, x.ARRIVALS_HEAD), word(fn, EXCHANGE, x.ARRIVALS_TAIL))
            go_on, out, into = fn.label(), fn.label(), fn.label()
            fn.branch(fn.op("or", leaving, coming), go_on, after)
            fn.begin(go_on)
            count = fn.op("add", fn.load(passes, 64), const(1, 64))
            fn.store(count, passes)
            with fn.when(fn.compare("ugt", count, const(MAX_PASSES, 64)), rare=True):
                what = f"one packet caused more than {MAX_PASSES} passes, the rest is dropped"
                g.trap(self._module.program.blocks["ig"].pos, what)
                fn.br(after)
            fn.branch(leaving, out, into)
            fn.begin(out)
            fn.do(f"call void @egress({PASSED})")
            fn.br(again)
            fn.begin(into)
            head = word(fn, EXCHANGE, x.ARRIVALS_HEAD)
            set_word(fn, EXCHANGE, x.ARRIVALS_HEAD, fn.op("add", head, const(1, 64)))
            arrival = fn.offset(fn.load_pointer(Address(EXCHANGE, x.ARRIVALS)), head, self.arrival_size)
            fn.do(f"call void @ingress({PASSED}, ptr {arrival})")
        self._release(fn)
        fn.ret()
        return fn.text()

    def _first(self, fn: Function) -> None:
        """The packet itself: one that arrives, or one that was held back (``_hold``)."""
        size, port, kind, time = (fn.local(64) for _ in range(4))
        for place, value in ((size, "%size"), (port, "%port"), (time, "%time")):
            fn.store(Value(value, 64), place)
        fn.store(const(NORMAL, 64), kind)
        field_list = fn.local(64)
        fn.store(const(-1, 64), field_list)
        held = fn.compare("eq", Value("%port", 64), const(HELD, 64))
        with fn.when(held, rare=True):
            whole = fn.op("sub", Value("%size", 64), const(self._kept_size, 64))
            fn.store(whole, size)
            fn.store(fn.load(Address(fn.offset("%data", whole), self._meta_size), 64), field_list)
            for place, known in ((port, 0), (kind, RECIRCULATED), (time, 0)):
                fn.store(const(known, 64), place)
        numbers = (fn.load(place, 64) for place in (size, port, kind, field_list, time))
        meta = self._arrive(fn, "%data", "null", *numbers)
        with fn.when(held, rare=True):
            fn.copy(meta, fn.offset("%data", fn.load(size, 64)), self._meta_size)

    def _release(self, fn: Function) -> None:
        """Free the memory of recirculated packets; the first arrival is the caller's."""
        number = fn.local(64)
        fn.store(const(1, 64), number)
        with fn.loop() as (_, after):
            i = fn.load(number, 64)
            more = fn.label()
            fn.branch(fn.compare("ult", i, word(fn, EXCHANGE, x.ARRIVALS_TAIL)), more, after)
            fn.begin(more)
            entry = fn.offset(fn.load_pointer(Address(EXCHANGE, x.ARRIVALS)), i, self.arrival_size)
            fn.do(f"call void @free(ptr {fn.load_pointer(Address(entry, 48))})")
            fn.store(fn.op("add", i, const(1, 64)), number)
