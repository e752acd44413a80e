"""Run-time values of the behavioural model (P4_16 specification 1.2.5, sections 7 and 8).

``bit<N>`` and ``int<N>`` are Python integers, already wrapped to their width; booleans are ``bool``; enum members,
error constants and strings are ``str``. Everything else is one of the classes here. A composite value owns its parts
and is never replaced: assignment copies into it (``assign``), so a location found before an expression is evaluated
stays valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from p4gen.p4 import types as t


@dataclass(frozen=True, slots=True)
class Varbit:
    """A ``varbit<N>`` that currently holds ``width`` bits."""

    width: int
    value: int


class StructValue:
    """A struct, tuple or list: its fields in declaration order."""

    __slots__ = ("fields",)

    def __init__(self, fields: list[Any]) -> None:
        self.fields = fields

    def copy(self) -> StructValue:
        """A copy that shares no mutable part."""
        return self.__class__([copy_value(v) for v in self.fields])

    def assign(self, other: StructValue) -> None:
        """Take over ``other``'s fields, part by part."""
        _assign_all(self.fields, other.fields)


class UnionValue(StructValue):
    """A header union: at most one of its headers is valid (spec 8.20)."""

    __slots__ = ()


class HeaderValue:
    """A header: validity and fields. Fields keep what was stored while the header is invalid, as
    BMv2's do; the specification leaves them undefined (spec 8.17)."""

    __slots__ = ("fields", "valid")

    def __init__(self, fields: list[Any], valid: bool = False) -> None:
        self.fields = fields
        self.valid = valid

    def copy(self) -> HeaderValue:
        """A copy that shares no mutable part."""
        return HeaderValue([copy_value(v) for v in self.fields], self.valid)

    def assign(self, other: HeaderValue) -> None:
        """Take over ``other``'s validity and fields."""
        self.valid = other.valid
        _assign_all(self.fields, other.fields)


class FlatHeaderValue(HeaderValue):
    """A header whose fields are all scalars, which is nearly every one: copies are list copies."""

    __slots__ = ()

    @override
    def copy(self) -> FlatHeaderValue:
        return FlatHeaderValue(self.fields[:], self.valid)

    @override
    def assign(self, other: HeaderValue) -> None:
        self.valid = other.valid
        self.fields[:] = other.fields


class StackValue:
    """A header stack; ``next`` is the index that ``next`` means in a parser (spec 8.18)."""

    __slots__ = ("fields", "next")

    def __init__(self, fields: list[Any], next_index: int = 0) -> None:
        self.fields = fields
        self.next = next_index

    def copy(self) -> StackValue:
        """A copy that shares no mutable part."""
        return StackValue([v.copy() for v in self.fields], self.next)

    def assign(self, other: StackValue) -> None:
        """Take over ``other``'s elements and position."""
        self.next = other.next
        _assign_all(self.fields, other.fields)


COMPOSITE = (StructValue, HeaderValue, StackValue)


def copy_value(value: Any) -> Any:
    """``value`` itself if it is immutable, otherwise a deep copy."""
    return value.copy() if isinstance(value, COMPOSITE) else value


def _assign_all(target: list[Any], source: list[Any]) -> None:
    for i, value in enumerate(source):
        if isinstance(value, COMPOSITE):
            target[i].assign(value)
        else:
            target[i] = value


def is_composite(of: t.Type) -> bool:
    """Whether values of that type are mutable objects that assignment copies."""
    return isinstance(t.strip(of), (t.Fields, t.Stack, t.Tuple))


def zero(of: t.Type) -> Any:
    """The value of an uninitialised variable: all zero, headers invalid, as in BMv2.

    Raises ``TypeError`` for types without run-time values.
    """
    of = t.strip(of)
    match of:
        case t.Bits() | t.Int() | t.SerEnum():
            return 0
        case t.Bool():
            return False
        case t.Varbits():
            return Varbit(0, 0)
        case t.Error():
            return "NoError"
        case t.Enum(members=members):
            return members[0] if members else ""
        case t.String():
            return ""
        case t.Header(fields=fields):
            values = [zero(f.type) for f in fields]
            flat = not any(isinstance(v, COMPOSITE) for v in values)
            return FlatHeaderValue(values) if flat else HeaderValue(values)
        case t.HeaderUnion(fields=fields):
            return UnionValue([zero(f.type) for f in fields])
        case t.Struct(fields=fields):
            return StructValue([zero(f.type) for f in fields])
        case t.Stack(element=element, size=size):
            return StackValue([zero(element) for _ in range(size)])
        case t.Tuple(elements=elements):
            return StructValue([zero(e) for e in elements])
    raise TypeError(f"type {of} has no run-time values")


def equal(a: Any, b: Any) -> bool:
    """``a == b`` of P4: headers are equal when both are invalid, or both are valid and their fields
    are equal (spec 8.17); structs, tuples, unions and stacks are compared part by part (8.15, 8.16, 8.18)."""
    if isinstance(a, HeaderValue):
        if a.valid != b.valid:
            return False
        return not a.valid or all(map(equal, a.fields, b.fields))
    if isinstance(a, (StructValue, StackValue)):
        return all(map(equal, a.fields, b.fields))
    return bool(a == b)


def union_or_header_valid(value: HeaderValue | UnionValue) -> bool:
    """``isValid()``: a union is valid when one of its headers is (spec 8.20)."""
    if isinstance(value, HeaderValue):
        return value.valid
    return any(h.valid for h in value.fields)


def invalidate(value: Any) -> None:
    """Make every header in ``value`` invalid and reset every stack: the initial value of ``out`` parameters."""
    if isinstance(value, HeaderValue):
        value.valid = False
    elif isinstance(value, (StructValue, StackValue)):
        if isinstance(value, StackValue):
            value.next = 0
        for part in value.fields:
            invalidate(part)


def clear_header(header: HeaderValue) -> None:
    """All fields zero: what BMv2 does when an invalid header becomes valid."""
    for i, value in enumerate(header.fields):
        if isinstance(value, StructValue):
            clear_header(HeaderValue(value.fields))
        elif isinstance(value, Varbit):
            header.fields[i] = Varbit(0, 0)
        else:
            header.fields[i] = 0 if not isinstance(value, bool) else False


def shift_stack(stack: StackValue, count: int, push: bool) -> None:
    """``push_front`` or ``pop_front``: elements move by ``count``, freed ones become invalid (spec 8.18)."""
    elements, size = stack.fields, len(stack.fields)
    count = min(count, size)
    if push:
        for i in range(size - 1, count - 1, -1):
            elements[i].assign(elements[i - count])
        freed = range(count)
        stack.next = min(stack.next + count, size)
    else:
        for i in range(size - count):
            elements[i].assign(elements[i + count])
        freed = range(size - count, size)
        stack.next = max(stack.next - count, 0)
    for i in freed:
        invalidate(elements[i])
