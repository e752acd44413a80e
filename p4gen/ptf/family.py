"""What a family of programs supplies for the conformance suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from p4gen.families import Facet, family_of
from p4gen.ptf.mutations import Seeding
from p4gen.resources import resource
from p4gen.spec import ProgramSpec, Reliability

OfModule = Callable[[str], bool]
Suite = tuple[Path, ...]
"""Folders with modules of scenarios (``test_*.py``) and what these import; the first one wins where names are equal."""


S_co = TypeVar("S_co", bound=ProgramSpec, covariant=True)


@dataclass(frozen=True)
class SuiteRun(Generic[S_co]):
    """A program and the scenarios to run on it (PTF names; if empty, all that the family has for it)."""

    spec: S_co
    tests: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mutated:
    """A small program for mutation operators: which of its modules are mutated, and which scenarios should catch the
    faults."""

    name: str
    spec: ProgramSpec
    of_module: OfModule = lambda _: True
    tests: tuple[str, ...] = ()
    """Modules of scenarios; if empty, all that the family has for the program."""


@dataclass(frozen=True)
class Conformance(Facet):
    """A family's scenarios, the programs that they run on, and the faults that they must catch.

    Functions take the family's own spec.
    """

    module: ClassVar[str] = "conformance"

    serves: Callable[[Any, str], bool]
    """Whether a module of the suite (``test_...``) has scenarios for a program."""
    runs: Callable[[Any], Sequence[SuiteRun[ProgramSpec]]]
    """The runs with which all scenarios of a program are covered: its own, and small programs for scenarios that do not
    apply to it."""
    seeding: Callable[[Any], Seeding]
    """The listed faults, seeded into small programs of the same kind as the spec."""
    axes: Mapping[str, Sequence[object]]
    """Spec fields that determine the behaviour of a program, with their values. None is the default, which equals one
    of the others."""
    kept: tuple[str, ...]
    """Spec fields that ``every_program`` copies from the spec it is given."""
    every_program: Callable[[Any], Sequence[Any]]
    """A small program for each valid combination of the axes' values."""
    mutated: Callable[[Any, Sequence[Reliability], Sequence[int]], Sequence[Mutated]]
    """Small programs of the same kind as the spec, for mutation operators, for the given reliabilities and numbers of
    pipelines."""
    equivalents: Path | None = None
    """A YAML file of mutations that cause no observable change, each with the reason."""
    suite: Path | None = None
    """The folder of the family's scenarios, if they are not part of p4gen's own suite."""
    takes_over: tuple[Path, ...] = ()
    """Folders of further scenarios that its programs must pass; those of ``suite`` may import their modules."""


def conformance_of(spec: ProgramSpec) -> Conformance:
    """What a spec's family supplies for the suite."""
    return family_of(spec).facet(Conformance)


def suite_of(spec: ProgramSpec) -> Suite:
    """The folders of the scenarios for a program, its family's own first."""
    facet = conformance_of(spec)
    return (facet.suite or resource("ptf_tests"), *facet.takes_over)


def scenario_modules(spec: ProgramSpec, suite: Suite | None = None) -> tuple[str, ...]:
    """The modules of a suite (the family's own by default) with scenarios for a program."""
    serves = conformance_of(spec).serves
    return tuple(name for name in modules_of(suite or suite_of(spec)) if serves(spec, name))


def modules_of(suite: Suite) -> tuple[str, ...]:
    """All modules of a suite with scenarios, those of the first folder first."""
    found = (sorted(path.stem for path in folder.glob("test_*.py")) for folder in suite)
    return tuple(dict.fromkeys(name for names in found for name in names))
