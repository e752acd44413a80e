"""Tofino around the blocks, in generated code: what ``p4gen.chips.tna.machine`` does.

Every pass begins with bytes: the intrinsic metadata is written in front of the packet, for which each packet inside the
switch has ``HEAD`` bytes of room. Packets are in memory that is free again when the received packet is done.
"""

from __future__ import annotations

from p4gen.chips.tna import PIPES
from p4gen.chips.tna.chip import FCS, NO_PORT
from p4gen.chips.tna.gress import ERRORS, NO_MATCH, members_of
from p4gen.chips.tna.jit.module import MEMORY, Gress, TofinoModule
from p4gen.chips.tna.jit.queues import (
    ARRIVAL_DATA,
    ARRIVAL_PORT,
    ARRIVAL_SIZE,
    ARRIVAL_TAKEN,
    DEPARTURE_COS,
    DEPARTURE_DATA,
    DEPARTURE_FIRST,
    DEPARTURE_PORT,
    DEPARTURE_QUEUE,
    DEPARTURE_RID,
    DEPARTURE_SIZE,
    HEAD,
    queues,
    run_packet,
)
from p4gen.chips.tna.jit.state import METADATA, RETURNS
from p4gen.model.jit import exchange as x
from p4gen.model.jit.build import EXCHANGE, FRAME, STATE, Gen
from p4gen.model.jit.driver import PASSED, SLACK, at_bytes, batch, deparser_bytes, function, replicas, send, single
from p4gen.model.jit.emit import TRUE, Address, Value, const
from p4gen.model.jit.layout import AT, DATA, LENGTH, NOW, SIZE
from p4gen.model.jit.runtime import grow_output, set_word, word
from p4gen.model.jit.wire import Piece, encode
from p4gen.p4 import types as t


