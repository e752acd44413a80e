"""Parts of the generated traffic manager: frames, queues, metadata, the replication index."""

from __future__ import annotations

from collections.abc import Iterator

from p4gen.chips.v1model.jit import frame as at
from p4gen.chips.v1model.switch import (
    CLONE_SESSION_MASK,
    NORMAL,
)
from p4gen.model.jit import exchange as x
from p4gen.model.jit import layout
from p4gen.model.jit.blocks import SESSION_BIT
from p4gen.model.jit.build import EXCHANGE, FRAME, STATE, Gen, Module, part_at
from p4gen.model.jit.driver import PASSED, function
from p4gen.model.jit.emit import Address, Function, Value, const
from p4gen.model.jit.runtime import set_word, word
from p4gen.p4 import types as t


def marked(of: t.Type, index: int) -> Iterator[tuple[int, ...]]:
    """Paths of the fields of user metadata that ``@field_list(index)`` marks."""
    of = t.strip(of)
    if isinstance(of, t.Struct):
        for i, member in enumerate(of.fields):
            if any(a.name == "field_list" and index in a.args for a in member.annotations):
                yield (i,)
            else:
                yield from ((i, *rest) for rest in marked(member.type, index))


def _lists(of: t.Type) -> set[int]:
    of = t.strip(of)
    found: set[int] = set()
    if isinstance(of, t.Struct):
        for member in of.fields:
            for a in member.annotations:
                if a.name == "field_list":
                    found |= {v for v in a.args if isinstance(v, int)}
            found |= _lists(member.type)
    return found


