"""Dataclasses to JSON and back, by their type hints: the form in which the manager's store keeps trees, channels and
contexts.

A dataclass is the list of its fields' values, a mapping a list of pairs (its keys need not be text), bytes are base 85.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from p4gen.records import from_plain, to_plain


def encode(value: Any) -> Any:
    """A value in the form that ``json.dumps`` takes. Sets are sorted."""
    if isinstance(value, bytes):
        return base64.b85encode(value).decode()
    if is_dataclass(value):
        return [encode(item) for item in _written(value)]
    if isinstance(value, Mapping):
        return [[encode(key), encode(item)] for key, item in value.items()]
    if isinstance(value, frozenset):
        return sorted(map(encode, value))
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    return value if value is None or isinstance(value, str | int | float) else to_plain(value)


def _written(value: Any) -> list[Any]:
    """The values of a dataclass's fields. Fields at the end that are marked as ``later`` and have their defaults are
    left out, so that an earlier version can read the rest."""
    known = list(fields(value))
    while known and known[-1].metadata.get("later") and getattr(value, known[-1].name) == known[-1].default:
        known.pop()
    return [getattr(value, field.name) for field in known]


def decode(kind: Any, data: Any) -> Any:
    """The value of type ``kind`` that ``encode`` converted to ``data``. Raises ``ValueError`` or ``TypeError`` if there
    is none."""
    return from_plain(kind, _named(kind, data))


def _named(kind: Any, data: Any) -> Any:
    """``data`` in the form that pydantic takes: fields with their names, mappings as such."""
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        if len(data) > len(hints):
            raise ValueError(f"{len(data)} fields of {kind.__name__}, which has {len(hints)}")
        # Fields that a newer version has added come last, and have defaults.
        return {name: _named(hints[name], item) for name, item in zip(hints, data, strict=False)}
    if kind is bytes:
        return base64.b85decode(data)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):  # something that may be missing
        (one,) = [arg for arg in args if arg is not NoneType] if len(args) == 2 and NoneType in args else [None]
        return data if data is None or one is None else _named(one, data)
    if origin is tuple and args[-1] is Ellipsis:
        return [_named(args[0], item) for item in data]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {tuple(key) if isinstance(key, list) else key: _named(args[1], item) for key, item in data}
    return data


@lru_cache(maxsize=64)
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}
