"""Breadth-first search through all states of a system, level by level."""

from __future__ import annotations

import errno
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from p4gen.compiled import run
from p4gen.compiled.cached import is_kept
from p4gen.errors import InputError
from p4gen.verification.findings.results import Problem, Progress, Result
from p4gen.verification.search import kernel
from p4gen.verification.search.events import END, MOST_HELD
from p4gen.verification.search.kernel import Shape
from p4gen.verification.search.knowledge import Knowledge
from p4gen.verification.search.states import BYTES
from p4gen.verification.search.symmetry import Symmetry, Way
from p4gen.verification.search.team import Team, Threads
from p4gen.verification.search.worker import Marks
from p4gen.verification.system import System
from p4gen.verification.world import Budget

MOST_PARTS = 256
"""Links, hosts, ticks: their numbers have eight bits in questions and events."""
MOST_STATES = (1 << 32) - 2


def waits_for() -> str:
    """What the first search takes some seconds for before it begins; "" if for nothing."""
    kept = is_kept(run.run) and is_kept(kernel.expand)
    return "" if kept else "compiling hosts and the search, once"


@dataclass(frozen=True)
class _Limits:
    """The limits at which a search stops: seconds, depth, states."""

    seconds: float | None
    depth: int | None
    states: int | None
    begun: float = field(default_factory=time.monotonic)

    @property
    def passed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.begun


def prompt(budget: Budget, *, paced: bool) -> int:
    """How much a search prunes by repair without timers (``Shape.prompt``).

    ``paced``: no rank sends before there is room.
    """
    faults = replace(budget, forgeries=0)
    if paced and faults == Budget(duplicates=faults.duplicates):
        return 2
    return int(faults == Budget(losses=1))


