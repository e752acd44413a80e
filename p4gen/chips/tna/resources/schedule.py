"""Stages: list scheduling of both gresses' nodes, the longest chains first.

A node comes at least one stage after every node that writes bits which it matches, reads or writes. A table with more
RAMs than a stage has goes on in the next. Nodes that share a memory are in one stage. On a chip that cannot remember
over several stages how a condition was decided, nodes after a block of conditions come in the stage of the block's last
node, or later.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from p4gen.chips.tna.resources.access import bit_count
from p4gen.chips.tna.resources.chips import Chip, StageLimits
from p4gen.chips.tna.resources.demand import (
    Need,
    entries_of,
    gateways_of,
    index_bits,
    match_of,
    matching,
    memory,
    memory_of,
)
from p4gen.chips.tna.resources.graph import Condition, Node, behind, distance
from p4gen.chips.tna.resources.instructions import InstructionMemory
from p4gen.p4 import ir

_RAMS = ("srams", "tcams")
"""The resources that a table may have in several stages."""


@dataclass(eq=False)
class Unit:
    """Nodes that stand in one stage, as they share memories."""

    nodes: list[Node]
    memories: dict[ir.ExternInstance, tuple[str, Need]] = field(default_factory=dict)
    """Each memory with the module that declares it."""
    before: dict[Unit, int] = field(default_factory=dict)
    """The units that come before, and by how many stages."""
    height: int = 0
    """The longest chain behind it, in stages."""
    first: int = -1
    last: int = -1


@dataclass
class Placement:
    """The stages of a pipe's units, and the load of each stage."""

    units: list[Unit]
    stages: list[Need]
    modules: dict[str, Need]
    conflicts: list[str]
    """Memories that a packet would access twice."""


def place(nodes: Sequence[Node], owners: Mapping[ir.ExternInstance, str], chip: Chip) -> Placement:
    """Place the nodes of all gresses of a pipe. ``owners`` are the modules that declare memories."""
    units, conflicts = _units(nodes, owners, chip)
    _heights(units)
    found = _Scheduler(chip, units, conflicts)
    found.run()
    return found.placement


def _units(nodes: Sequence[Node], owners: Mapping[ir.ExternInstance, str], chip: Chip) -> tuple[list[Unit], list[str]]:
    conflicts: list[str] = []
    unit_of: dict[Node, Unit] = {}
    holder: dict[ir.ExternInstance, Unit] = {}
    units: list[Unit] = []
    for node in nodes:
        unit = Unit([node])
        owned = [(i, m) for i in node.instances if (m := memory_of(i)) is not None]
        for _, shared in owned:
            known = holder.get(shared)
            if known is not None and known is not unit:
                _merge(known, unit, units, holder, unit_of)
                unit = known
        if node not in unit.nodes:
            unit.nodes.append(node)
        unit_of[node] = unit
        if unit not in units:
            units.append(unit)
        for _, held in owned:
            entries = _entries(node, held, chip)
            unit.memories.setdefault(held, (owners.get(held, node.module), memory(held, entries or 1, node.data)))
            holder[held] = unit
    sizes = Counter(condition for node in nodes for condition, _ in node.path)
    for j, then in enumerate(nodes):
        for first in nodes[:j]:
            if first.gress != then.gress:
                continue
            apart = distance(first, then)
            if apart is None and not chip.long_branches and behind(first, then, sizes):
                apart = 0
            if apart is None:
                continue
            one, other = unit_of[first], unit_of[then]
            if one is other:
                if apart and set(first.instances) & set(then.instances):
                    both = f"{then.name} needs what {first.name} writes, and both access one memory"
                    conflicts.append(f"{then.module}: {both}")
                continue
            other.before[one] = max(other.before.get(one, 0), apart)
    return units, conflicts


def _entries(node: Node, held: ir.ExternInstance, chip: Chip) -> int:
    """The entries of a direct memory: as many as its table has room for."""
    if node.table is None or not held.extern.startswith("Direct"):
        return 0
    return matching(node, node.table, chip).capacity if node.table.keys else entries_of(node.table)


def _merge(
    into: Unit, unit: Unit, units: list[Unit], holder: dict[ir.ExternInstance, Unit], unit_of: dict[Node, Unit]
) -> None:
    for node in unit.nodes:
        if node not in into.nodes:
            into.nodes.append(node)
        unit_of[node] = into
    into.memories.update(unit.memories)
    for held in unit.memories:
        holder[held] = into
    if unit in units:
        units.remove(unit)


def _instructions(unit: Unit, memory: InstructionMemory) -> list[tuple[str, Need]]:
    """Place the actions of a unit. Returns in how many words each module's stand; tables of one profile share them."""
    found: list[tuple[str, Need]] = []
    profiles: set[ir.ExternInstance] = set()
    for node in unit.nodes:
        profile = node.table.implementation if node.table is not None else None
        if profile is not None and profile in profiles:
            continue
        profiles.update([profile] if profile is not None else [])
        found.append((node.module, Need(vliw=memory.add(node.gress, node.instructions))))
    return found


