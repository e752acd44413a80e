"""Mutants: small programs with one fault each, which the conformance suite should catch.

A list has faults that somebody has thought of (``Conformance.seeding``); mutation operators make all others by rule
(``p4gen.p4.mutate``). Both are mutants of a subject, and one runner judges them.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

from p4gen.errors import FailedError, InputError
from p4gen.model import EngineName
from p4gen.p4 import ir
from p4gen.p4.compile import Compiled, compile_text
from p4gen.p4.mutate import mutants as operators
from p4gen.program import compose, render
from p4gen.ptf.equivalents import Equivalents
from p4gen.ptf.family import OfModule, conformance_of, scenario_modules, suite_of
from p4gen.ptf.judge import Finding, Trial, check_sound, judge
from p4gen.ptf.memory import Scenarios, load_suite
from p4gen.ptf.mutations import Mutation, Seeding
from p4gen.ptf.order import Order
from p4gen.vocabulary import ProgramSpec, Reliability

RELIABILITIES = (Reliability.GBN, Reliability.SR)
PIPELINES = (1, 2)


@dataclass(frozen=True, eq=False)
class Subject:
    """A small program without faults."""

    name: str
    spec: ProgramSpec
    text: str
    origins: tuple[tuple[str, int], ...] = ()
    """The template and its line that each line of the text is from."""
    tests: tuple[str, ...] = ()
    """Modules of scenarios; if empty, all of the family's."""
    first: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Modules of scenarios that are tried first on the faults of a module of the program."""

    @classmethod
    def of(
        cls,
        name: str,
        spec: ProgramSpec,
        tests: tuple[str, ...] = (),
        first: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> Subject:
        """The subject whose text is composed from a spec."""
        rendered = render(compose(spec))
        return cls(name, spec, rendered.text, rendered.origins, tests, first)

    @cached_property
    def compiled(self) -> Compiled:
        """The front end's result. The front end runs at the first access."""
        return compile_text(self.text, f"{self.spec.program}.p4")


@dataclass(frozen=True, eq=False)
class Mutant:
    """A subject with one fault."""

    subject: Subject
    module: str
    name: str
    """The fault's name in its list, or that of the operator."""
    change: str
    """What becomes of what."""
    build: Callable[[], ir.Program]
    """The program with the fault. Raises ``FailedError`` if it does not fit, ``InputError`` if it does not compile."""
    described: Mapping[str, Any]
    """The fault as plain data."""
    ignored: tuple[operators.Ignored, ...] = ()
    listed: bool = False
    """Whether a list has it: then it must compile, and it is caught or the suite has failed."""
    place: str = ""
    """Where it is: of one that an operator makes, the line of the program and that of the template."""
    equivalent: str | None = None
    """Why it causes no observable change, if that is known."""


def listed_mutants(seeding: Seeding, subjects: Mapping[str, Subject]) -> list[Mutant]:
    """The faults of a list, in its programs by name."""
    return [_listed(fault, subjects[fault.program]) for fault in seeding.mutations]


def listed_subjects(spec: ProgramSpec, seeding: Seeding) -> dict[str, Subject]:
    """The programs of a list of faults, by name, for the architecture of a spec."""
    found = {}
    for name, fields in seeding.programs.items():
        small = type(spec).model_validate({**fields, "arch": spec.arch})
        found[name] = Subject.of(name, small, tuple(seeding.tests.get(name, ())), seeding.first)
    return found


def _listed(fault: Mutation, subject: Subject) -> Mutant:
    def build() -> ir.Program:
        text = fault.apply(subject.text)
        if not re.search(rf"{re.escape(fault.module)}\w*\s*\(", text):
            raise fault.wrong(f"its program has no module {fault.module}")
        try:
            return compile_text(text).program
        except InputError as error:
            raise FailedError(*fault.wrong("does not compile").diagnostics, *error.diagnostics) from error

    change = f"{' '.join(fault.find.split())}  →  {' '.join(fault.replace.split()) or operators.DROPPED}"
    return Mutant(
        subject,
        fault.module,
        fault.name,
        change,
        build,
        fault.to_dict(),
        listed=True,
        place=fault.place,
    )