class Search:
    """A search. ``reduce`` switches the partial-order reduction on, ``symmetry`` the one by symmetries; ``memory``
    limits the set of states, in bytes. ``team`` does the work, by default ``workers`` threads. Without ``heed`` the
    search goes on after violations, and reports none."""

    def __init__(
        self,
        system: System,
        *,
        reduce: bool = True,
        symmetry: bool = False,
        workers: int = 1,
        team: Team | None = None,
        memory: int = 4 << 30,
        liveness: bool = True,
        heed: bool = True,
    ) -> None:
        budget = system.scope.budget
        if symmetry and budget.forgeries:
            raise InputError("a host that sends in another's name has no equal: no reduction by symmetry")
        self.system = system
        self._symmetry = Symmetry(system) if symmetry else None
        self.knowledge = Knowledge(system, self._symmetry)
        if budget.duplicates + budget.delays > MOST_HELD:
            raise InputError(f"more than {MOST_HELD} duplicates and delays: that many packets are put by at most")
        if max(len(system.links), len(system.hosts), len(system.ticks)) > MOST_PARTS:
            raise InputError(
                f"{system.scope.topology.name} has more than {MOST_PARTS} links, hosts or edges with ticks"
            )
        self._budget = [
            budget.losses,
            budget.duplicates,
            budget.delays,
            budget.corruptions,
            budget.timeouts,
            budget.forgeries,
        ]
        links = system.links
        self._shape = Shape(
            len(system.switches),
            len(system.hosts),
            len(links),
            np.array([link.to_host for link in links], np.int32),
            np.array([link.part for link in links], np.int32),
            np.array([tick.switch for tick in system.ticks], np.int32),
            np.array(self._budget, np.int32),
            np.array(system.forged, np.int32),
            system.forging,
            int(reduce),
            prompt(budget, paced=system.rules.no_drops),
            int(system.rules.no_drops),
        )
        self._most = min(memory // BYTES, MOST_STATES)
        self._liveness = liveness and heed
        self._heed = heed
        self._team: Team = Threads(workers) if team is None else team
        self._progress = Progress()
        self._stood = 0, 0
        self._why = ""
        """Why the search stopped."""

    def run(
        self,
        *,
        seconds: float | None = None,
        depth: int | None = None,
        states: int | None = None,
        report: Callable[[Progress], None] | None = None,
    ) -> Result:
        """Search until all states are known, a property is violated, or a limit is reached: of time, of levels, or of
        states, which is noticed after the batch that exceeds it."""
        with self._team as team:
            return self._run(team, _Limits(seconds, depth, states), report)

    def _run(self, team: Team, limits: _Limits, report: Callable[[Progress], None] | None) -> Result:
        switches, hosts, contents = self.system.begin()
        self.knowledge.settle()
        row = np.array([*switches, *hosts, *contents, *self._budget], np.uint32)
        team.begin(self._shape, row, self._most, liveness=self._liveness)
        team.learn(self.knowledge.known)
        progress = self._progress
        problem: Problem | None = None
        progress.frontier = sum(team.advance())
        while progress.frontier and problem is None and not self._why:
            problem = self._level(team, limits)
            progress.level += 1
            progress.frontier = sum(team.advance())
            progress.executions = self.knowledge.executions
            progress.seconds = limits.passed
            if report is not None:
                report(progress)
            if limits.depth is not None and progress.level >= limits.depth and progress.frontier:
                self._why = f"{limits.depth} levels have been searched"
        if problem is None and not self._why and self._liveness:
            problem = self._unending(team)
        local = (*map(len, self.system.switch_watches), *map(len, self.system.host_watches))
        return Result(
            progress.distinct,
            progress.transitions,
            progress.level - 1,
            self.knowledge.executions,
            limits.passed,
            problem is None and not self._why,
            sum(team.ends()),
            problem,
            self._why,
            local,
            None if self._symmetry is None or self._shape.reduce else self._stood,
        )

    def _level(self, team: Team, limits: _Limits) -> Problem | None:
        """Expand all states of a level. Returns the first violation in one of them, None if there is none."""
        wrong: list[tuple[int, ...]] = []
        more = True
        while more and not self._why:
            expanded = team.expand()
            try:
                counts = team.exchange()
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                self._why = f"no room for temporary files in {tempfile.gettempdir()}"
                break
            self._progress.transitions += sum(each.found for each in expanded)
            self._progress.distinct = sum(counts)
            for each in expanded:
                self._stood = self._stood[0] + each.stood, self._stood[1] + each.stood_steps
            wrong += [tuple(note) for each in expanded for note in each.wrong.tolist()]
            asked = np.unique(np.concatenate([each.questions for each in expanded]))
            if len(asked):
                self.knowledge.answer(int(question) for question in asked)
                team.learn(self.knowledge.known)
            more = any(each.more for each in expanded)
            if self._progress.distinct > self._most:
                self._why = "the set of states is full"
            elif limits.states is not None and self._progress.distinct > limits.states:
                self._why = f"{limits.states:,} states have been found"
            elif limits.seconds is not None and limits.passed > limits.seconds:
                self._why = f"{limits.seconds:g} s have passed"
        return self._problem(team, min(wrong)) if wrong and self._heed else None

    # --- problems ---

    def _problem(self, team: Team, note: tuple[int, ...]) -> Problem:
        """The violation that the kernel has noted."""
        number, event, effect, kind = note
        if kind == 1:
            text = "nothing is on its way, no timer runs, and not all calls have ended"
            return Problem("deadlock", text, self._way(team, number).events)
        if kind == 2:
            way = self._way(team, number)
            name = self.system.names[way.parts[event]]
            return Problem("progress", f"{name} has seen a gap, and only a timer can close it", way.events)
        if kind == 4:
            text = f"all calls have ended, and {self.system.names[event]} is still locked"
            return Problem("locks", text, self._way(team, number).events)
        if kind == 3:
            return Problem("progress", "nothing was lost, and only a timer can go on", self._way(team, number).events)
        way = self._way(team, number, event)
        happened = way.effect or self.knowledge.effects[effect]
        text = happened.problem or f"without a fault: {', '.join(happened.lost)}"
        return Problem(happened.violated, text, way.events)

    def _way(self, team: Team, number: int, *more: int) -> Way:
        """The events that led to a state first, and the event that follows there."""
        words = [*more]
        while True:
            number, word = team.origin(number)
            if word == END:
                break
            words.insert(0, word)
        if self._symmetry is not None:
            return self._symmetry.undone(words)
        return Way(tuple(words), None, tuple(range(len(self.system.names))))

    def _unending(self, team: Team) -> Problem | None:
        """The first state that reaches no end, or from which packets go on without end; None if there is none."""
        lost, events = self._unmarked(team, team.reaching(), every=False)
        if lost:
            return Problem("livelock", f"from here on no end can be reached ({lost:,} states)", events)
        endless, events = self._unmarked(team, team.bounded(), every=True)
        if endless:
            text = "from here on packets can be sent for ever, without a timer or a fault"
            return Problem("progress", text, events)
        return None

    def _unmarked(self, team: Team, first: list[Marks], *, every: bool) -> tuple[int, tuple[int, ...]]:
        """The number of states without a mark, and the events that lead to one of the nearest of them."""
        workers = team.workers
        marks = np.ones(max(map(len, first)) * workers, np.uint8)
        swept: list[Marks | None] = [*first]
        while any(each is not None for each in swept):
            for me, own in enumerate(swept):
                if own is not None:
                    marks[me::workers][: len(own)] = own
            swept = team.sweep(marks, every=every)
        lost = np.flatnonzero(marks == 0)
        # A worker's numbers rise from level to level: its least one is one of its nearest.
        nearest = np.unique(lost % workers, return_index=True)[1]
        ways = [self._way(team, int(number)).events for number in lost[nearest]]
        return len(lost), min(ways, key=len, default=())
