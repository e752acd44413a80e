"""Applying tables: the lookup is a separate function, the actions are inline (spec 14.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from p4gen.model.jit import fixed
from p4gen.model.jit.blocks import KeyPlace, TablePlace
from p4gen.model.jit.build import STATE, ExprHandler, Gen
from p4gen.model.jit.calls import call
from p4gen.model.jit.emit import FALSE, TRUE, Address, Function, Value, const
from p4gen.model.jit.layout import NOW, SYMBOL_BITS, container
from p4gen.p4 import ir

HASH_FACTOR = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio (Knuth 6.4), used to hash keys."""


def apply_table(g: Gen, table: ir.Table) -> tuple[Value, Value]:
    """Apply a table: (hit, number of the action that ran)."""
    fn, place = g.fn, g.module.state.tables[table.name]
    listed = [k for k in table.keys if k.match_kind != "selector"]
    keys = [fn.resize(g.value(k.expr), p.width) for k, p in zip(listed, place.keys, strict=True)]
    default = fn.pointer(Address(STATE, place.default))
    entry, hit, matched = default, FALSE, default
    if place.keys and fixed.suits(place):
        return _apply_fixed(g, place, keys, default)
    if place.keys:
        name = _lookup(g, place)
        arguments = ", ".join([f"ptr {STATE}", *(f"i{k.width} {k.ref}" for k in keys)])
        found = fn.ins(f"call ptr @{name}({arguments})")
        hit = Value(fn.ins(f"icmp ne ptr {found}, null"), 1)
        entry = fn.select_pointer(hit, found, default)
        _hit(g, place, entry, hit)
        matched = entry
        if table.implementation is not None:
            entry = _chosen(g, place, entry, hit)
    action = fn.load(entry, 32, 4)
    after, labels = fn.label(), [fn.label() for _ in place.actions]
    # An entry's action is always one of these.
    fn.switch(action, labels[0], list(enumerate(labels))[1:])
    for number, label in enumerate(labels):
        fn.begin(label)
        _run_action(g, place, number, entry, matched)
        fn.br(after)
    fn.begin(after)
    return hit, action


def _apply_fixed(g: Gen, place: TablePlace, keys: Sequence[Value], default: str) -> tuple[Value, Value]:
    """Apply a table whose entries cannot change: each leads to its action without a lookup."""
    fn = g.fn
    entry = Address(fn.alloca("ptr"))
    hit, action = fn.local(1), fn.local(32)
    after, labels = fn.label(), [fn.label() for _ in place.actions]
    numbers = {ref: number for number, ref in enumerate(place.actions)}
    refs = [e.action.ref for e in place.table.entries]
    taken: dict[object, str] = {}
    targets = []
    for number, fields in place.fixed or ():
        ref = refs[number]
        # Entries without data of their own that have one action cannot be told apart.
        own = number if ref.action.data or place.table.direct else ref
        taken.setdefault(own, fn.label())
        targets.append((fields, taken[own]))
    miss = fn.label()
    fixed.choose(g, place, keys, targets, miss)
    begun = set()
    for number, _ in place.fixed or ():
        ref = refs[number]
        label = taken[number if ref.action.data or place.table.direct else ref]
        if label in begun:
            continue
        begun.add(label)
        fn.begin(label)
        fn.store(TRUE, hit)
        fn.store(const(numbers[ref], 32), action)
        fn.store_pointer(fn.pointer(Address(STATE, place.entries + number * place.entry)), entry)
        fn.br(labels[numbers[ref]])
    fn.begin(miss)
    fn.store(FALSE, hit)
    fn.store_pointer(default, entry)
    other = fn.load(default, 32, 4)
    fn.store(other, action)
    fn.switch(other, labels[0], list(enumerate(labels))[1:])
    for number, label in enumerate(labels):
        fn.begin(label)
        found = fn.load_pointer(entry)
        _run_action(g, place, number, found, found)
        fn.br(after)
    fn.begin(after)
    return fn.load(hit, 1), fn.load(action, 32)


def _hit(g: Gen, place: TablePlace, entry: str, hit: Value) -> None:
    """Generate the architecture's code for every hit, and record the time of the hit."""
    if place.counters is None and place.meters is None and place.hits is None:
        return
    fn = g.fn
    with fn.when(hit):
        g.module.machine.hit(g, place, entry)
        if place.hits is not None:
            number = entry_number(g, place, entry)
            fn.store(g.context(NOW), fn.offset(fn.pointer(Address(STATE, place.hits)), number, 8), 8)


