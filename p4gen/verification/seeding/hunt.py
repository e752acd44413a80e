"""The hunt for seeded faults: each fault of the conformance suite, searched for in small scopes until one shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b

from p4gen.errors import FailedError, InputError
from p4gen.families import load_spec
from p4gen.program import compose, render
from p4gen.ptf.family import conformance_of
from p4gen.ptf.mutations import Mutation, Seeding
from p4gen.scratch import scratch
from p4gen.verification.family import search_facet
from p4gen.verification.findings.confirm import repeat_steps
from p4gen.verification.findings.counterexample import SCHEDULE, schedule, story_of
from p4gen.verification.findings.results import Problem
from p4gen.verification.findings.scenario import switch_in, trial_in_process, write
from p4gen.verification.search.knowledge import Knowledge
from p4gen.verification.search.search import Search
from p4gen.verification.seeding.ladder import ladder
from p4gen.verification.system import System
from p4gen.verification.world import Scope
from p4gen.vocabulary import ProgramSpec

DEEPER = 10
"""How many times as many states are searched in the scope that, as the family says, shows a fault."""


@dataclass(frozen=True)
class Found:
    """The result of the search for a fault. ``scope`` and ``problem`` are None if no scope shows it; ``why`` then says
    why none could, if that is known."""

    fault: Mutation
    name: str = ""
    scope: Scope | None = None
    problem: Problem | None = None
    why: str = ""
    doubt: str = ""
    """What is wrong with the scenario made of the counterexample; "" if it fails on the program with the fault, and
    passes on the sound one."""

    @property
    def missing(self) -> bool:
        """Whether a search should have found the fault and has not, or its scenario does not show it."""
        return bool(self.doubt) or (self.problem is None and not self.why)


def seeding_of(spec: ProgramSpec) -> Seeding:
    """The listed faults of programs like ``spec``."""
    return conformance_of(spec).seeding(spec)


def program_of(seeding: Seeding, fault: Mutation) -> ProgramSpec:
    """The program into which a fault is seeded: that of the suite, or one like it that the family prefers for
    searches."""
    given = load_spec(None, dict(seeding.programs[fault.program]))
    for other in (*search_facet(given).searched(given), {}):
        spec = load_spec(None, {**seeding.programs[fault.program], **other})
        if placed(spec, fault) is not None:
            return spec
    raise InputError(f"the fault {fault.name} does not fit the program {fault.program}")


@lru_cache(maxsize=64)
def _text(spec: ProgramSpec) -> str:
    return render(compose(spec)).text


def placed(spec: ProgramSpec, fault: Mutation) -> Mutation | None:
    """The fault as it fits in exactly one place of a program. Where the program has the text in several places, it is
    that in the control of the fault's module. None if it does not fit."""
    text = _text(spec)
    if text.count(fault.find) == 1:
        return fault
    _, start, rest = text.partition(f"\ncontrol {fault.module}(")
    control, _, _ = rest.partition("\n}\n")
    if control.count(fault.find) != 1:
        return None
    front = start + control.partition(fault.find)[0]
    return replace(fault, find=front + fault.find, replace=front + fault.replace)


def beyond(spec: ProgramSpec, fault: Mutation) -> str:
    """Why a search of sound hosts cannot find a fault; "" if it should find it."""
    return fault.excuse or search_facet(spec).unfit(spec)


def doubt(system: System, problem: Problem) -> str:
    """Make a PTF scenario of a counterexample, and run it in memory with the program of ``system`` and with the sound
    one. Returns what is wrong if it does not tell them apart."""
    story = story_of(system, problem.events)
    with scratch() as place:
        place.joinpath(SCHEDULE).write_text(schedule(story, problem), encoding="utf-8")
        path = write(story, problem.text, place)
        if path is None:
            return "no switch does anything else than one with the sound program"
        wrong, right = trial_in_process(system.scope, switch_in(path), place)
    if wrong:
        return "the scenario passes with the fault"
    return "" if right else "the scenario fails with the sound program"


class Hunt:
    """Searches for faults of a list, one after the other, in all scopes of the ladder or in those named, each as far as
    about ``states`` states. The scope that, as the family says, shows a fault comes first, and is searched ten times as
    far.

    A scope is searched with the sound program first. If a faulty program does the same at each step of the switches,
    its search would be the same, and is left out.
    """

    def __init__(self, seeding: Seeding, *, states: int, scopes: Sequence[str] = ()) -> None:
        self._seeding = seeding
        self._states = states
        self._scopes = scopes
        self._sound: dict[tuple[str, str], tuple[Knowledge, bool]] = {}

    def find(self, fault: Mutation) -> Found:
        """Search until a scope shows the fault, and so does its scenario. Raises ``P4genError`` for a scope in which
        the sound program violates a property."""
        spec = program_of(self._seeding, fault)
        if why := beyond(spec, fault):
            return Found(fault, why=why)
        best = Found(fault)
        for name, scope in self._ladder(spec, fault):
            there = placed(scope.program, fault)
            if there is None:
                continue
            knowledge, complete = self._steps(name, scope)
            expected = name == fault.scope
            seeded = scope.with_fault(there)
            system = System(seeded)
            if complete and not expected and all(step.same for step in repeat_steps(knowledge, system)):
                continue
            states = self._states * DEEPER if expected else self._states
            problem = Search(system, workers=1).run(states=states).problem
            if problem is not None:
                # What a switch holds at the end shows in nothing that it sends.
                held = problem.property == "locks"
                found = Found(fault, name, seeded, problem, doubt="" if held else doubt(system, problem))
                if not found.doubt:
                    return found
                best = found if best.problem is None else best
        return best

    def digest(self, fault: Mutation) -> str:
        """A digest of everything that ``find`` depends on, in hexadecimal digits: the program, the fault, the bound,
        the first scope."""
        spec = program_of(self._seeding, fault)
        content = _text(spec), fault, self._states, tuple(self._scopes), fault.scope, beyond(spec, fault)
        return blake2b(repr(content).encode(), digest_size=12).hexdigest()

    def _ladder(self, spec: ProgramSpec, fault: Mutation) -> list[tuple[str, Scope]]:
        """The scopes for a fault, in the order of their searches."""
        shown = fault.scope
        scopes = [(name, scope) for name, scope in ladder(spec) if not self._scopes or name in self._scopes]
        return sorted(scopes, key=lambda named: named[0] != shown)

    def _steps(self, name: str, scope: Scope) -> tuple[Knowledge, bool]:
        """The steps of the sound program's switches in a scope, and whether these are all."""
        key = name, repr(scope.program)
        if key not in self._sound:
            search = Search(System(scope), workers=1)
            result = search.run(states=self._states)
            if result.problem is not None:
                raise FailedError(f"without a fault: {name}: {result.problem.property}: {result.problem.text}")
            self._sound[key] = search.knowledge, result.complete
        return self._sound[key]
