"""What the conformance suite asks of a family of programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from p4gen.families import Facet, family_of
from p4gen.ptf.mutations import Seeding
from p4gen.resources import resource
from p4gen.spec import CollectiveSpec, ProgramSpec, Reliability

OfModule = Callable[[str], bool]
Suite = tuple[Path, ...]
"""Folders with modules of scenarios (``test_*.py``) and what these import; the first one wins where names are equal."""


S_co = TypeVar("S_co", bound=ProgramSpec, covariant=True)


@dataclass(frozen=True)
class SuiteRun(Generic[S_co]):
    """A program and the scenarios to run on it (PTF names; none for all that its family has for it)."""

    spec: S_co
    tests: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mutated:
    """A small program for operators to mutate: which modules are mutated in it, and which scenarios should notice."""

    name: str
    spec: CollectiveSpec
    of_module: OfModule = lambda _: True
    tests: tuple[str, ...] = ()
    """Modules of scenarios; none for all that the family has for the program."""


@dataclass(frozen=True)
class Conformance(Facet):
    """A family's scenarios, the programs that they run on, and the faults that they must notice.

    Functions take the family's own spec.
    """

    module: ClassVar[str] = "conformance"

    serves: Callable[[Any, str], bool]
    """Whether a module of the suite (``test_...``) has scenarios for a program."""
    runs: Callable[[Any], Sequence[SuiteRun[CollectiveSpec]]]
    """What it takes to run all scenarios of a program: its own, and small ones for what it has nothing to do with."""
    seeding: Callable[[Any], Seeding]
    """The listed faults for the small programs of a spec's kind."""
    axes: Mapping[str, Sequence[object]]
    """Fields whose values decide what a program does. None is a default, which is one of the others."""
    kept: tuple[str, ...]
    """Fields that ``every_program`` takes from the spec it is given."""
    every_program: Callable[[Any], Sequence[CollectiveSpec]]
    """A small program for each combination of the axes' values that goes together."""
    mutated: Callable[[Any, Sequence[Reliability], Sequence[int]], Sequence[Mutated]]
    """Small programs of a spec's kind for operators to mutate, of some reliabilities and numbers of pipelines."""
    equivalents: Path | None = None
    """A YAML file of mutations that change nothing which can be seen, each with the reason."""
    suite: Path | None = None
    """The folder of its scenarios, where they are not in p4gen's own suite."""
    takes_over: tuple[Path, ...] = ()
    """Folders of further scenarios that its programs must pass; those of ``suite`` may import their modules."""


def conformance_of(spec: ProgramSpec) -> Conformance:
    """What the suite knows of a spec's family."""
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
