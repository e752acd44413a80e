"""Tests whether the conformance suite catches the faults of a list (``Conformance.seeding``)."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from p4gen.errors import FailedError, InputError
from p4gen.model import EngineName
from p4gen.p4 import ir
from p4gen.p4.compile import compile_text
from p4gen.ptf.family import Suite, scenario_modules, suite_of
from p4gen.ptf.judge import Finding, Trial, check_sound, judge
from p4gen.ptf.memory import load_suite
from p4gen.ptf.mutations import Mutation, Seeding
from p4gen.ptf.order import Order
from p4gen.vocabulary import ProgramSpec


@dataclass(frozen=True)
class Sound:
    """A program without faults: its spec and its text."""

    spec: ProgramSpec
    text: str


def run_mutants(
    seeding: Seeding,
    programs: Mapping[str, Sound],
    *,
    seed: int,
    suite: Suite | None = None,
    engine: EngineName = "interp",
    jobs: int | None = None,
) -> Generator[Trial[Mutation]]:
    """Run the scenarios on each program with each of its faults in turn, until one fails. Yields trials as they end.

    ``programs`` are those that ``seeding`` names. ``jobs`` run at a time, by default one for each processor. Raises
    ``FailedError`` if scenarios fail without a fault, a fault does not fit its program, or a program does not compile
    with it, because such faults prove nothing.
    """
    for name in dict.fromkeys(mutation.program for mutation in seeding.mutations):
        sound = programs[name]
        modules = seeding.tests.get(name, scenario_modules(sound.spec, suite))
        scenarios = load_suite(suite or suite_of(sound.spec), modules)
        program = compile_text(sound.text).program
        sound_trial = Trial("", sound.spec, partial(_same, program), list(scenarios))
        order = Order(check_sound(sound_trial, scenarios, seed=seed, engine=engine))

        def trials(name: str = name, sound: Sound = sound, order: Order = order) -> Iterator[Trial[Mutation]]:
            for mutation in seeding.mutations:
                if mutation.program == name:
                    try:
                        faulty = compile_text(mutation.apply(sound.text)).program
                    except InputError as error:
                        raise FailedError(f"mutation {mutation.name} does not compile", *error.diagnostics) from error
                    names = order.of(mutation.module, seeding.first.get(mutation.module, ()))
                    yield Trial(mutation, sound.spec, partial(_same, faulty), names)

        for trial in judge(trials(), scenarios, seed=seed, engine=engine, jobs=jobs):
            if trial.finding is Finding.INVALID:
                raise FailedError(f"mutation {trial.fault.name} cannot be loaded: {trial.message}")
            if trial.finding is Finding.CAUGHT:
                order.learn(trial.fault.module, trial.by)
            yield trial


def _same(program: ir.Program) -> ir.Program:
    return program
