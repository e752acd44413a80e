"""What a family of programs supplies for the conformance suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, TypeVar

from pydantic import ValidationError

from p4gen.errors import InputError
from p4gen.families import Facet, OwnSpec, family_of
from p4gen.program import compose, render
from p4gen.ptf.equivalents import Equivalents, equivalents_in
from p4gen.ptf.mutations import Seeding
from p4gen.resources import resource
from p4gen.vocabulary import ProgramSpec, Reliability

OfModule = Callable[[str], bool]
Suite = tuple[Path, ...]
"""Folders with modules of scenarios (``test_*.py``) and what these import; the first one wins where names are equal."""


IPV6_SCENARIOS: Final = resource("ptf_tests") / "ipv6"
"""Scenarios of programs of all families that know IPv6."""
_IPV6_EQUIVALENTS: Final = resource("ptf_tests") / "shared" / "equivalents_ipv6.yaml"

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
class Conformance(Facet, Generic[OwnSpec]):
    """A family's scenarios, the programs that they run on, and the faults that they must catch."""

    module: ClassVar[str] = "conformance"

    serves: Callable[[OwnSpec, str], bool]
    """Whether a module of the suite (``test_...``) has scenarios for a program."""
    runs: Callable[[OwnSpec], Sequence[SuiteRun[ProgramSpec]]]
    """The runs with which all scenarios of a program are covered: its own, and small programs for scenarios that do not
    apply to it."""
    seeding: Callable[[OwnSpec], Seeding]
    """The listed faults, seeded into small programs of the same kind as the spec."""
    axes: Mapping[str, Sequence[object]]
    """Spec fields that determine the behaviour of a program, with their values. None is the default, which equals one
    of the others."""
    kept: tuple[str, ...]
    """Spec fields that ``every_program`` copies from the spec it is given."""
    every_program: Callable[[OwnSpec], Sequence[OwnSpec]]
    """A small program for each valid combination of the axes' values."""
    mutated: Callable[[OwnSpec, Sequence[Reliability], Sequence[int]], Sequence[Mutated]]
    """Small programs of the same kind as the spec, for mutation operators, for the given reliabilities and numbers of
    pipelines."""
    passes: Callable[[OwnSpec], int]
    """The most passes through ingress that one frame may cause; scenarios fail where a switch says that there were
    more."""
    equivalents: Path | None = None
    """A YAML file of mutations that cause no observable change, each with the reason."""
    suite: Path | None = None
    """The folder of the family's scenarios, if they are not part of p4gen's own suite."""
    takes_over: tuple[Path, ...] = ()
    """Folders of further scenarios that its programs must pass; those of ``suite`` may import their modules."""

    @property
    def folders(self) -> Suite:
        """All folders with scenarios for its programs, the family's own first."""
        return (self.suite or resource("ptf_tests"), *self.takes_over)


def conformance_of(spec: ProgramSpec) -> Conformance[Any]:
    """What a spec's family supplies for the suite; for a program of two families, what both do."""
    own = _of_family(spec)
    if spec.beside is None:
        return own
    other = _of_family(spec.beside)
    both = _together(spec)

    def serves(spec: Any, module: str) -> bool:
        if module in modules_of(both):
            return True
        if module in modules_of(own.folders):
            return own.serves(spec, module)
        return other.serves(spec.beside, module)

    first, *rest = (*both, *own.folders, *other.folders)
    return replace(
        own,
        serves=serves,
        runs=lambda spec: tuple(_runs(spec, own, other)),
        seeding=lambda spec: _seeding(spec, own, other),
        mutated=lambda spec, reliabilities, pipelines: [
            replace(each, spec=run.spec)
            for each in own.mutated(spec, reliabilities, pipelines)
            for run in _run(each.spec, spec.beside, f"beside_{each.spec.program}", ())
        ],
        passes=lambda spec: max(own.passes(spec), other.passes(spec.beside)),
        suite=first,
        takes_over=tuple(rest),
    )


def _of_family(spec: ProgramSpec) -> Conformance[Any]:
    """What a spec's family supplies, and for its program itself the scenarios of IPv6 if it knows IPv6."""
    own: Conformance[Any] = family_of(spec).facet(Conformance)
    return _with_ipv6(own) if spec.ipv6 else own


def _with_ipv6(own: Conformance[Any]) -> Conformance[Any]:
    further = modules_of((IPV6_SCENARIOS,))

    def runs(spec: Any) -> tuple[SuiteRun[Any], ...]:
        first, *rest = own.runs(spec)
        return (replace(first, tests=(*first.tests, *further) if first.tests else ()), *rest)

    return replace(
        own,
        serves=lambda spec, module: module in further or own.serves(spec, module),
        runs=runs,
        seeding=lambda spec: _of_kinds(spec, own.seeding(spec)),
        takes_over=(*own.takes_over, IPV6_SCENARIOS),
    )


