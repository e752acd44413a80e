"""Types of the typed IR (P4_16 specification 1.2.5, section 7).

Nominal types (header, struct, enum …) compare by identity: the checker makes one object per
declaration, and one per distinct instantiation of a generic declaration.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from p4gen.p4.node import node

_TRANSLATION = re.compile(r'^"(?P<uri>[^"]*)" , (?:(?P<string>string)|bit < (?P<bit>\d\w*) >|(?P<plain>\d\w*))$')


class Type:
    """The base of all types. It has no equality of its own: nominal types would inherit it."""


@dataclass(frozen=True)
class Bits(Type):
    """``bit<width>``, or ``int<width>`` where ``signed``."""

    width: int
    signed: bool = False

    def __str__(self) -> str:
        return f"{'int' if self.signed else 'bit'}<{self.width}>"


@dataclass(frozen=True)
class Varbits(Type):
    """``varbit<max_width>``: at most ``max_width`` bits."""

    max_width: int

    def __str__(self) -> str:
        return f"varbit<{self.max_width}>"


@dataclass(frozen=True)
class Bool(Type):
    def __str__(self) -> str:
        return "bool"


@dataclass(frozen=True)
class Int(Type):
    """Compile-time ``int`` of unlimited size; only literals have it in the IR."""

    def __str__(self) -> str:
        return "int"


@dataclass(frozen=True)
class String(Type):
    def __str__(self) -> str:
        return "string"


@dataclass(frozen=True)
class Void(Type):
    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True)
class Error(Type):
    """``error``; its values are the names of the declared error constants."""

    def __str__(self) -> str:
        return "error"


@dataclass(frozen=True)
class MatchKind(Type):
    def __str__(self) -> str:
        return "match_kind"


@node
class Enum(Type):
    """An enum without representation; its values are member names."""

    name: str
    members: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


@node
class SerEnum(Type):
    """A serialisable enum (``enum bit<8> E {…}``); its values are integers of ``base``."""

    name: str
    base: Bits
    members: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Annotation:
    """``@name(body)``; ``args`` holds the parsed expressions (int, str, bool) where there are any.

    ``body`` is the tokens of the body, a space between each two. ``structured`` tells ``@name[…]``.
    """

    name: str
    args: tuple[int | str | bool, ...] = ()
    body: str = ""
    pairs: tuple[tuple[str, int | str | bool], ...] = ()
    structured: bool = False


@node
class FieldDef:
    name: str
    type: Type
    annotations: tuple[Annotation, ...] = ()


@node
class Fields(Type):
    """What structs, headers and header unions have in common."""

    name: str
    fields: tuple[FieldDef, ...]
    annotations: tuple[Annotation, ...] = ()
    _index: dict[str, FieldDef] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self._index.update((f.name, f) for f in self.fields)

    def __str__(self) -> str:
        return self.name

    def get(self, name: str) -> FieldDef | None:
        return self._index.get(name)


@node
class Struct(Fields):
    pass


@node
class Header(Fields):
    pass


@node
class HeaderUnion(Fields):
    pass


@dataclass(frozen=True)
class Stack(Type):
    """``element[size]``: a stack of headers or of header unions."""

    element: Type
    size: int

    def __str__(self) -> str:
        return f"{self.element}[{self.size}]"


@dataclass(frozen=True)
class Tuple(Type):
    elements: tuple[Type, ...]

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.elements))}>"


@node
class NewType(Type):
    """``type base name``: distinct for the checker, its base for the back ends (see ``strip``)."""

    name: str
    base: Type
    annotations: tuple[Annotation, ...] = ()

    def __str__(self) -> str:
        return self.name


def strip(t: Type) -> Type:
    """The representation of ``t``: newtypes replaced by their base."""
    while isinstance(t, NewType):
        t = t.base
    return t


def width_of(t: Type) -> int:
    """Bits that a value of ``t`` takes on the wire (varbit: the most it can take).

    Raises ``TypeError`` for types without one (spec 9.1, ``maxSizeInBits``).
    """
    t = strip(t)
    match t:
        case Bits(width=w):
            return w
        case Varbits(max_width=w):
            return w
        case Bool():
            return 1
        case SerEnum(base=base):
            return base.width
        case HeaderUnion(fields=fields):
            return max((width_of(f.type) for f in fields), default=0)
        case Fields(fields=fields):
            return sum(width_of(f.type) for f in fields)
        case Stack(element=element, size=size):
            return width_of(element) * size
        case Tuple(elements=elements):
            return sum(map(width_of, elements))
    raise TypeError(f"a value of type {t} has no width")


def translation(type_: Type) -> tuple[str, int | None] | None:
    """URI and width (None: a string) of ``@p4runtime_translation``; None without it."""
    for a in type_.annotations if isinstance(type_, NewType) else ():
        match = _TRANSLATION.match(a.body) if a.name == "p4runtime_translation" else None
        if match is not None:
            number = match["bit"] or match["plain"]
            return match["uri"], None if match["string"] else int(number, 0)
    return None


# --- the commonest types, one object for each ------------------------------------------------------


@cache
def bits(width: int, signed: bool = False) -> Bits:
    """``bit<width>`` or ``int<width>``, one object for each."""
    return Bits(width, signed)


BOOL = Bool()
INT = Int()
BIT32 = bits(32)
