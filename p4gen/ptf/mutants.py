"""Mutation testing of the conformance suite: does it notice when a program is wrong?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from p4gen.errors import FailedError, InputError
from p4gen.ptf.mutations import Mutation
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


def run_mutants(
    program: str,
    spec: ProgramSpec,
    mutations: Sequence[Mutation],
    directory: Path,
    *,
    seed: int,
    suite: Path | None = None,
    switch: Switch = running_switch,
    started: Callable[[Mutation], None] | None = None,
) -> Iterator[Verdict]:
    """Run the suite on ``program`` with each fault in turn, until a scenario fails.

    ``directory`` exists and is short (see ``run_suite``). Raises ``FailedError`` if the suite fails without
    any fault, or a fault does not fit the program, and ``P4genError`` if the program does not compile with
    it: such faults prove nothing.
    """

    def run(name: str, text: str) -> SuiteResult:
        place = directory / name
        place.mkdir()
        compiled = Program.of_text(text, place)
        params = {"spec": spec.model_dump(mode="json"), "seed": seed}
        return run_suite(
            compiled, place, ports=spec.ports, params=params, suite=suite, stop_on_failure=True, switch=switch
        )

    sound = run("no-fault", program)
    if not sound.passed:
        why = sound.problem or f"{sound.failures[0].name}: {sound.failures[0].message}"
        raise FailedError(f"the suite fails without any fault seeded: {why}")
    for mutation in mutations:
        if started is not None:
            started(mutation)
        try:
            result = run(mutation.name, mutation.apply(program))
        except InputError as error:
            raise FailedError(f"mutation {mutation.name} does not compile", *error.diagnostics) from error
        if result.failures:
            failure = result.failures[0]
            yield Verdict(mutation, failure.name, failure.message)
        else:
            yield Verdict(mutation, None, result.problem or f"survived {len(result.tests)} scenarios")