def _of_kinds(spec: ProgramSpec, listed: Seeding) -> Seeding:
    """The listed faults in programs with the spec's kinds of IP. Left out are faults in text that is not there, or
    that speak of IPv4 where there is none."""
    programs = {name: {**fields, "ip": spec.ip} for name, fields in listed.programs.items()}
    made = {name: {**fields, "arch": spec.arch} for name, fields in programs.items()}
    texts = {name: render(compose(type(spec).model_validate(fields))).text for name, fields in made.items()}
    foreign = "\0" if spec.ipv4 else "ipv4"
    there = {
        one: texts[one.program].count(one.find) == 1 and one.module in texts[one.program] and foreign not in one.replace
        for one in listed.mutations
    }
    lost = {one.name: f"its text is not in programs of ip {spec.ip}" for one in there if not there[one]}
    mutations = tuple(one for one in there if there[one])
    return replace(listed, mutations=mutations, programs=programs, left_out={**listed.left_out, **lost})


def equivalents_of(spec: ProgramSpec) -> Equivalents:
    """What is listed of mutations of a spec's program that cause no observable change."""
    own = conformance_of(spec).equivalents
    return equivalents_in(*([] if own is None else [own]), *([_IPV6_EQUIVALENTS] if spec.ipv6 else []))


def suite_of(spec: ProgramSpec) -> Suite:
    """The folders of the scenarios for a program, its family's own first, after those about two families together."""
    return conformance_of(spec).folders


def scenario_modules(spec: ProgramSpec, suite: Suite | None = None) -> tuple[str, ...]:
    """The modules of a suite (the family's own by default) with scenarios for a program."""
    serves = conformance_of(spec).serves
    return tuple(name for name in modules_of(suite or suite_of(spec)) if serves(spec, name))


def modules_of(suite: Suite) -> tuple[str, ...]:
    """All modules of a suite with scenarios, those of the first folder first."""
    found = (sorted(path.stem for path in folder.glob("test_*.py")) for folder in suite)
    return tuple(dict.fromkeys(name for names in found for name in names))


def _together(spec: ProgramSpec) -> Suite:
    """The folder of scenarios about both families, if there is one."""
    assert spec.beside is not None
    folder: Path = resource("ptf_tests") / f"{spec.family}_{spec.beside.family}"
    return (folder,) if folder.is_dir() else ()


def _runs(spec: ProgramSpec, own: Conformance[Any], other: Conformance[Any]) -> Iterator[SuiteRun[ProgramSpec]]:
    """The runs of both families, each on programs of both. A program in which the two cannot be is left out."""
    (first, *further), (theirs, *others) = own.runs(spec), other.runs(spec.beside)
    if first.tests:
        rest = theirs.tests or modules_of(other.folders)
        yield SuiteRun(spec, (*first.tests, *rest, *modules_of(_together(spec))))
    else:
        yield SuiteRun(spec)
    for number, run in enumerate(further, start=1):
        tests = run.tests or tuple(name for name in modules_of(own.folders) if own.serves(run.spec, name))
        yield from _run(run.spec, spec.beside, f"beside_{number}_{run.spec.program}", tests)
    for number, run in enumerate(others, start=1 + len(further)):
        tests = run.tests or tuple(name for name in modules_of(other.folders) if other.serves(run.spec, name))
        yield from _run(spec, run.spec, f"beside_{number}_{run.spec.program}", tests)


def _run(
    spec: ProgramSpec, guest: ProgramSpec | None, name: str, tests: tuple[str, ...]
) -> Iterator[SuiteRun[ProgramSpec]]:
    given = {name: getattr(spec, name) for name in spec.model_fields_set}
    with suppress(ValidationError, InputError):
        both = type(spec).model_validate({**given, "beside": guest, "name": name[:63]})
        compose(both)
        yield SuiteRun(both, tests)


def _seeding(spec: ProgramSpec, own: Conformance[Any], other: Conformance[Any]) -> Seeding:
    """The faults of both families, in programs of both. Left out are faults of programs in which the two cannot be, and
    faults in text that is not there exactly once."""
    assert spec.beside is not None
    mine, theirs = own.seeding(spec), other.seeding(spec.beside)
    small = next(iter(mine.programs.values()))
    programs: dict[str, Mapping[str, object]] = {}
    texts: dict[str, str] = {}
    guests = {name: type(spec.beside).model_validate(fields) for name, fields in theirs.programs.items()}
    for name, fields, guest in (
        *((name, fields, spec.beside) for name, fields in mine.programs.items()),
        *((_theirs(name), {**small, "ip": guest.ip}, guest) for name, guest in guests.items()),
    ):
        with suppress(ValidationError, InputError):
            both = {**fields, "beside": guest}
            texts[name] = render(compose(type(spec).model_validate(both))).text
            programs[name] = both
    others = (replace(one, program=_theirs(one.program)) for one in theirs.mutations)
    mutations = tuple(one for one in (*mine.mutations, *others) if texts.get(one.program, "").count(one.find) == 1)
    of_other = {_theirs(name): theirs.tests.get(name, modules_of(other.folders)) for name in theirs.programs}
    first = {**theirs.first, **mine.first}
    return Seeding(mutations, programs, {**mine.tests, **of_other}, first)


def _theirs(program: str) -> str:
    """The name of a program for faults of the second family."""
    return f"beside-{program}"
