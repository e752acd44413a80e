"""The scenarios of a suite: their names, what they test, and whether they apply to a program.

A suite's modules have names such as ``base``, so a separate process imports them: ``python -m p4gen.ptf.scenarios``.
"""

from __future__ import annotations

import ast
import difflib
import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from p4gen.errors import Diagnostic, FailedError, InputError, Option
from p4gen.families import parse_spec
from p4gen.ptf.family import Suite, modules_of, scenario_modules, suite_of
from p4gen.ptf.runner import environment
from p4gen.records import from_plain
from p4gen.vocabulary import ProgramSpec


@dataclass(frozen=True)
class Scenario:
    """A test of a suite: ``name`` is module.Class, ``about`` the first line of its documentation."""

    name: str
    about: str
    of_another_mode: bool
    unfit: str | None
    """Why it does not apply to the program; None if it does. If this depends on the number of ranks that a scenario
    draws, it is only known in the run."""


def scenarios(spec: ProgramSpec, suite: Suite | None = None) -> tuple[Scenario, ...]:
    """All scenarios of a suite (p4gen's own by default), in the order of their names."""
    folders = [str(folder.resolve()) for folder in suite or suite_of(spec)]
    command = [sys.executable, "-m", __name__, *folders]
    given = spec.model_dump_json()
    ran = subprocess.run(command, input=given, capture_output=True, text=True, env=environment(), check=False)
    if ran.returncode:
        raise FailedError(f"{' and '.join(folders)} cannot be imported: {ran.stderr.strip().splitlines()[-1]}")
    return from_plain(tuple[Scenario, ...], json.loads(ran.stdout.splitlines()[-1]))


def scenarios_of(kinds: Mapping[str, type], spec: ProgramSpec, suite: Suite | None = None) -> Iterator[Scenario]:
    """The scenarios of a suite that this process has imported: ``kinds`` are its classes, by name."""
    serving = scenario_modules(spec, suite)
    for name, kind in kinds.items():
        foreign = name.partition(".")[0] not in serving
        yield Scenario(name, _about(kind), foreign, kind().misfit_of(spec))


def are_there(wanted: Sequence[str], suite: Suite) -> bool:
    """Whether the text of a suite shows that each name is that of a scenario or of a module. Importing the suite, for
    ``check_names``, takes seconds."""
    modules = modules_of(suite)
    for name in wanted:
        module, _, kind = name.partition(".")
        if module not in modules:
            return False
        file = next(file for folder in suite if (file := folder / f"{module}.py").is_file())
        try:
            classes = [node for node in ast.parse(file.read_bytes()).body if isinstance(node, ast.ClassDef)]
        except (SyntaxError, ValueError):
            return False
        own = {node.name for node in classes if any(getattr(part, "name", "") == "runTest" for part in node.body)}
        if kind not in own if kind else not own:
            return False
    return True


def check_names(wanted: Sequence[str], known: Sequence[Scenario]) -> None:
    """Raises ``InputError``, with a suggestion, unless each name is that of a scenario or of a module."""
    names = [scenario.name for scenario in known]
    modules = list(dict.fromkeys(name.partition(".")[0] for name in names))
    classes = {name.partition(".")[2]: name for name in names}
    problems = []
    for name in wanted:
        if name in names or name in modules:
            continue
        # If a class is given, suggestions depend on the class alone, not on its module.
        near = [classes[one] for one in difflib.get_close_matches(name.rpartition(".")[2], classes, n=2, cutoff=0.7)]
        near = near or difflib.get_close_matches(name.partition(".")[0], modules, n=2, cutoff=0.75)
        hint = f"did you mean {' or '.join(near)}?" if near else "p4gen ptf list names all that fit a program"
        problems.append(Diagnostic(Option("test"), f"there is no scenario '{name}'; {hint}"))
    if problems:
        raise InputError(*problems)


def drawn_names(known: Sequence[Scenario], count: int, seed: int) -> tuple[str, ...]:
    """The names of ``count`` of the scenarios that apply to the program, or of all if there are fewer, in order."""
    fitting = [scenario.name for scenario in known if scenario.unfit is None and not scenario.of_another_mode]
    chosen = random.Random(seed).sample(fitting, min(count, len(fitting)))  # noqa: S311 - a repeatable choice
    return tuple(name for name in fitting if name in chosen)


def _collect(suite: Suite, spec: ProgramSpec) -> Iterator[Scenario]:
    from p4gen.ptf.memory import load_suite  # noqa: PLC0415 - PTF and Scapy take a second to load

    return scenarios_of(load_suite(suite, modules_of(suite)), spec, suite)


def _about(kind: type) -> str:
    """The first line of a scenario's docstring, or of the nearest base class that has one."""
    documented = (base.__doc__ for base in kind.__mro__ if "runTest" in dir(base) and base.__doc__)
    return next(documented, "").strip().partition("\n")[0]


if __name__ == "__main__":
    _spec = parse_spec(json.load(sys.stdin))
    print(json.dumps([asdict(scenario) for scenario in _collect(tuple(map(Path, sys.argv[1:])), _spec)]))  # noqa: T201
