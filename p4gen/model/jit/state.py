"""A switch's state in one block of memory, as a ``ModelState`` that the control plane and the interpreter can use.

Registers, counters, meters and the random generator *are* the block. Tables, the replication engine, action profiles
and value sets have a Python form as well. After a change, it is written to the block before the next packet.
"""

from __future__ import annotations

import ctypes
import hashlib
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from p4gen.model.frozen import Configuration
from p4gen.model.jit.blocks import (
    BUCKET,
    CONFIG,
    DYNAMIC,
    MAGIC,
    PRE_SLOT,
    PRE_SLOTS,
    RANDOM_BYTES,
    SESSION_BIT,
    StateLayout,
)
from p4gen.model.jit.entries import NativeTable
from p4gen.model.jit.layout import Types, container
from p4gen.model.jit.memory import Block, Buckets, Bytes, Cells, NativeBucket, Watched, WatchedList, WatchedSet
from p4gen.model.state import Clock, ModelState
from p4gen.model.tables import TableState
from p4gen.p4 import ir


class NativeState(ModelState):
    """A ``ModelState`` in a block. Call ``place`` once the layout is known, ``flush`` before processing packets."""

    engine: ClassVar = "jit"

    def __init__(self, program: ir.Program, clock: Clock | None = None, seed: int = 0) -> None:
        super().__init__(program, clock, seed)
        self.layout: StateLayout
        self.block: Block
        self._dirty: set[str] = set()
        self._tail_dirty = self._sets_dirty = True
        self._version = self._newest = 0
        self._images: dict[int, tuple[Any, ...]] = {}
        self._frozen: tuple[int, Configuration] | None = None
        """The configuration that was last frozen, with its number."""
        self._native = {t.name: NativeTable(t, self._table_changed) for t in program.tables}
        self.tables = dict(self._native)
        self.groups = Watched(self._tail_changed)
        self.sessions = Watched(self._tail_changed)
        self.value_sets = {v.name: WatchedList(self._sets_changed) for v in program.value_sets}
        self.ports_down = WatchedSet(self._tail_changed)
        # Profiles may have members, or groups, in common.
        watched: dict[int, Any] = {}
        for profile in self.profiles.values():
            profile.members = watched.setdefault(id(profile.members), Watched(self._tail_changed))
            profile.groups = watched.setdefault(id(profile.groups), Watched(self._tail_changed))
            profile.ports_down = self.ports_down

    def _table_changed(self, table: TableState) -> None:
        self._dirty.add(table.table.name)

    def _tail_changed(self) -> None:
        self._tail_dirty = True

    def _sets_changed(self) -> None:
        self._sets_dirty = True

    def place(self, layout: StateLayout, types: Types) -> None:
        """Move everything into a block of that layout."""
        self.layout, self.block = layout, Block(layout)
        digest = hashlib.sha256(repr((layout.items, layout.dynamic, layout.fixed)).encode()).digest()
        self.block.put(MAGIC, 8, int.from_bytes(digest[:8], "little"))
        self._place_memory()
        for name, place in layout.tables.items():
            self._native[name].place(self.block, place, types)
        self._write_random()
        self._dirty = set(self._native)
        self.flush()

    def _place_memory(self) -> None:
        """Replace registers, counters and meters by those in the block."""
        layout = self.layout
        for name, item in layout.registers.items():
            register = self.registers[name]
            cells: Any = Cells(self.block, item, signed=register.signed, is_bool=register.is_bool)
            register.cells = cells
        for name, item in layout.counters.items():
            counter = self.counters[name]
            both: Any = Cells(self.block, item), Cells(self.block, item, 8)
            counter.packets, counter.bytes = both
        for name, item in layout.meters.items():
            places = (item.offset + i * BUCKET for i in range(item.count))
            self.meters[name].buckets = Buckets(NativeBucket(self.block, at) for at in places)

    # --- the block ---

    def flush(self) -> None:
        """Write the control plane's changes since the last packet."""
        if not (self._dirty or self._tail_dirty or self._sets_dirty):
            return
        for name in self._dirty:
            self._native[name].write()
            self._tail_dirty |= self._native[name].table.implementation is not None
        if self._sets_dirty:
            self._write_sets()
        if self._tail_dirty:
            self._write_tail()
        self._newest += 1  # numbers of configurations are never reused
        self._mark_clean(self._newest)
        self.block.put(CONFIG, 8, self._version)

    def _mark_clean(self, version: int) -> None:
        self._dirty.clear()
        self._tail_dirty = self._sets_dirty = False
        self._version = version

    def _write_sets(self) -> None:
        for name, place in self.layout.value_sets.items():
            found = self.value_sets[name]
            self.block.put(place.offset, 8, len(found))
            for i, member in enumerate(found):
                at = place.offset + 8 + i * place.member
                for (width, offset), (value, mask) in zip(place.fields, member, strict=True):
                    size = container(width)
                    self.block.put(at + offset, size, value)
                    self.block.put(at + offset + size, size, mask)

    def _write_tail(self) -> None:
        """Write the end of the block: an open-addressing index by group or session, the replicas, and the shares of
        action profiles."""
        listed = self._replication()
        slots = 1 << max(2 * len(listed), 1).bit_length()
        at = self.layout.fixed
        pool = at + slots * PRE_SLOT
        shares = pool + 8 * sum(len(replicas) for _, replicas, _ in listed)
        self.block.resize(at)
        self.block.resize(shares + sum(t.share_bytes() for t in self._native.values()))
        self.block.put(PRE_SLOTS, 8, slots)
        for key, replicas, keep in listed:
            slot = key % slots
            while self.block.get(at + slot * PRE_SLOT, 8):
                slot = (slot + 1) % slots
            for i, number in enumerate((key + 1, pool, len(replicas), keep)):
                self.block.put(at + slot * PRE_SLOT + 8 * i, 8, number)
            for first, second in replicas:
                self.block.put(pool, 4, first)
                self.block.put(pool + 4, 4, second)
                pool += 8
        for table in self._native.values():
            shares = table.write_shares(shares)

    def _replication(self) -> list[tuple[int, list[tuple[int, int]], int]]:
        """The slots of the replication engine: key, replicas of two 4-byte numbers each, further numbers of the
        slot."""
        listed = [(g.group_id, [(r.port, r.rid) for r in g.replicas], 0) for g in self.groups.values()]
        return listed + [
            (s.session_id | SESSION_BIT, [(r.port, r.rid) for r in s.replicas], s.packet_length)
            for s in self.sessions.values()
        ]

    # --- the Python forms ---

    def _write_random(self) -> None:
        at = self.layout.random
        if at is not None:
            words = np.array(self.random.getstate()[1], np.uint32)
            self.block.array[at : at + RANDOM_BYTES] = words.view(np.uint8)

    def _read_random(self) -> None:
        at = self.layout.random
        if at is not None:
            words = self.block.array[at : at + RANDOM_BYTES].view(np.uint32)
            self.random.setstate((3, tuple(map(int, words)), None))

    def begin_python(self) -> None:
        """Update the Python forms before the interpreter runs on this state."""
        self.flush()
        self._read_random()
        for table in self._native.values():
            table.pull_all()

    def end_python(self) -> None:
        """Update the block after the interpreter has run."""
        self._write_random()
        for table in self._native.values():
            table.push_all()

    @override
    def reset(self) -> None:
        self.block.array[DYNAMIC : self.layout.dynamic] = 0
        super().reset()
        self._write_random()

    # --- freezing ---

    @override
    def _configuration(self) -> Configuration:
        self.flush()
        if self._frozen is None or self._frozen[0] != self._version:
            tables = tuple(table.freeze(self.actions) for table in self._native.values())
            self._frozen = self._version, replace(super()._configuration(), tables=tables)
        return self._frozen[1]

    @override
    def _freeze_memory(self) -> tuple[Any, ...]:
        block = self.block.array.copy()
        block[CONFIG : CONFIG + 8] = 0  # numbers of configurations are this switch's own
        return (block.tobytes(),)

    @override
    def _restore_switch(self, configuration: Configuration, memory: tuple[Any, ...]) -> None:
        block, *_ = memory
        if len(block) < self.layout.fixed or self.block.get(MAGIC, 8) != int.from_bytes(block[:8], "little"):
            raise ValueError("the frozen state is of another program")
        if configuration != self._configuration():
            self._configure(configuration)
            for table, holds in zip(self._native.values(), configuration.tables, strict=True):
                table.settle(holds)
            self._newest += 1
            self._mark_clean(self._newest)
        self.block.resize(len(block))
        self.block.array[:] = np.frombuffer(block, np.uint8)
        self.block.put(CONFIG, 8, self._version)

    def _settings(self) -> Any:
        """The settings that only this architecture's control plane knows."""
        return ()

    def _put_settings(self, settings: Any) -> None:
        """Restore the settings that ``_settings`` returned."""

    # --- snapshots ---

    def snapshot(self) -> Bytes:
        """A copy of the block. The corresponding Python forms are kept as long as this state."""
        self.flush()
        if self._version not in self._images:
            tables = {name: table.image() for name, table in self._native.items()}
            profiles = {name: (dict(p.members), dict(p.groups)) for name, p in self.profiles.items()}
            sets = {name: list(found) for name, found in self.value_sets.items()}
            rest = dict(self.groups), dict(self.sessions), set(self.ports_down)
            self._images[self._version] = tables, profiles, sets, rest, self._settings()
        return self.block.array.copy()

    def restore_snapshot(self, block: Bytes) -> None:
        """Return to a snapshot of this state. Raises ``ValueError`` for a block of another state."""
        if len(block) < self.layout.fixed or self.block.get(MAGIC, 8) != int.from_bytes(block[:8].tobytes(), "little"):
            raise ValueError("the snapshot is not of this program's state")
        version = int.from_bytes(block[CONFIG : CONFIG + 8].tobytes(), "little")
        if version not in self._images:
            raise ValueError("the snapshot is not of this switch")
        same = version == self._version and not (self._dirty or self._tail_dirty or self._sets_dirty)
        if len(block) != len(self.block.array):
            self.block.resize(len(block))
        ctypes.memmove(self.block.address, block.ctypes.data, len(block))
        if not same:
            self._restore_python(version)

    def _restore_python(self, version: int) -> None:
        tables, profiles, sets, (groups, sessions, down), settings = self._images[version]
        for name, image in tables.items():
            self._native[name].restore(image)
        kept: list[tuple[Any, Any]] = [(self.groups, groups), (self.sessions, sessions), (self.ports_down, down)]
        for name, (members, member_groups) in profiles.items():
            kept += [(self.profiles[name].members, members), (self.profiles[name].groups, member_groups)]
        for watched, before in kept:
            watched.clear()
            watched.update(before)
        for name, found in sets.items():
            self.value_sets[name][:] = found
        self._put_settings(settings)
        self._mark_clean(version)
