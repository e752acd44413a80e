"""The state block: the whole state of a switch that outlives a packet, in one contiguous piece of memory.

Registers of sibling instances (the lanes of an aggregator: one declaration, equal geometry) are interleaved, so that
the cells of one index are adjacent. State that packets change comes first, configuration by the control plane after it;
the packet replication engine is last, because only it can grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from p4gen.model.jit.layout import Types, align, container, members
from p4gen.model.state import ModelState
from p4gen.model.tables import TableState, actions_of
from p4gen.p4 import ir
from p4gen.p4 import types as t

MAGIC, CONFIG, PRE_SLOTS, DYNAMIC = 0, 8, 16, 64
"""Offsets of the layout's digest, the configuration's number, the slots of the replication index, and of
what packets change."""

RANDOM_BYTES = 625 * 4
"""The Mersenne Twister: 624 words and the position."""

BUCKET = 80
"""A meter's bucket: configured, cir, cburst, pir, pburst, last (8 bytes each), committed, peak (16 bytes each)."""

PRE_SLOT = 32
"""A slot of the replication index: key + 1 (8 bytes; clone sessions have bit 16 set), the offset of the
replicas in the block, how many, bytes to keep (8 each). A replica is port and rid, 4 bytes each."""

SESSION_BIT = 1 << 16


@dataclass(frozen=True)
class Item:
    """One array in the block: cell ``i`` is ``width`` bits in ``bytes`` bytes at ``offset + i * step``."""

    kind: str
    name: str
    offset: int
    step: int
    bytes: int
    width: int
    count: int

    def outside(self, access: str) -> str:
        """The text of a trap for an index (``{}``) that is out of range; ``access`` as in ``: read at``."""
        return f"{self.kind} {self.name}{access} index {{}}, it has {self.count} elements"


@dataclass(frozen=True)
class KeyPlace:
    """A key field: ``a`` (value or low) and ``b`` (mask or high) in an entry, ``width`` bits in containers."""

    kind: str
    width: int
    a: int
    b: int


@dataclass(frozen=True)
class TablePlace:
    """A table: a default entry, ``capacity`` entries, and either an index by hash or an order.

    An entry is its action's number and its mask's number (4 bytes each), the key, and the action's data, for each
    action at the offsets ``data``. ``slots`` is the size of the hash index (a power of two), 0 for a table that is
    searched in order. ``masks`` is where the masks of the one lpm field are, ``lpm`` the field's position.
    ``counters``, ``meters`` and ``hits`` (times of the last hits) belong to the entries by number. With an action
    profile, an entry has at ``bound`` the place of its shares in the block, their number, and the sum of their weights
    (8 bytes each). A share consists of the sum of the weights up to it (8 bytes) and an entry that holds its action.
    """

    table: ir.Table
    keys: tuple[KeyPlace, ...]
    actions: tuple[ir.ActionRef, ...]
    data: tuple[tuple[int, ...], ...]
    entry: int
    default: int
    entries: int
    capacity: int
    count: int
    slots: int
    index: int
    lpm: int | None
    masks: int
    counters: int | None
    meters: int | None
    hits: int | None
    bound: int
    fixed: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] | None
    """The numbers and fields of the entries, in the order in which they are compared, if the entries cannot change."""


@dataclass(frozen=True)
class SetPlace:
    """A parser value set: a count (8 bytes), then members of (value, mask) containers at ``fields``."""

    value_set: ir.ValueSet
    offset: int
    fields: tuple[tuple[int, int], ...]
    """Width and offset in a member of each field's value; its mask follows."""
    member: int