def _heights(units: Sequence[Unit]) -> None:
    """Longest chains; a circle, which sharing memories can make, ends after as many rounds as there are units."""
    for _ in range(len(units)):
        changed = False
        for unit in units:
            for first, apart in unit.before.items():
                if first.height < unit.height + apart <= len(units):
                    first.height = unit.height + apart
                    changed = True
        if not changed:
            return


class _Scheduler:
    def __init__(self, chip: Chip, units: list[Unit], conflicts: list[str]) -> None:
        self.chip = chip
        self.limits: StageLimits = chip.stage
        self.placement = Placement(units, [], defaultdict(Need), conflicts)
        self.instructions: list[InstructionMemory] = []
        self.charged: set[Condition] = set()
        self.hashed: set[tuple[int, frozenset[object]]] = set()
        """Addresses that a stage computes already: all memories there can use them."""

    def run(self) -> None:
        order = {unit: i for i, unit in enumerate(self.placement.units)}
        waiting = sorted(self.placement.units, key=lambda u: (-u.height, order[u]))
        stage = 0
        while waiting:
            again = True
            placed_any = False
            while again:
                again = False
                for unit in list(waiting):
                    if self._ready(unit, stage) and self._put(unit, stage):
                        waiting.remove(unit)
                        again = placed_any = True
            if not placed_any and all(not self._pending(u) for u in waiting):
                # A circle: whatever is first in the program goes first.
                unit = min(waiting, key=order.__getitem__)
                unit.before.clear()
                continue
            stage += 1

    def _pending(self, unit: Unit) -> bool:
        """Whether a unit waits only for room or stages."""
        return all(first.last >= 0 for first in unit.before)

    def _ready(self, unit: Unit, stage: int) -> bool:
        return all(first.last >= 0 and first.last + apart <= stage for first, apart in unit.before.items())

    def _stage(self, stage: int) -> Need:
        while len(self.placement.stages) <= stage:
            self.placement.stages.append(Need())
            self.instructions.append(InstructionMemory())
        return self.placement.stages[stage]

    def _put(self, unit: Unit, stage: int) -> bool:
        """Place a unit from a stage on, if there is room; tables' RAMs may go on in the stages behind."""
        needs, addresses = self._needs(unit, stage)
        total = Need()
        for _, need in needs:
            total.add(need)
        self._stage(stage)
        instructions = self.instructions[stage].copy()
        words = _instructions(unit, instructions)
        total.vliw = instructions.used - self.instructions[stage].used
        room = {f.name: getattr(self.limits, f.name) - getattr(self._stage(stage), f.name) for f in fields(Need)}
        empty = self._stage(stage) == Need()
        for name, free in room.items():
            wanted = getattr(total, name)
            if wanted > free and not (name in _RAMS and free > 0 and not unit.memories) and not empty:
                return False
        self.instructions[stage] = instructions
        for module, need in (*needs, *words):
            self.placement.modules[module].add(need)
        self.hashed |= addresses
        for node in unit.nodes:
            self.charged.update(node.conditions)
        last = stage
        here = self._stage(stage)
        for f in fields(Need):
            wanted, at = getattr(total, f.name), stage
            if f.name not in _RAMS or unit.memories:
                setattr(here, f.name, getattr(here, f.name) + wanted)
                continue
            while wanted > 0:
                held = self._stage(at)
                taken = min(wanted, max(getattr(self.limits, f.name) - getattr(held, f.name), 0))
                setattr(held, f.name, getattr(held, f.name) + taken)
                if at > stage and taken:
                    last = max(last, at)
                wanted -= taken
                at += 1
        unit.first, unit.last = stage, last
        return True

    def _needs(self, unit: Unit, stage: int) -> tuple[list[tuple[str, Need]], set[tuple[int, frozenset[object]]]]:
        """The demand of a unit in a stage, by module, and the addresses that are computed for it."""
        found: list[tuple[str, Need]] = list(unit.memories.values())
        addresses: set[tuple[int, frozenset[object]]] = set()
        charged = set(self.charged)
        for node in unit.nodes:
            fresh = [c for c in node.conditions if c not in charged]
            found.append((node.module, match_of(node, self.chip, guarded=bool(fresh))))
            addressed = any(memory_of(i) is not None and index_bits(node, i) for i in node.instances)
            if addressed and not fresh and (node.table is None or not node.table.keys):
                # Without a key, a gateway makes it run with an address.
                found.append((node.module, Need(gateways=1)))
            for i, condition in enumerate(fresh):
                charged.add(condition)
                need = gateways_of(bit_count(condition.reads))
                need.tables = int(i > 0)
                found.append((condition.module, need))
            for instance in node.instances:
                held = memory_of(instance)
                if held is None:
                    continue
                bits = index_bits(node, instance)
                address = (stage, frozenset((node.instances[instance] or {}).items()))
                if bits and address not in self.hashed and address not in addresses:
                    addresses.add(address)
                    found.append((node.module, Need(hash_bits=bits)))
        return found, addresses
