"""The demands of a node: RAMs, ALUs, words of instructions, bits of hashes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import ceil
from typing import Final

from p4gen.chips.tna.resources import chips
from p4gen.chips.tna.resources.access import bit_count, width
from p4gen.chips.tna.resources.graph import Node
from p4gen.p4 import ir

_ACTIONS: Final = frozenset(
    f"{direct}RegisterAction{n}" for direct in ("", "Direct") for n in ("", "2", "3", "4")
) | {"LearnAction", "LearnAction2", "LearnAction3", "LearnAction4", "MinMaxAction"}  # fmt: skip
_METERS: Final = ("Meter", "DirectMeter", "Lpf", "DirectLpf", "Wred", "DirectWred")
_COUNTERS: Final = ("Counter", "DirectCounter")
_PROFILES: Final = ("ActionProfile", "ActionSelector")
_TCAM_KINDS: Final = ("ternary", "lpm", "range")


@dataclass
class Need:
    """Amounts of a stage's resources, by the names of ``StageLimits``."""

    salus: int = 0
    stats: int = 0
    srams: int = 0
    map_rams: int = 0
    tcams: int = 0
    gateways: int = 0
    tables: int = 0
    vliw: int = 0
    hash_bits: int = 0
    hash_units: int = 0

    def add(self, other: Need) -> None:
        """Add the amounts of ``other`` to these."""
        for f in fields(self):
            setattr(self, f.name, getattr(self, f.name) + getattr(other, f.name))


def memory_of(instance: ir.ExternInstance) -> ir.ExternInstance | None:
    """The instance that owns the memory: the register, for an action on a register."""
    if instance.extern in _ACTIONS:
        held = instance.arguments.get("reg")
        return held if isinstance(held, ir.ExternInstance) else None
    held = ("Register", "DirectRegister", *_METERS, *_COUNTERS, *_PROFILES)
    return instance if instance.extern in held else None


def memory(instance: ir.ExternInstance, entries: int, data: int = 0) -> Need:
    """The ALU and RAMs of a register, a counter, a meter or a profile; ``entries`` are a table's, for one that is
    direct, and ``data`` bits of a table's action data, for a profile.

    Every RAM of such a memory has a map RAM beside it, and one more of both is spare (p4c, calculate_attached_rams).
    """
    size = instance.arguments.get("size", entries)
    entries = size if isinstance(size, int) else entries
    if instance.extern in _PROFILES:
        need = Need(srams=_action_rams(entries, data) if data and "action_profile" not in instance.arguments else 0)
        if instance.extern == "ActionSelector":
            need.add(Need(salus=1, srams=2, map_rams=2, hash_bits=14))
        return need
    if instance.extern in _COUNTERS:
        per_word = _counters_a_word(instance)
        rams = ceil(entries / (chips.RAM_WORDS * per_word)) + 1
        return Need(stats=1, srams=rams, map_rams=rams)
    if instance.extern in _METERS:
        rams = ceil(entries / chips.RAM_WORDS) + 1
        return Need(salus=1, srams=rams, map_rams=rams)
    wide = 1 << max(width(instance.type_args[0]) - 1, 0).bit_length()
    rams = ceil(entries * min(wide, chips.RAM_WIDTH) / chips.RAM_BITS) + 1
    return Need(salus=1, srams=rams, map_rams=rams)


def _counters_a_word(instance: ir.ExternInstance) -> int:
    kind = next((a for a in instance.args if isinstance(a, str)), "PACKETS")
    wide = width(instance.type_args[0]) if instance.type_args else 32
    if kind == "PACKETS_AND_BYTES":
        return 2 if wide <= 36 else 1
    return 4 if wide <= 32 else 2


def entries_of(table: ir.Table) -> int:
    """How many entries a table has room for."""
    return max(table.size or (len(table.entries) or chips.DEFAULT_SIZE), 1)


