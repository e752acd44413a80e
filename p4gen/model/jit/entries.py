"""Tables in the state block: the Python form, used by the control plane, and how it is written to the block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from typing_extensions import override

from p4gen.model.externs import Bucket
from p4gen.model.frozen import Actions, FrozenTable
from p4gen.model.jit.blocks import BUCKET, TablePlace
from p4gen.model.jit.layout import Types, container
from p4gen.model.jit.memory import Block, NativeBucket
from p4gen.model.jit.tables import hash_key
from p4gen.model.profiles import Choice
from p4gen.model.tables import Installed, TableState
from p4gen.p4 import ir


class NativeTable(TableState):
    """A table whose entries have numbers in the block; ``write`` updates the block."""

    def __init__(self, table: ir.Table, changed: Callable[[TableState], None]) -> None:
        self._numbers: dict[Installed, int] = {}
        self._stale: set[Installed] = set()
        """Entries whose key or action the block does not have."""
        self._moved = True
        """Whether entries were added or removed since the index was written."""
        self._handed_out: set[Installed] = set()
        """Entries that callers may have changed since the last ``write``."""
        self._changed = changed
        self.started: Callable[[int], None] = lambda _: None
        """Called with the number of each new entry, and for the default action with the capacity."""
        self._block: Block | None = None
        super().__init__(table)

    def place(self, block: Block, place: TablePlace, types: Types) -> None:
        """Move the entries into a block."""
        self._block, self._place, self._types = block, place, types

    # --- state that packets change ---

    def _pull(self, entry: Installed) -> None:
        """Read an entry's counters from the block."""
        number = self._numbers.get(entry)
        if self._block is None or number is None or entry in self._handed_out:
            return
        place, block = self._place, self._block
        if place.counters is not None:
            entry.packets = block.get(place.counters + 16 * number, 8)
            entry.bytes = block.get(place.counters + 16 * number + 8, 8)
        if place.hits is not None:
            entry.last_hit = block.get(place.hits + 8 * number, 8)

    def _push(self, entry: Installed) -> None:
        """Write an entry's counters and meter to the block."""
        number, place, block = self._numbers[entry], self._place, self._block
        assert block is not None
        if place.counters is not None:
            block.put(place.counters + 16 * number, 8, entry.packets)
            block.put(place.counters + 16 * number + 8, 8, entry.bytes)
        if place.hits is not None:
            block.put(place.hits + 8 * number, 8, entry.last_hit)
        if place.meters is not None and not isinstance(entry.meter, NativeBucket):
            bucket = NativeBucket(block, place.meters + BUCKET * number)
            bucket.copy_from(entry.meter or Bucket())
            entry.meter = bucket if entry.meter is not None else None

    def pull_all(self) -> None:
        """Update the Python form from the block."""
        for entry in self._numbers:
            self._pull(entry)

    def push_all(self) -> None:
        """Update the block from the Python form."""
        for entry in self._numbers:
            self._push(entry)

    # --- control plane ---

    @override
    def find(self, identity: tuple[object, ...]) -> Installed | None:
        """The entry comes with its counters, read from the block."""
        found = super().find(identity)
        if found is not None:
            self._pull(found)
            self._handed_out.add(found)
            self._changed(self)
        return found

    @override
    def insert(self, entry: Installed) -> None:
        super().insert(entry)
        self._handed_out.add(entry)
        self._stale.add(entry)
        self._moved = True
        self._changed(self)

    @override
    def replace(self, old: Installed, new: Installed) -> None:
        super().replace(old, new)
        self._stale.add(old)
        self._changed(self)

    @override
    def remove(self, entry: Installed) -> None:
        self._pull(entry)
        if isinstance(entry.meter, NativeBucket):
            entry.meter = entry.meter.plain()
        super().remove(entry)
        self._numbers.pop(entry, None)
        self._handed_out.discard(entry)
        self._stale.discard(entry)
        self._moved = True
        self._changed(self)

    @override
    def set_default(self, ref: ir.ActionRef | None, args: tuple[Any, ...]) -> None:
        super().set_default(ref, args)
        self._changed(self)
        if self._block is not None:
            self.started(self._place.capacity)

    def number(self, entry: Installed) -> int:
        """The number of an entry that the block has; of the default entry, the table's capacity."""
        return self._place.capacity if entry is self.default else self._numbers[entry]

    @override
    def clear(self) -> None:
        self._numbers.clear()
        self._handed_out.clear()
        self._stale.clear()
        self._moved = True
        super().clear()

    @override
    def reset(self) -> None:
        super().reset()
        self._changed(self)

    # --- freezing and snapshots ---

    def freeze(self, actions: Actions) -> FrozenTable:
        """The configuration of the table, with the entries' numbers in the block."""
        return actions.freeze_table(self, self._numbers)

    def settle(self, frozen: FrozenTable) -> None:
        """Take the entries of ``frozen``; a block that already has them replaces this one."""
        for entry, was in zip(self.entries(), frozen.entries, strict=True):
            if was.place is not None:
                self._numbers[entry] = was.place
            if was.metered and self._place.meters is not None and was.place is not None:
                assert self._block is not None
                entry.meter = NativeBucket(self._block, self._place.meters + BUCKET * was.place)
        self._written()

    def _written(self) -> None:
        """Record that the block is up to date."""
        self._handed_out.clear()
        self._stale.clear()
        self._moved = False

    def image(self) -> tuple[Any, ...]:
        """The part of the Python form that belongs to a snapshot."""
        entries = [(e, e.ref, e.args, e.bound, e.meter) for e in self.entries()]
        return entries, dict(self._numbers), self.default

    def restore(self, image: tuple[Any, ...]) -> None:
        """Return to an earlier ``image``; the block has already been restored."""
        entries, numbers, default = image
        self.clear()
        for entry, ref, args, bound, meter in entries:
            entry.ref, entry.args, entry.bound, entry.meter = ref, args, bound, meter
            super().insert(entry)
        self._numbers, self.default = dict(numbers), default
        self._written()

    # --- writing ---

    def write(self) -> None:
        """Update the entries in the block."""
        block, place = self._block, self._place
        assert block is not None
        self._action(place.default, self.default.ref, self.default.args)
        if not place.keys:
            return
        current = self.entries()
        fresh = [entry for entry in current if entry not in self._numbers]
        if fresh:
            free = sorted(set(range(place.capacity)) - set(self._numbers.values()))
            self._numbers.update(zip(fresh, free, strict=False))
            for entry in fresh:
                self.started(self._numbers[entry])
        for entry in self._handed_out:
            self._push(entry)
        for entry in self._stale:
            at = place.entries + self._numbers[entry] * place.entry
            self._action(at, entry.ref, entry.args)
            self._key(at, entry)
        self._handed_out.clear()
        self._stale.clear()
        if not self._moved:
            return
        self._moved = False
        block.put(place.count, 8, len(current))
        if place.slots:
            self._index(current)
        else:
            order = np.array([self._numbers[e] for e in self._ordered], np.uint32)
            block.array[place.index : place.index + 4 * len(order)] = order.view(np.uint8)

    def _action(self, at: int, ref: ir.ActionRef, args: tuple[Any, ...]) -> None:
        block, place, types = self._block, self._place, self._types
        assert block is not None
        number = next(i for i, known in enumerate(place.actions) if known is ref)
        block.put(at, 4, number)
        for param, value, offset in zip(ref.action.data, args, place.data[number], strict=True):
            of = param.variable.type
            block.put(at + offset, types.shape(of).size, types.number(value, of))

    def _key(self, at: int, entry: Installed) -> None:
        block = self._block
        assert block is not None
        matched = [k for k in self.table.keys if k.match_kind != "selector"]
        for key, field, (first, second) in zip(matched, self._place.keys, entry.fields, strict=True):
            size = container(field.width)
            if isinstance(first, int) and isinstance(second, int):
                a, b = first, second
            elif second:
                a, b = self._types.symbol(str(first), key.expr.type), (1 << field.width) - 1
            else:
                a = b = 0
            block.put(at + field.a, size, a)
            block.put(at + field.b, size, b)

    def _index(self, current: list[Installed]) -> None:
        block, place = self._block, self._place
        assert block is not None
        masks: list[int] = []
        if place.lpm is not None:
            width = place.keys[place.lpm].width
            masks = [mask for mask, _ in self._by_prefix]
            block.put(place.masks, 8, len(masks))
            for i, mask in enumerate(masks):
                block.put(place.masks + 8 + i * container(width), container(width), mask)
        slots = np.zeros(place.slots, np.uint32)
        for entry in current:
            at = place.entries + self._numbers[entry] * place.entry
            tag = masks.index(int(entry.fields[place.lpm][1])) if place.lpm is not None else 0
            block.put(at + 4, 4, tag)
            key = [(block.get(at + k.a, container(k.width)), k.width) for k in place.keys]
            slot = hash_key(key, tag) % place.slots
            while slots[slot]:
                slot = (slot + 1) % place.slots
            slots[slot] = self._numbers[entry] + 1
        block.array[place.index : place.index + 4 * place.slots] = slots.view(np.uint8)

    # --- action profiles ---

    def share_bytes(self) -> int:
        """Bytes that the shares of all entries take."""
        size = 8 + self._place.entry
        return sum(size * len(_shares(e)) for e in self.entries()) if self.table.implementation is not None else 0

    def write_shares(self, at: int) -> int:
        """Write the shares of all entries from ``at`` on. Returns the end."""
        block, place = self._block, self._place
        assert block is not None
        if self.table.implementation is None:
            return at
        for entry in self.entries():
            shares, total = _shares(entry), 0
            bound = place.entries + self._numbers[entry] * place.entry + place.bound
            block.put(bound, 8, at)
            block.put(bound + 8, 8, len(shares))
            for (ref, args), weight in shares:
                total += weight
                block.put(at, 8, total)
                self._action(at + 8, ref, args)
                at += 8 + place.entry
            block.put(bound + 16, 8, total)
        return at


def _shares(entry: Installed) -> list[tuple[Choice, int]]:
    """The live actions of an entry and their weights; a member alone has none."""
    bound = entry.bound
    if bound is None:
        return []
    if bound.indirect.member is not None:
        choice = bound.profile.members.get(bound.indirect.member)
        return [] if choice is None else [(choice, 0)]
    every = bound.shares if bound.indirect.group is None else bound.profile.shares(bound.indirect.group)
    return [(choice, weight) for choice, weight, port in every if port not in bound.profile.ports_down and weight > 0]