def made_mutants(
    spec: ProgramSpec,
    equivalents: Equivalents,
    reliabilities: Sequence[Reliability] = RELIABILITIES,
    pipelines: Sequence[int] = PIPELINES,
) -> list[Mutant]:
    """What operators make of the small programs of a spec's kind, with the reasons of those that are known to be
    equivalent."""
    found = []
    for mutated in conformance_of(spec).mutated(spec, reliabilities, pipelines):
        found += mutants_of(Subject.of(mutated.name, mutated.spec, mutated.tests), equivalents, mutated.of_module)
    return found


def mutants_of(subject: Subject, equivalents: Equivalents, of_module: OfModule = lambda _: True) -> list[Mutant]:
    """What operators make of a subject, in the modules that ``of_module`` selects."""
    made = (mutant for mutant in operators.mutants(subject.compiled) if of_module(mutant.module))
    return [_made(subject, mutant, equivalents.reason(subject.name, mutant)) for mutant in made]


def _made(subject: Subject, mutant: operators.Mutant, equivalent: str | None) -> Mutant:
    file, line = subject.origins[mutant.pos.line - 1]
    p4, template = f"{mutant.pos.file}:{mutant.pos.line}", f"templates/{file}:{line}"
    which = f" ({mutant.number})" if mutant.number > 1 else ""
    return Mutant(
        subject,
        mutant.module,
        mutant.operator,
        f"{mutant.operator}{which}: {mutant.before}  →  {mutant.after}",
        partial(_applied, mutant, subject),
        {
            "program": subject.name,
            "module": mutant.module,
            "where": mutant.where,
            "operator": mutant.operator,
            "before": mutant.before,
            "after": mutant.after,
            "number": mutant.number,
            "p4": p4,
            "template": template,
        },
        mutant.ignored,
        place=f"{mutant.where}  {p4} ({template})",
        equivalent=equivalent,
    )


def _applied(mutant: operators.Mutant, subject: Subject) -> ir.Program:
    return mutant.apply(subject.compiled.program)


def sample(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """A sample of ``count`` mutants, or all if there are fewer, spread evenly over the modules of the programs."""
    chance = random.Random(seed)  # noqa: S311 - a repeatable choice
    drawn = sorted(mutants, key=lambda mutant: (mutant.subject.name, mutant.module, chance.random()))
    step = max(len(drawn) / count, 1)
    begin = chance.random() * step
    return [drawn[int(begin + i * step)] for i in range(min(count, len(drawn)))]


def run_mutants(
    mutants: Sequence[Mutant], *, seed: int, engine: EngineName = "interp", jobs: int | None = None
) -> Generator[Trial[Mutant]]:
    """Run the scenarios on each mutant until one catches its fault. Yields trials in the order in which they end.

    ``jobs`` run at a time, by default one for each processor. Raises ``FailedError`` if scenarios fail without a fault,
    or a listed fault does not fit its program or does not compile, because such faults prove nothing.
    """
    caught: dict[str, Counter[str]] = {}
    for subject in dict.fromkeys(mutant.subject for mutant in mutants):
        mine = [mutant for mutant in mutants if mutant.subject is subject]
        scenarios = load_suite(suite_of(subject.spec), subject.tests or scenario_modules(subject.spec))
        yield from _on(subject, scenarios, mine, caught, seed, engine, jobs)


def _on(
    subject: Subject,
    scenarios: Scenarios,
    mutants: Sequence[Mutant],
    caught: dict[str, Counter[str]],
    seed: int,
    engine: EngineName,
    jobs: int | None,
) -> Iterator[Trial[Mutant]]:
    """Trials of one subject. ``caught`` counts the scenarios that caught faults, by module; the results of this subject
    are added."""
    seconds = check_sound(subject.spec, subject.compiled.program, scenarios, seed=seed, engine=engine, jobs=jobs)
    order = Order(seconds, caught)

    def trials() -> Iterator[Trial[Mutant]]:
        for mutant in mutants:
            names = order.of(mutant.module, subject.first.get(mutant.module, ()))
            yield Trial(mutant, subject.spec, mutant.build, names, mutant.ignored)

    for trial in judge(trials(), scenarios, seed=seed, engine=engine, jobs=jobs):
        if trial.finding is Finding.INVALID and trial.fault.listed:
            trial.fault.build()  # says what is wrong with its place
            raise FailedError(f"fault {trial.fault.name}: cannot be loaded: {trial.message}")
        if trial.finding is Finding.CAUGHT:
            order.learn(trial.fault.module, trial.by)
        yield trial
