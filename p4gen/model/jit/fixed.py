"""Tables whose entries are part of the program: their keys are compared with constants in the code."""

from __future__ import annotations

from collections.abc import Sequence

from p4gen.model.jit.blocks import TablePlace
from p4gen.model.jit.build import Gen
from p4gen.model.jit.emit import Value, const

WIDEST = 64
"""Bits of a key, or of all keys of an exact table, that are compared at once."""
MOST = 64
"""Entries that are compared at once."""

Targets = Sequence[tuple[tuple[tuple[int, int], ...], str]]
"""Fields of entries, in the order in which they are compared, and where to go if they match."""


def suits(place: TablePlace) -> bool:
    """Whether a table's entries cannot change, and its keys are compared at once."""
    if not place.fixed or not (place.counters is place.meters is place.hits is None):
        return False
    widths = [key.width for key in place.keys]
    if place.slots:
        whole = all(
            mask == (1 << width) - 1 for _, f in place.fixed for (_, mask), width in zip(f, widths, strict=True)
        )
        return whole and place.lpm is None and sum(widths) <= WIDEST
    return max(widths) <= WIDEST and len(place.fixed) <= MOST


def choose(g: Gen, place: TablePlace, keys: Sequence[Value], targets: Targets, miss: str) -> None:
    """Go to the target of the entry that matches, or to ``miss``."""
    if place.slots:
        _exactly(g, keys, targets, miss)
    else:
        _first(g, place, keys, targets, miss)


def _exactly(g: Gen, keys: Sequence[Value], targets: Targets, miss: str) -> None:
    fn, width = g.fn, sum(key.width for key in keys)
    whole = const(0, width)
    for key in keys:
        whole = fn.op("shl", whole, const(key.width, width)) if whole.ref != "0" else whole
        part = fn.resize(key, width)
        whole = part if whole.ref == "0" else fn.op("or", whole, part)
    cases: dict[int, str] = {}
    for fields, label in targets:
        number = 0
        for (value, _), key in zip(fields, keys, strict=True):
            number = number << key.width | value
        cases.setdefault(number, label)
    fn.switch(whole, miss, list(cases.items()))


def _first(g: Gen, place: TablePlace, keys: Sequence[Value], targets: Targets, miss: str) -> None:
    """Compare with all entries in a vector; the first that matches is the lowest bit."""
    fn, count = g.fn, max(8, 1 << (len(targets) - 1).bit_length())
    width = next(w for w in (8, 16, 32, 64) if max(key.width for key in keys) <= w)
    kind = f"<{count} x i{width}>"

    def constants(numbers: list[int], rest: int) -> str:
        listed = [*numbers, *[rest] * (count - len(numbers))]
        return "<" + ", ".join(f"i{width} {number}" for number in listed) + ">"

    matching = ""
    for i, (key, spec) in enumerate(zip(keys, place.keys, strict=True)):
        one = fn.ins(f"insertelement {kind} poison, i{width} {fn.resize(key, width).ref}, i32 0")
        every = fn.ins(f"shufflevector {kind} {one}, {kind} poison, <{count} x i32> zeroinitializer")
        first, second = [fields[i][0] for fields, _ in targets], [fields[i][1] for fields, _ in targets]
        if spec.kind == "range":
            above = fn.ins(f"icmp uge {kind} {every}, {constants(first, 1)}")
            below = fn.ins(f"icmp ule {kind} {every}, {constants(second, 0)}")
            same = fn.ins(f"and <{count} x i1> {above}, {below}")
        else:
            masked = fn.ins(f"and {kind} {every}, {constants(second, 0)}")
            same = fn.ins(f"icmp eq {kind} {masked}, {constants(first, 1)}")
        matching = fn.ins(f"and <{count} x i1> {matching}, {same}") if matching else same
    bits = Value(fn.ins(f"bitcast <{count} x i1> {matching} to i{count}"), count)
    name = g.module.need(f"llvm.cttz.i{count}")
    place_of = fn.call(name, count, f"i{count} {bits.ref}", "i1 false")
    fn.switch(place_of, miss, [(i, label) for i, (_, label) in enumerate(targets)])
