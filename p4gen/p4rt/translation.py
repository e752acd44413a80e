"""Values of types with ``@p4runtime_translation``: the form that controllers write, and the form in the data plane.

A number is the same on both sides, in different widths. A string stands for a number that the server chooses. A string
that is a decimal number stands for that number, so that the data plane's own values have strings, too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from typing_extensions import override

from p4gen.model.entries import Text
from p4gen.model.errors import ControlError
from p4gen.p4rt.status import Code, StatusError, invalid


class Strings(Protocol):
    """The strings that controllers use for the values of a type."""

    @abstractmethod
    def number(self, data: bytes, what: str) -> int:
        """The value for a string that was received. Raises ``StatusError``."""
        ...

    @abstractmethod
    def text(self, value: int, what: str = "") -> bytes:
        """The string to send for a value. Raises ``ControlError``."""
        ...


class Texts(Strings):
    """The controller's side: a value is a ``Text``."""

    @override
    def number(self, data: bytes, what: str) -> int:
        return Text(_decoded(data, what))

    @override
    def text(self, value: int, what: str = "") -> bytes:
        if not isinstance(value, Text):
            raise ControlError(f"{what}: its values are strings to controllers: Text('…'), not {value!r}")
        return str(value).encode()


class Names(Strings):
    """The server's side: the strings of one translation, and the numbers that they stand for.

    Numbers are given out from the highest down, as the data plane's own numbers are usually low. When all are taken,
    ``in_use`` returns those that are still used; the others are given out again.
    """

    def __init__(self, name: str, width: int) -> None:
        self.name, self.width = name, width
        self.in_use: Callable[[Names], set[int]] = lambda names: set(names._strings) | names._literal
        self._numbers: dict[str, int] = {}
        self._strings: dict[int, str] = {}
        self._literal: set[int] = set()
        """Numbers that a controller has written as such."""

    @override
    def number(self, data: bytes, what: str) -> int:
        """A string without a number gets one."""
        string = _decoded(data, what)
        known = self._numbers.get(string)
        if known is not None:
            return known
        if string.isascii() and string.isdecimal() and (string == "0" or string[0] != "0"):
            value = int(string)
            if value >> self.width:
                raise invalid(f"{what}: {string} does not fit the {self.width} bits of {self.name}")
            if value in self._strings:
                raise invalid(f"{what}: {string} is the number that '{self._strings[value]}' stands for")
            self._literal.add(value)
            return value
        value = self._free(what)
        self._numbers[string], self._strings[value] = value, string
        return value

    @override
    def text(self, value: int, what: str = "") -> bytes:
        """A number without a string is its own decimal string."""
        return self._strings.get(value, str(value)).encode()

    def take(self, other: Names) -> None:
        """Let strings stand for the numbers for which they stood in another configuration."""
        if self.width == other.width:
            self._numbers, self._strings, self._literal = other._numbers, other._strings, other._literal

    def _free(self, what: str) -> int:
        for _ in range(2):
            for value in range((1 << self.width) - 1, -1, -1):
                if value not in self._strings and value not in self._literal:
                    return value
            used = self.in_use(self)
            self._literal &= used
            self._strings = {value: string for value, string in self._strings.items() if value in used}
            self._numbers = {string: value for value, string in self._strings.items()}
        raise StatusError(
            Code.RESOURCE_EXHAUSTED, f"{what}: {self.name} has {self.width} bits, and all their values have a string"
        )


def _decoded(data: bytes, what: str) -> str:
    try:
        string = data.decode()
    except UnicodeDecodeError:
        raise invalid(f"{what}: a string must be UTF-8, not {data!r}") from None
    if not string or "\0" in string:
        raise invalid(f"{what}: a string must not be empty, and has no NUL")
    return string


class Translations:
    """The translated types of a P4Info.

    ``widths`` are the bits of each in the data plane, which only a server knows; without them, this is a controller's
    side. Types with one URI have one translation.
    """

    def __init__(self, info: Any, widths: Mapping[str, int] | None = None) -> None:
        self.widths = widths or {}
        self.by_type: dict[str, Strings] = {}
        self.names: dict[str, Names] = {}
        for name, new in info.type_info.new_types.items():
            if new.WhichOneof("representation") != "translated_type" or not new.translated_type.HasField("sdn_string"):
                continue
            if widths is None:
                self.by_type[name] = Texts()
                continue
            uri = new.translated_type.uri or f"type {name}"
            shared = self.names.setdefault(uri, Names(uri, widths[name]))
            if shared.width != widths[name]:
                raise invalid(f"{uri} is the translation of types of {shared.width} and of {widths[name]} bits")
            self.by_type[name] = shared

    def take(self, other: Translations) -> None:
        """Let strings stand for the same numbers as in another configuration, for the types that it had, too."""
        for uri, names in self.names.items():
            if uri in other.names:
                names.take(other.names[uri])
