"""Operator mutation: mutations of small programs, sampled by module, each of which a scenario should catch."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from p4gen.model import EngineName
from p4gen.p4.compile import Compiled, compile_text
from p4gen.p4.mutate.mutants import Mutant, mutants
from p4gen.program import compose, render
from p4gen.ptf.equivalents import Equivalents
from p4gen.ptf.family import Mutated, conformance_of, scenario_modules, suite_of
from p4gen.ptf.judge import Finding, Trial, check_sound, judge
from p4gen.ptf.memory import Scenarios, load_suite
from p4gen.ptf.order import Order
from p4gen.vocabulary import ProgramSpec, Reliability

RELIABILITIES = (Reliability.GBN, Reliability.SR)
PIPELINES = (1, 2)


@dataclass(frozen=True, eq=False)
class Subject:
    """A program without faults, and all mutations of it."""

    name: str
    spec: ProgramSpec
    compiled: Compiled
    origins: tuple[tuple[str, int], ...]
    mutants: tuple[Mutant, ...]
    tests: tuple[str, ...] = ()
    """Modules of scenarios; if empty, all of the family's."""

    @classmethod
    def of(cls, mutated: Mutated) -> Subject:
        """A program, with the mutations of the modules that ``mutated`` selects."""
        rendered = render(compose(mutated.spec))
        compiled = compile_text(rendered.text, f"{mutated.spec.program}.p4")
        found = tuple(mutant for mutant in mutants(compiled) if mutated.of_module(mutant.module))
        return cls(mutated.name, mutated.spec, compiled, rendered.origins, found, mutated.tests)

    def template(self, mutant: Mutant) -> str:
        """The line of the template that a mutation changes."""
        file, line = self.origins[mutant.pos.line - 1]
        return f"templates/{file}:{line}"


@dataclass(frozen=True, eq=False)
class Fault:
    """A mutation of a subject. ``reason`` says why it causes no observable change, if it is known to be equivalent."""

    subject: Subject
    mutant: Mutant
    reason: str | None = None


def subjects(
    spec: ProgramSpec, reliabilities: Sequence[Reliability] = RELIABILITIES, pipelines: Sequence[int] = PIPELINES
) -> list[Subject]:
    """The small programs to mutate, of the same kind as the spec."""
    return [Subject.of(mutated) for mutated in conformance_of(spec).mutated(spec, reliabilities, pipelines)]


def faults_of(subjects: Sequence[Subject], equivalents: Equivalents) -> list[Fault]:
    """All mutations of some programs, with the reasons of those that are known to be equivalent."""
    return [Fault(s, mutant, equivalents.reason(s.name, mutant)) for s in subjects for mutant in s.mutants]


def sample(faults: Sequence[Fault], count: int, seed: int) -> list[Fault]:
    """A sample of ``count`` faults that are not equivalent, spread evenly over the modules of the programs."""
    chance = random.Random(seed)  # noqa: S311 - a repeatable choice
    drawn = sorted(
        (fault for fault in faults if fault.reason is None),
        key=lambda fault: (fault.subject.name, fault.mutant.module, chance.random()),
    )
    step = max(len(drawn) / count, 1)
    begin = chance.random() * step
    return [drawn[int(begin + i * step)] for i in range(min(count, len(drawn)))]


def run_operators(
    faults: Sequence[Fault], *, seed: int, engine: EngineName = "interp", jobs: int | None = None
) -> Generator[Trial[Fault]]:
    """Run the scenarios on each faulty program until one catches the fault. Yields trials in the order in which they
    end.

    Raises ``FailedError`` if scenarios fail without a fault.
    """
    caught: dict[str, Counter[str]] = {}
    for subject in dict.fromkeys(fault.subject for fault in faults):
        scenarios = load_suite(suite_of(subject.spec), subject.tests or scenario_modules(subject.spec))
        mine = [fault for fault in faults if fault.subject is subject]
        yield from _on(subject, scenarios, mine, caught, seed, engine, jobs)


def _on(
    subject: Subject,
    scenarios: Scenarios,
    faults: Sequence[Fault],
    caught: dict[str, Counter[str]],
    seed: int,
    engine: EngineName,
    jobs: int | None,
) -> Iterator[Trial[Fault]]:
    """Trials on one program. ``caught`` counts the scenarios that caught faults, by module; the results of this program
    are added."""
    program = subject.compiled.program
    sound = Trial("sound", subject.spec, lambda: program, list(scenarios))
    order = Order(check_sound(sound, scenarios, seed=seed, engine=engine), caught)

    def trials() -> Iterator[Trial[Fault]]:
        for fault in faults:
            mutant = fault.mutant
            yield Trial(
                fault,
                subject.spec,
                partial(mutant.apply, program),
                order.of(mutant.module),
                mutant.ignored,
            )

    for trial in judge(trials(), scenarios, seed=seed, engine=engine, jobs=jobs):
        if trial.finding is Finding.CAUGHT:
            order.learn(trial.fault.mutant.module, trial.by)
        yield trial