@dataclass(frozen=True)
class Match:
    """The memory of a table's keys, and the number of entries for which it has room."""

    rams: int = 0
    tcams: int = 0
    hash_bits: int = 0
    capacity: int = 0
    gateways: int = 0


def match_of(node: Node, chip: chips.Chip, *, guarded: bool = False) -> Need:
    """The demand of matching, with action data; without memories of externs, instructions and conditions.

    A table that is ``guarded`` has a condition's gateway already.
    """
    table = node.table
    given = [wide for _, wide in node.calls]
    need = Need(tables=1, hash_bits=sum(given), hash_units=sum(ceil(wide / chips.HASH_UNIT) for wide in given))
    if table is None or not table.keys:
        need.srams += node.data > chips.IMMEDIATE_BITS
        return need
    match = matching(node, table, chip, guarded=guarded)
    need.tcams, need.hash_bits = match.tcams, need.hash_bits + match.hash_bits
    need.gateways = match.gateways
    need.srams = match.rams + _action_rams(match.capacity, _direct_data(node, table))
    return need


def matching(node: Node, table: ir.Table, chip: chips.Chip, *, guarded: bool = False) -> Match:
    """The memory of a table with keys, and its room."""
    entries = entries_of(table)
    overhead = _overhead(node, table)
    keys = [key for key in table.keys if key.match_kind != "selector"]
    key_bits = sum(map(_key_width, keys))
    if not guarded and _in_gateway(node, table, key_bits, overhead, chip):
        return Match(gateways=1, capacity=len(table.entries))
    if any(k.match_kind in _TCAM_KINDS for k in keys) and not _algorithmic(table):
        deep = ceil(_lines(table, keys, entries) / chips.TCAM_ENTRIES)
        line = 1 << max(3, (overhead - 1).bit_length())
        rams = ceil(deep * chips.TCAM_ENTRIES * line / chips.RAM_BITS) if overhead else 0
        return Match(
            rams, deep * max(1, ceil(sum(map(_matched, keys)) / chips.TCAM_WIDTH)), 0, deep * chips.TCAM_ENTRIES
        )
    return _exact(key_bits, entries, overhead, _direct_data(node, table))


def _in_gateway(node: Node, table: ir.Table, key: int, overhead: int, chip: chips.Chip) -> bool:
    """Whether a gateway holds a table's few constant entries (p4c, FindPayloadCandidates)."""
    entries = len(table.entries)
    return (
        table.const_entries
        and 0 < entries <= chip.gateway_entries
        and key <= chips.GATEWAY_BITS
        and not _direct_data(node, table)
        and overhead * entries <= chips.PAYLOAD_BITS
        and all(k.match_kind in ("exact", "ternary", "lpm") for k in table.keys)
        and not any(a.name == "no_gateway_conversion" for a in table.annotations)
    )


def _lines(table: ir.Table, keys: Iterable[ir.Key], entries: int) -> int:
    """Lines of TCAM. An entry with a range takes up to two for each nibble but one, and a quarter of the entries may
    have a range, unless the table says how many (p4c, RangeEntries)."""
    most = max((2 * ceil(width(key.expr.type) / 4) - 1 for key in keys if key.match_kind == "range"), default=1)
    arguments = next((a.args for a in table.annotations if a.name == "entries_with_ranges"), ())
    ranges = int(arguments[0]) if arguments and isinstance(arguments[0], int) and arguments[0] > 0 else entries // 4
    return entries + min(ranges, entries) * (min(most, chips.RANGE_LINES) - 1)


def _overhead(node: Node, table: ir.Table) -> int:
    """Bits beside a key: action data or a pointer to it, and the number of the action."""
    choices = sum(not ref.default_only for ref in table.actions)
    held = table.implementation
    if held is None or held.extern not in _PROFILES:
        return min(node.data, chips.IMMEDIATE_BITS) + max(choices - 1, 0).bit_length()
    profile = held.arguments.get("action_profile", held)
    size = profile.arguments.get("size", 0) if isinstance(profile, ir.ExternInstance) else 0
    pointer = size.bit_length() if isinstance(size, int) else 0
    return pointer + max(choices - 1, 0).bit_length() + (chips.GROUP_BITS if held.extern == "ActionSelector" else 0)


