"""The tables of a program and of its chip, as p4c's ``bfrt.json`` and the SDE's own files describe them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from p4gen.errors import InputError
from p4gen.model.errors import ControlError

_BITS: Final = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64, "int32": 32, "int64": 64}
PRIORITY: Final = "$MATCH_PRIORITY"
LAST_PRIORITY: Final = (1 << 24) - 1
"""The priority that loses to all others: in BF-Runtime smaller ones win."""


@dataclass(frozen=True)
class FieldInfo:
    """A field of a key or of data."""

    id: int
    name: str
    type: str
    """``bytes``, ``uint32``, ``bool``, ``string`` …; ``container`` for a group of fields."""
    bits: int
    """The width of a number; 0 for other fields."""
    match: str = "Exact"
    repeated: bool = False
    mandatory: bool = False
    choices: tuple[str, ...] = ()
    register: bool = False
    """Whether it is the word of a register, of which every pipe has one."""

    @property
    def size(self) -> int:
        """Bytes of a number of ``bits`` bits."""
        return (self.bits + 7) // 8


class Named(Protocol):
    """An object with an id and a name."""

    @property
    def id(self) -> int: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102


_Named = TypeVar("_Named", bound=Named)


class Names(Generic[_Named]):
    """Objects by id, by name, and by every suffix of the name that only one of them has."""

    def __init__(self, what: str, objects: Iterable[_Named]) -> None:
        self._what = what
        self.all: tuple[_Named, ...] = tuple(objects)
        self._ids = {found.id: found for found in self.all}
        self._names: dict[str, _Named | None] = {}
        for found in self.all:
            words = found.name.split(".")
            for first in range(1, len(words)):
                name = ".".join(words[first:])
                self._names[name] = None if name in self._names else found
        self._names |= {found.name: found for found in self.all}

    def named(self, name: str) -> _Named:
        """The object with this name or suffix. Raises ``ControlError`` when there is none, or more than one."""
        found = self._names.get(name)
        if found is not None:
            return found
        if name in self._names:
            raise ControlError(f"{self._what} {name} is not the only one of this name")
        known = ", ".join(sorted(found.name for found in self.all)) or "none"
        raise ControlError(f"there is no {self._what} {name}; there are: {known}")

    def __getitem__(self, number: int) -> _Named:
        if number not in self._ids:
            raise ControlError(f"there is no {self._what} with the id {number}")
        return self._ids[number]

    def __contains__(self, name: str) -> bool:
        return self._names.get(name) is not None


@dataclass(frozen=True)
class ActionInfo:
    """An action of a table, and its parameters."""

    id: int
    name: str
    data: Names[FieldInfo]


@dataclass(frozen=True)
class TableInfo:
    """A table in BF-Runtime's sense: match tables, counters, registers, ports and so on."""

    id: int
    name: str
    type: str
    size: int
    keys: Names[FieldInfo]
    actions: Names[ActionInfo]
    data: Names[FieldInfo]
    """Data that do not depend on the action."""
    operations: tuple[str, ...]
    constant: bool
    """Whether the program has written all its entries."""
    fixed_default: bool
    """Whether its default action is fixed."""

    def fields(self, action: str | None) -> Names[FieldInfo]:
        """The data of an entry with an action: its parameters and what all actions have."""
        if action is None:
            return self.data
        info = self.actions.named(action)
        return Names(f"parameter of {info.name}", (*info.data.all, *self.data.all)) if self.data.all else info.data


class Bfrt:
    """The tables of the program, and those of the chip, whose names begin with ``$`` or name what they configure."""

    def __init__(self, program: Mapping[str, Any], chip: Mapping[str, Any]) -> None:
        """``program`` and ``chip`` are read from JSON. Raises ``InputError`` for data that does not describe tables."""
        try:
            found = [_table(raw) for document in (program, chip) for raw in document["tables"] if _has_ids(raw)]
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"bfrt.json: {type(error).__name__}: {error}") from None
        self.tables: Names[TableInfo] = Names("table", found)

    def of_type(self, prefix: str) -> list[TableInfo]:
        """The tables whose type begins with a prefix."""
        return [table for table in self.tables.all if table.type.startswith(prefix)]

    def typed(self, name: str, prefix: str, what: str) -> TableInfo:
        """A table by name, of a type that begins with a prefix. Raises ``ControlError``."""
        return Names(what, self.of_type(prefix)).named(name)


def _has_ids(raw: Mapping[str, Any]) -> bool:
    """Whether all keys of a table have ids. Some tables of the chip, which nobody writes, have keys without them."""
    return all("id" in key for key in raw["key"])


def _table(raw: Mapping[str, Any]) -> TableInfo:
    name = raw["name"]
    return TableInfo(
        raw["id"],
        name,
        raw["table_type"],
        raw["size"],
        Names(f"key of {name}", [_field(key) for key in raw["key"]]),
        Names(f"action of {name}", [_action(action) for action in raw.get("action_specs", ())]),
        Names(f"data of {name}", _data(raw.get("data", ()))),
        tuple(raw["supported_operations"]),
        "ConstTable" in raw["attributes"],
        bool(raw.get("has_const_default_action")),
    )


def _action(raw: Mapping[str, Any]) -> ActionInfo:
    return ActionInfo(raw["id"], raw["name"], Names(f"parameter of {raw['name']}", _data(raw["data"])))


def _data(raws: Iterable[Mapping[str, Any]]) -> list[FieldInfo]:
    return [
        _field({"mandatory": raw.get("mandatory", False), **inner})
        for raw in raws
        for inner in (raw["oneof"] if "oneof" in raw else (raw.get("singleton", raw),))
    ]


def _field(raw: Mapping[str, Any]) -> FieldInfo:
    if "container" in raw:
        return FieldInfo(raw["id"], raw["name"], "container", 0, repeated=bool(raw.get("repeated")))
    kind = raw["type"]["type"]
    marks = {(mark["name"].lstrip("@"), mark.get("value")) for mark in raw.get("annotations", ())}
    return FieldInfo(
        raw["id"],
        raw["name"],
        "string" if kind == "enum" else kind,
        int(raw["type"]["width"]) if kind == "bytes" else _BITS.get(kind, 0),
        raw.get("match_type", "Exact"),
        bool(raw.get("repeated")),
        bool(raw.get("mandatory")),
        tuple(raw["type"].get("choices", ())),
        ("$bfrt_field_class", "register_data") in marks,
    )