@dataclass(frozen=True)
class StateLayout:
    """The whole block. ``fixed`` bytes, and then the replication engine's."""

    items: tuple[Item, ...]
    dynamic: int
    """The end of the state that packets change."""
    fixed: int
    random: int | None
    registers: dict[str, Item]
    counters: dict[str, Item]
    meters: dict[str, Item]
    tables: dict[str, TablePlace]
    value_sets: dict[str, SetPlace]
    selectors: frozenset[str]
    """The action profiles whose entries have groups."""
    private: dict[str, Item]
    """The architecture's own arrays."""
    settings: dict[str, int]
    """Offsets of the architecture's own settings."""
    pipe: int = 0
    """The distance, in bytes, from one pipe's own state to that of the next pipe."""

    def item(self, name: str) -> Item:
        """The array of that full name; KeyError if there is none."""
        for item in self.items:
            if item.name == name:
                return item
        raise KeyError(name)


@dataclass
class _Cursor:
    at: int
    items: list[Item] = field(default_factory=list)

    def take(self, size: int, to: int = 8) -> int:
        self.at = align(self.at, to)
        found, self.at = self.at, self.at + size
        return found

    def array(self, kind: str, name: str, step: int, width: int, count: int) -> Item:
        found = Item(kind, name, self.take(step * count, 16), step, step, width, count)
        self.items.append(found)
        return found


@dataclass(frozen=True)
class Own:
    """The state that an architecture has in addition: pipes, each with registers, counters and meters of its own;
    arrays of each pipe by kind and name, with the width of an element and their number; settings by name, with their
    bytes."""

    pipes: int = 1
    private: Sequence[tuple[str, str, int, int]] = ()
    settings: Sequence[tuple[str, int]] = ()


def lay_out(state: ModelState, types: Types, *, with_random: bool, own: Own = Own()) -> StateLayout:
    """The layout of a block for everything in ``state``. State that each pipe has for itself stands in it once for each
    pipe."""
    at = _Cursor(DYNAMIC)
    random = at.take(RANDOM_BYTES) if with_random else None
    if own.pipes > 1:
        at.at = align(at.at, 64)
    begin = at.at
    registers = _registers(state, at)
    counters = {c.name: at.array("counter", c.name, 16, 64, c.size) for c in state.counters.values()}
    meters = {m.name: at.array("meter", m.name, BUCKET, 8 * BUCKET, m.size) for m in state.meters.values()}
    private = {name: at.array(kind, name, container(width), width, count) for kind, name, width, count in own.private}
    pipe = 0
    if own.pipes > 1:
        pipe = align(at.at, 64) - begin
        at.at = begin + own.pipes * pipe
    direct = {name: _direct(state, table, at) for name, table in state.tables.items()}
    dynamic = align(at.at, 64)
    at.at = dynamic
    tables = {name: _table(table, types, at, direct[name]) for name, table in state.tables.items()}
    sets = {v.name: _value_set(v, types, at) for v in state.program.value_sets}
    settings = {name: at.take(size) for name, size in own.settings}
    fixed = align(at.at, 64)
    selectors = frozenset(name for name, profile in state.profiles.items() if profile.selector)
    return StateLayout(
        tuple(at.items), dynamic, fixed, random, registers, counters, meters, tables, sets, selectors, private,
        settings, pipe,
    )  # fmt: skip


def _registers(state: ModelState, at: _Cursor) -> dict[str, Item]:
    siblings: dict[object, list[ir.ExternInstance]] = {}
    for instance in state.program.externs:
        if instance.name in state.registers:
            register = state.registers[instance.name]
            siblings.setdefault((instance.pos, register.width, register.size), []).append(instance)
    found = {}
    for group in siblings.values():
        first = state.registers[group[0].name]
        size = container(first.width)
        step = size * len(group)
        base = at.take(step * first.size, 64)
        for i, instance in enumerate(group):
            found[instance.name] = Item("register", instance.name, base + i * size, step, size, first.width, first.size)
            at.items.append(found[instance.name])
    return found


def capacity(table: TableState) -> int:
    """The most entries that a table has in the block."""
    return max(table.size, len(table.table.entries), 1) if table.keys else 0