def _direct_data(node: Node, table: ir.Table) -> int:
    """Bits of action data that stand in RAMs of their own, for each entry that the match has room for."""
    own = table.implementation is None or table.implementation.extern not in _PROFILES
    return max(node.data - chips.IMMEDIATE_BITS, 0) if own else 0


def _key_width(key: ir.Key) -> int:
    """A range takes two bits of TCAM for each of its own."""
    return (width(key.expr.type) or 1) * (2 if key.match_kind == "range" else 1)


def _matched(key: ir.Key) -> int:
    """Bits that a key takes of a line of TCAM: all bytes that it touches."""
    if isinstance(key.expr, ir.Slice):
        return 8 * (key.expr.hi // 8 - key.expr.lo // 8 + 1)
    return 8 * ceil(_key_width(key) / 8)


def _algorithmic(table: ir.Table) -> bool:
    """Whether its entries stand in SRAM although they match as in a TCAM."""
    held = table.implementation
    named = {"alpm", "algorithmic_lpm", "use_algorithmic_tcam", "atcam_partition_index"}
    return (
        (held is not None and held.extern in ("Alpm", "Atcam"))
        or not named.isdisjoint(table.properties)
        or any(a.name in named for a in table.annotations)
    )


def _action_rams(entries: int, data: int) -> int:
    """RAMs of action data: an entry takes a power of two of bytes, or whole words of several RAMs."""
    if not data:
        return 0
    if data > chips.RAM_WIDTH:
        return ceil(data / chips.RAM_WIDTH) * ceil(entries / chips.RAM_WORDS)
    size = 8 << max(ceil(data / 8) - 1, 0).bit_length()
    return ceil(entries * size / chips.RAM_BITS)


def _exact(key: int, entries: int, overhead: int, data: int) -> Match:
    """The memory of an exact table.

    A word of several RAMs holds up to four entries a RAM. A hash selects the line of each way, and a key need not hold
    those ten bits. There is more room than requested, and action data is reserved for all of it; so p4c takes the
    fewest RAMs for both.
    """
    if key <= chips.INDEX_BITS and entries <= chips.RAM_WORDS:
        return Match(1, 0, chips.INDEX_BITS, chips.RAM_WORDS)
    bits = max(key - chips.INDEX_BITS, 0) + overhead + 4
    found: list[tuple[int, int, int, int]] = []
    for wide in range(1, 9):
        for packed in range(1, min(4 * wide, chips.RAM_WIDTH * wide // bits) + 1):
            depth = max(chips.WAYS, ceil(entries / (packed * chips.RAM_WORDS)))
            room = depth * packed * chips.RAM_WORDS
            found.append((wide * depth + _action_rams(room, data), room, wide * depth, depth))
    if not found:
        depth = max(chips.WAYS, ceil(entries / chips.RAM_WORDS))
        found.append((0, depth * chips.RAM_WORDS, ceil(bits / chips.RAM_WIDTH) * depth, depth))
    _, room, rams, depth = min(found)
    select = max(ceil(depth / chips.WAYS) - 1, 0).bit_length()
    return Match(rams, 0, chips.WAYS * (chips.INDEX_BITS + select), room)


def gateways_of(bits: int) -> Need:
    """The demand of a condition on so many bits; beyond four bytes it reads bits of a hash."""
    wide = max(1, ceil(bits / chips.GATEWAY_BITS))
    return Need(gateways=wide, hash_bits=min(12 * wide, max(0, bits - 32 * wide)))


def index_bits(node: Node, instance: ir.ExternInstance) -> int:
    """Bits of a hash that address a memory, as many as the index is declared with; none if action data or a constant
    does, or the table's own entry."""
    return bit_count(node.instances.get(instance) or {})
