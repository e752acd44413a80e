"""Names that stand for registered objects: enumerations that anybody may add a member to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

T = TypeVar("T")


class Registry(type):
    """The class of a kind of names; iterating over a kind gives its members in the order of registration."""

    _members: dict[str, Any]

    def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> Registry:
        """A kind of names, with no members yet."""
        made = super().__new__(mcs, name, bases, space)
        made._members = {}
        return made

    def __iter__(cls: type[T]) -> Iterator[T]:
        return iter(tuple(cls._members.values()))  # type: ignore[attr-defined]

    def __len__(cls) -> int:
        return len(cls._members)


class Registered(str, metaclass=Registry):
    """A registered name. There is one object of each: ``Kind("name")`` looks it up, copies and pickles are it."""

    def __new__(cls, name: str) -> Self:
        """The member of that name. Raises ``ValueError`` if there is none."""
        found: Self | None = cls._members.get(name)
        if found is None:
            raise ValueError(f"{name!r} is not one of {', '.join(cls)}")
        return found

    @classmethod
    def _add(cls, name: str) -> Self:
        """A new member. Raises ``ValueError`` if the name is taken."""
        if name in cls._members:
            raise ValueError(f"there is a {cls.__name__} {name} already")
        member = str.__new__(cls, name)
        cls._members[name] = member
        return member

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (str(self),)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __str__(self) -> str:
        return str.__str__(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validated, serialization=core_schema.plain_serializer_function_ser_schema(str, when_used="json")
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _schema: core_schema.CoreSchema, _handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"enum": [str(member) for member in cls], "title": cls.__name__, "type": "string"}

    @classmethod
    def _validated(cls, value: Any) -> Self:
        if isinstance(value, str) and value in cls._members:
            return cls(value)
        *others, last = (f"'{member}'" for member in cls)
        expected = f"{', '.join(others)} or {last}"
        raise PydanticCustomError("enum", "Input should be {expected}", {"expected": expected})
