"""State as data: the state of a simulation's parts, frozen, compared and restored.

A *part* is an object that exists as long as its simulation does: a queue pair's requester, a direction of a link, the
event loop. It has a name, and its class lists in ``STATE`` the attributes that change; all other attributes are wiring
and never change. A part whose state is not a set of attributes (a switch) has ``freeze`` and ``restore``.

A part's state consists of plain values, of references to parts, and of *passing objects*: mutable objects with a
shorter life, such as an invocation or the memory for its result. A passing object is a dataclass, has a ``STATE`` that
lists all its attributes, or is an array or a ``bytearray``. Passing objects are numbered in the order in which they are
met, so equal states have equal frozen forms, however they came about. Events call methods of parts; closures, lambdas
and methods of other objects are refused.
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from operator import is_
from types import MethodType
from typing import Any, NamedTuple, Protocol

import numpy as np


class Freezable(Protocol):
    """A part that freezes itself. The result of ``freeze`` is immutable, comparable and not a tuple."""

    def freeze(self) -> Any:
        """The part's state, immutable and comparable."""

    def restore(self, frozen: Any) -> None:
        """Return to a state of this part, or of the corresponding part of another simulation."""


class PartName(NamedTuple):
    """A reference to a part, by its name."""

    name: str


class Number(NamedTuple):
    """A reference to a passing object."""

    number: int


class Method(NamedTuple):
    """A reference to a method of a part, as events hold it."""

    part: str
    method: str


class Box(NamedTuple):
    """A value that is not plain, as its type and the plain values from which it is made again."""

    kind: type
    items: tuple[Any, ...]


@dataclass(frozen=True)
class Frozen:
    """The state of some parts, as immutable values. It can be compared and pickled."""

    parts: tuple[tuple[str, Any], ...]
    """Each part's name and state: the values of its ``STATE``, or what its ``freeze`` returned."""
    objects: tuple[Box, ...]
    """The passing objects; their numbers are their positions."""

    def differences(self, other: Frozen) -> list[str]:
        """The names of the parts whose states differ, and ``objects`` if passing objects differ."""
        mine, others = dict(self.parts), dict(other.parts)
        names = [name for name in {**mine, **others} if mine.get(name) != others.get(name)]
        return names if self.objects == other.objects else [*names, "objects"]


def freeze(parts: Mapping[str, Any]) -> Frozen:
    """The state of ``parts``. Raises ``TypeError``, with the part's name, for a value that cannot be frozen."""
    freezer = _Freezer(parts)
    found = []
    for name, part in parts.items():
        try:
            found.append((name, freezer.state(part)))
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from error
    return Frozen(tuple(found), tuple(freezer.objects))


def restore(parts: Mapping[str, Any], frozen: Frozen) -> None:
    """Return ``parts`` to a frozen state. Raises ``ValueError`` when their names differ from those in ``frozen``."""
    if [name for name, _ in frozen.parts] != list(parts):
        raise ValueError("the frozen state belongs to another simulation: its parts have other names")
    melter = _Melter(parts, frozen.objects)
    for (_, state), part in zip(frozen.parts, parts.values(), strict=True):
        if isinstance(state, tuple):
            melter.fill(part, state)
        else:
            part.restore(state)


class _Attributes(dict[type, "tuple[str, ...] | None"]):
    """The attributes that hold an object's state, by type; None where the type does not list them."""

    def __missing__(self, of: type) -> tuple[str, ...] | None:
        listed: tuple[str, ...] | None = getattr(of, "STATE", None)
        if listed is None and dataclasses.is_dataclass(of):
            listed = tuple(each.name for each in dataclasses.fields(of))
        self[of] = listed
        return listed


