"""Dataclasses to JSON and back, by their type hints: how the manager's store keeps trees, channels and contexts."""

from __future__ import annotations

import base64
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel


def encode(value: Any) -> Any:
    """What ``json.dumps`` takes. Mappings become lists of pairs, for their keys need not be text; sets are sorted."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return base64.b85encode(value).decode()
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    if is_dataclass(value):
        return [encode(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Mapping):
        return [[encode(key), encode(item)] for key, item in value.items()]
    if isinstance(value, frozenset | set):
        return sorted(encode(item) for item in value)
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    raise TypeError(f"{type(value).__name__} cannot be stored")


def decode(kind: Any, data: Any) -> Any:
    """The value of type ``kind`` that ``encode`` made ``data`` of. Raises ``ValueError`` or ``TypeError`` for what is
    none."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if data is None and type(None) in args:
            return None
        (rest,) = (arg for arg in args if arg is not type(None))
        return decode(rest, data)
    if origin is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(decode(args[0], item) for item in data)
        return tuple(decode(arg, item) for arg, item in zip(args, data, strict=True))
    if origin is frozenset:
        return frozenset(decode(args[0], item) for item in data)
    if origin is not None and issubclass(origin, Mapping):
        return {decode(args[0], key): decode(args[1], item) for key, item in data}
    if issubclass(kind, BaseModel):
        return kind.model_validate(data)
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(*(decode(hint, item) for hint, item in zip(_hints(kind), data, strict=True)))
    if issubclass(kind, tuple):  # a NamedTuple
        return kind(*(decode(hint, item) for hint, item in zip(get_type_hints(kind).values(), data, strict=True)))
    if issubclass(kind, bytes):
        return base64.b85decode(data)
    if issubclass(kind, Enum):
        return kind(data)
    if not isinstance(data, kind):
        raise TypeError(f"{data!r} is no {kind.__name__}")
    return data


@lru_cache(maxsize=64)
def _hints(kind: type) -> tuple[Any, ...]:
    hints = get_type_hints(kind)
    return tuple(hints[field.name] for field in fields(kind))
