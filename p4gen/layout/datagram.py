"""The RoCEv2 datagrams that a program works on, each declared once.

From a family's table come the lengths of its P4 preamble, the states of the parser behind the BTH, the branches of the
invariant CRC, the tables of docs/wire-format.md, and the dissector for Wireshark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Final

from p4gen.layout.header import Header

AROUND: Final = 8 + 12 + 4
"""Bytes of a datagram beside what follows the BTH: UDP header, BTH, ICRC."""


@dataclass(frozen=True)
class Datagram:
    """A kind of datagram: what follows the BTH, and the opcodes by which a program knows it."""

    name: str
    """As in ``DATA_LENGTH``, the constant with its UDP length, which several kinds may have; "" if it has none."""
    meaning: str
    body: tuple[Header, ...]
    """The headers between the BTH and the ICRC."""
    opcodes: tuple[IntEnum, ...]
    """By which it is known, with their names in ``opcode_t``."""
    made: bool = False
    """Whether a program makes it only, and does not parse it."""
    inner: bool = False
    """Whether it never leaves the switch, and has no ICRC that anybody checks."""

    @cached_property
    def size(self) -> int:
        """Bytes between the BTH and the ICRC."""
        return sum(header.size for header in self.body)

    @property
    def length(self) -> int:
        """The length in its UDP header, which counts that header, the BTH and the ICRC."""
        return AROUND + self.size

    @property
    def simple(self) -> bool:
        """Whether a single header follows the BTH."""
        return len(self.body) == 1

    @property
    def counts(self) -> str:
        """The sizes that its length counts: ``reth 16, payload 256``."""
        return ", ".join(f"{header.name} {header.size}" for header in self.body)

    @property
    def state(self) -> str:
        """The parser's state for what follows the BTH; datagrams with the same single header share one."""
        return f"parse_{self.body[0].name if self.simple else self.name.lower()}"


@dataclass(frozen=True)
class Branch:
    """A branch of a chain of conditions that tells bodies by their headers."""

    valid: str | None
    """The header that is valid there; None of the last branch."""
    body: tuple[str, ...]
    """The names of the headers behind the BTH, if there is one body."""
    inner: tuple[Branch, ...] = ()
    """The chain within the branch, if there are several bodies."""


@dataclass(frozen=True)
class Datagrams:
    """A family's table."""

    all: tuple[Datagram, ...]

    @property
    def parsed(self) -> tuple[Datagram, ...]:
        """Those that the parser knows, in the order of the table."""
        return tuple(datagram for datagram in self.all if not datagram.made)

    @property
    def named(self) -> tuple[Datagram, ...]:
        """Those whose lengths are constants, one for each."""
        return tuple({datagram.name: datagram for datagram in self.all if datagram.name}.values())

    @property
    def opcodes(self) -> tuple[tuple[IntEnum, str], ...]:
        """Each opcode once, with the meaning of the datagram that has it first; "" behind that one's first opcode."""
        found: dict[IntEnum, str] = {}
        for datagram in self.all:
            for number, opcode in enumerate(datagram.opcodes):
                found.setdefault(opcode, "" if number else datagram.meaning)
        return tuple(found.items())

    @property
    def states(self) -> tuple[Datagram, ...]:
        """One datagram for each state of the parser, those with several headers first."""
        found = {datagram.state: datagram for datagram in self.parsed}
        return tuple(sorted(found.values(), key=lambda datagram: datagram.simple))

    @property
    def has_inner(self) -> bool:
        """Whether some never leave the switch."""
        return any(datagram.inner for datagram in self.all)

    def branches(self, *, without: str = "") -> tuple[Branch, ...]:
        """The chain that tells the bodies of all datagrams with an ICRC; the header ``without`` is not told."""
        names = (tuple(h.name for h in each.body if h.name != without) for each in self.all if not each.inner)
        return branches(tuple(dict.fromkeys(names)))


def of_headers(headers: Iterable[Header]) -> Datagrams:
    """The table of a family that declares none: a header follows the BTH, or another one."""
    return Datagrams(tuple(Datagram("", header.meaning, (header,), ()) for header in headers))


def branches(bodies: Sequence[tuple[str, ...]]) -> tuple[Branch, ...]:
    """The chain of conditions that tells bodies, in their order, by which headers are valid.

    >>> [branch.valid for branch in branches([("aeth",), ("reth", "immediate"), ("reth",)])]
    ['aeth', 'immediate', None]
    """
    return _branches(tuple((body, body) for body in bodies))


def _branches(left: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]) -> tuple[Branch, ...]:
    """The same of bodies, each with the headers by which it may be told."""
    (told, body), later = left[0], left[1:]
    if not later:
        return (Branch(None, body),)
    own = next((name for name in told if not any(name in others for others, _ in later)), None)
    if own is not None:
        return (Branch(own, body), *_branches(later))
    shared = told[-1]
    group = tuple((tuple(name for name in names if name != shared), whole) for names, whole in left if shared in names)
    rest = tuple(each for each in left if shared not in each[0])
    return (Branch(shared, (), _branches(group)), *_branches(rest)) if rest else _branches(group)
