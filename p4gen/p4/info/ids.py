"""Identifiers and aliases of P4Info objects, computed as p4c computes them.

An id is the object's kind in the upper 8 bits and, in the lower 24, Jenkins's one-at-a-time hash of
its name, probed linearly past ids taken; ``@id`` sets one by hand. An alias is the shortest suffix
of the name, in whole components, that no other object shares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from p4gen.p4.types import Annotation

ACTION, TABLE, VALUE_SET, CONTROLLER_HEADER = 0x01, 0x02, 0x03, 0x04
ACTION_PROFILE, COUNTER, DIRECT_COUNTER, METER, DIRECT_METER, REGISTER, DIGEST = range(0x11, 0x18)


def name_hash(name: str) -> int:
    """Jenkins's one-at-a-time hash of ``name``, 32 bits."""
    found = 0
    for byte in name.encode():
        found = (found + byte) & 0xFFFFFFFF
        found = (found + (found << 10)) & 0xFFFFFFFF
        found ^= found >> 6
    found = (found + (found << 3)) & 0xFFFFFFFF
    found ^= found >> 11
    return (found + (found << 15)) & 0xFFFFFFFF


def id_annotation(annotations: Iterable[Annotation]) -> int | None:
    """The number of ``@id``, None without one."""
    for annotation in annotations:
        if annotation.name == "id" and annotation.args and isinstance(annotation.args[0], int):
            return int(annotation.args[0])
    return None


class Symbols:
    """All objects that the control plane sees; add every one, then ``assign``."""

    def __init__(self) -> None:
        self._given: dict[tuple[int, str], int | None] = {}
        self._ids: dict[tuple[int, str], int] = {}
        self._suffixes: Counter[str] = Counter()

    def add(self, kind: int, name: str, annotations: Iterable[Annotation] = ()) -> None:
        """Register an object; a second one of the same kind and name is the same."""
        if (kind, name) not in self._given:
            self._given[kind, name] = id_annotation(annotations)

    def assign(self) -> None:
        """Compute every id and alias."""
        taken: set[int] = set()
        for (kind, name), given in self._given.items():
            if given is not None:
                self._ids[kind, name] = given if given >> 24 else kind << 24 | given
                taken.add(self._ids[kind, name])
        for kind, name in sorted(self._given):
            if (kind, name) in self._ids:
                continue
            number = name_hash(name)
            while (found := kind << 24 | number & 0xFFFFFF) in taken:
                number += 1
            self._ids[kind, name] = found
            taken.add(found)
        for name in {name for _, name in self._given}:
            self._suffixes.update(_suffixes(name))

    def id(self, kind: int, name: str) -> int:
        """The id of an object that was added."""
        return self._ids[kind, name]

    def alias(self, name: str) -> str:
        """The shortest unique suffix of ``name``."""
        return next((s for s in _suffixes(name) if self._suffixes[s] < 2), name)


def _suffixes(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[i:]) for i in range(len(parts) - 1, -1, -1)]


def member_ids(members: Iterable[Iterable[Annotation]]) -> list[int]:
    """Ids of the members of one object (parameters, keys): ``@id``, or their position from 1 on,
    skipping numbers taken."""
    given = [id_annotation(m) for m in members]
    taken = {g for g in given if g is not None}
    found: list[int] = []
    number = 1
    for wanted in given:
        if wanted is not None:
            found.append(wanted)
            number += 1
            continue
        while number in taken:
            number += 1
        found.append(number)
        taken.add(number)
    return found
