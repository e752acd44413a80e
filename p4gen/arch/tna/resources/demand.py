"""What a node needs: RAMs, ALUs, words of instructions, bits of hashes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import ceil
from typing import Final

from p4gen.arch.tna.resources import chips
from p4gen.arch.tna.resources.access import bit_count, width
from p4gen.arch.tna.resources.graph import Node
from p4gen.p4 import ir

_ACTIONS: Final = frozenset(
    f"{direct}RegisterAction{n}" for direct in ("", "Direct") for n in ("", "2", "3", "4")
) | {"LearnAction", "LearnAction2", "LearnAction3", "LearnAction4", "MinMaxAction"}  # fmt: skip
_METERS: Final = ("Meter", "DirectMeter", "Lpf", "DirectLpf", "Wred", "DirectWred")
_COUNTERS: Final = ("Counter", "DirectCounter")
_TCAM_KINDS: Final = ("ternary", "lpm", "range")


@dataclass
class Need:
    """Amounts of what a stage has, by the names of ``StageLimits``."""

    salus: int = 0
    stats: int = 0
    srams: int = 0
    map_rams: int = 0
    tcams: int = 0
    gateways: int = 0
    tables: int = 0
    vliw: int = 0
    hash_bits: int = 0

    def add(self, other: Need) -> None:
        """Add each amount."""
        for f in fields(self):
            setattr(self, f.name, getattr(self, f.name) + getattr(other, f.name))


def memory_of(instance: ir.ExternInstance) -> ir.ExternInstance | None:
    """The instance that owns the memory: of an action on a register that register."""
    if instance.extern in _ACTIONS:
        held = instance.arguments.get("reg")
        return held if isinstance(held, ir.ExternInstance) else None
    return instance if instance.extern in ("Register", "DirectRegister", *_METERS, *_COUNTERS) else None


def memory(instance: ir.ExternInstance, entries: int) -> Need:
    """The ALU and RAMs of a register, a counter or a meter; ``entries`` are a table's, for one that is direct.

    Every RAM of such a memory has a map RAM beside it, and one more of both is spare (p4c, calculate_attached_rams).
    """
    size = instance.arguments.get("size", entries)
    entries = size if isinstance(size, int) else entries
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


def match_of(node: Node) -> Need:
    """What matching takes, with action data and instructions; memories of externs and gateways are left out."""
    table = node.table
    need = Need(tables=1, vliw=node.actions)
    for _, wide in node.calls:
        need.hash_bits += wide
    if table is None or not table.keys:
        return need
    entries = entries_of(table)
    key_bits = sum(_key_width(k) for k in table.keys)
    data = max((sum(width(p.variable.type) for p in ref.action.data) for ref in table.actions), default=0)
    pointer = entries.bit_length() if data > chips.IMMEDIATE_BITS else 0
    choices = sum(not ref.default_only for ref in table.actions)
    overhead = (pointer or data) + max(choices - 1, 0).bit_length()
    if table.implementation is not None:
        _implementation(table, need, data)
        overhead, pointer = 20, 0
    if pointer:
        need.srams += _action_rams(entries, data)
    if any(k.match_kind in _TCAM_KINDS for k in table.keys) and not _algorithmic(table):
        need.tcams += ceil(key_bits / chips.TCAM_WIDTH) * ceil(entries / chips.TCAM_ENTRIES)
        if overhead:
            need.srams += ceil(entries * (1 << max(3, (overhead - 1).bit_length())) / chips.RAM_BITS)
        return need
    rams, ways = _exact(key_bits, entries, overhead)
    need.srams += rams
    need.hash_bits += ways
    return need


def _key_width(key: ir.Key) -> int:
    """A range takes two bits of TCAM for each of its own."""
    return (width(key.expr.type) or 1) * (2 if key.match_kind == "range" else 1)


def _algorithmic(table: ir.Table) -> bool:
    """Whether its entries stand in SRAM although they match as in a TCAM."""
    held = table.implementation
    named = {"alpm", "algorithmic_lpm", "use_algorithmic_tcam", "atcam_partition_index"}
    return (
        (held is not None and held.extern in ("Alpm", "Atcam"))
        or not named.isdisjoint(table.properties)
        or any(a.name in named for a in table.annotations)
    )


def _implementation(table: ir.Table, need: Need, data: int) -> None:
    """Profiles hold the action data; a selector has a meter ALU and its own RAMs besides."""
    held = table.implementation
    if held is None:
        return
    profile = held.arguments.get("action_profile", held)
    size = profile.arguments.get("size", 0) if isinstance(profile, ir.ExternInstance) else 0
    if isinstance(size, int) and size and data:
        need.srams += _action_rams(size, data)
    if held.extern == "ActionSelector":
        need.salus += 1
        need.srams += 2
        need.map_rams += 2
        need.hash_bits += 14


def _action_rams(entries: int, data: int) -> int:
    """An entry of action data takes a power of two of bytes, at least one, or whole words."""
    size = 1 << max(ceil(data / 8) - 1, 0).bit_length()
    return ceil(entries * size * 8 / chips.RAM_BITS)


def _exact(key: int, entries: int, overhead: int) -> tuple[int, int]:
    """RAMs of an exact table, and bits of its hash.

    A word of several RAMs holds up to four entries a RAM; a hash selects the line of each way, and a key need not hold
    those ten bits.
    """
    if key <= chips.INDEX_BITS:
        return max(1, ceil(entries * (overhead + 4) / chips.RAM_BITS)), key
    bits = key - chips.INDEX_BITS + overhead + 4
    rams, depth = _packed(ceil(bits / chips.RAM_WIDTH), 1, entries)
    for wide in range(1, 9):
        for packed in range(1, min(4 * wide, chips.RAM_WIDTH * wide // bits) + 1):
            rams, depth = min((rams, depth), _packed(wide, packed, entries))
    select = max(ceil(depth / chips.WAYS) - 1, 0).bit_length()
    return rams, chips.WAYS * (chips.INDEX_BITS + select)


def _packed(wide: int, packed: int, entries: int) -> tuple[int, int]:
    """RAMs, and words of RAMs, where words of so many RAMs hold so many entries."""
    depth = max(chips.WAYS, ceil(entries / (packed * chips.RAM_WORDS)))
    return wide * depth, depth


def gateways_of(bits: int) -> Need:
    """What a condition on so many bits takes; beyond four bytes it reads bits of a hash."""
    wide = max(1, ceil(bits / chips.GATEWAY_BITS))
    return Need(gateways=wide, hash_bits=min(12 * wide, max(0, bits - 32 * wide)))


def index_bits(node: Node, instance: ir.ExternInstance) -> int:
    """Bits of a hash that address a memory, as many as the index is declared with; none if action data or a constant
    does, or the table's own entry."""
    return bit_count(node.instances.get(instance) or {})
