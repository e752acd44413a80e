"""Switches as automata: the generated program on a model, whose registers are the state."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from p4gen.errors import InputError
from p4gen.model import Model
from p4gen.switch.drops import losses
from p4gen.verification.search.interning import Interned
from p4gen.vocabulary import ProgramSpec

Words = tuple[tuple[int, ...], ...]
"""The contents of a program's registers, in the program's order."""


@dataclass(frozen=True)
class SwitchStep:
    """The step of a switch with packets: its new state, the frames that it sends, by link and in order, the reasons for
    which it dropped packets, and what is wrong."""

    state: int
    sent: tuple[tuple[int, tuple[bytes, ...]], ...]
    lost: tuple[str, ...] = ()
    problem: str = ""


class SwitchPart:
    """A switch. States are numbers; ``process`` is a function of a state, a port and frames.

    ``links`` are the numbers of its outgoing links, by port. ``clocks`` are registers that only measure time: they are
    as in a new switch before each event. ``locks`` are registers that are 0 when no call is under way. ``registers``
    are the names of all, in the order of ``Words``.
    """

    def __init__(
        self,
        name: str,
        spec: ProgramSpec,
        model: Model,
        links: Mapping[int, int],
        clocks: Collection[str],
        locks: Collection[str] = (),
    ) -> None:
        if model.keeps_time:
            raise InputError(f"{name}: the program has meters, and what they say depends on time")
        self.name = name
        self.spec, self._model, self._links = spec, model, links
        self.registers = model.register_names
        self.clocks = tuple(register for register in self.registers if register in clocks)
        self._locks = [at for at, register in enumerate(self.registers) if register in locks]
        self._cells = [(model.register_cells(register), register in clocks) for register in self.registers]
        self._states: Interned[Words] = Interned()
        self._lost = losses(spec, model.counters)
        self._traps = len(model.traps())
        self._now = self._read()
        self.first = self._states.number(self._now)

    def process(self, state: int, port: int, frames: tuple[bytes, ...]) -> SwitchStep:
        """Let frames arrive at a port, one after the other."""
        self._write(self._states[state])
        out: dict[int, list[bytes]] = {}
        problem = ""
        for frame in frames:
            for leaves, sent in self._model.process(port, frame):
                if leaves in self._links:
                    out.setdefault(self._links[leaves], []).append(sent)
                else:
                    problem = f"{self.name}: sends to port {leaves}, where there is no link"
        lost = losses(self.spec, self._model.counters)
        reasons = tuple((lost - self._lost).elements())
        self._lost = lost
        traps = self._model.traps()
        if len(traps) > self._traps:
            problem = f"{self.name}: {traps[-1]}"
        self._traps = len(traps)
        self._now = self._read()
        sent_by_link = tuple((link, tuple(frames)) for link, frames in out.items())
        return SwitchStep(self._states.number(self._now), sent_by_link, reasons, problem)

    def __len__(self) -> int:
        return len(self._states)

    def holds(self, state: int) -> bool:
        """Whether it is locked in a state."""
        return any(any(self._states[state][at]) for at in self._locks)

    def number(self, words: Words) -> int:
        """The number of a state; a new state gets a new number."""
        return self._states.number(words)

    def words(self, state: int) -> Words:
        """The registers of a state."""
        return self._states[state]

    def _read(self) -> Words:
        found = []
        for cells, clock in self._cells:
            if clock:
                cells[:] = [0] * len(cells)
            found.append(tuple(cells))
        return tuple(found)

    def _write(self, words: Words) -> None:
        for (cells, _), before, after in zip(self._cells, self._now, words, strict=True):
            if before != after:
                for index, (old, new) in enumerate(zip(before, after, strict=True)):
                    if old != new:
                        cells[index] = new
        self._now = words
