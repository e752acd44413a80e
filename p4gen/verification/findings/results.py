"""The progress and the result of a search."""

from __future__ import annotations

from dataclasses import dataclass, field

from p4gen.verification.findings.story import events_of
from p4gen.verification.system import System


@dataclass(frozen=True)
class Problem:
    """A violation: the property, what happened, and the events that lead there from the beginning."""

    property: str
    text: str
    events: tuple[int, ...]

    def summary(self, system: System) -> dict[str, object]:
        """The violation as plain data, for JSON."""
        events = [f"{each.what} {each.where} {each.position}" for each in events_of(system, self.events)]
        return {"property": self.property, "text": self.text, "events": events}


@dataclass
class Progress:
    """Counts of a running search."""

    level: int = 0
    distinct: int = 1
    transitions: int = 0
    frontier: int = 1
    executions: int = 0
    seconds: float = 0.0

    def sentence(self) -> str:
        """The counts in one line, for a terminal."""
        rate = self.transitions / max(self.seconds, 1e-3)
        return (
            f"level {self.level}: {self.distinct:,} states, {self.frontier:,} of them new; {self.transitions:,} "
            f"transitions, {rate:,.0f} a second; {self.executions:,} executions of programs and hosts"
        )


@dataclass
class Result:
    """The result of a search. ``complete`` is False if it was stopped before all states were seen."""

    distinct: int
    transitions: int
    depth: int
    executions: int
    seconds: float
    complete: bool
    ends: int
    """Number of states in which everything has ended and no event is left."""
    problem: Problem | None = None
    why: str = ""
    """Why the search is not complete."""
    local: tuple[int, ...] = field(default=())
    """Numbers of states of switches, then of hosts."""
    stood: tuple[int, int] | None = None
    """With symmetry only: the numbers of states and transitions that there are without a reduction."""

    def sentence(self) -> str:
        """The result in one line, for a terminal."""
        if self.problem is not None:
            verdict = "violated"
        else:
            verdict = "verified: all states are known" if self.complete else f"incomplete: {self.why}"
        stood = "" if self.stood is None else " (for {:,} and {:,})".format(*self.stood)
        return (
            f"{verdict}; {self.distinct:,} states, {self.transitions:,} transitions{stood}, {self.depth} levels, "
            f"{self.executions:,} executions of programs and hosts, {self.seconds:.1f} s"
        )

    def summary(self) -> dict[str, object]:
        """The result as plain data."""
        names = ("distinct", "transitions", "depth", "executions", "seconds", "complete", "ends", "why")
        return {name: getattr(self, name) for name in names} | {
            "local_states": list(self.local),
            "stands_for": self.stood,
        }