def _chosen(g: Gen, place: TablePlace, entry: str, hit: Value) -> str:
    """The share of an entry's action profile that the packet gets; the entry itself if it has none."""
    fn, found = g.fn, Address(g.fn.alloca("ptr"))
    fn.store_pointer(entry, found)
    with fn.when(hit):
        count = fn.load(Address(entry, place.bound + 8), 64, 8)
        with fn.when(fn.compare("ne", count, const(0, 64))):
            first = fn.offset(STATE, fn.load(Address(entry, place.bound), 64, 8))
            fn.store_pointer(fn.pointer(Address(first, 8)), found)
            implementation = place.table.implementation
            if implementation is not None and implementation.name in g.module.state.selectors:
                total = fn.load(Address(entry, place.bound + 16), 64, 8)
                # A single member has no weight; in a plain action profile, every entry refers to one.
                with fn.when(fn.compare("ne", total, const(0, 64))):
                    _weighted(g, place, first, total, found)
    return fn.load_pointer(found)


def _weighted(g: Gen, place: TablePlace, first: str, total: Value, found: Address) -> None:
    fn, table = g.fn, place.table
    assert table.implementation is not None
    h = g.module.machine.selector(g, table, [k for k in table.keys if k.match_kind == "selector"])
    wanted, at = fn.op("urem", h, total), fn.local(64)
    fn.store(const(0, 64), at)
    with fn.loop() as (_, after):
        share = fn.offset(first, fn.load(at, 64), 8 + place.entry)
        fn.store_pointer(fn.pointer(Address(share, 8)), found)
        following = fn.label()
        fn.branch(fn.compare("ult", wanted, fn.load(share, 64, 8)), after, following)
        fn.begin(following)
        fn.store(fn.op("add", fn.load(at, 64), const(1, 64)), at)


def entry_number(g: Gen, place: TablePlace, entry: str) -> Value:
    """The number of an entry, 64 bits."""
    fn = g.fn
    first = fn.ins(f"ptrtoint ptr {fn.pointer(Address(STATE, place.entries))} to i64")
    distance = fn.op("sub", Value(fn.ins(f"ptrtoint ptr {entry} to i64"), 64), Value(first, 64))
    return fn.op("udiv", distance, const(place.entry, 64))


def count_packet(g: Gen, cell: str, size: Value) -> None:
    """Add a packet of ``size`` bytes to a counter's cell."""
    fn = g.fn
    fn.store(fn.op("add", fn.load(cell, 64, 8), const(1, 64)), cell, 8)
    octets = Address(cell, 8)
    fn.store(fn.op("add", fn.load(octets, 64, 8), size), octets, 8)


def mark(g: Gen, bucket: str, size: Value) -> Value:
    """The colour of a packet that costs ``size`` tokens."""
    name = g.module.need("meter_mark")
    return g.fn.call(name, 64, f"ptr {bucket}", f"i64 {size.ref}", f"i64 {g.context(NOW).ref}")


def _run_action(g: Gen, place: TablePlace, number: int, entry: str, matched: str) -> None:
    """Run an action with the data of an entry; ``matched`` is the entry that the table has found."""
    ref, offsets = place.actions[number], place.data[number]
    for param, offset in zip(ref.action.data, offsets, strict=True):
        of = param.variable.type
        at = g.storage(of)
        g.store(g.load(Address(entry, offset), of), at, of)
        g.env[param.variable] = at

    def run() -> None:
        g.stmt(ref.action.body)

    outer, g.entry = g.entry, (place, matched)
    call(g, *ref.passed, run, closed=False)
    g.entry = outer


def _apply_value(g: Gen, e: ir.ApplyTable) -> Value:
    hit, action = apply_table(g, e.table)
    match e.result:
        case "hit":
            return hit
        case "miss":
            return g.fn.op("xor", hit, TRUE)
        case "action_run":
            return _action_symbol(g, e, action)
    return FALSE


def _action_symbol(g: Gen, e: ir.ApplyTable, action: Value) -> Value:
    """The number of the action, converted to the member of the ``action_run`` enum."""
    place = g.module.state.tables[e.table.name]
    symbols = [g.types.symbol(ref.name, e.type) for ref in place.actions]
    if symbols == list(range(len(symbols))):
        return action
    result = const(symbols[0], SYMBOL_BITS)
    for number, symbol in list(enumerate(symbols))[1:]:
        same = g.fn.compare("eq", action, const(number, 32))
        result = g.fn.select(same, const(symbol, SYMBOL_BITS), result)
    return result


# --- lookups ---


def _lookup(g: Gen, place: TablePlace) -> str:
    """The function that finds an entry, or null, by the key's fields."""
    name = f"lookup_{list(g.module.state.tables.values()).index(place)}"
    if place.table not in g.module.lookups:
        g.module.lookups.add(place.table)
        widths = [k.width for k in place.keys]
        params = [("ptr readonly", "state"), *((f"i{w}", f"k{i}") for i, w in enumerate(widths))]
        fn = Function(name, params, "ptr", "noinline")
        keys = [Value(f"%k{i}", w) for i, w in enumerate(widths)]
        inner = Gen(g.module, fn, g.phase)
        if not place.slots:
            _search(inner, place, keys)
        elif place.lpm is None:
            _probe(inner, place, keys, const(0, 32))
            fn.ret("ptr null")
        else:
            _by_prefix(inner, place, keys, place.lpm)
        g.module.functions.append(fn.text())
    return name