class Traffic:
    """Generates what is around the blocks of one program."""

    def __init__(self, module: TofinoModule) -> None:
        self._module = module
        self._gresses: list[Gress] = []
        self._frame_size = 0

    def add(self, gress: Gress) -> None:
        """Add a gress whose blocks have been compiled."""
        self._gresses.append(gress)

    def functions(self) -> list[str]:
        """All functions of the traffic manager."""
        module = self._module
        passes = [self._ingress(g) if g.parts.name == "ingress" else self._egress(g) for g in self._gresses]
        chosen = [self._chosen("ingress", ARRIVAL_PORT), self._chosen("egress", DEPARTURE_PORT)]
        return [*queues(module), replicas(module), *passes, *chosen, run_packet(module), batch(module), single(module)]

    # --- pipes ---

    def _chosen(self, name: str, port_at: int) -> str:
        """A pass through a gress of the pipe to which the packet's port belongs."""
        fn = function(self._module, name, [("ptr", "packet")]).fn
        port = word(fn, "%packet", port_at)
        pipe = fn.op("and", fn.op("lshr", port, const(7, 64)), const(PIPES - 1, 64))
        memory = fn.offset(STATE, pipe, self._module.state.pipe)
        found = [g for g in self._gresses if g.parts.name == name]
        after, labels = fn.label(), [fn.label() for _ in found]
        count = len(found)
        numbers = [0 if count == 1 else p % 2 if count == 2 else p for p in range(PIPES)]
        fn.switch(pipe, after, [(p, labels[n]) for p, n in enumerate(numbers) if n < count])
        for gress, label in zip(found, labels, strict=True):
            fn.begin(label)
            fn.do(f"call void @{gress.label}_pass({PASSED}, ptr {memory}, ptr %packet)")
            fn.br(after)
        fn.begin(after)
        fn.ret()
        return fn.text()

    def _pass(self, gress: Gress) -> Gen:
        """The beginning of a pass, with an empty frame."""
        g = function(self._module, f"{gress.label}_pass", [("ptr", MEMORY.removeprefix("%")), ("ptr", "packet")])
        fn = g.fn
        fn.name_pointer("frame", fn.load_pointer(Address(EXCHANGE, x.WORK)))
        fn.clear(FRAME, -(-self._module.frame // 64) * 64, 8)
        for role, of in gress.parts.types.items():
            g.unassign(Address(FRAME, gress.places[role]), of)
        g.set_context(NOW, word(fn, EXCHANGE, x.NOW))
        return g

    def _nanoseconds(self, g: Gen) -> Value:
        return g.fn.op("mul", word(g.fn, EXCHANGE, x.NOW), const(1000, 64))

    def _front(
        self, g: Gen, gress: Gress, numbers: dict[str, Value], before: str, length: Value, beside: int = 0
    ) -> None:
        """Write the intrinsic metadata so that ``beside`` bytes are between it and the packet at ``before``; the parser
        begins there."""
        fn, pieces = g.fn, []
        for f in members_of(gress.parts.intrinsic):
            width = t.width_of(f.type)
            if width:
                value = fn.resize(numbers.get(f.name, const(0, 64)), width)
                pieces.append(Piece(width, t.Bits(width, False), value=value))
        size = -(-sum(p.width for p in pieces) // 8) + beside
        assert size <= HEAD
        begin = fn.ins(f"getelementptr inbounds i8, ptr {before}, i64 {-size}")
        encode(g, pieces, Address(begin))
        fn.store_pointer(begin, Address(FRAME, DATA))
        g.set_context(SIZE, fn.op("add", length, const(size, 64)))

    # --- blocks ---

    def _call(self, g: Gen, gress: Gress, block: str) -> str:
        return f'@"{gress.pipeline}_{block}"({PASSED}, ptr {FRAME}, ptr {MEMORY})'

    def _parse(self, g: Gen, gress: Gress, port: Value) -> Value:
        """Run the parser of a port. Returns the bits of its error, 64."""
        fn, parts = g.fn, gress.parts
        symbol = fn.local(32)
        after, labels = fn.label(), {channel: fn.label() for channel in parts.parsers}
        channel = fn.op("lshr", fn.op("and", port, const(0x7F, 64)), const(2, 64))
        fn.switch(channel, labels[0], [(n, label) for n, label in labels.items() if n])
        for number, name in parts.parsers.items():
            fn.begin(labels[number])
            found = Value(fn.ins(f"call i32 {self._call(g, gress, name)}"), 32)
            fn.store(found, symbol)
            fn.br(after)
        fn.begin(after)
        bits, error = const(0, 64), fn.load(symbol, 32)
        for name, mask in ERRORS.items():
            if name in g.types.errors:
                same = fn.compare("eq", error, const(g.types.errors.index(name), 32))
                bits = fn.select(same, const(mask, 64), bits)
        gress.put(g, parts.role("from_prsr"), "parser_err", bits)
        return bits

    def _deparse(self, g: Gen, gress: Gress) -> None:
        """The packet at ``OUT_BASE``; its size in bytes in ``OUT_AT``."""
        fn, size = g.fn, g.context(SIZE)
        set_word(fn, EXCHANGE, x.OUT_AT, 0)
        emitted = deparser_bytes(gress.parts.blocks[gress.parts.deparser])
        grow_output(fn, fn.op("add", size, const(emitted + SLACK, 64)))
        fn.do(f"call void {self._call(g, gress, gress.parts.deparser)}")
        begin = at_bytes(fn, g.context(AT))
        written = at_bytes(fn, word(fn, EXCHANGE, x.OUT_AT))
        rest = fn.op("sub", size, begin)
        with fn.when(fn.compare("ne", rest, const(0, 64))):
            grow_output(fn, fn.op("add", rest, const(SLACK, 64)))
            to = fn.offset(fn.load_pointer(Address(EXCHANGE, x.OUT_BASE)), written)
            fn.copy(to, fn.offset(fn.load_pointer(Address(FRAME, DATA)), begin), rest)
        set_word(fn, EXCHANGE, x.OUT_AT, fn.op("add", written, rest))

    def _kept(self, g: Gen) -> str:
        """Move the deparser's output to a place where it stays. Returns its address."""
        fn, size = g.fn, word(g.fn, EXCHANGE, x.OUT_AT)
        data = fn.ins(f"call ptr @room(ptr {EXCHANGE}, i64 {size.ref})")
        fn.copy(data, fn.load_pointer(Address(EXCHANGE, x.OUT_BASE)), size)
        return data

    def _mirrors(self, g: Gen, gress: Gress, data: str, size: Value, barred: int) -> None:
        """Generate the copies that the deparser has requested."""
        fn = g.fn
        for request in gress.requests:
            if request.kind == "mirror":
                with fn.when(fn.compare("ne", fn.load(request.asked, 64, 8), const(0, 64))):
                    session, front = fn.load(request.session, 64, 8), fn.pointer(request.front)
                    fn.do(
                        f"call void @mirror(ptr {STATE}, ptr {EXCHANGE}, i64 {session.ref}, ptr {front}, "
                        f"i64 {request.size}, ptr {data}, i64 {size.ref}, i64 {barred})"
                    )

    # --- ingress ---

    def _ingress(self, gress: Gress) -> str:
        g = self._pass(gress)
        fn, parts, chip = g.fn, gress.parts, self._module.chip
        data, size = fn.load_pointer(Address("%packet", ARRIVAL_DATA)), word(fn, "%packet", ARRIVAL_SIZE)
        port, taken = word(fn, "%packet", ARRIVAL_PORT), fn.load_pointer(Address("%packet", ARRIVAL_TAKEN))
        again = Value(fn.ins(f"icmp ne ptr {taken}, null"), 1)
        g.set_context(LENGTH, fn.op("add", size, const(FCS, 64)))
        now = self._nanoseconds(g)
        numbers = {"resubmit_flag": fn.resize(again, 64), "ingress_port": port, "ingress_mac_tstamp": now}
        self._front(g, gress, numbers, data, size, chip.port_metadata)
        of_port = fn.offset(fn.pointer(Address(STATE, self._module.state.settings[METADATA])), port, chip.port_metadata)
        beside = fn.ins(f"getelementptr inbounds i8, ptr {data}, i64 {-chip.port_metadata}")
        fn.copy(beside, fn.select_pointer(again, taken, of_port), chip.port_metadata)
        gress.put(g, parts.role("from_prsr"), "global_tstamp", now)
        error = self._parse(g, gress, port)
        dropped = fn.compare("ne", fn.op("and", error, const(NO_MATCH, 64)), const(0, 64))
        if not parts.reads_errors:
            dropped = fn.compare("ne", error, const(0, 64))
        with fn.when(dropped, rare=True):
            fn.ret()
        fn.do(f"call void {self._call(g, gress, 'ingress')}")
        if not gress.quiet:
            self._deparse(g, gress)
        drop = gress.get(g, parts.role("for_dprsr"), "drop_ctl")
        if any(request.kind == "mirror" for request in gress.requests):
            with fn.when(self._clear(g, drop, 4)):
                self._mirrors(g, gress, data, size, 1 << 32)
        self._resubmit(g, gress, again, data, size, port)
        self._forward(g, gress, drop)
        fn.ret()
        return fn.text()

    def _clear(self, g: Gen, drop: Value, bit: int) -> Value:
        """Whether a bit of ``drop_ctl`` is 0."""
        return g.fn.compare("eq", g.fn.op("and", drop, const(bit, 64)), const(0, 64))

    def _resubmit(self, g: Gen, gress: Gress, again: Value, data: str, size: Value, port: Value) -> None:
        """In place of forwarding a packet, let it arrive once more with the bytes that the first request put in
        front."""
        fn, room = g.fn, self._module.chip.port_metadata
        for request in gress.requests:
            if request.kind != "resubmit":
                continue
            asked = fn.compare("ne", fn.load(request.asked, 64, 8), const(0, 64))
            with fn.when(fn.op("and", asked, fn.op("xor", again, TRUE))):
                front = fn.ins(f"call ptr @room(ptr {EXCHANGE}, i64 {room})")
                fn.clear(front, room)
                fn.copy(front, fn.pointer(request.front), min(request.size, room))
                if request.size > room:
                    what = f"a resubmitted packet has {room} bytes for metadata, not {request.size}; the rest is lost"
                    g.trap(self._module.position, what)
                fn.do(f"call void @arrive(ptr {EXCHANGE}, ptr {data}, i64 {size.ref}, i64 {port.ref}, ptr {front})")
                fn.ret()

    def _forward(self, g: Gen, gress: Gress, drop: Value) -> None:
        """Generate the traffic manager's decisions: unicast, multicast groups, the copy to the CPU."""
        fn, role = g.fn, gress.parts.role("for_tm")

        def field(name: str) -> Value:
            return gress.get(g, role, name)

        def assigned(name: str) -> Value:
            return gress.assigned(g, role, name)

        port, cpu = field("ucast_egress_port"), field("copy_to_cpu")
        past = fn.compare("ne", field("bypass_egress"), const(0, 64))
        cos, queue = field("ingress_cos"), field("qid")
        goes = self._clear(g, drop, 1)
        unicast = fn.op("and", goes, fn.op("and", assigned("ucast_egress_port"),
                                           fn.compare("ne", port, const(NO_PORT, 64))))  # fmt: skip
        groups = []
        for name in ("mcast_grp_a", "mcast_grp_b"):
            group = field(name)
            some = fn.op("and", assigned(name), fn.compare("ne", group, const(0, 64)))
            groups.append((group, fn.op("and", goes, some)))
        to_cpu = fn.op("and", fn.compare("ne", cpu, const(0, 64)), self._clear(g, drop, 2))
        any_copy = fn.op("or", fn.op("or", unicast, to_cpu), fn.op("or", groups[0][1], groups[1][1]))
        with fn.when(fn.op("xor", any_copy, TRUE)):
            fn.ret()
        if gress.quiet:
            self._deparse(g, gress)
        data, size = self._kept(g), word(fn, EXCHANGE, x.OUT_AT)
        rest = f"i64 {cos.ref}, i64 {queue.ref}, i1 {past.ref}"

        def leave(to: Value | int) -> None:
            number = to if isinstance(to, Value) else const(to, 64)
            fn.do(
                f"call void @leave(ptr {STATE}, ptr {EXCHANGE}, ptr {data}, i64 {size.ref}, i64 {number.ref}, i64 0, "
                f"i64 0, {rest})"
            )

        with fn.when(unicast):
            leave(port)
        numbers = []
        for name in ("level1_exclusion_id", "rid", "level2_exclusion_id"):
            given = fn.op("add", field(name), const(1, 64))
            numbers.append(fn.select(assigned(name), given, const(0, 64)))
        excluding = ", ".join(f"i64 {number.ref}" for number in numbers)
        for group, some in groups:
            with fn.when(some):
                fn.do(
                    f"call void @multicast(ptr {STATE}, ptr {EXCHANGE}, i64 {group.ref}, {excluding}, ptr {data}, "
                    f"i64 {size.ref}, {rest})"
                )
        with fn.when(to_cpu):
            leave(self._module.chip.cpu_port)

    # --- egress ---

    def _egress(self, gress: Gress) -> str:
        g = self._pass(gress)
        fn, parts = g.fn, gress.parts
        data, size = fn.load_pointer(Address("%packet", DEPARTURE_DATA)), word(fn, "%packet", DEPARTURE_SIZE)
        port = word(fn, "%packet", DEPARTURE_PORT)
        g.set_context(LENGTH, fn.op("add", size, const(FCS, 64)))
        now = self._nanoseconds(g)
        numbers = {
            "egress_port": port, "egress_rid": word(fn, "%packet", DEPARTURE_RID),
            "egress_rid_first": word(fn, "%packet", DEPARTURE_FIRST),
            "egress_qid": word(fn, "%packet", DEPARTURE_QUEUE),
            "egress_cos": word(fn, "%packet", DEPARTURE_COS), "pkt_length": g.context(LENGTH), "enq_tstamp": now,
        }  # fmt: skip
        self._front(g, gress, numbers, data, size)
        if not parts.extracts:
            g.set_context(AT, const(t.width_of(parts.intrinsic), 64))
        gress.put(g, parts.role("from_prsr"), "global_tstamp", now)
        self._parse(g, gress, port)
        fn.do(f"call void {self._call(g, gress, 'egress')}")
        drop = gress.get(g, parts.role("for_dprsr"), "drop_ctl")
        if gress.quiet:
            with fn.when(fn.op("xor", self._clear(g, drop, 1), TRUE)):
                fn.ret()
        self._deparse(g, gress)
        drop = gress.get(g, parts.role("for_dprsr"), "drop_ctl")
        total = word(fn, EXCHANGE, x.OUT_AT)
        if any(request.kind == "mirror" for request in gress.requests):
            with fn.when(self._clear(g, drop, 4)):
                self._mirrors(g, gress, fn.load_pointer(Address(EXCHANGE, x.OUT_BASE)), total, 1 << 33)
        with fn.when(fn.op("xor", self._clear(g, drop, 1), TRUE)):
            fn.ret()
        returns = fn.offset(fn.pointer(Address(STATE, self._module.state.settings[RETURNS])), port)
        with fn.when(fn.compare("ne", fn.load(returns, 8), const(0, 8))):
            kept = self._kept(g)
            fn.do(f"call void @arrive(ptr {EXCHANGE}, ptr {kept}, i64 {total.ref}, i64 {port.ref}, ptr null)")
            fn.ret()
        send(fn, total, port)
        fn.ret()
        return fn.text()
