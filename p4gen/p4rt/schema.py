"""Look-ups in a P4Info, by id and by name, for client and server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from p4gen.model.names import find
from p4gen.p4rt import bytestrings
from p4gen.p4rt.status import Code, StatusError, invalid, not_found
from p4gen.p4rt.translation import Strings, Translations
from p4gen.protos import p4info

P4Info = Any
"""``p4.config.v1.P4Info``. Protobuf's own types are of no use to type checkers."""

_KINDS = {
    p4info.MatchField.EXACT: "exact",
    p4info.MatchField.LPM: "lpm",
    p4info.MatchField.TERNARY: "ternary",
    p4info.MatchField.RANGE: "range",
    p4info.MatchField.OPTIONAL: "optional",
}


@dataclass(frozen=True)
class Field:
    """A match field, an action parameter or a field of a controller header; ``kind`` is for match fields.

    ``width`` is that of the values that are written and read, 0 for strings. A server also knows that of the values in
    the data plane, ``inner``, where the field's type is translated.
    """

    id: int
    name: str
    width: int
    kind: str = ""
    inner: int = 0
    strings: Strings | None = None

    @property
    def bits(self) -> int:
        """The bits of the value in the data plane, as far as they are known."""
        return self.inner or self.width

    @property
    def full(self) -> int:
        """The mask with all bits of the field in the data plane."""
        return (1 << self.bits) - 1

    def decode(self, data: bytes, what: str) -> int:
        """The value that a binary string, or a string, stands for. INVALID_ARGUMENT for one that does not fit."""
        if self.strings is not None:
            return self.strings.number(data, what)
        value = bytestrings.decode(data, self.width, what, Code.INVALID_ARGUMENT)
        if value >> self.bits and self.bits:
            raise invalid(f"{what}: {value:#x} does not fit the {self.bits} bits that it has in the data plane")
        return value

    def encode(self, value: int, what: str = "") -> bytes:
        """The canonical binary string, or the string, of a value."""
        return bytestrings.encode(value) if self.strings is None else self.strings.text(value, what)

    def decode_mask(self, data: bytes, what: str) -> int:
        """A mask. Where the type is translated, the mask of all bits is that of the values as they are written; for
        strings, which have no number of bits, it consists of bytes 0xff."""
        mask = bytestrings.decode(data, self.width, what, Code.INVALID_ARGUMENT)
        every = set(data) == {0xFF} if self.strings is not None else mask == self._all
        if self.inner and every:
            return self.full
        if self.inner and (mask >> self.inner or (self.strings is not None and mask != self.full)):
            raise invalid(f"{what}: {mask:#x} is not the mask of all bits, {self._all:#x}; {_TRANSLATED}")
        return mask

    def encode_mask(self, mask: int) -> bytes:
        """The canonical binary string of a mask."""
        return bytestrings.encode(self._all if mask == self.full else mask)

    def decode_prefix(self, length: int, what: str) -> int:
        """The length of a prefix in the data plane."""
        most = self.width or self.bits
        if not 0 < length <= most:
            raise invalid(f"{what}: prefix length {length} is not in 1 to {most} (omit a wildcard)")
        least = most if self.strings is not None else most - self.bits + 1
        if self.inner and length < least:
            raise invalid(f"{what}: prefix length {length} is not in {least} to {most}; {_TRANSLATED}")
        return length - most + self.bits

    def encode_prefix(self, length: int) -> int:
        """The length of a prefix as it is written."""
        return length + (self.width or self.bits) - self.bits

    @property
    def _all(self) -> int:
        return (1 << self.width) - 1 if self.strings is None else 0xFF


_TRANSLATED = "the field's type is translated, which leaves single values and wildcards"


@dataclass(frozen=True)
class ActionInfo:
    """An action and its parameters."""

    id: int
    name: str
    params: tuple[Field, ...]


@dataclass(frozen=True)
class ActionUse:
    """An action as a table lists it."""

    action: ActionInfo
    default_only: bool
    table_only: bool


@dataclass(frozen=True)
class TableInfo:
    """A table; ids of 0 stand for "none"."""

    id: int
    name: str
    size: int
    keys: tuple[Field, ...]
    actions: tuple[ActionUse, ...]
    const_default: bool
    is_const: bool
    profile_id: int
    counter_id: int
    meter_id: int
    idle_timeout: bool

    @property
    def needs_priority(self) -> bool:
        """Whether entries need a priority (section 9.1)."""
        return any(k.kind in ("ternary", "range", "optional") for k in self.keys)


@dataclass(frozen=True)
class ArrayInfo:
    """An indexed counter, meter or register; ``element`` is a register's P4DataTypeSpec."""

    id: int
    name: str
    size: int
    element: Any = None
    meter_type: int = 0


@dataclass(frozen=True)
class ProfileInfo:
    """An action profile or selector."""

    id: int
    name: str
    selector: bool
    size: int
    max_group_size: int
    table_ids: tuple[int, ...]


@dataclass(frozen=True)
class DigestInfo:
    """A digest: the name of its data's type and the type itself."""

    id: int
    name: str
    type_spec: Any


@dataclass(frozen=True)
class ValueSetInfo:
    """A parser value set; its fields match like table keys."""

    id: int
    name: str
    size: int
    fields: tuple[Field, ...]


class _Named(Protocol):
    @property
    def id(self) -> int: ...

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Named)