def _probe(g: Gen, place: TablePlace, keys: Sequence[Value], tag: Value) -> None:
    """Look for the entry of these keys and this mask in the hash index; returns it if it is there."""
    fn = g.fn
    slot = fn.local(64)
    fn.store(_hash(g, keys, tag), slot)
    index, entries = fn.pointer(Address(STATE, place.index)), fn.pointer(Address(STATE, place.entries))
    with fn.loop() as (again, after):
        at = fn.op("and", fn.load(slot, 64), const(place.slots - 1, 64))
        number = fn.load(fn.offset(index, at, 4), 32, 4)
        filled = fn.label()
        fn.branch(fn.compare("eq", number, const(0, 32)), after, filled)
        fn.begin(filled)
        entry = fn.offset(entries, fn.op("sub", fn.resize(number, 64), const(1, 64)), place.entry)
        same = fn.compare("eq", fn.load(Address(entry, 4), 32, 4), tag)
        for field, key in zip(place.keys, keys, strict=True):
            same = fn.op("and", same, fn.compare("eq", g.load_container(Address(entry, field.a), key.width), key))
        found, following = fn.label(), fn.label()
        fn.branch(same, found, following)
        fn.begin(found)
        fn.ret(f"ptr {entry}")
        fn.begin(following)
        fn.store(fn.op("add", at, const(1, 64)), slot)
        fn.br(again)


def _hash(g: Gen, keys: Sequence[Value], tag: Value) -> Value:
    fn, h = g.fn, g.fn.resize(tag, 64)
    for key in keys:
        for low in range(0, key.width, 64):
            width = max(key.width, 64)
            word = fn.op("lshr", fn.resize(key, width), const(low, width)) if low else fn.resize(key, width)
            h = fn.op("mul", fn.op("xor", h, fn.resize(word, 64)), const(HASH_FACTOR, 64))
            h = fn.op("xor", h, fn.op("lshr", h, const(32, 64)))
    return h


def hash_key(values: Sequence[tuple[int, int]], tag: int) -> int:
    """The hash that ``_hash`` computes, for (value, width) of each field."""
    h = tag
    for value, width in values:
        for low in range(0, width, 64):
            h = ((h ^ (value >> low)) & 0xFFFFFFFFFFFFFFFF) * HASH_FACTOR & 0xFFFFFFFFFFFFFFFF
            h ^= h >> 32
    return h


def _by_prefix(g: Gen, place: TablePlace, keys: Sequence[Value], lpm: int) -> None:
    """Longest prefix first: one probe for each mask in use."""
    fn, width = g.fn, place.keys[lpm].width
    number = fn.local(32)
    fn.store(const(0, 32), number)
    count = fn.load(Address(STATE, place.masks), 64, 8)
    masks = fn.pointer(Address(STATE, place.masks + 8))
    with fn.loop() as (_, after):
        tag = fn.load(number, 32)
        more = fn.label()
        fn.branch(fn.compare("ult", fn.resize(tag, 64), count), more, after)
        fn.begin(more)
        mask = g.load_container(fn.offset(masks, tag, container(width)), width)
        masked = [fn.op("and", k, mask) if i == lpm else k for i, k in enumerate(keys)]
        _probe(g, place, masked, tag)
        fn.store(fn.op("add", tag, const(1, 32)), number)
    fn.ret("ptr null")


def _search(g: Gen, place: TablePlace, keys: Sequence[Value]) -> None:
    """The first entry in the order of priority whose fields all accept the key."""
    fn, at = g.fn, g.fn.local(64)
    fn.store(const(0, 64), at)
    count = fn.load(Address(STATE, place.count), 64, 8)
    order, entries = fn.pointer(Address(STATE, place.index)), fn.pointer(Address(STATE, place.entries))
    with fn.loop() as (_, after):
        i = fn.load(at, 64)
        more = fn.label()
        fn.branch(fn.compare("ult", i, count), more, after)
        fn.begin(more)
        number = fn.load(fn.offset(order, i, 4), 32, 4)
        entry = fn.offset(entries, number, place.entry)
        accepted = TRUE
        for field, key in zip(place.keys, keys, strict=True):
            accepted = fn.op("and", accepted, _accepts(g, entry, field, key))
        found, following = fn.label(), fn.label()
        fn.branch(accepted, found, following)
        fn.begin(found)
        fn.ret(f"ptr {entry}")
        fn.begin(following)
        fn.store(fn.op("add", i, const(1, 64)), at)
    fn.ret("ptr null")


def _accepts(g: Gen, entry: str, field: KeyPlace, key: Value) -> Value:
    fn = g.fn
    a = g.load_container(Address(entry, field.a), field.width)
    b = g.load_container(Address(entry, field.b), field.width)
    if field.kind == "range":
        return fn.op("and", fn.compare("ule", a, key), fn.compare("ule", key, b))
    return fn.compare("eq", fn.op("and", key, b), a)


VALUES: Mapping[type[ir.Expr], ExprHandler] = {ir.ApplyTable: _apply_value}
