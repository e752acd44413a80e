"""Faults that are seeded into a generated program, to show that the conformance suite catches them.

A fault is a replacement in the program's text. Its pattern must occur exactly once: a fault that no longer fits the
templates is an error, not a fault that nothing catches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from p4gen.errors import Diagnostic, FailedError


@dataclass(frozen=True)
class Mutation:
    """A fault: in ``module``, ``find`` is replaced with ``replace``."""

    name: str
    module: str
    find: str
    replace: str
    program: str = "plain"
    """The name of the program that it is seeded into."""
    excuse: str = field(default="", repr=False)
    """Why no search of sound hosts finds it; "" if one should."""
    scope: str = field(default="", repr=False)
    """The scope of a search that shows it after few states, if that is known. It is searched first."""
    place: str = field(default="", repr=False, compare=False)
    """The file and line that list it."""

    def to_dict(self) -> dict[str, str]:
        """What makes the fault, as plain data."""
        names = ("name", "module", "find", "replace", "program")
        return {name: getattr(self, name) for name in names}

    def apply(self, program: str) -> str:
        """The program with this fault. Raises ``FailedError`` unless it fits in exactly one place."""
        count = program.count(self.find)
        if count != 1:
            raise self.wrong(f"{self.find!r} occurs {count} times in the program, not once")
        return program.replace(self.find, self.replace)

    def wrong(self, why: str) -> FailedError:
        """What is wrong with the fault, as an error with its place."""
        return FailedError(Diagnostic(self.place or None, f"fault {self.name}: {why}"))


@dataclass(frozen=True)
class Seeding:
    """A list of faults, with the programs they are seeded into and the scenarios that should catch them."""

    mutations: tuple[Mutation, ...]
    programs: Mapping[str, Mapping[str, object]]
    """Spec fields by name of program. The programs are small, but have everything that their faults can break."""
    tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Modules of scenarios by name of program; all of the family's for a program that is not listed."""
    first: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Modules of scenarios that are tried first on the faults of a module of the program."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Faults of the list that have no form in the programs, and why."""

    def only(self, mutations: Sequence[Mutation]) -> Seeding:
        """Some of the faults, with the programs that they need."""
        used = {mutation.program for mutation in mutations}
        programs = {name: fields for name, fields in self.programs.items() if name in used}
        return replace(self, mutations=tuple(mutations), programs=programs, left_out={})
