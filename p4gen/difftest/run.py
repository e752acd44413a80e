"""A complete differential test of a program: both switches, the traffic, the first difference and its reduction."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from p4gen.difftest.compare import Comparison, Difference, Tally
from p4gen.difftest.events import Event, Packet
from p4gen.difftest.family import traffic_of
from p4gen.difftest.reduce import minimise, shortest_tail
from p4gen.difftest.save import save
from p4gen.difftest.sides import bmv2_side, checked, embedded_side
from p4gen.model import EngineName
from p4gen.program import compose
from p4gen.ptf.mutations import Mutation
from p4gen.vocabulary import ProgramSpec

SIDES = ("embedded", "bmv2")


@dataclass(frozen=True)
class Fault:
    """A fault to be seeded into the program of one side."""

    mutation: Mutation
    side: str

    def __str__(self) -> str:
        return f"{self.mutation.name}@{self.side}"


@dataclass(frozen=True)
class Result:
    """The result of a differential test. With a difference, ``reduced`` has as few packets as still show it."""

    tally: Tally
    seconds: float
    registers: bool
    difference: Difference | None = None
    found_after: int = 0
    reduced: tuple[Event, ...] = ()
    files: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Job:
    """A differential test. The programs, logs, requests and, with ``reduce``, the files of the difference are written
    to ``folder``."""

    spec: ProgramSpec
    text: str
    seed: int
    packets: int
    folder: Path
    scratch: Path
    engine: EngineName = "interp"
    fault: Fault | None = None
    reduce: bool = True
    progress: Callable[[Tally], None] | None = field(default=None, repr=False)

    def run(self) -> Result:
        """Run the test. Raises ``P4genError`` when a program does not compile or a switch does not start."""
        name, started = self.spec.program, time.monotonic()
        kind = traffic_of(self.spec)
        programs = {
            side: checked(
                self._text(side), name, self.folder / side, for_bmv2=side == "bmv2", faulty=self._faulty(side)
            )
            for side in SIDES
        }
        with contextlib.ExitStack() as stack:
            ports = self.spec.ports
            embedded = stack.enter_context(
                embedded_side(programs["embedded"], self.scratch / "embedded", ports, self.engine)
            )
            bmv2 = stack.enter_context(
                bmv2_side(programs["bmv2"], self.scratch / "bmv2", ports, partial(kind.goes_round, self.spec))
            )
            registers = bmv2.has_registers
            embedded.has_registers = registers
            traffic = kind.source(self.spec, self.seed)
            comparison = Comparison(embedded, bmv2, traffic.setup(), compose(self.spec).words)
            comparison.restart()
            found = comparison.run(traffic.packets(), self.packets, self.progress)
            tally = comparison.tally
            if found is None:
                return Result(tally, time.monotonic() - started, registers)
            after = sum(isinstance(event, Packet) for event in found.events)
            if not self.reduce:
                return Result(tally, time.monotonic() - started, registers, found.difference, after)
            tally = Tally(tally.packets, tally.outputs, tally.requests, tally.refused, tally.states)
            difference, setup, events = self._reduce(comparison, traffic.setup(), found.events, found.difference)
            reference = embedded if self.fault is not None and self.fault.side == "bmv2" else bmv2
            note = f"p4gen difftest of {name}, seed {self.seed}" + (f", fault {self.fault}" if self.fault else "")
            files = save(self.folder, comparison, reference, difference, setup, events, note)
        return Result(tally, time.monotonic() - started, registers, difference, after, tuple(events), tuple(files))

    def _faulty(self, side: str) -> bool:
        return self.fault is not None and self.fault.side == side

    def _text(self, side: str) -> str:
        return self.fault.mutation.apply(self.text) if self.fault and self._faulty(side) else self.text

    def _reduce(
        self, comparison: Comparison, setup: list[Event], events: tuple[Event, ...], first: Difference
    ) -> tuple[Difference, list[Event], list[Event]]:
        """Reduce the packets first, then the configuration. Returns the difference, the configuration and the
        events."""

        def fails(candidate: object) -> bool:
            assert isinstance(candidate, (list, tuple))
            return comparison.replay(candidate, setup) is not None

        if not fails(events):
            # The difference is not repeatable, so the original run is all there is to show.
            return first, setup, list(events)
        shown = minimise(shortest_tail(events, fails), fails)
        needed = minimise(setup, lambda candidate: comparison.replay(shown, candidate) is not None)
        difference = comparison.replay(shown, needed)
        return difference or first, needed, shown