def _direct(state: ModelState, table: TableState, at: _Cursor) -> tuple[int | None, int | None, int | None]:
    counters = meters = hits = None
    if table.table.support_timeout:
        hits = at.array("last_hit", table.table.name, 8, 64, capacity(table)).offset
    for extern in table.table.direct:
        kind = state.DIRECT.get(extern.extern)
        if kind == "counter":
            counters = at.array("direct_counter", table.table.name, 16, 64, capacity(table)).offset
        elif kind == "meter":
            meters = at.array("direct_meter", table.table.name, BUCKET, 8 * BUCKET, capacity(table)).offset
    return counters, meters, hits


def _table(
    table: TableState, types: Types, at: _Cursor, direct: tuple[int | None, int | None, int | None]
) -> TablePlace:
    offset, keys = 8, []
    for spec, key in zip(table.keys, (k for k in table.table.keys if k.match_kind != "selector"), strict=True):
        width = spec.width or 8 * types.shape(key.expr.type).size
        size = container(width)
        offset = align(offset, min(size, 8))
        keys.append(KeyPlace(spec.kind, width, offset, offset + size))
        offset += 2 * size
    bound = offset = align(offset, 8)
    if table.table.implementation is not None:
        offset += 24
    actions = actions_of(table.table)
    data = tuple(_data(ref, types, offset) for ref in actions)
    end = max((d[-1] + types.shape(r.action.data[-1].variable.type).size for r, d in zip(actions, data, strict=True)
               if d), default=offset)  # fmt: skip
    entry = align(end, 8)
    most = capacity(table)
    ordered = table.needs_priority or [k.kind for k in keys].count("lpm") > 1
    lpm = None if ordered else next((i for i, k in enumerate(keys) if k.kind == "lpm"), None)
    slots = 0 if ordered or not keys else 1 << (2 * most - 1).bit_length()
    default, count = at.take(entry), at.take(8)
    masks = 0 if lpm is None else at.take(8 + container(keys[lpm].width) * (keys[lpm].width + 1))
    index = at.take(4 * (slots or most))
    entries = at.take(entry * most)
    return TablePlace(
        table.table, tuple(keys), actions, data, entry, default, entries, most, count, slots, index, lpm, masks,
        *direct, bound, _fixed(table),
    )  # fmt: skip


def _fixed(table: TableState) -> tuple[tuple[int, tuple[tuple[int, int], ...]], ...] | None:
    """The fields of a table's entries if the program has fixed them; they are numbered in its order."""
    if not table.table.const_entries or table.table.implementation is not None:
        return None
    if len(table.entries()) < len(table.table.entries):
        return None
    found = []
    numbers = {entry: number for number, entry in enumerate(table.entries())}
    for entry in table.in_order():
        fields = tuple((a, b) for a, b in entry.fields if isinstance(a, int) and isinstance(b, int))
        if len(fields) < len(entry.fields):
            return None
        found.append((numbers[entry], fields))
    return tuple(found)


def _data(ref: ir.ActionRef, types: Types, at: int) -> tuple[int, ...]:
    offsets = []
    for param in ref.action.data:
        shape = types.shape(param.variable.type)
        at = align(at, shape.align)
        offsets.append(at)
        at += shape.size
    return tuple(offsets)


def set_fields(of: t.Type) -> Sequence[t.Type]:
    """The types of a value set's scalars."""
    of = t.strip(of)
    if isinstance(of, (t.Fields, t.Tuple)):
        return [scalar for member in members(of) for scalar in set_fields(member)]
    return [of]


def _value_set(value_set: ir.ValueSet, types: Types, at: _Cursor) -> SetPlace:
    offset, fields = 0, []
    for width in _widths(set_fields(value_set.type), types):
        fields.append((width, offset))
        offset += 2 * container(width)
    member = align(max(offset, 1), 8)
    return SetPlace(value_set, at.take(8 + member * value_set.size), tuple(fields), member)


def _widths(of: Iterable[t.Type], types: Types) -> Iterable[int]:
    for kind in of:
        yield 8 * types.shape(kind).size
