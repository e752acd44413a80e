"""Dataclasses to JSON and back, by their type hints. Whatever is read is checked; an error is one line."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Pydantic's adapter of a type; making one takes milliseconds."""
    return TypeAdapter(kind)


def to_plain(value: Any) -> Any:
    """What ``json.dumps`` takes. Fields of a pydantic model that have not been set are left out."""
    kind: Any = type(value)
    return adapter(kind).dump_python(value, mode="json", exclude_unset=True)


def from_plain(kind: type[T], data: Any) -> T:
    """The object of ``kind`` that ``data`` describes, whose parts may be objects already. Raises ``ValueError``."""
    hint: Any = kind
    try:
        found: T = adapter(hint).validate_python(data)
    except ValidationError as error:
        raise ValueError(problem(error)) from None
    return found


def problem(error: ValidationError) -> str:
    """The first error as text, after its place in the data."""
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]