class _Freezer:
    """Freezes values. ``objects`` are the passing objects met so far."""

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self.objects: list[Box] = []
        self._attributes = _Attributes()
        self._names = {id(part): PartName(name) for name, part in parts.items()}
        self._numbers: dict[int, Number] = {}
        self._how: dict[type, Callable[[Any], Any] | None] = {
            **dict.fromkeys((int, str, bytes, bool, float, type(None))),
            tuple: self._all,
            list: self._listed,
            deque: lambda value: Box(deque, (value.maxlen, self._all(value))),
            dict: self._dict,
            Counter: self._dict,
            set: lambda value: Box(set, tuple(sorted(value))),
            memoryview: self._memory,
            np.ndarray: self._array,
            bytearray: lambda value: self._owner(value, lambda: (bytes(value),)),
            random.Random: lambda value: Box(random.Random, value.getstate()),
            MethodType: self._method,
        }
        """How to freeze a value, by type; None: the value is its own frozen form."""

    def state(self, part: Any) -> Any:
        """A part's state: a tuple, unless the part freezes itself."""
        if self._attributes[type(part)] is not None:
            return self.attributes(part)
        freezable: Freezable = part
        return freezable.freeze()

    def attributes(self, part: Any) -> tuple[Any, ...]:
        """The values of the attributes that hold an object's state."""
        names = self._attributes[type(part)]
        if names is None:
            raise TypeError(f"{part!r} is not plain state")
        return self._all([getattr(part, name) for name in names])

    def _all(self, values: Iterable[Any]) -> tuple[Any, ...]:
        known, found = self._how, []
        for value in values:
            kind = type(value)
            how = known[kind] if kind in known else self._learn(kind)
            found.append(value if how is None else how(value))
        return tuple(found)

    def _learn(self, of: type) -> Callable[[Any], Any] | None:
        how: Callable[[Any], Any] | None
        if issubclass(of, Enum | str):
            how = None
        elif issubclass(of, tuple):
            how = self._listed
        elif dataclasses.is_dataclass(of) and of.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            how = self._value
        else:
            how = self._object
        self._how[of] = how
        return how

    def _listed(self, value: Iterable[Any]) -> Box:
        """The frozen form of a list or a named tuple."""
        return Box(type(value), self._all(value))

    def _dict(self, value: dict[Any, Any]) -> Box:
        return Box(type(value), self._all(value.items()))

    def _value(self, value: Any) -> Any:
        """The frozen form of a frozen dataclass: the object itself, unless one of its fields has to be frozen."""
        before = [getattr(value, name) for name in self._attributes[type(value)] or ()]
        after = self._all(before)
        return value if all(map(is_, before, after)) else Box(type(value), after)

    def _object(self, value: Any) -> PartName | Number:
        name = self._names.get(id(value))
        return name if name is not None else self._owner(value, lambda: self._whole(value))

    def _whole(self, value: Any) -> tuple[Any, ...]:
        """The type of a passing object and all its attributes. An object that lists only some of them could not be made
        again."""
        contents = self.attributes(value)
        if len(getattr(value, "__dict__", contents)) != len(contents):
            raise TypeError(f"a {type(value).__name__} that is not a part of the simulation")
        return contents

    def _owner(self, value: Any, contents: Callable[[], tuple[Any, ...]]) -> Number:
        known = self._numbers.get(id(value))
        if known is None:
            known = self._numbers[id(value)] = Number(len(self.objects))
            self.objects.append(Box(type(value), ()))  # it may refer to itself
            self.objects[known.number] = Box(type(value), contents())
        return known

    def _memory(self, value: memoryview) -> Box:
        """The frozen form of a view: a value if its bytes never change, otherwise a reference to a range of its
        owner."""
        owner = value.obj
        if isinstance(owner, bytes):
            return Box(memoryview, (owner if len(owner) == value.nbytes else bytes(value),))
        if not value.nbytes:
            return Box(memoryview, (b"",))
        if not value.c_contiguous or value.format != "B":
            raise TypeError(f"{value!r} is not contiguous")
        return Box(memoryview, self._place(value, owner, value.nbytes))

    def _array(self, value: np.ndarray[Any, Any]) -> Box | Number:
        if value.base is None:
            return self._owner(value, lambda: (value.dtype.str, value.shape, value.tobytes()))
        if not value.flags.c_contiguous:
            raise TypeError("an array that is not a contiguous part of another one")
        return Box(np.ndarray, (value.dtype.str, value.shape, *self._place(value, value.base, value.nbytes)))

    def _place(self, value: Any, owner: Any, size: int) -> tuple[Any, int, int]:
        """The bytes that ``value`` is a view of: their owner, the first position, and the one after the last."""
        while (further := owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)) is not None:
            owner = further
        start = _address(value) - _address(owner) if size else 0
        (whose,) = self._all((owner,))
        return whose, start, start + size

    def _method(self, value: MethodType) -> Method:
        name = self._names.get(id(value.__self__))
        if name is None:
            raise TypeError(f"a call of {value.__qualname__} of an object that is not a part of the simulation")
        return Method(name.name, value.__name__)


class _Melter:
    """Converts frozen values back, with new passing objects."""

    def __init__(self, parts: Mapping[str, Any], frozen: tuple[Box, ...]) -> None:
        self._parts = parts
        self._attributes = _Attributes()
        self._objects = [_shell(box) for box in frozen]
        for shell, (kind, items) in zip(self._objects, frozen, strict=True):
            if kind is not bytearray and kind is not np.ndarray:
                self.fill(shell, items)

    def fill(self, part: Any, state: tuple[Any, ...]) -> None:
        """Set the attributes of an object to their frozen values."""
        for name, value in zip(self._attributes[type(part)] or (), state, strict=True):
            setattr(part, name, self._melt(value))

    def _melt(self, value: Any) -> Any:
        kind = type(value)
        if kind is tuple:
            return tuple([self._melt(v) for v in value])
        if kind is Number:
            return self._objects[value.number]
        if kind is PartName:
            return self._parts[value.name]
        if kind is Method:
            return getattr(self._parts[value.part], value.method)
        return self._unboxed(*value) if kind is Box else value

    def _unboxed(self, kind: type, items: tuple[Any, ...]) -> Any:
        if kind is random.Random:
            chance = random.Random(0)  # noqa: S311 - its state is given next
            chance.setstate(items)
            return chance
        melted = [self._melt(item) for item in items]
        if kind is memoryview:
            return _bytes_of(*melted)
        if kind is np.ndarray:
            dtype, shape, *place = melted
            return np.frombuffer(_bytes_of(*place), dtype).reshape(shape)
        if kind is deque:
            return deque(melted[1], melted[0])
        if kind in (list, set, dict):
            return kind(melted)
        if kind is Counter:
            return Counter(dict(melted))
        return kind(*melted)


def _shell(box: Box) -> Any:
    """A new passing object: complete if it is memory, otherwise without its attributes."""
    if box.kind is bytearray:
        return bytearray(box.items[0])
    if box.kind is np.ndarray:
        dtype, shape, contents = box.items
        return np.frombuffer(contents, dtype).reshape(shape).copy()
    return object.__new__(box.kind)


def _bytes_of(owner: Any, start: int = 0, end: int | None = None) -> memoryview:
    """A view of an owner's bytes, writable if the owner is."""
    whole = owner.reshape(-1).view(np.uint8).data if isinstance(owner, np.ndarray) else memoryview(owner)
    return whole[start:end]


def _address(memory: Any) -> int:
    return int(np.frombuffer(memory, np.uint8).__array_interface__["data"][0])