class ObjectIndex(Mapping[int, T]):
    """Objects of one kind by id; ``named`` finds them by full name or unique suffix."""

    def __init__(self, kind: str, objects: Iterable[T]) -> None:
        self.kind = kind
        self._by_id = {o.id: o for o in objects}
        self._by_name = {o.name: o for o in self._by_id.values()}

    def __getitem__(self, key: int) -> T:
        return self._by_id[key]

    def __iter__(self) -> Any:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def known(self, key: int, code: Code = Code.NOT_FOUND) -> T:
        """The object of that id; ``StatusError`` when the P4Info has none."""
        if key not in self._by_id:
            raise StatusError(code, f"{self.kind} {key:#010x}: the P4Info has no such id")
        return self._by_id[key]

    def named(self, name: str) -> T:
        """The object of that name; ``ControlError`` with the alternatives when there is none."""
        return find(self.kind, name, self._by_name)

    def select(self, key: int) -> list[T]:
        """All objects for id 0, the one object for another id (wildcard reads, section 13.2)."""
        return list(self._by_id.values()) if key == 0 else [self.known(key)]


class Schema:
    """All objects of a P4Info that entities refer to. Raises ``StatusError`` for dangling references.

    ``translated`` are the bits in the data plane of each translated type, which only a server knows.
    """

    def __init__(self, info: P4Info, translated: Mapping[str, int] | None = None) -> None:
        self.info = info
        self.translations = Translations(info, translated)
        self.actions = ObjectIndex("action", (self._action(a) for a in info.actions))
        self.profiles = ObjectIndex("action profile", (_profile(p) for p in info.action_profiles))
        counters = {c.preamble.id for c in info.direct_counters}
        meters = {m.preamble.id for m in info.direct_meters}
        self.tables = ObjectIndex("table", (self._table(t, counters, meters) for t in info.tables))
        self.counters = ObjectIndex("counter", (_array(c) for c in info.counters))
        self.meters = ObjectIndex("meter", (_array(m) for m in info.meters))
        self.registers = ObjectIndex("register", (_array(r) for r in info.registers))
        self.digests = ObjectIndex(
            "digest", (DigestInfo(d.preamble.id, d.preamble.name, d.type_spec) for d in info.digests)
        )
        self.value_sets = ObjectIndex(
            "value set",
            (ValueSetInfo(v.preamble.id, v.preamble.name, v.size, self._fields(v.match)) for v in info.value_sets),
        )
        headers = {h.preamble.name: self._fields(h.metadata) for h in info.controller_packet_metadata}
        self.packet_in: tuple[Field, ...] | None = headers.get("packet_in")
        self.packet_out: tuple[Field, ...] | None = headers.get("packet_out")

    def _fields(self, messages: Iterable[Any]) -> tuple[Field, ...]:
        strings, widths = self.translations.by_type, self.translations.widths
        return tuple(
            Field(
                m.id, m.name, m.bitwidth, _KINDS.get(getattr(m, "match_type", 0), ""),
                widths.get(m.type_name.name, 0) if m.HasField("type_name") else 0,
                strings.get(m.type_name.name) if m.HasField("type_name") else None,
            )
            for m in messages
        )  # fmt: skip

    def _action(self, action: Any) -> ActionInfo:
        return ActionInfo(action.preamble.id, action.preamble.name, self._fields(action.params))

    def _table(self, table: Any, counters: set[int], meters: set[int]) -> TableInfo:
        direct = set(table.direct_resource_ids)
        if table.implementation_id and table.implementation_id not in self.profiles:
            raise invalid(f"table {table.preamble.name}: its action profile is not in the P4Info")
        return TableInfo(
            table.preamble.id,
            table.preamble.name,
            table.size,
            self._fields(table.match_fields),
            tuple(
                ActionUse(self.actions.known(r.id, Code.INVALID_ARGUMENT), r.scope == r.DEFAULT_ONLY, r.scope == 1)
                for r in table.action_refs
            ),
            table.const_default_action_id != 0,
            table.is_const_table,
            table.implementation_id,
            next(iter(direct & counters), 0),
            next(iter(direct & meters), 0),
            table.idle_timeout_behavior == table.NOTIFY_CONTROL,
        )

    def action_of(self, table: TableInfo, action_id: int) -> ActionUse:
        """How a table uses an action; INVALID_ARGUMENT when it does not (section 9.1.2)."""
        for use in table.actions:
            if use.action.id == action_id:
                return use
        raise invalid(f"table {table.name}: it has no action with id {action_id:#010x}")

    def profile_table(self, profile: ProfileInfo) -> TableInfo:
        """A table that a profile implements; all of these have the same actions. NOT_FOUND when there is none."""
        for table in self.tables.values():
            if table.profile_id == profile.id:
                return table
        raise not_found(f"action profile {profile.name}: no table uses it")


def _array(array: Any) -> ArrayInfo:
    element = array.type_spec if hasattr(array, "type_spec") else None
    meter_type = array.spec.type if hasattr(array, "spec") and hasattr(array.spec, "type") else 0
    return ArrayInfo(array.preamble.id, array.preamble.name, array.size, element, meter_type)


def _profile(profile: Any) -> ProfileInfo:
    return ProfileInfo(
        profile.preamble.id,
        profile.preamble.name,
        profile.with_selector,
        profile.size,
        profile.max_group_size,
        tuple(profile.table_ids),
    )
