"""Mutation testing of the conformance suite: does it notice when a program is wrong?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from p4gen.errors import P4genError
from p4gen.p4.compile import compile_text
from p4gen.ptf.mutations import Mutation
from p4gen.ptf.runner import run_suite
from p4gen.spec import ProgramSpec


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
    started: Callable[[Mutation], None] | None = None,
) -> Iterator[Verdict]:
    """Run the suite on ``program`` with each fault in turn, until a scenario fails.

    ``directory`` exists and is short (see ``run_suite``). Raises ``FailedError`` if a fault does not fit
    the program, and ``P4genError`` if the program does not compile with it: such a fault proves nothing.
    """
    for mutation in mutations:
        if started is not None:
            started(mutation)
        try:
            mutant = compile_text(mutation.apply(program), f"{mutation.name}.p4").program
        except P4genError as error:
            raise type(error)(f"mutation {mutation.name} does not compile", *error.diagnostics) from error
        place = directory / mutation.name
        place.mkdir()
        params = {"spec": spec.model_dump(mode="json"), "seed": seed}
        result = run_suite(mutant, place, ports=spec.ports, params=params, suite=suite, stop_on_failure=True)
        if result.failures:
            failure = result.failures[0]
            yield Verdict(mutation, failure.name, failure.message)
        else:
            yield Verdict(mutation, None, result.problem or f"survived {len(result.tests)} scenarios")
