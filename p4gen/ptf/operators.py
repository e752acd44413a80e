"""Operator mutation: mutations of small programs, drawn by module, each of which a scenario should catch."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial

from p4gen.inc import compose
from p4gen.model import EngineName
from p4gen.p4.compile import Compiled, compile_text
from p4gen.p4.mutate.mutants import Mutant, mutants
from p4gen.ptf.conformance import scenario_modules
from p4gen.ptf.equivalents import Equivalents
from p4gen.ptf.judge import Finding, Trial, check_sound, judge
from p4gen.ptf.memory import Scenarios, load_suite
from p4gen.ptf.order import Order
from p4gen.ptf.runner import default_suite
from p4gen.render import render
from p4gen.spec import DType, Mode, ProgramSpec, Reliability

OfModule = Callable[[str], bool]
RELIABILITIES = (Reliability.GBN, Reliability.SR)
PIPELINES = (1, 2)


@dataclass(frozen=True, eq=False)
class Subject:
    """A sound program, and everything that can be wrong with it."""

    name: str
    spec: ProgramSpec
    compiled: Compiled
    origins: tuple[tuple[str, int], ...]
    mutants: tuple[Mutant, ...]
    tests: tuple[str, ...] = ()
    """Modules of scenarios; none for all of the mode's."""

    @classmethod
    def of(cls, name: str, spec: ProgramSpec, of_module: OfModule = lambda _: True, *tests: str) -> Subject:
        """A spec's program, with the mutations of some of its modules."""
        rendered = render(compose(spec))
        compiled = compile_text(rendered.text, f"{spec.program}.p4")
        found = tuple(mutant for mutant in mutants(compiled) if of_module(mutant.module))
        return cls(name, spec, compiled, rendered.origins, found, tests)

    def template(self, mutant: Mutant) -> str:
        """The template's line that a mutation is made in."""
        file, line = self.origins[mutant.pos.line - 1]
        return f"templates/{file}:{line}"


@dataclass(frozen=True, eq=False)
class Fault:
    """A mutation of a subject; ``reason`` says why it changes nothing that can be seen, if somebody has shown that."""

    subject: Subject
    mutant: Mutant
    reason: str | None = None


def subjects(
    mode: Mode, reliabilities: Sequence[Reliability] = RELIABILITIES, pipelines: Sequence[int] = PIPELINES
) -> list[Subject]:
    """The small programs of a mode that are mutated.

    What needs room is mutated in programs with more slots than a burst has packets, and than may be missing at a time.
    """
    made = []
    for reliability in reliabilities:
        for count in pipelines:
            name, spec = f"{mode} {reliability} {count}", _spec(mode, reliability, count)
            if mode is Mode.II:
                made.append(Subject.of(name, spec))
                continue
            roomy = {"StartCursor"} if reliability.in_order else {"StartCursor", "CheckOrder"}
            made.append(Subject.of(name, spec, partial(_others, roomy)))
            long = _spec(mode, reliability, count, slots=256)
            made.append(Subject.of(f"{name} long", long, roomy.__contains__, *_ORDER))
    return made


def _others(modules: Set[str], module: str) -> bool:
    return module not in modules


_ORDER = ("test_iii_order", "test_iii_selective", "test_iii_holes", "test_iii_generations", "test_iii_phases",
          "test_iii_collectives", "test_iii_pipelines", "test_iii_retransmission", "test_iii_timer",
          "test_iii_late_answers")  # fmt: skip


def _spec(mode: Mode, reliability: Reliability, pipelines: int, **fields: object) -> ProgramSpec:
    size = {"lanes": 8, "window": 2, "message": 2, "groups": 4, "ports": 8, "fan_in": 4 if pipelines == 1 else 8}
    # Numbers whose announced code is not 0: what reads as 0 is not taken for an announcement of theirs.
    what = {"mode": mode, "reliability": reliability, "pipelines": pipelines, "dtype": DType.UINT32}
    return ProgramSpec.model_validate({**size, **what, **fields})


def faults_of(subjects: Sequence[Subject], equivalents: Equivalents) -> list[Fault]:
    """All mutations of some programs, with what is known of them."""
    return [Fault(s, mutant, equivalents.reason(s.name, mutant)) for s in subjects for mutant in s.mutants]


def sample(faults: Sequence[Fault], count: int, seed: int) -> list[Fault]:
    """``count`` of the faults that count, so that each module of each program gets its share."""
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
    """Run the scenarios on each faulty program until one catches the fault; trials in the order in which they end.

    Raises ``FailedError`` if scenarios fail without any fault.
    """
    for subject in dict.fromkeys(fault.subject for fault in faults):
        scenarios = load_suite(default_suite(), subject.tests or scenario_modules(subject.spec.mode))
        yield from _on(subject, scenarios, [f for f in faults if f.subject is subject], seed, engine, jobs)


def _on(
    subject: Subject, scenarios: Scenarios, faults: Sequence[Fault], seed: int, engine: EngineName, jobs: int | None
) -> Iterator[Trial[Fault]]:
    program = subject.compiled.program
    sound = Trial("sound", subject.spec, lambda: program, list(scenarios))
    order = Order(check_sound(sound, scenarios, seed=seed, engine=engine))

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
