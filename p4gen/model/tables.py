"""Match-action tables at run time, shared by all back ends (spec 14.2, simple_switch.md "Table match
kinds supported").

A key is a tuple of non-negative integers, one per field (or ``str`` for enums and errors). Exact tables
are one dictionary; tables with exact and one lpm field are one dictionary per prefix length; all others
are a list in the order of priority.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from p4gen.model.profiles import Bound
from p4gen.p4 import ir
from p4gen.p4 import types as t

DEFAULT_SIZE = 1024
"""Size of a table that does not specify one (p4c's default for BMv2)."""

MATCH_KINDS = ("exact", "lpm", "ternary", "range", "optional")

_AS = {"atcam_partition_index": "exact"}
"""Match kinds that decide like others: the index of an algorithmic TCAM's partition must be equal."""

KeyField = tuple[int, int] | tuple[str, str]
"""The match of a field: (value, mask), or (low, high) for a range field, or a string, which matches itself."""


@dataclass(frozen=True)
class KeySpec:
    """A key field: its control-plane name, match kind and width in bits (0 for enums and errors)."""

    name: str
    kind: str
    width: int

    @property
    def full_mask(self) -> int:
        """The mask with all bits of the field."""
        return (1 << self.width) - 1


@dataclass(eq=False)
class Installed:
    """An entry in a table. ``fields`` are in key order; ``args`` are the action's data in order."""

    fields: tuple[KeyField, ...]
    ref: ir.ActionRef
    args: tuple[Any, ...]
    priority: int = 0
    const: bool = False
    packets: int = 0
    bytes: int = 0
    meter: Any = field(default=None, repr=False)
    """State of the direct meter, made when it is first needed."""
    bound: Bound | None = None
    """For a table with an action profile: where the action comes from; ``ref`` and ``args`` are then unused."""
    last_hit: int = 0
    """Time at which the entry was inserted or last hit (µs), for tables that support idle timeouts."""

    @property
    def identity(self) -> tuple[object, ...]:
        """Entries with equal identity are the same entry (P4Runtime 9.1.1)."""
        return (*self.fields, self.priority)


def actions_of(table: ir.Table) -> tuple[ir.ActionRef, ...]:
    """Every action that the table can run: its listed actions and the actions of its entries."""
    listed = list(table.actions)
    for call in (table.default_action, *(e.action for e in table.entries)):
        if call.ref not in listed:
            listed.append(call.ref)
    return tuple(listed)


def kind_of(match_kind: str) -> str:
    """The kind of comparison for a match kind: one of ``MATCH_KINDS`` for all that the model knows."""
    return _AS.get(match_kind, match_kind)


def key_width(of: t.Type) -> int:
    """Bits of a key field; 0 for types that are strings here. Raises ``TypeError`` for others."""
    of = t.strip(of)
    return 0 if isinstance(of, (t.Enum, t.Error)) else t.width_of(of)


class TableState:
    """The entries of one table."""

    def __init__(self, table: ir.Table) -> None:
        self.table = table
        self.keys = tuple(KeySpec(k.name, kind_of(k.match_kind), key_width(k.expr.type)) for k in _match_keys(table))
        self.size = table.size if table.size else DEFAULT_SIZE
        kinds = [k.kind for k in self.keys]
        self.needs_priority = any(k in ("ternary", "range", "optional") for k in kinds)
        self._lpm = kinds.index("lpm") if "lpm" in kinds and not self.needs_priority else None
        self.default = Installed((), table.default_action.ref, table.default_action.args)
        self._by_identity: dict[tuple[object, ...], Installed] = {}
        self._exact: dict[tuple[Any, ...], Installed] = {}
        self._by_prefix: list[tuple[int, dict[tuple[Any, ...], Installed]]] = []
        self._ordered: list[Installed] = []
        self.lookup: Callable[[tuple[Any, ...]], Installed | None]
        if self.needs_priority or kinds.count("lpm") > 1:
            self.lookup = self._lookup_ordered
        elif self._lpm is not None:
            self.lookup = self._lookup_lpm
        else:
            self.lookup = self._exact.get
        self.reset()

    # --- lookup ---

    def _lookup_lpm(self, key: tuple[Any, ...]) -> Installed | None:
        at = self._lpm
        assert at is not None
        for mask, entries in self._by_prefix:
            found = entries.get((*key[:at], key[at] & mask, *key[at + 1 :]))
            if found is not None:
                return found
        return None

    def _lookup_ordered(self, key: tuple[Any, ...]) -> Installed | None:
        for entry in self._ordered:
            if self.matches(entry, key):
                return entry
        return None

    def matches(self, entry: Installed, key: tuple[Any, ...]) -> bool:
        """Whether ``entry``'s fields all accept ``key``, whatever other entries there are."""
        for spec, (a, b), value in zip(self.keys, entry.fields, key, strict=True):
            if spec.kind == "range":
                if not a <= value <= b:
                    return False
            elif isinstance(value, str):
                if b and a != value:
                    return False
            elif value & b != a:
                return False
        return True

    # --- changes ---

    def __len__(self) -> int:
        return len(self._by_identity)

    def entries(self) -> list[Installed]:
        """All entries, in the order of insertion."""
        return list(self._by_identity.values())

    def in_order(self) -> list[Installed]:
        """All entries; where several may match, in the order in which they are compared."""
        return list(self._ordered) or self.entries()

    def find(self, identity: tuple[object, ...]) -> Installed | None:
        """The entry of that identity."""
        return self._by_identity.get(identity)

    def insert(self, entry: Installed) -> None:
        """Add ``entry``; the caller has checked that it fits and is new."""
        self._by_identity[entry.identity] = entry
        if self.lookup == self._lookup_ordered:
            self._ordered.append(entry)
            # A stable sort: of equal priorities the oldest entry wins.
            self._ordered.sort(key=self._rank)
        elif self._lpm is not None:
            mask = entry.fields[self._lpm][1]
            assert isinstance(mask, int)
            entries = next((e for known, e in self._by_prefix if known == mask), None)
            if entries is None:
                entries = {}
                self._by_prefix.append((mask, entries))
                self._by_prefix.sort(key=lambda item: -item[0])
            entries[_values(entry)] = entry
        else:
            self._exact[_values(entry)] = entry

    def _rank(self, entry: Installed) -> tuple[int, ...]:
        if self.needs_priority:
            return (-entry.priority,)
        return tuple(-f[1] for f in entry.fields if isinstance(f[1], int))

    def replace(self, old: Installed, new: Installed) -> None:
        """Give ``old`` the action of ``new``; counters and meters go on (P4Runtime 9.1)."""
        old.ref, old.args, old.bound = new.ref, new.args, new.bound

    def remove(self, entry: Installed) -> None:
        """Remove ``entry``; the caller has checked that it exists."""
        del self._by_identity[entry.identity]
        if self.lookup == self._lookup_ordered:
            self._ordered.remove(entry)
        elif self._lpm is not None:
            for _, entries in self._by_prefix:
                if entries.get(_values(entry)) is entry:
                    del entries[_values(entry)]
            self._by_prefix = [item for item in self._by_prefix if item[1]]
        else:
            del self._exact[_values(entry)]

    def set_default(self, ref: ir.ActionRef | None, args: tuple[Any, ...]) -> None:
        """Replace the default action; None restores the program's."""
        call = self.table.default_action
        self.default = Installed((), call.ref, call.args) if ref is None else Installed((), ref, args)

    def clear(self) -> None:
        """Remove all entries, the program's too."""
        self._by_identity.clear()
        self._exact.clear()
        self._by_prefix.clear()
        self._ordered.clear()

    def reset(self) -> None:
        """Return to the entries and the default action of the program."""
        self.clear()
        self.set_default(None, ())
        for entry in self.table.entries:
            fields = tuple(_program_field(spec, value) for spec, value in zip(self.keys, entry.keys, strict=True))
            self.insert(Installed(fields, entry.action.ref, entry.action.args, entry.priority or 0, entry.const))


def _match_keys(table: ir.Table) -> Iterable[ir.Key]:
    return (k for k in table.keys if k.match_kind != "selector")


def _values(entry: Installed) -> tuple[Any, ...]:
    return tuple(f[0] for f in entry.fields)


def _program_field(spec: KeySpec, value: ir.KeyValue) -> KeyField:
    """A key of an entry in the program as what the table compares (simple_switch.md, "Specifying
    match criteria for table entries using const entries")."""
    full = spec.full_mask
    match value:
        case ir.Exactly(value=str() as name):
            return (name, name)
        case ir.Exactly(value=bool() | int() as number):
            wanted = int(number) & full
            return (wanted, wanted) if spec.kind == "range" else (wanted, full)
        case ir.Masked(value=number, mask=mask):
            return (number & mask & full, mask & full)
        case ir.Between(low=low, high=high):
            return (low, high)
        case _:
            if spec.width == 0:
                return ("", "")
            return (0, full) if spec.kind == "range" else (0, 0)
