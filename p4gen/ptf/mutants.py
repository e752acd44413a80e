"""Mutation testing of the conformance suite: does it notice when a program is wrong?"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path

from p4gen.errors import FailedError, InputError
from p4gen.ptf.conformance import scenario_modules
from p4gen.ptf.mutations import Mutation, Seeding
from p4gen.ptf.parallel import Stop, in_parallel
from p4gen.ptf.runner import SuiteResult, Switch, run_suite
from p4gen.spec import ProgramSpec
from p4gen.switch.process import running_switch
from p4gen.switch.running import Program


@dataclass(frozen=True)
class Verdict:
    """What became of a fault: the scenario that caught it and what it said, or None and why not."""

    mutation: Mutation
    caught_by: str | None
    message: str


@dataclass(frozen=True)
class Sound:
    """A program without faults: its spec and its text."""

    spec: ProgramSpec
    text: str


def run_mutants(
    seeding: Seeding,
    programs: Mapping[str, Sound],
    directory: Path,
    *,
    seed: int,
    suite: Path | None = None,
    switch: Switch = running_switch,
    jobs: int | None = None,
) -> Generator[Verdict, None, None]:
    """Run the scenarios on each program with each of its faults in turn, until one fails; verdicts in their order.

    ``programs`` are those that ``seeding`` names. ``directory`` exists and is short (see ``run_suite``). ``jobs`` runs
    are under way at a time, by default one for each processor. Raises ``FailedError`` if scenarios fail without any
    fault, or a fault does not fit its program, and ``P4genError`` if a program does not compile with it: such faults
    prove nothing.
    """

    def run(name: str, sound: Sound, text: str, tests: tuple[str, ...], stop: Stop) -> SuiteResult:
        place = directory / name
        place.mkdir()
        compiled = Program.of_text(text, place)
        return run_suite(
            compiled,
            place,
            ports=sound.spec.ports,
            params={"spec": sound.spec.model_dump(mode="json"), "seed": seed},
            suite=suite,
            tests=tests,
            stop_on_failure=True,
            switch=switch,
            stop=stop,
        )

    def modules(name: str) -> tuple[str, ...]:
        return seeding.tests.get(name, scenario_modules(programs[name].spec.mode, suite))

    def check(name: str, stop: Stop) -> None:
        result = run(f"sound-{name}", programs[name], programs[name].text, modules(name), stop)
        if not result.passed:
            why = result.problem or f"{result.failures[0].name}: {result.failures[0].message}"
            raise FailedError(f"{programs[name].spec.program}: scenarios fail without any fault seeded: {why}")

    def judge(mutation: Mutation, stop: Stop) -> Verdict:
        sound = programs[mutation.program]
        tests = seeding.order(mutation, modules(mutation.program))
        try:
            result = run(mutation.name, sound, mutation.apply(sound.text), tests, stop)
        except InputError as error:
            raise FailedError(f"mutation {mutation.name} does not compile", *error.diagnostics) from error
        if result.failures:
            return Verdict(mutation, result.failures[0].name, result.failures[0].message)
        return Verdict(mutation, None, result.problem or f"survived {len(result.tests)} scenarios")

    jobs = jobs or os.cpu_count() or 1
    with in_parallel(check, sorted({mutation.program for mutation in seeding.mutations}), jobs) as checked:
        list(checked)
    with in_parallel(judge, seeding.mutations, jobs) as verdicts:
        yield from verdicts