class Pieces:
    """Functions and code of which ``Traffic`` is composed."""

    def __init__(self, module: Module, frame: at.FrameShape) -> None:
        self._module, self._frame = module, frame
        ingress = module.program.blocks["ig"]
        self._meta_type, self._standard_type = (p.variable.type for p in ingress.params[-2:])
        standard = t.strip(self._standard_type)
        assert isinstance(standard, t.Struct)
        self._fields = {f.name: (i, f.type) for i, f in enumerate(standard.fields)}
        self._meta_size = module.types.shape(self._meta_type).size
        self.arrival_size = layout.align(x.ARRIVAL + self._meta_size, 64)

    # --- standard metadata ---

    def _field(self, g: Gen, frame: str, name: str) -> tuple[Address, t.Type]:
        i, of = self._fields[name]
        return part_at(g, Address(frame, self._frame.standard), self._standard_type, i), of

    def _set(self, g: Gen, name: str, value: Value | int, frame: str = FRAME) -> None:
        place, of = self._field(g, frame, name)
        width = layout.scalar_width(of)
        g.store(const(value, width) if isinstance(value, int) else g.fn.resize(value, width), place, of)

    def _get(self, g: Gen, name: str) -> Value:
        return g.load(*self._field(g, FRAME, name))

    def _function(self, name: str, params: list[tuple[str, str]]) -> Gen:
        return function(self._module, name, params)

    # --- preserved metadata ---

    def _restore(self) -> str:
        """Copy the fields of a field list from one user metadata to another."""
        fn = Function("restore", [("ptr", "to"), ("ptr", "from"), ("i64", "list")], attributes="noinline")
        g = Gen(self._module, fn, "")
        after, cases = fn.label(), [(i, fn.label()) for i in sorted(_lists(self._meta_type))]
        fn.switch(Value("%list", 64), after, cases)
        for index, label in cases:
            fn.begin(label)
            for path in marked(self._meta_type, index):
                offset, of = self._path(path)
                g.copy(Address("%to", offset), Address("%from", offset), of)
            fn.br(after)
        fn.begin(after)
        fn.ret()
        return fn.text()

    def _path(self, path: tuple[int, ...]) -> tuple[int, t.Type]:
        offset, of = 0, self._meta_type
        for i in path:
            offset += self._module.types.shape(of).parts[i]
            of = layout.members(of)[i]
        return offset, of

    # --- ingress ---

    def _parse(self) -> str:
        """A fresh frame for an arrival; parser and checksum verification. A reject drops nothing."""
        g = self._function("parse_packet", [("ptr noalias", "frame"), ("ptr", "arrival"), ("i1", "again")])
        fn, frame = g.fn, self._frame
        fn.clear(FRAME, frame.size, 64)
        size = word(fn, "%arrival", 8)
        fn.store_pointer(fn.load_pointer(Address("%arrival", 0)), Address(FRAME, layout.DATA))
        for offset in (layout.SIZE, at.INGRESS_LENGTH, layout.LENGTH):
            g.set_context(offset, size)
        g.set_context(layout.NOW, word(fn, EXCHANGE, x.NOW))
        meta = fn.pointer(Address(FRAME, frame.meta))
        again = Value("%again", 1)
        keep = fn.compare("sge", word(fn, "%arrival", 32), const(0, 64))
        with fn.when(fn.op("and", keep, fn.op("xor", again, const(1, 1)))):
            preserved = fn.pointer(Address("%arrival", x.ARRIVAL))
            fn.do(f"call void @restore(ptr {meta}, ptr {preserved}, i64 {word(fn, '%arrival', 32).ref})")
        self._set(g, "ingress_port", word(fn, "%arrival", 16))
        instance = fn.select(again, const(NORMAL, 64), word(fn, "%arrival", 24))
        self._set(g, "instance_type", instance)
        self._set(g, "packet_length", size)
        self._set(g, "ingress_global_timestamp", fn.select(again, const(0, 64), word(fn, "%arrival", 40)))
        error = fn.call("block_p", 32, f"{PASSED}, ptr {FRAME}")
        fn.do(f"call void @block_vr({PASSED}, ptr {FRAME})")
        self._set(g, "parser_error", error)
        self._set(g, "checksum_error", g.context(at.CHECKSUM_ERROR))
        fn.ret()
        return fn.text()

    def _next_frame(self, fn: Function) -> str:
        number = word(fn, EXCHANGE, x.FRAMES_USED)
        set_word(fn, EXCHANGE, x.FRAMES_USED, fn.op("add", number, const(1, 64)))
        return fn.offset(fn.load_pointer(Address(EXCHANGE, x.FRAMES)), number, self._frame.size)

    def _depart(self) -> str:
        """Queue a frame: to the replicas of a slot of the replication index, or (null) to one port."""
        fn = Function("depart", [("ptr", "io"), ("ptr", "state"), ("ptr", "frame"), ("ptr", "slot"), ("i64", "port"),
                                 ("i64", "keep")])  # fmt: skip
        tail = word(fn, EXCHANGE, x.QUEUE_TAIL)
        entry = fn.offset(fn.load_pointer(Address(EXCHANGE, x.QUEUE)), tail, x.DEPARTURE)
        set_word(fn, EXCHANGE, x.QUEUE_TAIL, fn.op("add", tail, const(1, 64)))
        fn.store_pointer(FRAME, Address(entry, 0))
        set_word(fn, entry, 24, Value("%keep", 64))
        set_word(fn, entry, 32, Value("%port", 64))
        several, one, after = fn.label(), fn.label(), fn.label()
        fn.branch(Value(fn.ins("icmp eq ptr %slot, null"), 1), one, several)
        fn.begin(one)
        fn.store_pointer("null", Address(entry, 8))
        set_word(fn, entry, 16, 1)
        fn.br(after)
        fn.begin(several)
        fn.store_pointer(fn.offset(STATE, word(fn, "%slot", 8)), Address(entry, 8))
        set_word(fn, entry, 16, word(fn, "%slot", 16))
        fn.begin(after)
        fn.ret()
        return fn.text()

    def _arrive(self, fn: Function, data: str, owned: str, *numbers: Value) -> str:
        """Queue an arrival: the numbers are size, port, type, field list, and time. Returns the address of its user
        metadata."""
        tail = word(fn, EXCHANGE, x.ARRIVALS_TAIL)
        entry = fn.offset(fn.load_pointer(Address(EXCHANGE, x.ARRIVALS)), tail, self.arrival_size)
        set_word(fn, EXCHANGE, x.ARRIVALS_TAIL, fn.op("add", tail, const(1, 64)))
        fn.store_pointer(data, Address(entry, 0))
        for offset, number in zip(range(8, 48, 8), numbers, strict=True):
            set_word(fn, entry, offset, number)
        fn.store_pointer(owned, Address(entry, 48))
        return fn.pointer(Address(entry, x.ARRIVAL))

    def _again(self, g: Gen, data: str, size: Value, kind: int, field_list: Value, owned: str) -> None:
        """Queue a packet that returns to ingress, with its user metadata."""
        fn = g.fn
        meta = self._arrive(fn, data, owned, size, const(0, 64), const(kind, 64), field_list, const(0, 64))
        fn.copy(meta, fn.pointer(Address(FRAME, self._frame.meta)), self._meta_size)

    def _field_list(self, g: Gen) -> Value:
        """The field list of a clone request; -1 for none."""
        with_list = g.fn.compare("eq", g.context(at.CLONE), const(2, 64))
        return g.fn.select(with_list, g.context(at.CLONE_LIST), const(-1, 64))

    def _named_frame(self, fn: Function, pointer: str) -> None:
        fn.name_pointer("frame", pointer)

    def _wanted_session(self, g: Gen) -> str:
        number = g.fn.op("and", g.context(at.CLONE_SESSION), const(CLONE_SESSION_MASK, 64))
        key = g.fn.op("or", number, const(SESSION_BIT, 64))
        return g.fn.ins(f"call ptr @replicas(ptr {STATE}, i64 {key.ref})")

    def _fresh_metadata(self, g: Gen, clone: str, instance: int) -> None:
        fn, frame = g.fn, self._frame
        meta, standard = fn.pointer(Address(clone, frame.meta)), fn.pointer(Address(clone, frame.standard))
        fn.clear(meta, self._meta_size)
        fn.clear(standard, self._module.types.shape(self._standard_type).size)
        source = fn.pointer(Address(FRAME, frame.meta))
        fn.do(f"call void @restore(ptr {meta}, ptr {source}, i64 {self._field_list(g).ref})")
        self._set(g, "instance_type", instance, clone)
